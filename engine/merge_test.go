package engine_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/engine"
)

// rfc7396 are the examples of appendix A.
var rfc7396 = [][3]string{
	{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
	{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
	{`{"a":"b"}`, `{"a":null}`, `{}`},
	{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
	{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
	{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
	{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
	{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
	{`["a","b"]`, `["c","d"]`, `["c","d"]`},
	{`{"a":"b"}`, `["c"]`, `["c"]`},
	{`{"a":"foo"}`, `null`, `null`},
	{`{"a":"foo"}`, `"bar"`, `"bar"`},
	{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
	{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
	{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
}

func TestMergePatch(t *testing.T) {
	for _, c := range append(rfc7396, [][3]string{
		{
			`{"n":1.0,"big":123456789012345678901234567890}`, `{"e":1e400}`,
			`{"big":123456789012345678901234567890,"e":1e400,"n":1.0}`,
		},
		{`{"z":1,"a":{"z":1,"b":[{"y":1,"x":2}]}}`, `{}`, `{"a":{"z":1,"b":[{"y":1,"x":2}]},"z":1}`},
		{`{"a":"<&>"}`, `{"b":"\u003c/"}`, `{"a":"<&>","b":"\u003c/"}`},
		{`{"a":{"x":1},"\u0061":{"y":2}}`, `{"a":{"z":3}}`, `{"a":{"y":2,"z":3}}`},
		{`{"a":["}","\"]",{"b":[]}],"c":"\\"}`, `{"c":null,"d":[{}, {}]}`, `{"a":["}","\"]",{"b":[]}],"d":[{},{}]}`},
		{`7`, `{"":{"":{}}}`, `{"":{"":{}}}`},
		{` { "a" : 1 } `, "\t{}\n", `{"a":1}`},
	}...) {
		if got := string(engine.MergePatch([]byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("%s with %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// TestMergeDeep: depth costs no more than length does.
func TestMergeDeep(t *testing.T) {
	nested := func(depth int, inner string) string {
		return strings.Repeat(`{"a":`, depth) + inner + strings.Repeat("}", depth)
	}
	const depth = 9_000
	long := `"` + strings.Repeat("x", 1<<19) + `"`
	got := engine.MergePatch([]byte(nested(depth, `{"long":`+long+`}`)), []byte(nested(depth, `{"new":[[{}]]}`)))
	if want := nested(depth, `{"long":`+long+`,"new":[[{}]]}`); string(got) != want {
		t.Errorf("the merged document of %d bytes is not the one of %d that it should be", len(got), len(want))
	}
}

// FuzzMergePatch: if the document and the patch are JSON then so is the result, the naive way
// yields the same, and merging again changes nothing.
func FuzzMergePatch(f *testing.F) {
	for _, c := range rfc7396 {
		f.Add([]byte(c[0]), []byte(c[1]))
	}
	f.Add([]byte(`{"a":1,"a":{"b":2}}`), []byte(`{"a":{"b":null},"\ud800":"\u2028","":0}`))
	f.Add([]byte("\xff"), []byte(`{"a":`))
	f.Fuzz(func(t *testing.T, document, patch []byte) {
		if !engine.ValidJSON(document) || !engine.ValidJSON(patch) {
			return
		}
		once := engine.MergePatch(document, patch)
		if !engine.ValidJSON(once) {
			t.Fatalf("%q is not JSON", once)
		}
		if naive := modelMerge(document, patch); !reflect.DeepEqual(decodedJSON(naive), decodedJSON(once)) {
			t.Errorf("%q is not %q", once, naive)
		}
		if twice := engine.MergePatch(once, patch); !bytes.Equal(once, twice) {
			t.Errorf("merged again %q becomes %q", once, twice)
		}
	})
}
