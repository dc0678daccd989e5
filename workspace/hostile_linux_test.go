//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hostilePlaces are the files and folders that an agent can replace: those of its private git directory, and those of
// its tree that git reads.
var hostilePlaces = strings.Fields(`
	git/HEAD git/config git/config.worktree git/index git/index.lock git/packed-refs git/refs git/refs/heads
	git/refs/heads/a git/refs/stash git/logs git/logs/HEAD git/objects git/objects/info git/objects/info/alternates
	git/objects/pack git/objects/pack/pack-0.idx git/info git/info/exclude git/info/attributes git/info/grafts
	git/info/sparse-checkout git/COMMIT_EDITMSG git/MERGE_HEAD git/MERGE_MSG git/ORIG_HEAD git/FETCH_HEAD git/commondir
	git/gitdir git/shallow git/hooks git/hooks/pre-commit git/worktrees git/worktrees/x/gitdir git/modules/x
	git/lfs/objects git/rebase-merge git/rebase-merge/autostash git/interlock-index git/branches git
	tree/.git tree/.gitattributes tree/.gitignore tree/.gitmodules tree/README.md tree/src tree/new`)

// hostileKinds are what a place is replaced by.
var hostileKinds = map[string]func(at, canary string) error{
	"link to a file":    func(at, canary string) error { return os.Symlink(filepath.Join(canary, "file"), at) },
	"link to a folder":  func(at, canary string) error { return os.Symlink(canary, at) },
	"dangling link":     func(at, canary string) error { return os.Symlink(filepath.Join(canary, "fresh"), at) },
	"link to a device":  func(at, _ string) error { return os.Symlink("/dev/zero", at) },
	"link to itself":    func(at, _ string) error { return os.Symlink(at, at) },
	"named pipe":        func(at, _ string) error { return syscall.Mkfifo(at, 0o600) },
	"socket":            func(at, _ string) error { return syscall.Mknod(at, syscall.S_IFSOCK|0o600, 0) },
	"folder":            func(at, _ string) error { return os.MkdirAll(filepath.Join(at, "x"), 0o755) },
	"empty file":        func(at, _ string) error { return os.WriteFile(at, nil, 0o600) },
	"odd bytes":         func(at, _ string) error { return os.WriteFile(at, []byte("\xff\x00[\n../x\x1b]0;"), 0o600) },
	"path of a canary":  func(at, canary string) error { return os.WriteFile(at, []byte(canary+"\n"), 0o600) },
	"hole of 10 GB":     func(at, _ string) error { return hole(at) },
	"nothing":           func(string, string) error { return nil },
	"closed for others": func(at, _ string) error { return os.WriteFile(at, []byte("x"), 0) },
}

func hole(at string) error {
	f, err := os.Create(at)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(10<<30), f.Close())
}

// Whatever an agent puts where, no command with more rights changes anything outside, waits for it, or fails without a
// sentence; delete with force always ends with the workspace gone and the work saved or moved aside.
func TestHostileAgent(t *testing.T) {
	n := 0
	for _, place := range hostilePlaces {
		for _, kind := range hostileKindNames() {
			n++
			share := 7 // all of them would take a quarter of an hour
			if testing.Short() || os.Getenv(asOther) != "" {
				share = 29
			}
			if (n*7919)%share != 0 {
				continue
			}
			t.Run(strings.ReplaceAll(kind, " ", "-")+" for "+strings.ReplaceAll(place, "/", "-"), func(t *testing.T) {
				testHostile(t, place, hostileKinds[kind])
			})
		}
	}
}

func hostileKindNames() (names []string) {
	for name := range hostileKinds {
		names = append(names, name)
	}
	// In an order that does not change.
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			if names[j] < names[i] {
				names[i], names[j] = names[j], names[i]
			}
		}
	}
	return names
}

func testHostile(t *testing.T, place string, put func(at, canary string) error) {
	r := newRig(t)
	canary := t.TempDir()
	r.write(filepath.Join(canary, "file"), "mine\n")
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "echo c > c.txt; git add c.txt; git commit -qm c; echo u > u.txt; echo changed > README.md")
	at := filepath.Join(w.dir, filepath.FromSlash(place))
	if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := put(at, canary); err != nil {
		t.Fatal(err)
	}
	kept := ""
	steps := []struct {
		name string
		do   func() error
	}{
		{"status", func() error { _, err := w.Status(r.ctx); return err }},
		{"diff", func() error { return w.Diff(r.ctx, io.Discard) }},
		{"diff --merged", func() error { _, err := w.Merged(r.ctx, io.Discard); return err }},
		{"sync", func() error { _, err := w.Sync(r.ctx); return err }},
		{"rescue", func() error { _, err := w.Rescue(r.ctx); return err }},
		{"work", func() error { _, err := w.Work(r.ctx); return err }},
		{"submit", func() error { _, err := w.Submit(r.ctx, "all", true); return err }},
		{"delete", func() error { _, err := r.host.Delete(r.ctx, "web", "a", false); return err }},
		{"delete --force", func() error {
			if !exists(w.dir) {
				return nil
			}
			d, err := r.host.Delete(r.ctx, "web", "a", true)
			if d != nil {
				kept = d.Kept
			}
			return err
		}},
	}
	for _, step := range steps {
		err := step.do()
		if _, refusal := errors.AsType[*Error](err); err != nil && !refusal {
			t.Errorf("%s: %v, want a refusal", step.name, err)
		}
		if err != nil && step.name == "delete --force" {
			t.Errorf("%s: %v", step.name, err)
		}
		if strings.Contains(errorText(err), "did not end") {
			t.Errorf("%s: it waited for its limit: %v", step.name, err)
		}
		var found []string
		_ = filepath.WalkDir(canary, func(path string, e fs.DirEntry, err error) error {
			found = append(found, filepath.Base(path))
			return err
		})
		content, err := os.ReadFile(filepath.Join(canary, "file"))
		if err != nil || string(content) != "mine\n" || len(found) != 2 {
			t.Fatalf("%s: outside there are %q, and the file has %q (%v)", step.name, found, content, err)
		}
	}
	if exists(w.dir) {
		t.Error("the workspace is left")
	}
	if place == "git" || place == "git/objects" {
		return // the commits were there
	}
	all := r.git("rev-list", "--objects", "--all")
	for _, content := range []string{"c", "u"} {
		blob := r.shell(nil, r.source, "sh", "-c", "echo "+content+" | git hash-object --stdin")
		if !strings.Contains(all, blob) && kept == "" {
			t.Errorf("%q is neither in the repository nor kept", content)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
