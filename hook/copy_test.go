//go:build unix

package hook

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// layout is a disk with copies of repositories on it, made at random with git.
type layout struct {
	*testing.T
	random  *rand.Rand
	top     string
	folders []string // spelled in some way
	repos   []string
	n       int
}

func (l *layout) run(dir string, argv ...string) error {
	cmd := exec.CommandContext(l.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(
		os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", argv, err, out)
	}
	return nil
}

func (l *layout) must(dir string, argv ...string) {
	l.Helper()
	if err := l.run(dir, argv...); err != nil {
		l.Fatal(err)
	}
}

// fresh returns a path that does not exist. Few names, in many folders, are those of most copies.
func (l *layout) fresh() string {
	l.n++
	in := filepath.Join(l.top, fmt.Sprintf("d%d", l.n))
	if err := os.Mkdir(in, 0o755); err != nil {
		l.Fatal(err)
	}
	return filepath.Join(in, []string{"web", "checkout", "tree"}[l.random.IntN(3)])
}

func (l *layout) any(list []string) string { return list[l.random.IntN(len(list))] }

func (l *layout) repo(dir string) {
	l.repos = append(l.repos, dir)
	l.folders = append(l.folders, dir, dir+"/src")
}

// step changes the layout. An operation that git refuses, as on the copy of a submodule, changes nothing.
func (l *layout) step() {
	dir, at := l.any(l.repos), l.fresh()
	switch l.random.IntN(8) {
	case 0:
		if l.run(l.top, "git", "clone", "-q", dir, at) == nil {
			l.repo(at)
		}
	case 1:
		if l.run(dir, "git", "worktree", "add", "-q", "--detach", at) == nil {
			l.repo(at)
		}
	case 2: // also of a worktree: two folders have one git directory then
		l.must(l.top, "cp", "-a", dir, at)
		l.repo(at)
	case 3:
		inner := fmt.Sprintf("%s/src/inner%d", dir, l.n)
		if l.run(l.top, "git", "clone", "-q", dir, inner) == nil {
			l.repo(inner)
		}
	case 4:
		name := fmt.Sprintf("lib%d", l.n)
		if l.run(dir, "git", "submodule", "add", "-q", l.repos[0], name) == nil {
			l.repo(dir + "/" + name)
		}
	case 5, 6:
		target := l.any(l.folders)
		if err := os.Symlink(target, at); err != nil {
			l.Fatal(err)
		}
		l.folders = append(l.folders, at)
	case 7:
		if err := os.MkdirAll(at+"/src", 0o755); err != nil {
			l.Fatal(err)
		}
		l.folders = append(l.folders, at)
	}
}

// spelled returns a path of a file, which may not exist, in one of many spellings.
func (l *layout) spelled() string {
	dir := l.any(l.folders)
	switch l.random.IntN(6) {
	case 0:
		dir += "/.." // behind a link, this is the folder above its target
	case 1:
		dir += "/.//."
	case 2:
		dir = l.top + "/d1/../" + strings.TrimPrefix(dir, l.top+"/")
	}
	return dir + "/" + l.any([]string{"a", "b", "src/a", "src/a", "not/there/a"})
}

// identityOf is the identity of a file by the system alone: the device and inode of the file, or of the deepest
// folder on the way with the rest of the path.
func (l *layout) identityOf(file string) string {
	for rest := ""; ; {
		if info, err := os.Stat(file); err == nil {
			s := info.Sys().(*syscall.Stat_t)
			return fmt.Sprintf("%d:%d/%s", s.Dev, s.Ino, rest)
		}
		i := strings.LastIndexByte(file, '/')
		file, rest = file[:i], path.Join(file[i+1:], rest)
	}
}

// keyIn returns the key that an edit of a file has: by a server that sees the disk, or by one that asks interlock-hook.
func (l *layout) keyIn(dir, file string, remote bool) string {
	l.Helper()
	event := fmt.Appendf(nil, `{"cwd":%q}`, dir)
	address, headers := "127.0.0.1", hookclient.Where(event)
	locatorOf := func() *locator {
		r, err := http.NewRequestWithContext(l.Context(), http.MethodPost, "/v1/hooks/codex", nil)
		if err != nil {
			l.Fatal(err)
		}
		r.RemoteAddr = address + ":50000"
		for _, h := range headers {
			r.Header.Add(h.Name, h.Value)
		}
		host, err := os.Hostname()
		if err != nil {
			l.Fatal(err)
		}
		return newLocator(r, host, dir)
	}
	ev := &Event{Dir: dir, Writes: []shell.Target{{Path: file}}}
	if remote {
		address = "10.0.0.7"
		asked := locatorOf().missing(ev)
		if len(asked) == 0 {
			l.Fatalf("the server does not ask for %s", file)
		}
		headers = append(headers, hookclient.Places(asked, nil))
		if more := locatorOf().missing(ev); len(more) > 0 {
			l.Fatalf("the server asks again for %v", more)
		}
	}
	at := locatorOf()
	all := at.files(ev.Writes)
	if len(all) == 0 {
		return ""
	}
	// The key of the path as the system goes through it.
	return string(at.file(slices.Clone(spellings(dir, file))[len(spellings(dir, file))-1]).Key)
}

// TestCopies has random layouts of clones, worktrees, copies, submodules, moves and links. Two paths have one key if,
// and only if, they lead to one place on the disk.
func TestCopies(t *testing.T) {
	pairs, alike := 0, 0
	for seed := range uint64(6) {
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		l := &layout{T: t, random: rand.New(rand.NewPCG(seed, 41)), top: top}
		first := l.fresh()
		l.must(top, "git", "init", "-q", "-b", "main", first)
		if err := os.MkdirAll(first+"/src", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(first+"/src/a", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l.must(first, "git", "add", ".")
		l.must(first, "git", "commit", "-qm", "x")
		l.repo(first)
		for range 14 {
			l.step()
		}
		keys := map[string]string{} // by identity
		back := map[string]string{}
		for range 120 {
			dir, file := l.any(l.folders), l.spelled()
			id := l.identityOf(file)
			key := l.keyIn(dir, file, l.random.IntN(2) == 0)
			if key == "" {
				continue // the folder of the agent, or one above
			}
			pairs++
			if other, ok := keys[id]; ok {
				alike++
				if other != key {
					t.Errorf("seed %d: %s, seen from %s, has the key %s, and by another path %s",
						seed, file, dir, key, other)
				}
			}
			if other, ok := back[key]; ok && other != id {
				t.Errorf("seed %d: %s, seen from %s, has the key %s of another file", seed, file, dir, key)
			}
			keys[id], back[key] = key, id
		}
		// A copy stays the same one when it is moved.
		clone, moved := l.fresh(), l.fresh()
		l.must(top, "git", "clone", "-q", first, clone)
		was := l.keyIn(clone, clone+"/src/a", false)
		if err := os.Rename(clone, moved); err != nil {
			t.Fatal(err)
		}
		if is := l.keyIn(moved, moved+"/src/a", false); is != was {
			t.Errorf("seed %d: a copy has the key %s, and after a move %s", seed, was, is)
		}
	}
	if pairs < 400 || alike < 100 {
		t.Errorf("only %d paths were tried, %d of them spelled twice", pairs, alike)
	}
}
