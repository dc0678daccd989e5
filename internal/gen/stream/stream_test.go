package stream

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/gen/source"
)

func TestSchema(t *testing.T) {
	s, err := schemaOf(`// A comment.
syntax = "proto3";
package a.v1;
option go_package = "x;y"; /* another */

service S {
  rpc Call(stream M) returns (N) {}
}

message M {
  string name = 1; // its name
  reserved 2, 4;
  repeated E list = 16;
  optional sint64 min = 3;
  oneof body {
    N first = 5;
    N second = 6;
  }
}

message N {}

enum E {
  E_NONE = 0;
  E_BELOW = -1;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	m := s.messages["M"]
	for i, want := range []protoField{
		{name: "name", number: 1, kind: "string"},
		{name: "list", number: 16, kind: "E", repeated: true},
		{name: "min", number: 3, kind: "sint64", optional: true},
	} {
		if i >= len(m.fields) || *m.fields[i] != want {
			t.Fatalf("the fields are %+v, want %+v", m.fields, want)
		}
	}
	if len(m.oneof) != 2 || m.oneof[1].name != "second" || m.oneof[1].number != 6 || m.oneof[1].kind != "N" {
		t.Errorf("the oneof is %+v", m.oneof)
	}
	if got := s.enums["E"]; got == nil || !slices.Equal(got.numbers, []int64{0, -1}) {
		t.Errorf("E is %+v", got)
	}
}

func TestSchemaRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"message M { string a = 256; }":                           "p/a.proto: message M: field a has the number 256",
		"message M { message N {} }":                              "nested type",
		"message M { map<string, string> a = 1; }":                "nested type or a map",
		"message M { oneof a { M b = 1; } oneof c { M d = 2; } }": "two oneofs",
		"message M {} message M {}":                               "p/a.proto:1:",
		"message M { A a = 1; }":                                  "unknown type A",
		"message M {\n  string a = 1;\n  string b = 1;\n}":        "p/a.proto:3:",
		"message M { string a = 1; ":                              "syntax error",
	} {
		if _, err := schemaOf(`syntax = "proto3"; ` + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func schemaOf(text string) (*schema, error) {
	return readSchema((&source.Tree{}).With(map[string]string{"p/a.proto": text}), "p", "a.proto")
}

// TestEmitRefuses changes the real sources, one at a time, so that message and struct differ.
func TestEmitRefuses(t *testing.T) {
	tree := open(t)
	for name, c := range map[string]struct{ file, was, is, want string }{
		"a field of a message without a struct field": {
			"proto/model.proto", "int64 eta = 4;", "int64 eta = 4;\n  bool sure = 5;",
			"field sure of message Ticket has no field Sure in Ticket: add it in lease.go",
		},
		"a struct field without a field of a message": {
			"lease.go", "type Ticket struct {\n", "type Ticket struct {\n\tSure bool\n",
			"Ticket.Sure: message Ticket has no such field: add it in proto/model.proto",
		},
		"a field of a body without a struct field": {
			"proto/session.proto", "int64 max_wait = 2;\n}", "int64 max_wait = 2;\n  bool sure = 3;\n}",
			"field sure of message Arrive has no field Sure in Op",
		},
		"a field of an operation without a body": {
			"proto/op.go", "\tProgress  string\n", "\tProgress  string\n\tSure      bool\n",
			"Op.Sure: message Op has no such field",
		},
		"a field of a part of an operation": {
			"proto/op.go", "\tTool      string\n", "\tTool      string\n\tSure      bool\n",
			"Op.Effect.Sure: message Op has no such field",
		},
		"a type that does not fit": {
			"proto/model.proto", "int64 eta = 4;", "string eta = 4;",
			"field eta of message Ticket: no code is known for the type string on time.Duration",
		},
		"a number without a constant": {
			"proto/model.proto", "MODE_MEMBER = 8;", "MODE_MEMBER = 8;\n  MODE_GUEST = 9;",
			"Mode has no constant 9, which enum Mode has",
		},
		"a constant without a number": {
			"proto/model.proto", "  WRITE_OP_ADD = 4;\n", "", "enum WriteOp has no number 4, which is Add",
		},
		"a gap between the kinds": {
			"proto/session.proto", "RevertPattern revert_pattern = 48;", "RevertPattern revert_pattern = 49;",
			"revert_pattern is 49",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Emit(tree.With(change(t, tree, c.file, c.was, c.is))); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestNewField adds a field to an operation and to its message, and needs nothing else.
func TestNewField(t *testing.T) {
	tree := open(t)
	changed := change(
		t, tree, "lease.go", "\tPurpose string // for people", "\tUrgent bool\n\tPurpose string // for people",
	)
	maps.Copy(
		changed,
		change(t, tree, "proto/session.proto", "  bool documents = 19;\n", "  bool documents = 19;\n  bool urgent = 90;\n"),
	)
	files, err := Emit(tree.With(changed))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"b = appendBool(b, 90, x.Urgent)", "case 90<<3 | wireVarint:\n\t\t\tx.Urgent = f.v != 0",
	} {
		if !strings.Contains(string(files["proto/session_gen.go"]), want) {
			t.Errorf("proto/session_gen.go lacks %s", want)
		}
	}
}

// change returns a file of the tree with the first occurrence of a text replaced.
func change(t *testing.T, tree *source.Tree, name, was, is string) map[string]string {
	t.Helper()
	text, err := tree.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), was) {
		t.Fatalf("%s has no %q", name, was)
	}
	return map[string]string{name: strings.Replace(string(text), was, is, 1)}
}

func open(t *testing.T) *source.Tree {
	t.Helper()
	tree, err := source.Open("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Package("proto"); err != nil { // and so reads other modules once
		t.Fatal(err)
	}
	return tree
}
