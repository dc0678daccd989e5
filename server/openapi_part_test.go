package server

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxGuideTokens bounds /llms.txt. A tokenizer makes a token of 3.5 to 4 bytes of English and JSON; the
// test counts one for 3 bytes.
const maxGuideTokens = 1000

// TestOpenAPIByTag asks for the part of each tag. The parts are documents by themselves, and have
// together each operation once.
func TestOpenAPIByTag(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(t)
	found := map[string]string{}
	for _, tag := range doc.Tags {
		text := d.get("/openapi.json?tag=" + strings.ToLower(tag.Name)).want(200).raw
		part, err := openapi3.NewLoader().LoadFromData([]byte(text)) // which follows the references
		if err != nil {
			t.Errorf("%s: %v", tag.Name, err)
			continue
		}
		if err := part.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
			t.Errorf("%s: %v", tag.Name, err)
		}
		if part.Info.Version != doc.Info.Version || len(part.Tags) != 1 {
			t.Errorf("%s has the version %q and %d tags", tag.Name, part.Info.Version, len(part.Tags))
		}
		for path, item := range part.Paths.Map() {
			for method, op := range item.Operations() {
				if other, twice := found[op.OperationID]; twice || op.Tags[0] != tag.Name {
					t.Errorf("%s %s is in %s and %s", method, path, tag.Name, other)
				}
				found[op.OperationID] = tag.Name
			}
		}
		for name := range part.Components.Schemas {
			if strings.Count(text, `"#/components/schemas/`+name+`"`) == 0 {
				t.Errorf("%s: schema %s is not referred to", tag.Name, name)
			}
		}
	}
	all := 0
	for _, item := range doc.Paths.Map() {
		all += len(item.Operations())
	}
	if len(found) != all {
		t.Errorf("the parts have %d operations, and the document %d", len(found), all)
	}
	d.get("/openapi.json?tag=Leases").want(200)
	d.get("/openapi.json?tag=lease").want(400, "invalid_request").says("detail", "effects, guards, leases")
}

// TestGuide checks the length of /llms.txt, and that each request in it is one that the server knows.
func TestGuide(t *testing.T) {
	guide := newDoor(t).get("/llms.txt").want(200).raw
	if tokens := len(guide) / 3; tokens > maxGuideTokens {
		t.Errorf("the guide has up to %d tokens, more than %d", tokens, maxGuideTokens)
	}
	bodies := 0
	for _, m := range regexp.MustCompile(`(GET|POST|DELETE) (/v1\S*)(?:\s+(\{".*))?`).FindAllStringSubmatch(guide, -1) {
		method, path, body := m[1], m[2], m[3]
		r := httptest.NewRequest(method, regexp.MustCompile(`\{[a-z.]+\}`).ReplaceAllString(path, "x"), nil)
		op, name, err := operationOf(r)
		if err != nil || op == nil {
			t.Errorf("%s %s is no operation (%v)", method, path, err)
			continue
		}
		for parameter := range r.URL.Query() {
			if op.Parameters.GetByInAndName("query", parameter) == nil {
				t.Errorf("%s has no parameter %s", name, parameter)
			}
		}
		if body == "" {
			continue
		}
		bodies++
		var value any
		schema := op.RequestBody.Value.Content["application/json"].Schema
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&value); err != nil {
			t.Errorf("%s: %v in %s", name, err, body)
		} else if err := valid(schema, value); err != nil {
			t.Errorf("%s: %s: %v", name, body, err)
		}
	}
	if bodies < 3 {
		t.Errorf("the guide has only %d requests with a body", bodies)
	}
}

// TestRoot follows each link of GET /, without a credential: no link leads nowhere, and the answer has
// nothing that /openapi.json does not have. Doors stand in front of the server, so their links are not
// followed here.
func TestRoot(t *testing.T) {
	d := newDoor(t)
	root := d.get("/").want(200).is("name", "interlock")
	links, _ := root.at("links").(map[string]any)
	for name, link := range links {
		if path, _ := link.(string); name == "mcp" {
			if path != "/mcp" {
				t.Errorf("the door %s is at %v", name, link)
			}
		} else if strings.HasPrefix(path, "/") {
			d.get(path).want(200)
		} else if path != docsURL {
			t.Errorf("link %s leads to %v", name, link)
		}
	}
	if version := root.str("version"); !strings.Contains(d.get("/openapi.json").want(200).raw, version) {
		t.Errorf("the version %s is not that of the document", version)
	}
	d.post("/", "{}").want(405, "method_not_allowed")
}
