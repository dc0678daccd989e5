// Command gen writes the generated files of this repository, which "make generate" writes and
// "make fresh" checks: the Go files *_gen.go, the schemas in server/openapi.json,
// clients/schema.json, the API as a table for clients in other languages, and the types of these clients.
//
//	go run ./internal/gen          # write the files that changed
//	go run ./internal/gen -check   # write nothing, fail if a file is stale
//
// A definition stands in one place: the structs of this module, and for the numbers of the
// session stream the .proto files. An emitter reads the definition and returns the text of the
// files that follow from it. Each emitter is a package below this one, and the list in main.go
// names them all. Package source has what they share: the types of a package with the comments
// and tags of their fields, and the writer of a Go file.
//
// The command reads packages as source text, and skips what it has generated itself, so a stale
// or missing generated file never keeps it from running. For the same reason it must never
// import a package that contains generated files.
//
// The output must depend on the sources alone: no time, no path of the machine, no order of a
// map.
//
// Start reading at main.go, then source/source.go, then the emitter of interest.
package main
