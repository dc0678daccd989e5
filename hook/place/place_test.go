package place

import (
	"os"
	"path/filepath"
	"testing"
)

// tree is a folder for a test, without links on the way to it.
type tree struct {
	*testing.T
	top string
}

func newTree(t *testing.T) tree {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree{t, top}
}

func (t tree) path(name string) string { return filepath.Join(t.top, filepath.FromSlash(name)) }

func (t tree) file(name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(t.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(t.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// repository makes what git init makes, as far as it is read.
func (t tree) repository(gitDir, origin string) {
	t.Helper()
	t.file(gitDir+"/HEAD", "ref: refs/heads/main\n")
	config := "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = git@example.com:other/fork.git\n"
	if origin != "" {
		config += "[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\turl = " + origin + "\n"
	}
	t.file(gitDir+"/config", config+"[branch \"main\"]\n\tremote = origin\n")
}

func (t tree) link(name, target string) {
	t.Helper()
	if err := os.Symlink(target, t.path(name)); err != nil {
		t.Fatal(err)
	}
}

func (t tree) want(dir, root, repo string) {
	t.Helper()
	c, ok := Find(t.path(dir))
	if !ok || c.Root != t.path(root) || c.Repo != repo+identity(t.path(root)) {
		t.Errorf("%s lies in %+v, %v, want %s at %s", dir, c, ok, repo, root)
	}
}

func TestFind(t *testing.T) {
	f := newTree(t)
	f.repository("plain/.git", "")
	f.repository("web/.git", "git@example.com:team/web.git")
	f.repository("web-2/.git", "https://user@example.com/team/web.git/")
	f.repository("bare.git", "")
	f.file("plain/deep/er/a.go", "")
	f.file("web/vendor/.git/nothing", "") // no repository
	f.file("fix/.git", "gitdir: "+f.path("web/.git/worktrees/fix-login")+"\n")
	f.file("web/.git/worktrees/fix-login/commondir", "../..\n")
	f.file("tree/.git", "gitdir: ../bare.git/worktrees/tree")
	f.file("bare.git/worktrees/tree/commondir", "../..\n")
	f.repository("web/.git/modules/lib", "../lib.git")
	f.file("web/lib/.git", "gitdir: ../.git/modules/lib\n")
	f.link("short", f.path("web"))

	f.want("plain", "plain", "plain@")
	f.want("plain/deep/er", "plain", "plain@")
	f.want("plain/deep/not/there", "plain", "plain@")
	f.want("web", "web", "web@")
	f.want("web/vendor", "web", "web@")
	f.want("short/src", "web", "web@")
	f.want("web-2/src", "web-2", "web@")
	f.want("fix/src", "fix", "web@fix-login-")
	f.want("tree", "tree", "bare@tree-")
	f.want("web/lib/src", "web/lib", "lib@")
	f.file("odd/.git", "not a pointer")
	for _, dir := range []string{f.path("odd"), f.top, "relative", ""} {
		if c, ok := Find(dir); ok {
			t.Errorf("%q lies in %+v", dir, c)
		}
	}
}

func TestResolve(t *testing.T) {
	f := newTree(t)
	f.file("real/a.go", "")
	f.link("link", "real")
	f.link("new.go", "real/not-yet.go")
	f.link("loop", "loop")
	for path, want := range map[string]string{
		"real/a.go":          "real/a.go",
		"link/a.go":          "real/a.go",
		"link/../real/a.go":  "real/a.go",
		"link/sub/b.go":      "real/sub/b.go",
		"new.go":             "real/not-yet.go",
		"real/x/../../a":     "a",
		"loop":               "loop",
		"loop/below":         "loop/below",
		"real/./x//y":        "real/x/y",
		"real/a.go/below/it": "real/a.go/below/it",
	} {
		if got := Resolve(f.top + "/" + path); got != f.path(want) {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	if got := Resolve("a/b"); got != "" {
		t.Errorf("a relative path leads to %q", got)
	}
}

func TestNameOf(t *testing.T) {
	for url, want := range map[string]string{
		"git@example.com:team/web.git": "web", "https://example.com/team/web": "web", "/srv/web/.git": "web",
		"ssh://git@example.com:22/web.git/": "web", `C:\src\web.git`: "web", "../web": "web", "..": "", "": "",
		"https://example.com/web.git?x=1": "web", "host:web": "web",
	} {
		if got := nameOf(url); got != want {
			t.Errorf("%s is %q, want %q", url, got, want)
		}
	}
}
