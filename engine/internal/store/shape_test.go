package store

import (
	"testing"

	"github.com/interlockdev/interlock"
)

func TestCanonical(t *testing.T) {
	tests := []struct {
		shape   string
		aliases []string
		key     string
		want    string // "" when it does not fit
	}{
		{"account:{id}", nil, "account:12345", "account:12345"},
		{"account:{id}", nil, "account:", ""},
		{"account:{id}", nil, "account:1/2", ""},
		{"account:{id}", nil, "accounts:1", ""},
		{"account:{id:int}", nil, "account:0012", "account:12"},
		{"account:{id:int}", nil, "account:000", "account:0"},
		{"account:{id:int}", nil, "account:1x", ""},
		{"host:{name:lower}", nil, "host:WEB-ÄÖ", "host:web-äö"},
		{"{a}-{b}", nil, "x-y-z", "x-y-z"}, // a is x
		{"{a}-{b}", nil, "-y", ""},
		{"{a}/{b}", nil, "x/y", "x/y"},
		{"{a}/{b}", nil, "x/y/z", ""},
		{"repo:{name}/{path...}", nil, "repo:web", "repo:web"},
		{"repo:{name}/{path...}", nil, "repo:web/a/b", "repo:web/a/b"},
		{"repo:{name}/{path...}", nil, "repo:", ""},
		{"a/{rest...}", nil, "a", "a"},
		{"a/{rest...}", nil, "ab", ""},
		{"account:{id:int}", []string{"acct-{id}", "a/{id}"}, "acct-007", "account:7"},
		{"account:{id:int}", []string{"acct-{id}", "a/{id}"}, "a/7", "account:7"},
		{"account:{id:int}", []string{"acct-{id}"}, "acct-x", ""},
		{"{org}:{repo}", []string{"{repo}@{org}"}, "web@acme", "acme:web"},
		{"repo:{name}/{path...}", []string{"git/{name}/{path...}"}, "git/web/src/a.ts", "repo:web/src/a.ts"},
		{"repo:{name}/{path...}", []string{"git/{name}/{path...}"}, "git/web", "repo:web"},
		{"{x:lower}k{y}", nil, "aKkB", "akkB"}, // x is ak, then a
		{"{x:lower}k{y:lower}", nil, "aKkB", "akkb"},
		{"{x:lower}k{y:int}", nil, "aKk5", ""}, // as akk5 it does not fit
	}
	for _, tt := range tests {
		p, problem := Compile(interlock.Pattern{Name: "p", Shape: tt.shape, Aliases: tt.aliases})
		if problem != nil {
			t.Fatalf("%s: %v", tt.shape, problem)
		}
		got, ok := p.canonical(tt.key)
		if ok != (tt.want != "") || got != tt.want {
			t.Errorf("%s %v: %q is %q, %v; want %q", tt.shape, tt.aliases, tt.key, got, ok, tt.want)
		}
		if again, ok := p.canonical(got); got != "" && (!ok || again != got) {
			t.Errorf("%s: %q has the other spelling %q", tt.shape, got, again)
		}
	}
}

// FuzzShape: whatever fits has one spelling, which is its own.
func FuzzShape(f *testing.F) {
	f.Add("account:{id:int}", "acct-{id}", "acct-007")
	f.Add("repo:{name:lower}/{path...}", "git/{name}/{path...}", "git/Web/a/b")
	f.Add("{a}-{b}", "{b}:{a}", "x-y-z")
	f.Add("{x:lower}k{y:int}", "{y}-{x}", "aKk5")
	f.Fuzz(func(t *testing.T, shape, alias, key string) {
		p, problem := Compile(interlock.Pattern{Name: "p", Shape: shape, Aliases: []string{alias}})
		if problem != nil {
			return
		}
		once, ok := p.canonical(key)
		if !ok {
			return
		}
		if twice, ok := p.canonical(once); !ok || twice != once {
			t.Errorf("%q fits %q or %q as %q, which is %q, %v", key, shape, alias, once, twice, ok)
		}
	})
}
