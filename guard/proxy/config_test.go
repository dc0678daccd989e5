package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	const good = `{"methods": ["POST"], "path": "/a/{id}", "key": "a:{id}", "demand": "lease"}`
	route := func(old, with string) string {
		return `{"routes": [` + strings.Replace(good, old, with, 1) + `]}`
	}
	credential := func(text string) string { return `{"routes": [` + good + `], "credential": ` + text + `}` }
	t.Setenv("GUARD_EMPTY", " ")
	t.Setenv("GUARD_LINES", "one\ntwo")
	for _, tt := range []struct{ config, words string }{
		{"", "is truncated"},
		{"{", "is truncated"},
		{"[]", "invalid type array"},
		{"{\n\n routes}", "line 3: invalid character"},
		{`{"routes": 1}`, "line 1: field routes: invalid type number"},
		{`{}`, "the list is empty"},
		{`{"routes": []}`, "the list is empty"},
		{route("", "") + " {}", "after the object"},
		{route(`"demand"`, `"demands"`), `unknown field "demands"`},
		{route(`"demand"`, `"demand": "lease", "demand"`), "field routes.[0].demand occurs twice"},
		{route(`"lease"`, `"lease", "Demand": "open"`), "field routes.[0].Demand occurs twice"},
		{`{"ſtatements": {}, "statements": {}, "routes": [` + good + `]}`, "occurs twice"},
		{route(`"lease"`, `"leas"`), `routes[0]: demand: "leas": want lease, statement or open`},
		{route(`"lease"`, `"statement"`), "needs the field statements"},
		{route(`, "demand": "lease"`, ``), "demand is missing: want lease, statement, or open"},
		{route(`["POST"]`, `[]`), "methods: name some"},
		{route(`"POST"`, `"post"`), "write it in capitals"},
		{route(`"POST"`, `"PO ST"`), "is not a method"},
		{route(`"POST"`, `"CONNECT"`), "cannot be guarded"},
		{route(`"key": "a:{id}", `, ``), "key is missing: name the key"},
		{route(`a:{id}`, `a:{name}`), "the path has no variable name"},
		{route(`a:{id}`, `a:{id`), "the path has no variable id"},
		{route(`/a/{id}`, `a/{id}`), "does not begin with a slash"},
		{route(`/a/{id}`, `/a//{id}`), "empty segment"},
		{route(`/a/{id}`, `/a/x{id}`), "want a literal"},
		{route(`/a/{id}`, `/a/{id:uuid}`), "want a literal"},
		{route(`/a/{id}`, `/a/{}`), "want a literal"},
		{route(`/a/{id}`, `/{id}/{id}`), "occurs twice"},
		{route(`/a/{id}`, `/{id...}/a`), "must be last"},
		{route(`"lease"`, `"lease", "timeout_ms": -1`), "timeout_ms"},
		{`{"timeout_ms": 86400001, "routes": [` + good + `]}`, "timeout_ms"},
		{`{"max_calls": -1, "routes": [` + good + `]}`, "cannot be negative"},
		{`{"max_waiting": -1, "routes": [` + good + `]}`, "cannot be negative"},
		{credential(`{}`), "use exactly one of file and env"},
		{credential(`{"file": "f", "env": "E"}`), "use exactly one of file and env"},
		{credential(`{"file": "missing"}`), "no such file"},
		{credential(`{"env": "GUARD_EMPTY"}`), "it is empty"},
		{credential(`{"env": "GUARD_LINES"}`), "not allowed in a header"},
		{credential(`{"env": "E", "header": "Host"}`), "cannot be used"},
		{credential(`{"env": "E", "header": "interlock-fence"}`), "cannot be used"},
		{credential(`{"env": "E", "header": "A B"}`), "cannot be used"},
		{credential(`{"env": "E", "scheme": "Bearer "}`), "scheme"},
	} {
		path := filepath.Join(t.TempDir(), "guard.json")
		write(t, path, tt.config)
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s\ngives %v, want %q", tt.config, err, tt.words)
		}
	}
}

func TestCredentialIsNotPrinted(t *testing.T) {
	t.Setenv("GUARD_SECRET", secret)
	path := filepath.Join(t.TempDir(), "guard.json")
	write(
		t, path,
		`{"routes": [{"methods": ["*"], "path": "/{rest...}", "demand": "open"}], "credential": {"header": "x-api-key", "env": "GUARD_SECRET"}}`,
	)
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Credential.Header != "X-Api-Key" || cfg.Credential.value != secret {
		t.Errorf("header %s", cfg.Credential.Header)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, cfg.Credential); strings.Contains(text, secret) {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		path, key, call, want string // want "-": it does not fit
	}{
		{"/", "root", "/", "root"},
		{"/", "root", "/a", "-"},
		{"/a/", "a", "/a/", "a"},
		{"/a/", "a", "/a", "-"},
		{"/a/{x}", "k:{x}", "/a/b", "k:b"},
		{"/a/{x}", "k:{x}", "/a/", "-"},
		{"/a/{x}", "k:{x}", "/a", "-"},
		{"/a/{x}/c/{y}", "k:{y}/{x}", "/a/1/c/2", "k:2/1"},
		{"/a/{x}", "k:{x}", "/a/b%20c", "k:b c"},
		{"/{x...}", "{x...}", "/a/b/c", "a/b/c"},
		{"/a/{x...}", "k/{x}!", "/a/b", "k/b!"},
		{"/a/{x...}", "k/{x}", "/a", "-"},
		{"/a/{x...}", "k/{x}", "/a/", "-"},
		{"/a/{n:int}", "k:{n}", "/a/0", "k:0"},
		{"/a/{n:int}", "k:{n}", "/a/10", "k:10"},
		{"/a/{n:int}", "k:{n}", "/a/00", "-"},
		{"/a/{n:int}", "k:{n}", "/a/x", "-"},
	} {
		rule, err := newRule(Route{Path: tt.path, Key: tt.key})
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		segments, err := splitPath(tt.call)
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if found, ok := rule.fits(segments); ok {
			got = string(rule.keyFor(found))
		}
		if got != tt.want {
			t.Errorf("%s at %s gives %s, want %s", tt.path, tt.call, got, tt.want)
		}
	}
}
