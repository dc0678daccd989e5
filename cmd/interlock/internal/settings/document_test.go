package settings

import (
	"strings"
	"testing"
)

// texts are documents as people write them, each without a field hooks.
var texts = []string{
	"",
	"{}",
	"{}\n",
	"{ }",
	"{\n}\n",
	"{\r\n}\r\n",
	`{"a":1}`,
	`{"a": 1, "b": [1, 2]}`,
	"{\"a\": 1,}\n",
	"\xef\xbb\xbf{\n  \"a\": 1\n}\n",
	"{\n  \"a\": 1\n}\n",
	"{\n  \"a\": 1,\n}\n",
	"{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": 2\n\t}\n}",
	"{\r\n    \"a\": 1, // one\r\n    \"b\": 2 // two\r\n}\r\n",
	"// head\n{\n  // about a\n  \"a\": 1, /* one */\n  \"b\": 2 /* two */, // more\n  // at the end\n}\n// tail",
	"{\n  // nothing yet\n}\n",
	"{\n  \"a\": 1 }\n",
	"{ \"a\": 1,\n  \"b\": 2 }\n",
	"{\"a\": 1\n ,\"b\": 2\n}\n",
	"{\n  \"a\": 1 ,\n\n\n  \"b\": 2\n\n}\n",
}

func parse(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse("settings.json", []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

// add and remove are what an installation does, and its undo.
func add(t *testing.T, d *Document) {
	t.Helper()
	for _, event := range []string{"PreToolUse", "Stop"} {
		entry := map[string]any{"hooks": []any{map[string]any{"command": "interlock-hook <x>", "timeout": 5}}}
		if err := d.Append(entry, "hooks", event); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Set(map[string]any{"command": "interlock"}, "servers", "interlock"); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, d *Document) {
	t.Helper()
	events, err := d.Names("hooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		keep := func(e []byte) ([]byte, bool) { return e, !strings.Contains(string(e), "interlock-hook") }
		if err := d.Keep(keep, "hooks", event); err != nil {
			t.Fatal(err)
		}
		if d.Bare("hooks", event) {
			d.Remove("hooks", event)
		}
	}
	d.Remove("servers", "interlock")
	for _, field := range []string{"servers", "hooks"} {
		if d.Bare(field) {
			d.Remove(field)
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	for _, text := range texts {
		d := parse(t, text)
		add(t, d)
		added := string(d.Bytes())
		again := parse(t, added)
		if got := string(again.Bytes()); got != added {
			t.Errorf("%q: read again, the document is\n%s\nwant\n%s", text, got, added)
		}
		for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", "{", " ", "}", " ").Replace(text)) {
			if !strings.Contains(added, word) {
				t.Errorf("%q: %q is lost:\n%s", text, word, added)
			}
		}
		remove(t, again)
		want := text
		switch strings.TrimSpace(text) {
		case "":
			want = "{}\n"
		case "{}", "{ }", "{\n}", "{\r\n}":
			want = strings.Replace(text, strings.TrimSpace(text), "{}", 1)
		}
		if got := string(again.Bytes()); got != want {
			t.Errorf("%q becomes %q, by way of\n%s", text, got, added)
		}
	}
}

func TestStyle(t *testing.T) {
	for text, want := range map[string]string{
		"": "{\n  \"k\": [\n    {\n      \"n\": 1\n    }\n  ]\n}\n",
		"{\r\n\t\"a\": 1 // one\r\n}": "{\r\n\t\"a\": 1, // one\r\n" +
			"\t\"k\": [\r\n\t\t{\r\n\t\t\t\"n\": 1\r\n\t\t}\r\n\t]\r\n}",
		`{"a": 1}`:                   `{"a": 1,"k":[{"n":1}]}`,
		"{\n \"k\": [\n  1,\n ],\n}": "{\n \"k\": [\n  1,\n  {\n   \"n\": 1\n  },\n ],\n}",
	} {
		d := parse(t, text)
		if err := d.Append(map[string]int{"n": 1}, "k"); err != nil {
			t.Fatal(err)
		}
		if got := string(d.Bytes()); got != want {
			t.Errorf("%q becomes\n%s\nwant\n%s", text, got, want)
		}
	}
}

// A value that is there already stays as it is written, another one is replaced in its place.
func TestSet(t *testing.T) {
	text := "{\n  \"s\": { \"one\" : {\"a\" :1}, /* c */ \"two\": 2 },\n}\n"
	d := parse(t, text)
	if err := d.Set(map[string]int{"a": 1}, "s", "one"); err != nil || string(d.Bytes()) != text {
		t.Errorf("the same value changes the document (%v): %s", err, d.Bytes())
	}
	if err := d.Set(3, "s", "two"); err != nil || string(d.Bytes()) != strings.Replace(text, "2 }", "3 }", 1) {
		t.Errorf("another value (%v): %s", err, d.Bytes())
	}
	var n int
	if ok, err := d.Get(&n, "s", "two"); !ok || err != nil || n != 3 {
		t.Errorf("the value is %d, %v, %v", n, ok, err)
	}
	if ok, err := d.Get(&n, "s", "three"); ok || err != nil {
		t.Errorf("a missing value: %v, %v", ok, err)
	}
}

func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1\n  \"b\": 2\n}":  "settings.json cannot be read (line 3, column 3: ",
		"{\"a\": }":                     "line 1, column 7",
		"{} {}":                         "line 1, column 4",
		"[1]":                           "line 1: [1] stands where an object should be",
		"\n{\"hooks\": \"x\"}":          `line 2: "x" stands where an object should be`,
		"{\"hooks\": {\"Stop\": {}}}":   "line 1: {} stands where a list should be",
		"{\"hooks\": {}, \"hooks\": 1}": "two fields hooks",
	} {
		d, err := Parse("settings.json", []byte(text))
		if err == nil {
			err = d.Append(1, "hooks", "Stop")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestSame(t *testing.T) {
	a := "{\n  \"a\": 1, // one\n}"
	for text, want := range map[string]bool{
		"{ \"a\":1 // one\n}": true, a: true, "{\"a\": 1}": false, "{\"a\": 2, // one\n}": false,
	} {
		if got := parse(t, a).Same(parse(t, text)); got != want {
			t.Errorf("%q and %q are the same: %v", a, text, got)
		}
	}
}

// What is added can be removed, whatever the document is, and nothing else is lost.
func FuzzAddAndRemove(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("x", []byte(text))
		if err != nil || d.Has("hooks") || d.Has("servers") {
			return
		}
		before := string(d.Bytes())
		root, _ := d.object(&d.root)
		empty := len(root.Members) == 0 // it becomes {}
		add(t, d)
		again := parse(t, string(d.Bytes()))
		remove(t, again)
		if got := string(again.Bytes()); got != before && !empty {
			t.Errorf("%q becomes %q, by way of %q", before, got, d.Bytes())
		}
	})
}
