package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/problem"
)

// value is what has a type: a field, a parameter, a body, a header.
type value struct {
	Name, Type, In string
	List, Optional bool
	Enum           []string
}

// file is clients/schema.json as a reader in another language sees it.
type file struct {
	Problem struct{ Type string }
	Types   []struct {
		Name, Kind, Type, Description string
		Values, Exclusive             []string
		Fields                        []value
	}
	Codes      []code
	Operations []struct {
		ID, Method, Path string
		Credential       bool
		Parameters       []value
		Body             *value
		Answers          []struct {
			Status  int
			Types   []string
			Headers []value
		}
		Errors []int
	}
	Limits []limit
}

type code struct {
	Code, Title, Action, Next string
	Status                    int
	Retryable                 bool
	After                     int64 `json:"retry_after_ms"`
}

type limit struct {
	Name  string
	Value int64
}

// description is server/openapi.json, read by its keywords alone.
type description struct {
	Paths      map[string]map[string]map[string]any
	Components struct {
		Schemas    map[string]map[string]any
		Parameters map[string]map[string]any
	}
}

func load(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func loadBoth(t *testing.T) (f file, d description) {
	t.Helper()
	load(t, Name, &f)
	load(t, document, &d)
	return f, d
}

// TestTypes compares the types with the schemas of openapi.json: the same names, the same fields,
// the same ones required, the same words.
func TestTypes(t *testing.T) {
	f, d := loadBoth(t)
	want := map[string]string{}
	for name, schema := range d.Components.Schemas {
		required, _ := schema["required"].([]any)
		properties, isObject := schema["properties"].(map[string]any)
		words, _ := schema["enum"].([]any)
		var fields []string
		for field := range properties {
			if slices.Contains(required, any(field)) {
				field += "!"
			}
			fields = append(fields, field)
		}
		want[name] = summary(isObject, fields, fmt.Sprint(words...))
	}
	got := map[string]string{}
	for _, x := range f.Types {
		var fields []string
		for _, field := range x.Fields {
			if name := field.Name; field.Optional {
				fields = append(fields, name)
			} else {
				fields = append(fields, name+"!")
			}
		}
		var words []any
		for _, w := range x.Values {
			words = append(words, w)
		}
		got[x.Name] = summary(x.Kind == "object", fields, fmt.Sprint(words...))
	}
	for name := range maps.Keys(want) {
		if got[name] != want[name] {
			t.Errorf("%s is %q, and openapi.json has %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) || len(f.Types) != len(want) {
		t.Errorf("there are %d types, and openapi.json has %d schemas", len(f.Types), len(want))
	}
}

func summary(isObject bool, fields []string, words string) string {
	slices.Sort(fields)
	return fmt.Sprint(isObject && len(fields) > 0, fields, words)
}

// TestOperations compares the operations with the paths of openapi.json.
func TestOperations(t *testing.T) {
	f, d := loadBoth(t)
	got := map[string]bool{}
	for _, op := range f.Operations {
		line := func(parts ...any) {
			got[op.Method+" "+op.Path+" "+strings.TrimSpace(fmt.Sprintln(parts...))] = true
		}
		line("id", op.ID)
		for _, p := range op.Parameters {
			line(p.In, p.Name, p.Optional)
		}
		if op.Body != nil {
			line("body", op.Body.Type, op.Body.Optional)
		}
		for _, a := range op.Answers {
			line("status", a.Status)
			for _, name := range a.Types {
				line("answer", a.Status, name)
			}
		}
		for _, status := range op.Errors {
			line("status", status)
		}
	}
	want := map[string]bool{}
	for at, methods := range d.Paths {
		for method, op := range methods {
			line := func(parts ...any) {
				want[strings.ToUpper(method)+" "+at+" "+strings.TrimSpace(fmt.Sprintln(parts...))] = true
			}
			line("id", op["operationId"])
			parameters, _ := op["parameters"].([]any)
			for _, p := range parameters {
				p := p.(map[string]any)
				if ref, ok := p["$ref"].(string); ok {
					p = d.Components.Parameters[path.Base(ref)]
				}
				line(p["in"], p["name"], p["required"] != true)
			}
			if body, ok := op["requestBody"].(map[string]any); ok {
				line("body", bodyTypes(body)[0], body["required"] != true)
			}
			for status, answer := range op["responses"].(map[string]any) {
				line("status", status)
				for _, name := range bodyTypes(answer.(map[string]any)) {
					line("answer", status, name)
				}
			}
		}
	}
	for line := range want {
		if !got[line] {
			t.Errorf("missing: %s", line)
		}
	}
	for line := range got {
		if !want[line] {
			t.Errorf("openapi.json has not: %s", line)
		}
	}
	if len(want) < 500 {
		t.Errorf("only %d facts were compared", len(want))
	}
}

// bodyTypes returns the names of the schemas of a body or an answer.
func bodyTypes(x map[string]any) (names []string) {
	content, _ := x["content"].(map[string]any)
	kinds := slices.Sorted(maps.Keys(content))
	if len(kinds) == 0 {
		return nil
	}
	kind := kinds[0]
	for _, first := range []string{"text/plain", "application/octet-stream"} { // as in the document
		if content[first] != nil {
			kind = first
		}
	}
	schema := content[kind].(map[string]any)["schema"].(map[string]any)
	list, _ := schema["oneOf"].([]any)
	if list == nil {
		list = []any{schema}
	}
	for _, x := range list {
		x := x.(map[string]any)
		switch ref, _ := x["$ref"].(string); {
		case ref != "":
			names = append(names, path.Base(ref))
		case x["format"] == "binary":
			names = append(names, "bytes")
		case x["type"] == "string":
			names = append(names, "string")
		default:
			names = append(names, "json")
		}
	}
	return names
}

// TestCodes compares the codes with the table of package problem.
func TestCodes(t *testing.T) {
	var f file
	load(t, Name, &f)
	var have []string
	for _, x := range f.Codes {
		have = append(have, x.Code)
	}
	slices.Sort(have)
	var want []string
	for _, c := range problem.Codes() {
		want = append(want, string(c))
		info := problem.Of(c)
		i := slices.IndexFunc(f.Codes, func(x code) bool { return x.Code == string(c) })
		if i < 0 {
			continue
		}
		x := f.Codes[i]
		if x.Status != info.Status || x.Title != info.Title || x.Next != info.Next || x.Retryable != c.Retryable() ||
			x.Action != string(info.Action) || x.After != info.After.Milliseconds() {
			t.Errorf("%s: %s is %+v, want %+v; run make generate", Name, c, x, info)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s has other codes than internal/problem/code.go, run make generate:\n%v\n%v", Name, have, want)
	}
}

// TestReferences follows every type to its entry, so that a reader of the file needs nothing else.
func TestReferences(t *testing.T) {
	var f file
	load(t, Name, &f)
	known := map[string]bool{
		"string": true, "integer": true, "boolean": true, "decimal": true, "json": true, "bytes": true,
	}
	for _, x := range f.Types {
		known[x.Name] = true
	}
	follow := func(where, name string) {
		t.Helper()
		if !known[name] {
			t.Errorf("%s has the type %q, which is not listed", where, name)
		}
	}
	follow("problem", f.Problem.Type)
	for _, x := range f.Types {
		if x.Kind == "value" {
			follow(x.Name, x.Type)
		}
		for _, field := range x.Fields {
			follow(x.Name+"."+field.Name, field.Type)
		}
		for _, name := range x.Exclusive {
			if !slices.ContainsFunc(x.Fields, func(f value) bool { return f.Name == name && f.Optional }) {
				t.Errorf("%s excludes %s, which is no optional field", x.Name, name)
			}
		}
	}
	for _, op := range f.Operations {
		for _, p := range op.Parameters {
			follow(op.ID+" "+p.Name, p.Type)
		}
		if op.Body != nil {
			follow(op.ID, op.Body.Type)
		}
		for _, a := range op.Answers {
			for _, name := range a.Types {
				follow(op.ID, name)
			}
		}
	}
	for _, name := range []string{"MaxClaims", "MaxTTL", "DefaultTTL", "MinTTL"} {
		if !slices.ContainsFunc(f.Limits, func(x limit) bool { return x.Name == name && x.Value > 0 }) {
			t.Errorf("limit %s is missing", name)
		}
	}
}

// TestUnknownKeyword reports a keyword that would be lost.
func TestUnknownKeyword(t *testing.T) {
	for _, schema := range []string{`{"type": "string", "not": {}}`, `{"type": "number"}`} {
		_, err := operationsOf([]byte(`{"paths": {"/x": {"get": {"operationId": "x", "parameters": [
			{"name": "p", "in": "query", "schema": ` + schema + `}], "responses": {}}}}}`))
		if err == nil {
			t.Errorf("%s is accepted", schema)
		}
	}
}
