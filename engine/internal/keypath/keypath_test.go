package keypath

import (
	"errors"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
)

func TestParse(t *testing.T) {
	for _, s := range []string{"a", "account:12345", "repo:web/src/auth.ts", "a b", "ä", "a/.b/..c"} {
		if key, err := Parse(s); err != nil || string(key) != s {
			t.Errorf("%q is %q, %v", s, key, err)
		}
	}
	for _, s := range []string{
		"", "/", "a/", "a//b", "a/..", ".", " a", "a /b", "a\x00", "a\u00a0b", "a\u200bb", "a\u2800", "a\xff", "a\u0308",
	} {
		if _, err := Parse(s); !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidKey}) {
			t.Errorf("%q: %v, want code %s", s, err, interlock.CodeInvalidKey)
		}
	}
}

// TestCompare sorts a tree: a key stands before what lies below it.
func TestCompare(t *testing.T) {
	want := []interlock.Key{"a", "a/b", "a/b/c", "a/c", "a!", "ab", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	if slices.SortFunc(got, Compare); !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
}

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		key, above string
		want       bool
	}{
		{"a/b", "a", true},
		{"a/b/c", "a", true},
		{"a", "a", false},
		{"ab", "a", false},
		{"a", "a/b", false},
	} {
		if got := IsBelow(tt.key, tt.above); got != tt.want {
			t.Errorf("IsBelow(%q, %q) is %v", tt.key, tt.above, got)
		}
	}
	if parent, ok := Parent("a/b/c"); !ok || parent != "a/b" {
		t.Errorf("the parent is %q, %v", parent, ok)
	}
	if parent, ok := Parent("a"); ok {
		t.Errorf("the top has the parent %q", parent)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"aää", 2, "a..."}} {
		if got := Clip(tt.text, tt.n); got != tt.want {
			t.Errorf("%q at %d is %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestShape(t *testing.T) {
	sh, problem := ParseShape("org:{org}/repo-{id:int}/{path...}")
	if problem != nil {
		t.Fatal(problem)
	}
	if got := sh.Prefix(); got != "org:" {
		t.Errorf("the prefix is %q", got)
	}
	if got := sh.Form(); got != "org:{}/repo-{:int}/{...}" {
		t.Errorf("the form is %q", got)
	}
	if got := sh.Names(); !slices.Equal(got, []string{"org", "id", "path"}) {
		t.Errorf("the names are %q", got)
	}
	if got := sh.Words(); !slices.Equal(got, []string{"repo"}) {
		t.Errorf("the words are %q", got)
	}
	if !sh.TakesRest() || !sh.Respells() || sh.Typed() != 1 || sh.Literal() != len("org:/repo-") {
		t.Errorf("TakesRest %v, Respells %v, Typed %d, Literal %d", sh.TakesRest(), sh.Respells(), sh.Typed(), sh.Literal())
	}
	values, ok := sh.Match(nil, "org:acme/repo-007/src/a.ts")
	if !ok || !slices.Equal(values, []string{"acme", "7", "src/a.ts"}) {
		t.Fatalf("the values are %q, %v", values, ok)
	}
	if got := sh.Fill(values); got != "org:acme/repo-7/src/a.ts" {
		t.Errorf("filled: %q", got)
	}
	for above, want := range map[string]bool{
		"org:acme": true, "org:acme/repo-7": true, "org:acme/repo-07": false, "org:acme/team": false, "team": false,
	} {
		if got := sh.MayLieBelow(above); got != want {
			t.Errorf("MayLieBelow(%q) is %v", above, got)
		}
	}
	if !sh.CoversBelow("org:acme/repo-7") || sh.CoversBelow("org:acme") {
		t.Error("CoversBelow is wrong")
	}
	for _, s := range []string{"", "{", "}", "{A}", "{a}{b}", "{a}/{a}", "{a:float}", "{a...}/b", "a//{b}"} {
		if _, problem := ParseShape(s); problem == nil {
			t.Errorf("%q is a shape", s)
		}
	}
}

func TestSpelling(t *testing.T) {
	for _, pair := range [][2]string{{"account:123", "Account-0123"}, {"reports/q1", "report_Q1"}} {
		if Skeleton(pair[0]) != Skeleton(pair[1]) {
			t.Errorf("%q and %q have the skeletons %q and %q", pair[0], pair[1], Skeleton(pair[0]), Skeleton(pair[1]))
		}
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"report", "reprot", true},
		{"report", "reports", true},
		{"report", "repart", true},
		{"report", "report", false},
		{"web1", "web2", false},
		{"report", "repo", false},
	} {
		if got := IsSlip(tt.a, tt.b); got != tt.want {
			t.Errorf("IsSlip(%q, %q) is %v", tt.a, tt.b, got)
		}
	}
	if got := Distance("kitten", "sitting"); got != 3 {
		t.Errorf("the distance is %d, want 3", got)
	}
	if Kind("Report:2026/q1") != "report" || First("a:b/c") != "a:b" || FirstWord("a:b") != "a" || FirstWord("") != "" {
		t.Error("Kind, First or FirstWord is wrong")
	}
}
