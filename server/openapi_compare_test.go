package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// spec is openapi.json, read once.
var spec = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIFile)
	if err != nil {
		return nil, err
	}
	// The validator loses track of references in the schemas of examples too: they are
	// compared by TestOpenAPIExamples.
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return nil, err
	}
	for name, schema := range doc.Components.Schemas {
		schemaNames[schema.Value] = name
	}
	// The validator loses track of references within references, so they are replaced by their
	// targets.
	for _, schema := range doc.Components.Schemas {
		inline(schema)
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for _, answer := range op.Responses.Map() {
				for _, content := range answer.Value.Content {
					inline(content.Schema)
				}
			}
			if op.RequestBody != nil {
				for _, content := range op.RequestBody.Value.Content {
					inline(content.Schema)
				}
			}
		}
	}
	return doc, nil
})

// schemaNames has the names of the schemas that have one.
var schemaNames = map[*openapi3.Schema]string{}

func inline(schema *openapi3.SchemaRef) {
	schema.Ref = ""
	for _, inner := range slices.Concat(schema.Value.OneOf, schema.Value.AllOf) {
		inline(inner)
	}
	for _, property := range schema.Value.Properties {
		inline(property)
	}
	if schema.Value.Items != nil {
		inline(schema.Value.Items)
	}
}

// sightings remembers what of openapi.json was seen.
type sightings struct {
	mu      sync.Mutex      // a tour has several calls at once
	answers map[string]bool // "GET /v1/keys 200"
	fields  map[string]bool // "Lease.fence", of the named schemas
}

// operationOf finds the operation of a request in openapi.json, and its name.
func operationOf(r *http.Request) (*openapi3.Operation, string, error) {
	doc, err := spec()
	if err != nil {
		return nil, "", err
	}
	pattern, _ := matchPath(r.Method, r.URL.EscapedPath())
	item := doc.Paths.Value(pattern)
	if item == nil {
		return nil, "", nil
	}
	return item.GetOperation(r.Method), r.Method + " " + pattern, nil
}

// compare returns how an answer differs from its description in openapi.json. seen may be nil.
func compare(r *http.Request, w *http.Response, body string, seen *sightings) error {
	if seen != nil {
		seen.mu.Lock()
		defer seen.mu.Unlock()
	}
	op, name, err := operationOf(r)
	if err != nil {
		return err
	}
	if op == nil {
		if w.StatusCode != http.StatusNotFound && w.StatusCode != http.StatusMethodNotAllowed &&
			w.StatusCode != http.StatusUnauthorized &&
			w.StatusCode != http.StatusForbidden {
			return fmt.Errorf("%s %s is not documented", r.Method, r.URL.Path)
		}
		return compareProblem(w, body, seen)
	}
	answer := op.Responses.Value(strconv.Itoa(w.StatusCode))
	if answer == nil {
		return fmt.Errorf("%s: status %d is not documented", name, w.StatusCode)
	}
	if seen != nil {
		seen.answers[name+" "+strconv.Itoa(w.StatusCode)] = true
	}
	if w.StatusCode == http.StatusNotModified {
		return compareHeaders(name, op, answer.Value, w.Header)
	}
	kind, _, err := mime.ParseMediaType(w.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content := answer.Value.Content[kind]
	bytes := answer.Value.Content[anyBytes] // a document, which has the content type that it was written with
	if bytes != nil {
		content = bytes
	}
	if content == nil {
		return fmt.Errorf("%s %d: content type %s is not documented", name, w.StatusCode, kind)
	}
	if kind != "text/plain" || bytes != nil {
		if err := compareHeaders(fmt.Sprint(name, " ", w.StatusCode), op, answer.Value, w.Header); err != nil {
			return err
		}
	}
	if bytes != nil {
		return nil
	}
	switch kind {
	case "application/json", "application/problem+json", "application/jwk-set+json":
		return compareJSON(content.Schema, body, seen)
	case "application/x-ndjson":
		for line := range strings.Lines(body) {
			if err := compareJSON(content.Schema, line, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareHeaders returns which header of an answer is not documented.
func compareHeaders(name string, op *openapi3.Operation, answer *openapi3.Response, headers http.Header) error {
	for header := range headers {
		switch header {
		case "Content-Type", "Cache-Control", "X-Content-Type-Options", "Connection", "Content-Length":
		case "Idempotency-Replayed": // documented with the parameter that asks for it
			if op.Parameters.GetByInAndName("header", "Idempotency-Key") == nil {
				return fmt.Errorf("%s: header %s without the parameter Idempotency-Key", name, header)
			}
		default:
			if !documentsHeader(answer, header) {
				return fmt.Errorf("%s: header %s is not documented", name, header)
			}
		}
	}
	return nil
}

func documentsHeader(answer *openapi3.Response, name string) bool {
	for documented := range answer.Headers {
		if strings.EqualFold(documented, name) {
			return true
		}
	}
	return false
}

// compareProblem is for refusals of requests that are no operation.
func compareProblem(w *http.Response, body string, seen *sightings) error {
	doc, err := spec()
	if err != nil {
		return err
	}
	if kind := w.Header.Get("Content-Type"); kind != "application/problem+json" {
		return fmt.Errorf("content type %s", kind)
	}
	return compareJSON(doc.Components.Schemas["Problem"], body, seen)
}

func compareJSON(schema *openapi3.SchemaRef, body string, seen *sightings) error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return fmt.Errorf("%w in %q", err, body)
	}
	if err := valid(schema, value); err != nil {
		return err
	}
	if seen != nil {
		seen.walk(schema, "", value)
	}
	return nil
}

var compiled struct {
	sync.Mutex
	schemas map[*openapi3.Schema]*jsonschema.Schema
}

// valid returns why a value does not match a schema. It compiles each schema once: VisitJSON would
// do that for each value, which was most of the time of these tests.
func valid(schema *openapi3.SchemaRef, value any) error {
	compiled.Lock()
	defer compiled.Unlock()
	known := compiled.schemas[schema.Value]
	if known == nil {
		text, err := json.Marshal(schema.Value)
		if err != nil {
			return err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		if err := compiler.AddResource("schema.json", doc); err != nil {
			return err
		}
		if known, err = compiler.Compile("schema.json"); err != nil {
			return err
		}
		if compiled.schemas == nil {
			compiled.schemas = map[*openapi3.Schema]*jsonschema.Schema{}
		}
		compiled.schemas[schema.Value] = known
	}
	return known.Validate(value)
}

// walk marks the fields of named schemas that a valid value has. name is the
// nearest named schema and the path below it.
func (s *sightings) walk(schema *openapi3.SchemaRef, name string, value any) {
	if known, ok := schemaNames[schema.Value]; ok {
		name = known
	}
	for _, all := range schema.Value.AllOf {
		s.walk(all, name, value)
	}
	for _, one := range schema.Value.OneOf {
		if valid(one, value) == nil {
			s.walk(one, name, value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for field, property := range schema.Value.Properties {
			if inner, ok := v[field]; ok {
				s.fields[name+"."+field] = true
				s.walk(property, name+"."+field, inner)
			}
		}
	case []any:
		for _, element := range v {
			if schema.Value.Items != nil {
				s.walk(schema.Value.Items, name+"[]", element)
			}
		}
	}
}

// documented lists every answer and every field of an answer that openapi.json
// has.
func documented() (*sightings, error) {
	doc, err := spec()
	if err != nil {
		return nil, err
	}
	all := &sightings{answers: map[string]bool{}, fields: map[string]bool{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, answer := range op.Responses.Map() {
				all.answers[method+" "+path+" "+status] = true
				for _, content := range answer.Value.Content {
					all.collect(content.Schema, "")
				}
			}
		}
	}
	return all, nil
}

func (s *sightings) collect(schema *openapi3.SchemaRef, name string) {
	if known, ok := schemaNames[schema.Value]; ok {
		name = known
	}
	for _, inner := range slices.Concat(schema.Value.OneOf, schema.Value.AllOf) {
		s.collect(inner, name)
	}
	for field, property := range schema.Value.Properties {
		s.fields[name+"."+field] = true
		s.collect(property, name+"."+field)
	}
	if schema.Value.Items != nil {
		s.collect(schema.Value.Items, name+"[]")
	}
}
