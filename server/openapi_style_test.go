package server

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// verbs has how the operationId begins, by method. What POST does has many verbs.
var verbs = map[string]*regexp.Regexp{
	"GET":    regexp.MustCompile(`^(get|list|watch)[A-Z]`),
	"PUT":    regexp.MustCompile(`^set[A-Z]`),
	"PATCH":  regexp.MustCompile(`^update[A-Z]`),
	"DELETE": regexp.MustCompile(`^delete[A-Z]`),
	"POST":   regexp.MustCompile(`^[a-z]+[A-Z]`),
}

// TestOpenAPIStyle checks that every operation has the name and the texts that its readers expect.
func TestOpenAPIStyle(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]bool{}
	for _, tag := range doc.Tags {
		if tag.Description == "" {
			t.Errorf("tag %s has no description", tag.Name)
		}
		tags[tag.Name] = true
	}
	for _, name := range []string{"Namespace", "IfMatch", "FileIfMatch"} {
		p := doc.Components.Parameters[name].Value
		if p.In != openapi3.ParameterInHeader || p.Schema.Value.Pattern == "" {
			t.Errorf("%s is no header with a pattern", name)
		}
	}
	ids := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			if pattern := verbs[method]; !pattern.MatchString(op.OperationID) || ids[op.OperationID] {
				t.Errorf("%s: the operationId %q is taken, or does not match %s", at, op.OperationID, pattern)
			}
			ids[op.OperationID] = true
			if len(op.Tags) != 1 || !tags[op.Tags[0]] {
				t.Errorf("%s has the tags %v: want one of those that are described", at, op.Tags)
			}
			if strings.HasSuffix(op.Summary, ".") || op.Summary == "" || !strings.HasSuffix(op.Description, ".") {
				t.Errorf("%s: want a summary without a full stop and a description with one", at)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: parameter %s has no description", at, p.Value.Name)
				}
			}
		}
	}
}

// TestOpenAPIKeywords checks what generators of clients cannot read: references into a schema, objects
// without a name, alternatives of required fields, and content of any type.
func TestOpenAPIKeywords(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(openAPIFile, &doc); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`^#/components/[a-z]+/[A-Za-z0-9-]+$`)
	schema := regexp.MustCompile(`^components/schemas/\w+$`)
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch v := value.(type) {
		case []any:
			for _, inner := range v {
				walk(at+"[]", inner)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !named.MatchString(ref) {
				t.Errorf("%s: %s is no reference to a component", at, ref)
			}
			if v["properties"] != nil && !schema.MatchString(at) && !strings.HasSuffix(at, "/properties") {
				t.Errorf("%s is an object without a name", at)
			}
			if _, any := v["*/*"]; any {
				t.Errorf("%s has content of any type", at)
			}
			choices, _ := v["oneOf"].([]any)
			for _, choice := range choices {
				if ref, _ := choice.(map[string]any)["$ref"].(string); ref == "" {
					t.Errorf("%s: an alternative is no named schema", at)
				}
			}
			for name, inner := range v {
				if name != "example" && name != "examples" {
					walk(strings.TrimPrefix(at+"/"+name, "/"), inner)
				}
			}
		}
	}
	walk("", doc)
}
