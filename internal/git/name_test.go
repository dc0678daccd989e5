package git

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "fix-login", "q_0001", "v1.2", strings.Repeat("a", MaxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "-a", "--upload-pack=x", ".", "..", "a..b", ".git", "a/b", "a b", "a\nb", "A", "ä", "a.lock", "a.", "a\x00",
		"a\\b", "a:b", "a@{1}", strings.Repeat("a", MaxName+1),
	} {
		if err := CheckName(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// Each ref that CheckRef accepts is one for git, too.
func TestCheckRef(t *testing.T) {
	refs := map[string]bool{
		"refs/heads/main": true, "refs/interlock/sub/q_1": true, "refs/heads/ä": true, "refs/heads/a.b": true,
		"refs/heads/a@b": true, "main": false, "HEAD": false, "": false, "refs/": false, "refs/heads/": false,
		"refs/heads/-a": false, "refs/heads/a..b": false, "refs/heads/a b": false, "refs/heads/a\nb": false,
		"refs/heads/a.lock": false, "refs/heads/a.lock/b": false, "refs/heads/.a": false, "refs/heads/a~1": false,
		"refs/heads/a^": false, "refs/heads/a:b": false, "refs/heads/a*": false, "refs/heads/a[b": false,
		"refs/heads/a\\b": false, "refs/heads/a@{1}": false, "refs/heads/a.": false, "refs//a": false,
		"refs/heads/a\x7f": false, "--upload-pack=x": false, "refs/" + strings.Repeat("a", 1024): false,
	}
	for ref, want := range refs {
		if err := CheckRef(ref); (err == nil) != want {
			t.Errorf("%q: %v, want accepted %v", ref, err, want)
		}
		if want {
			if _, err := new(Repository).Output(t.Context(), "check-ref-format", ref); err != nil {
				t.Errorf("%q is no ref for git: %v", ref, err)
			}
		}
	}
}

func TestCheckObject(t *testing.T) {
	good := strings.Repeat("0a", 20)
	for id, want := range map[string]bool{
		good: true, strings.Repeat("0a", 32): true, "": false, good[:39]: false, good + "0": false, "HEAD": false,
		strings.ToUpper(good): false, "-" + good[1:]: false, good[:39] + "\n": false,
	} {
		if err := CheckObject(id); (err == nil) != want {
			t.Errorf("%q: %v, want accepted %v", id, err, want)
		}
	}
	if !IsZero(strings.Repeat("0", 40)) || IsZero(good) || IsZero("") {
		t.Error("IsZero is wrong")
	}
}

func TestVersion(t *testing.T) {
	v, err := ReadVersion(t.Context())
	if err != nil || !v.AtLeast(2, 38) {
		t.Errorf("this git is %+v, %v: want at least 2.38", v, err)
	}
	v, err = parseVersion("git version 2.39.5 (Apple Git-154)")
	if err != nil || v.Text != "2.39.5 (Apple Git-154)" || !v.AtLeast(2, 39) || !v.AtLeast(1, 99) || v.AtLeast(2, 40) ||
		v.AtLeast(3, 0) {
		t.Errorf("parsed as %+v, %v", v, err)
	}
	for _, bad := range []string{"", "git version", "git version x", "hub version 1.2"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q is the version %+v", bad, v)
		}
	}
}
