package server

import (
	"bytes"
	_ "embed"
	"fmt"
)

// The paths of openapi.json are written by hand; internal/gen writes the schemas of bodies and
// answers. TestOpenAPI holds it equal to what the server answers, and the table
// of routes to its paths.
//
//go:embed openapi.json
var openAPIFile []byte

// openAPIDocument returns the document of /openapi.json: the file with this version in it.
func openAPIDocument(version string) ([]byte, error) {
	const mark = `"version": "dev"`
	if bytes.Count(openAPIFile, []byte(mark)) != 1 {
		return nil, fmt.Errorf("server: openapi.json has no place for the version")
	}
	return bytes.Replace(openAPIFile, []byte(mark), appendJSONString([]byte(`"version": `), version), 1), nil
}
