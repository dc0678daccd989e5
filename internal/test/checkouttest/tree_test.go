package checkouttest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a checkout with all that is in it.
type tree struct {
	t   *testing.T
	dir string
}

// names are the files of the checkout. Rows of hook/shell/testdata name most of them.
var names = strings.Fields(`
	F G H a b c d e x a.txt b.txt c.txt my_file.txt in.txt out.txt log.txt a.go b.go c.go main.go a.ts b.ts a.js b.js
	a.py b.py a.md a.c a.json list err.log t y z src/a src/b src/a.go src/b.go src/auth.ts src/a.ts src/main.rs sub/a
	sub/b.go lib/a lib/b.ts docs/a.md pkg/a.go
`)

func (d *tree) git(args ...string) string {
	d.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_DATE=1790000000 +0000", "GIT_COMMITTER_DATE=1790000000 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (d *tree) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// newTree makes the checkout that worlds begin with: a branch dev has other contents, origin/main is one commit ahead,
// and there are an archive, a patch, a program of the project, and an alias.
func newTree(t *testing.T, dir string) *tree {
	t.Helper()
	d := &tree{t: t, dir: dir}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d.git("init", "-q", "-b", "main")
	for _, setting := range [][2]string{
		{"user.name", "Ann"},
		{"user.email", "ann@example.org"},
		{"alias.wipe", "reset --hard"},
		{"pull.rebase", "false"},
		{"gc.auto", "0"},
		{"commit.gpgsign", "false"},
	} {
		d.git("config", setting[0], setting[1])
	}
	text := func(name, more string) string { return "alpha a b x\nbeta old foo\n" + name + "\n" + more }
	for _, name := range names {
		d.write(name, text(name, ""))
	}
	d.write("run.sh", `for f in "$@"; do echo x > "$f"; done`+"\n")
	d.write("Makefile", "all:\n\techo x > F\n")
	d.git("add", "-A")
	d.git("commit", "-qm", "first")
	d.git("switch", "-qc", "dev")
	for _, name := range names {
		d.write(name, text(name, "of dev\n"))
	}
	d.git("commit", "-qam", "dev")
	d.git("diff", "main", "dev", "--output=fix.patch", "--", "F", "a", "a.txt", "src/a")
	d.git("archive", "--output=a.tar", "dev", "F", "a", "a.txt", "src")
	d.git("archive", "--output=a.tar.gz", "dev", "F", "a", "a.txt", "src")
	d.git("switch", "-q", "main")
	bare := dir + ".git"
	d.git("init", "-q", "--bare", "-b", "main", bare)
	d.git("push", "-q", bare, "dev:main")
	d.git("config", "remote.origin.url", bare)
	d.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	d.git("config", "branch.main.remote", "origin")
	d.git("config", "branch.main.merge", "refs/heads/main")
	d.git("fetch", "-q", "origin")
	return d
}

// copyTree makes a copy of a folder. Objects of git never change, so both have the same.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	objects := filepath.Join(from, ".git", "objects")
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			return os.Mkdir(target, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !info.Mode().IsRegular():
			return nil
		case strings.HasPrefix(path, objects):
			return os.Link(path, target)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			return err
		}
		return os.Chmod(target, info.Mode().Perm())
	})
	if err == nil { // the index knows files by their times
		err = keepTimes(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func keepTimes(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Contains(path, "/.git/objects/") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(to+strings.TrimPrefix(path, from), info.ModTime(), info.ModTime())
	})
}

func remove(t *testing.T, dir string) {
	t.Helper()
	if os.RemoveAll(dir) == nil {
		return
	}
	if out, err := exec.Command("chmod", "-R", "u+rwX", dir).CombinedOutput(); err != nil {
		t.Fatalf("chmod: %v: %s", err, out)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// putBack makes a folder what its backup is. The folder itself stays: another one would be another copy to the hooks.
func putBack(t *testing.T, backup, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{dir, backup} {
		entries, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if from == dir {
				remove(t, filepath.Join(dir, e.Name()))
			} else if err := os.Rename(filepath.Join(backup, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(t, backup)
}

// state is what a checkout has: its files with contents and modes, and git's head and index.
type state struct {
	files             map[string]string
	head, last, index string
}

func (d *tree) state() (s state) {
	d.t.Helper()
	s.files = map[string]string{}
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // a command has taken away the right to read it
		}
		if e.IsDir() {
			if e.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		name, _ := filepath.Rel(d.dir, path) // it is below
		if e.Type()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			s.files[name] = "-> " + target
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		text, _ := os.ReadFile(path)
		s.files[name] = fmt.Sprintf("%o %s", info.Mode().Perm(), text)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(d.dir, ".git", name)) // without one there is none
		return string(text)
	}
	s.head, s.index = read("HEAD"), read("index")
	if log := strings.TrimSpace(read("logs/HEAD")); log != "" {
		s.last = log[strings.LastIndexByte(log, '\n')+1:]
	}
	return s
}

// changed returns the files that are not the same in two states.
func changed(a, b state) (list []string) {
	for name, text := range a.files {
		if other, ok := b.files[name]; !ok || other != text {
			list = append(list, name)
		}
	}
	for name := range b.files {
		if _, ok := a.files[name]; !ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// staged returns the files that have other contents in the index than in HEAD.
func (d *tree) staged() map[string]bool {
	set := map[string]bool{}
	out, err := exec.Command("git", "-C", d.dir, "diff", "--cached", "--name-only", "-z").Output()
	if err != nil {
		return set // there is no repository any more
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		set[name] = true
	}
	delete(set, "")
	return set
}

// committed returns the files that the last commit changed.
func (d *tree) committed(from, to string) []string {
	out, err := exec.Command("git", "-C", d.dir, "diff", "--name-only", "-z", from, to).Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// has reports whether an object of git has a text.
func (d *tree) has(object, text string) bool {
	out, err := exec.Command("git", "-C", d.dir, "show", object).Output()
	return err == nil && strings.Contains(string(out), text)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
