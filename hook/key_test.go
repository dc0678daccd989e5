package hook

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/hook/shell"
)

// from returns the locator of a request with headers in pairs.
func from(t *testing.T, remote, dir string, header ...string) *locator {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hooks/codex", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = remote + ":50000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return newLocator(r, "own", dir)
}

func (l *locator) one(t *testing.T, path string) File {
	t.Helper()
	files := l.files([]shell.Target{{Path: path}})
	if len(files) != 1 {
		t.Fatalf("%s is %+v", path, files)
	}
	return files[0]
}

// TestKeyFromHeaders has paths of another machine.
func TestKeyFromHeaders(t *testing.T) {
	l := from(
		t, "10.0.0.7", "/tmp/web/src", place.HeaderRoot, "/tmp/web", place.HeaderRoot, "/private/tmp/web",
		place.HeaderRepo, "web@fix", place.HeaderHost, "ann",
	)
	for path, want := range map[string]string{
		"auth.ts":                  "repo:web@fix/src/auth.ts",
		"/tmp/web/src/auth.ts":     "repo:web@fix/src/auth.ts",
		"/private/tmp/web/a/../b":  "repo:web@fix/b",
		"../../../etc/passwd":      "file:ann/etc/passwd",
		"../../web/../web/src/x":   "repo:web@fix/src/x",
		"/tmp/web-2/a":             "file:ann/tmp/web-2/a",
		"a\u202eb/ c\u0308 /\x07d": "repo:web@fix/src/a%E2%80%AEb/%20c\u0308%20/%07d",
	} {
		if got := string(l.one(t, path).Key); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if file := l.one(t, "auth.ts"); file.Name != "src/auth.ts" {
		t.Errorf("it is shown as %s", file.Name)
	}
	if got := l.file("/tmp/web").Key; got != "repo:web@fix" {
		t.Errorf("the checkout is %s", got)
	}
	windows := from(t, "10.0.0.7", `C:\src\web`, place.HeaderRoot, `C:\src\web`, place.HeaderRepo, "web", place.HeaderHost, "pc")
	if got := windows.one(t, `C:\src\web\a\b.cs`).Key; got != "repo:web/a/b.cs" {
		t.Errorf("a path of Windows is %s", got)
	}
}

func TestKeyWithoutHeaders(t *testing.T) {
	l := from(t, "10.0.0.7", "/home/ann/web")
	if got := l.one(t, "src/a").Key; got != "file:10.0.0.7/home/ann/web/src/a" {
		t.Errorf("a path of another machine is %s", got)
	}
	if got := l.one(t, "/etc/hosts").Key; got != "file:10.0.0.7/etc/hosts" {
		t.Errorf("a path outside is %s", got)
	}
	if files := from(t, "10.0.0.7", "").files([]shell.Target{{Path: "a"}}); len(files) != 0 {
		t.Errorf("a path below no folder is %+v", files)
	}
}

// No tool writes the folder that its agent works in, or one above it; a lease on it would stop all agents.
func TestFoldersAroundTheAgent(t *testing.T) {
	l := from(
		t, "10.0.0.7", "/tmp/web/src", place.HeaderRoot, "/private/tmp/web", place.HeaderRepo, "web", place.HeaderHost, "ann",
	)
	for _, path := range []string{".", "..", "../..", "/", "../src", "/tmp/web", "/private/tmp/web", "/private/tmp"} {
		if files := l.files([]shell.Target{{Path: path}}); len(files) != 0 {
			t.Errorf("%s is %+v", path, files)
		}
	}
	files := l.files([]shell.Target{{Path: "/private/tmp/web", Into: "a"}})
	if len(files) != 1 || files[0].Key != "repo:web/a" {
		t.Errorf("a file that is moved there is %+v", files)
	}
}

// TestKeyOfOwnFiles has paths that this machine has.
func TestKeyOfOwnFiles(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"web/.git", "web/src", "lib/.git", "plain"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, repo := range []string{"web", "lib"} {
		if err := os.WriteFile(filepath.Join(top, repo, ".git", "HEAD"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("web", filepath.Join(top, "short")); err != nil {
		t.Fatal(err)
	}
	copies := map[string]string{}
	for _, repo := range []string{"web", "lib"} {
		c, ok := place.Find(filepath.Join(top, repo))
		if !ok {
			t.Fatalf("%s is no repository", repo)
		}
		copies[repo] = c.Repo
	}
	web := "repo:" + copies["web"]
	for _, header := range [][]string{
		nil, {place.HeaderHost, "own", place.HeaderRepo, copies["web"], place.HeaderRoot, filepath.Join(top, "web")},
	} {
		l := from(t, "127.0.0.1", filepath.Join(top, "short"), header...)
		for path, want := range map[string]string{
			"src/a": web + "/src/a", "../lib/a": "repo:" + copies["lib"] + "/a", top + "/web/a": web + "/a",
			"../plain/x": "file:own" + top + "/plain/x",
		} {
			if got := string(l.one(t, path).Key); got != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
		if got := l.file(top + "/short").Key; string(got) != web {
			t.Errorf("the checkout is %s", got)
		}
		files := l.files([]shell.Target{{Path: "src", Into: "a"}, {Path: "src/a"}, {Path: "new", Into: "a"}})
		if len(files) != 2 || string(files[0].Key) != web+"/new" || string(files[1].Key) != web+"/src/a" {
			t.Errorf("a target in a folder is %+v", files)
		}
	}
}

// TestKeysAreValid has names that cannot be keys as they are.
func TestKeysAreValid(t *testing.T) {
	for _, path := range []string{
		strings.Repeat("a/", 40) + "b", strings.Repeat("x", 2000), strings.Repeat("ä", 300) + "/b", "", "a\xffb",
		"\u00a0", "a\ufe0f",
		" ", strings.Repeat("a/", 14) + strings.Repeat("b", 600), "e\u0301", "\u2800", "a%b",
	} {
		for _, repo := range []string{"repo:web", "repo:" + segment("a/b\x00"), "repo:" + segment(strings.Repeat("n", 900))} {
			key := keyOf(repo, path)
			if _, err := engine.ParseKey(string(key)); err != nil {
				t.Errorf("%q: %v", path, err)
			}
		}
	}
	if keyOf("repo:web", strings.Repeat("a/", 40)+"b") == keyOf("repo:web", strings.Repeat("a/", 40)+"c") {
		t.Error("two deep paths have one key")
	}
	if got := keyOf("repo:web", "a b/c%20d/e@f"); got != "repo:web/a b/c%20d/e@f" {
		t.Errorf("a path that can be a key is %s", got)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("web", "src/a.go")
	f.Add("..", "a\u0301/\u200b/./ b")
	f.Add("0", "\x1a\u0301")
	f.Fuzz(func(t *testing.T, repo, path string) {
		key := keyOf("repo:"+segment(repo), path)
		if _, err := engine.ParseKey(string(key)); err != nil {
			t.Errorf("%q, %q: %v", repo, path, err)
		}
	})
}
