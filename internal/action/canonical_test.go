package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

func TestCanonicalIsOneForm(t *testing.T) {
	const want = `{"arguments":{"a":[1,0.5,"é",{"x":null,"y":true}],"cents":1200},"target":"account:1","tool":"charge"}`
	for _, arguments := range []string{
		`{"a":[1,0.5,"é",{"x":null,"y":true}],"cents":1200}`,
		` { "cents" : 1.2e3 , "a" : [ 1.0 , 5E-1 , "\u00e9" , { "y" : true , "x" : null } ] } `,
	} {
		if got, err := Canonical("charge", "account:1", []byte(arguments)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", arguments, got, err, want)
		}
	}
	for _, none := range []string{"", " ", "{}"} {
		if got, err := Canonical("a\"\n", "b\\", []byte(none)); err != nil ||
			got != `{"arguments":{},"target":"b\\","tool":"a\"\n"}` {
			t.Errorf("%q: %s, %v", none, got, err)
		}
	}
	// The members are in the order of their UTF-16 code units (RFC 8785, section 3.2.3).
	if got, err := Canonical("t", "x", []byte(`{"\ufb33":1,"\ud83d\ude00":2}`)); err != nil ||
		strings.Index(got, "\U0001f600") > strings.Index(got, "\ufb33") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCanonicalRefusesWhatIsNotExact(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"n":9007199254740993}`:       "2^53",
		`{"n":-9007199254740993}`:      "2^53",
		`{"n":1e16}`:                   "2^53",
		`{"n":1e999}`:                  "2^53",
		`{"n":0.1234567890123456}`:     "15 significant",
		`{"n":[[1234567.000000001]]}`:  "15 significant",
		`{"n":1e-300}`:                 "too small",
		`{"n":1e-999999999999}`:        "too small",
		`{"a":1,"a":2}`:                "canonical form",
		`{"a":"\ud800"}`:               "canonical form",
		"{\"a\":\"\xff\"}":             "canonical form",
		`[1]`:                          "want a JSON object",
		`{} {}`:                        "nothing after",
		`{"a":1`:                       "unexpected EOF",
		`{"a":1},"target":"elsewhere"`: "nothing after",
		`"a"`:                          "want a JSON object",
	} {
		_, err := Canonical("tool", "target", []byte(arguments))
		var e *interlock.Error
		if !errors.As(err, &e) || e.Code != interlock.CodeInvalidRequest || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v, want words like %q", arguments, err, want)
		}
	}
	for _, good := range []string{
		`9007199254740992`, `-9007199254740992`, `0.1`, `0`, `-0`, `0.000`, `0e-999`, `123456789012345`, `1000000000000000`,
		`1e15`, `19.99`,
	} {
		if _, err := Canonical("tool", "target", []byte(`{"n":`+good+`}`)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range [][2]string{{"", "x"}, {"x", ""}, {"\xff", "x"}, {"x", "\xff"}} {
		if _, err := Canonical(bad[0], bad[1], nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	_, err := Canonical("t", "x", []byte(`{"a":"`+strings.Repeat("x", interlock.MaxActionBytes)+`"}`))
	if !errors.Is(err, &interlock.Error{Code: interlock.CodeTooLong}) {
		t.Error(err)
	}
}
