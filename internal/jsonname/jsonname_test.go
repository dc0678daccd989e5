package jsonname

import "testing"

func TestUnique(t *testing.T) {
	for _, c := range []struct {
		content     string
		same, folds string // the refusals
	}{
		{`{"a": 1, "b": {"a": [{"a": 1}, {"a": "a"}]}}`, "", ""},
		{`[1, "a", "a", null, {}]`, "", ""},
		{`{"a": 1, "a": 1}`, "field a occurs twice", "field a occurs twice"},
		{`{"a": 1, "\u0061": 1}`, "field a occurs twice", "field a occurs twice"},
		{`{"a": 1, "A": 1}`, "", "field A occurs twice"},
		{`{"x": [0, {"b": {}, "b": 1}]}`, "field x.[1].b occurs twice", "field x.[1].b occurs twice"},
	} {
		for fold, want := range map[bool]string{false: c.same, true: c.folds} {
			got := ""
			if err := Unique([]byte(c.content), fold); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, fold %v: %q, want %q", c.content, fold, got, want)
			}
		}
	}
}
