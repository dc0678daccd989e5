//go:build unix

package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fakeMachine has the abilities that are set.
type fakeMachine struct{ over, inside, share bool }

func can(yes bool, why string) error {
	if yes {
		return nil
	}
	return errors.New(why)
}

func (f fakeMachine) overlay(string) error  { return can(f.over, "only root may mount") }
func (f fakeMachine) rootless(string) error { return can(f.inside, "no user namespaces") }
func (f fakeMachine) reflink(string) error  { return can(f.share, "no shared blocks") }

func TestChooseKind(t *testing.T) {
	for _, tt := range []struct {
		wanted   Kind
		sparse   bool
		can      fakeMachine
		kind     Kind
		rootless bool
		why      string // of the choice, or of the refusal
	}{
		{Auto, false, fakeMachine{over: true, share: true}, Overlay, false, "may mount"},
		{Auto, false, fakeMachine{inside: true, share: true}, Reflink, false, "no overlay: only root may mount"},
		{Auto, false, fakeMachine{
			inside: true,
		}, Worktree, false, "no overlay: only root may mount; no reflink: no shared blocks"},
		{Auto, true, fakeMachine{over: true}, Sparse, false, "folders"},
		{Overlay, false, fakeMachine{inside: true}, Overlay, true, "workspace run"},
		{Overlay, false, fakeMachine{}, "", false, "no user namespaces"},
		{Reflink, false, fakeMachine{}, "", false, "Btrfs"},
		{Reflink, false, fakeMachine{share: true}, Reflink, false, "asked"},
		{Sparse, false, fakeMachine{}, "", false, "folders"},
		{Worktree, false, fakeMachine{}, Worktree, false, "asked"},
	} {
		var sparse []string
		if tt.sparse {
			sparse = []string{"src"}
		}
		got, err := chooseKind("/root", tt.wanted, sparse, tt.can)
		text := got.why
		if tt.kind == "" {
			if !errors.Is(err, ErrKind) {
				t.Errorf("%+v: %v", tt, err)
				continue
			}
			text = err.Error()
		}
		if got.kind != tt.kind || got.rootless != tt.rootless || !strings.Contains(text, tt.why) {
			t.Errorf("%+v: got %+v, %v", tt, got, err)
		}
	}
}

func TestNameFrom(t *testing.T) {
	for text, want := range map[string]string{
		"Web": "web", "My App": "my-app", ".dotfiles": "dotfiles", "a..b": "a-b", "x.lock": "x", "": "", "---": "",
		strings.Repeat("a", 80): strings.Repeat("a", 55) + "-0f45e858", "größe": "gr--e-d353a267", "日本語": "77710aed",
	} {
		got := NameFrom(text)
		if got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got != "" && CheckName("repository", got) != nil {
			t.Errorf("%q becomes %q, which is no name", text, got)
		}
	}
	names := map[string]string{}
	for _, text := range []string{
		"fix-1", "fix/1", "fix 1", "fix.1", "日本語", "日本", "größe", "grösse", "..", "a..b", "a-b",
		strings.Repeat("a", 80), strings.Repeat("a", 81), "🚀", "-x", "x.lock", "x", "\n", "a\x00b", "\xff",
	} {
		name := UniqueName(text)
		if other, taken := names[name]; taken || CheckName("workspace", name) != nil {
			t.Errorf("%q becomes %q, as %q does", text, name, other)
		}
		names[name] = text
	}
	if names["fix-1"] != "fix-1" || UniqueName("Fix-1") != "fix-1" || UniqueName("") != "" {
		t.Errorf("names change that need not: %q", names)
	}
	for url, want := range map[string]string{
		"https://host/acme/web.git": "web", "git@host:web.git": "web", "/srv/web/": "web", "web": "web",
	} {
		if got := lastPart(url); got != want {
			t.Errorf("the last part of %q is %q, want %q", url, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	bare := filepath.Join(t.TempDir(), "web.git")
	r.git("clone", "--quiet", "--bare", ".", bare)
	r.create(Options{Name: "a", Kind: Worktree})
	for name, tt := range map[string]struct {
		o    Options
		want error
		text string
	}{
		"hostile name":    {Options{Name: "--upload-pack=x"}, ErrName, ""},
		"path":            {Options{Name: "../b"}, ErrName, ""},
		"newline":         {Options{Name: "a\nb"}, ErrName, ""},
		"upper case":      {Options{Name: "A"}, ErrName, ""},
		"dot":             {Options{Name: ".base"}, ErrName, ""},
		"taken":           {Options{Name: "a"}, ErrExists, "delete it"},
		"no repository":   {Options{Name: "b", Source: filepath.Dir(r.source)}, ErrSource, "--repo"},
		"no branch":       {Options{Name: "b", Target: "nope"}, ErrSource, "--target"},
		"hostile branch":  {Options{Name: "b", Target: "--x"}, ErrName, ""},
		"other of a name": {Options{Name: "b", Source: bare}, ErrExists, "--repo-name"},
		"tracked":         {Options{Name: "b", Kind: Worktree, Include: []string{"README.md"}}, ErrInclude, "already"},
		"outside":         {Options{Name: "b", Kind: Worktree, Include: []string{"../x"}}, ErrInclude, "relative"},
		"absolute":        {Options{Name: "b", Kind: Worktree, Share: []string{"/etc"}}, ErrInclude, "relative"},
		"absent":          {Options{Name: "b", Kind: Worktree, Include: []string{".env"}}, ErrInclude, ".env"},
		"port":            {Options{Name: "b", Ports: []string{"a b"}}, ErrName, ""},
		"sparse":          {Options{Name: "b", Kind: Sparse}, ErrKind, ""},
	} {
		_, err := r.tryCreate(tt.o)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := r.host.List(""); err != nil || len(list) != 1 {
		t.Errorf("%d workspaces are left, %v", len(list), err)
	}
	if refs := r.git("for-each-ref", "--format=x", keepAll); refs != "x" {
		t.Errorf("refs are left: %q", refs)
	}
	if _, err := r.host.Open("web", "nope"); !errors.Is(err, ErrUnknown) {
		t.Errorf("open: %v", err)
	}
}

func TestIncludeStaysInside(t *testing.T) {
	r := newRig(t)
	outside := t.TempDir()
	r.write(filepath.Join(outside, "secret"), "secret\n")
	if err := os.Symlink(outside, filepath.Join(r.source, "build")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.tryCreate(
		Options{Name: "a", Kind: Worktree, Include: []string{"build/secret"}},
	); !errors.Is(err, ErrInclude) {
		t.Errorf("included through a symbolic link: %v", err)
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t)
	r.host.Max = 1
	r.create(Options{Name: "a", Kind: Worktree})
	if _, err := r.tryCreate(Options{Name: "b", Kind: Worktree}); !errors.Is(err, ErrLimit) {
		t.Errorf("a second of one: %v", err)
	}
	r.host.Max, r.host.MinFree = 0, 101
	if _, err := r.tryCreate(
		Options{Name: "b", Kind: Worktree},
	); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "% free") {
		t.Errorf("on a full disk: %v", err)
	}
}

// TestKilledWhileCreating makes the name again after an attempt that went half-way.
func TestKilledWhileCreating(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		w.Phase = Creating
		if err := w.write(w.dir); err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.host.Open("web", o.Name); !errors.Is(err, ErrUnknown) {
			r.t.Errorf("open: %v", err)
		}
		again := r.create(o)
		if again.ID == w.ID {
			r.t.Error("it is the same workspace")
		}
		r.want("kept", r.git("for-each-ref", "--format=%(refname)", keepAll), again.keepRef(again.Start))
		r.want("status", r.in(again, "git status --porcelain"), "")
	})
}

// checkLongAgo makes the last comparison of a base old enough that all files are compared again.
func (r *rig) checkLongAgo(dir string) {
	r.t.Helper()
	b := &base{dir: dir}
	if err := readJSON(b.record(), b); err != nil {
		r.t.Fatal(err)
	}
	b.Checked = b.Checked.Add(-2 * checkEvery)
	if err := b.write(); err != nil {
		r.t.Fatal(err)
	}
}

// A base is what it was whatever its workspaces commit, and the repository.
func TestBaseOfCommits(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Overlay})
	r.in(w, "echo changed > README.md; rm docs/guide.md; git add -A; git commit -qm changed; echo x > x")
	r.write(filepath.Join(r.source, "README.md"), "of the repository\n")
	r.commit("second")
	r.checkLongAgo(r.host.baseDir("web", w.baseName()))
	r.want("status", r.status(w).String(), "1 untracked file, 1 commit")
	if err := w.unmountTree(); err != nil {
		t.Fatal(err)
	}
	r.checkLongAgo(r.host.baseDir("web", w.baseName()))
	r.want("files", r.in(w, "cat README.md x"), "changed\nx")
}

func TestBaseChanged(t *testing.T) {
	for name, harm := range map[string]func(r *rig, base string){
		"deleted": func(r *rig, base string) { r.shell(nil, base, "rm", "files/src/auth.go") },
		"mode":    func(r *rig, base string) { r.shell(nil, base, "chmod", "+x", "files/src/auth.go") },
		"nested":  func(r *rig, base string) { r.write(filepath.Join(base, "files/src/.env"), "ignored\n") },
		"moved": func(r *rig, base string) {
			r.shell(nil, base, "sh", "-c", "cp -a files copy && rm -r files && mv copy files")
		},
		"added":   func(r *rig, base string) { r.write(filepath.Join(base, "files", "more"), "x") },
		"gone":    func(r *rig, base string) { r.shell(nil, base, "rm", "-r", "files") },
		"written": func(r *rig, base string) { r.write(filepath.Join(base, "files/src/auth.go"), "package xyz\n") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			w := r.create(Options{Name: "a", Kind: Overlay})
			r.in(w, "echo c > c.txt; git add c.txt; git commit -qm c; echo d > d.txt")
			if err := w.unmountTree(); err != nil {
				t.Fatal(err)
			}
			dir := r.host.baseDir("web", w.baseName())
			harm(r, dir)
			r.checkLongAgo(dir)
			if _, err := w.Status(r.ctx); !errors.Is(err, ErrBaseChanged) {
				t.Fatalf("status: %v", err)
			}
			if _, err := r.tryCreate(Options{Name: "b", Kind: Overlay}); !errors.Is(err, ErrBaseChanged) {
				t.Errorf("another one: %v", err)
			}
			if _, err := r.host.Delete(r.ctx, "web", "a", false); !errors.Is(err, ErrBaseChanged) {
				t.Errorf("delete: %v", err)
			}
			d, err := r.host.Delete(r.ctx, "web", "a", true)
			if err != nil {
				t.Fatal(err)
			}
			r.want("commit", r.git("show", d.Saved+":c.txt"), "c")
			content, err := os.ReadFile(filepath.Join(d.Kept, "files", "d.txt"))
			if err != nil || string(content) != "d\n" {
				t.Errorf("the changed file is %q, %v", content, err)
			}
			r.create(Options{Name: "b", Kind: Overlay}) // over a new base
		})
	}
}

// TestBusy deletes a workspace that a program works in.
func TestBusy(t *testing.T) {
	r := newRig(t)
	if os.Geteuid() != 0 {
		return // a rootless overlay ends with its program
	}
	w := r.create(Options{Name: "a", Kind: Overlay})
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "cat")
	cmd.Dir = w.Path()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = r.host.Delete(r.ctx, "web", "a", false)
	if err == nil || !strings.Contains(err.Error(), "end it first") {
		t.Errorf("delete: %v", err)
	}
	in.Close()
	stop()
	_ = cmd.Wait()
	r.want("status", r.in(w, "git status --porcelain"), "")
	if _, err := r.host.Delete(r.ctx, "web", "a", false); err != nil {
		t.Error(err)
	}
}

// TestUnmounted uses an overlay after a restart of the machine.
func TestUnmounted(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Overlay})
	move := "git mv src source"
	if w.Rootless {
		// An overlay in a user namespace cannot rename a folder of the base.
		move = "mkdir -p source/deep; git mv src/auth.go source; git mv src/deep/a.txt source/deep"
	}
	r.in(w, "echo x > x; "+move)
	if err := w.unmountTree(); err != nil {
		t.Fatal(err)
	}
	r.want("file", r.in(w, "cat x; ls source"), "x\nauth.go\ndeep")
}

// TestReadOnlySource copies objects of a repository that this user cannot write, and saves work beside.
func TestReadOnlySource(t *testing.T) {
	r := newRig(t)
	if os.Geteuid() == 0 {
		return // root can write all
	}
	for _, path := range []string{".git", ".git/objects", ".git/refs", ".git/config"} {
		if err := os.Chmod(filepath.Join(r.source, path), 0o555); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = removeAll(r.source) })
	w := r.create(Options{Name: "a", Kind: Worktree})
	if !w.Copied || exists(filepath.Join(w.vaultDir(), "objects/info/alternates")) {
		t.Errorf("objects are borrowed: %+v", w.Record)
	}
	r.in(w, "git fsck; echo x > x")
	d, err := r.host.Delete(r.ctx, "web", "a", true)
	if err != nil {
		t.Fatal(err)
	}
	r.want("saved", r.shell(nil, d.In, "git", "show", d.Saved+":x"), "x")
}

func TestSources(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	bare := filepath.Join(dir, "bare.git")
	r.git("clone", "--quiet", "--bare", ".", bare)
	linked := filepath.Join(dir, "linked")
	r.git("worktree", "add", "--quiet", "-b", "side", linked)
	shallow := filepath.Join(dir, "shallow")
	r.write(filepath.Join(r.source, "more.txt"), "more\n")
	r.commit("second")
	r.git("clone", "--quiet", "--depth=1", "file://"+r.source, shallow)
	sha256 := filepath.Join(dir, "sha256")
	r.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main", sha256)
	r.shell(nil, sha256, "sh", "-ec", "echo x > README.md; git add .; git commit -qm first")
	for name, tt := range map[string]struct{ source, repo, target string }{
		"bare":    {bare, "bare", "main"},
		"linked":  {linked, "web-side", "side"},
		"folder":  {filepath.Join(r.source, "src"), "web", "main"},
		"shallow": {shallow, "shallow", "main"},
		"sha256":  {sha256, "sha256", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.create(Options{Name: "w", Source: tt.source, Repo: tt.repo})
			r.want("target", w.Target, tt.target)
			r.in(w, "git log --oneline; git fsck; echo y > README.md")
			work, err := w.Submit(r.ctx, "y", true)
			if err != nil {
				t.Fatal(err)
			}
			r.want("submitted", r.shell(nil, w.Source, "git", "--git-dir", w.Source, "show", work.Ref+":README.md"), "y")
			if _, err := r.host.Delete(r.ctx, w.Repo, "w", false); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestUpstream submits to another repository than the source.
func TestUpstream(t *testing.T) {
	r := newRig(t)
	upstream := filepath.Join(t.TempDir(), "merger.git")
	r.git("clone", "--quiet", "--bare", ".", upstream)
	w := r.create(Options{Name: "a", Kind: Worktree, Upstream: upstream})
	r.shell(
		nil, upstream, "sh", "-ec",
		`tree=$(git rev-parse main^{tree})
		commit=$(git -c user.name=b -c user.email=b commit-tree $tree -p main -m landed)
		git update-ref refs/heads/main $commit`,
	)
	s, err := w.Sync(r.ctx)
	if err != nil || s.Commits != 1 {
		t.Fatalf("sync: %+v, %v", s, err)
	}
	r.in(w, "git log -1 --format=%s | grep landed; echo x > x")
	work, err := w.Submit(r.ctx, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	r.want("submitted", r.shell(nil, upstream, "git", "show", work.Ref+":x"), "x")
	r.want("source", r.git("for-each-ref", "refs/interlock/sub"), "")
}

func TestAt(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Worktree})
	for _, path := range []string{w.Path(), filepath.Join(w.Path(), "src")} {
		if got, err := r.host.At(path); err != nil || got.Name != "a" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := r.host.At(r.source); !errors.Is(err, ErrUnknown) {
		t.Errorf("the source: %v", err)
	}
}

func TestUsage(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		before, err := w.Usage(r.ctx)
		if err != nil || before <= 0 || before > 1<<20 {
			r.t.Errorf("a new workspace uses %d bytes, %v", before, err)
		}
		r.in(w, "head -c 1000000 /dev/urandom > big; sync big")
		after, err := w.Usage(r.ctx)
		if err != nil || after-before < 900_000 {
			r.t.Errorf("with a file of 1 MB %d bytes more, %v", after-before, err)
		}
		use, n, err := r.host.BaseUsage(r.ctx)
		if err != nil || (n == 1) != o.Kind.usesBase() || (use > 0) != o.Kind.usesBase() {
			r.t.Errorf("%d bases use %d bytes, %v", n, use, err)
		}
	})
}

// TestPartialClones refuses each form of a clone that lacks objects, until it has them.
func TestPartialClones(t *testing.T) {
	r := newRig(t)
	r.write(filepath.Join(r.source, "README.md"), "hello again\n")
	r.commit("second")
	r.git("config", "uploadpack.allowFilter", "true")
	for name, script := range map[string]string{
		"no blobs":    "git clone -q --filter=blob:none $1 c",
		"no trees":    "git clone -q --filter=tree:0 $1 c",
		"small blobs": "git clone -q --filter=blob:limit=4 $1 c",
		"bare":        "git clone -q --bare --filter=blob:none $1 c",
		"old form": "git clone -q --filter=blob:none $1 c; cd c; git config extensions.partialClone origin; " +
			"git config --unset remote.origin.promisor",
		"filter alone": "git clone -q --filter=blob:none $1 c; cd c; git config --unset remote.origin.promisor",
		"by include": "git clone -q --filter=blob:none $1 c; cd c; git config -f .git/more remote.origin.promisor true; " +
			"git config --unset remote.origin.promisor; git config --unset remote.origin.partialclonefilter; " +
			"git config include.path more",
		"no settings": "git clone -q --filter=blob:none $1 c; cd c; git config --unset remote.origin.promisor; " +
			"git config --unset remote.origin.partialclonefilter; git config core.repositoryformatversion 0",
		"borrowed": "git clone -q --bare --filter=blob:none $1 lender; git init -q -b main c; " +
			"echo $PWD/lender/objects > c/.git/objects/info/alternates; " +
			"git -C c update-ref refs/heads/main $(git -C lender rev-parse main)",
		"linked": "git clone -q --filter=blob:none $1 d; git -C d worktree add -q ../c -b side origin/main",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r.shell(nil, dir, "sh", "-ec", script, "sh", "file://"+r.source)
			o := Options{Name: "w", Source: filepath.Join(dir, "c"), Repo: NameFrom(name), Target: "main", Kind: Worktree}
			if _, err := r.tryCreate(o); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "partial clone") {
				t.Fatalf("a partial clone: %v", err)
			}
			if name != "no blobs" {
				return
			}
			r.shell(nil, o.Source, "git", "-c", "maintenance.auto=false", "fetch", "-q", "--refetch", "--no-filter")
			w := r.create(o)
			r.want("history", r.in(w, "git show HEAD~1:README.md"), "hello")
		})
	}
}

// TestUpstreamIsAhead starts at the commit of the upstream, which the clone has not yet.
func TestUpstreamIsAhead(t *testing.T) {
	r := newRig(t)
	clone := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "--quiet", ".", clone)
	r.write(filepath.Join(r.source, "README.md"), "newer\n")
	newer := r.commit("newer")
	w := r.create(Options{Name: "a", Source: clone, Kind: Worktree, Upstream: r.source})
	r.want("start", w.Start, newer)
	r.want("file", r.in(w, "cat README.md; git status --short"), "newer")
	if s := r.status(w); s.Ahead+s.Behind != 0 || s.Head != newer {
		t.Errorf("status %+v", s)
	}
	if len(w.Notes) != 0 {
		t.Errorf("notes %q", w.Notes)
	}
	r.shell(nil, clone, "git", "-c", "user.name=b", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "local")
	r.shell(nil, clone, "git", "fetch", "-q")
	r.write(filepath.Join(clone, "README.md"), "changed\n")
	r.write(filepath.Join(clone, "new.txt"), "new\n")
	w = r.create(Options{Name: "b", Source: clone, Kind: Worktree, Upstream: r.source})
	text := strings.Join(w.Notes, "\n")
	if !strings.Contains(text, "1 changed file, 1 untracked file") || !strings.Contains(text, "1 commit that") {
		t.Errorf("notes %q", w.Notes)
	}
	w = r.create(Options{Name: "c", Source: clone, Kind: Worktree})
	if text := strings.Join(w.Notes, "\n"); !strings.Contains(text, "main is 1 commit behind origin/main") {
		t.Errorf("notes %q", w.Notes)
	}
	for upstream, want := range map[string]string{
		filepath.Join(t.TempDir(), "nothing"): "could not be read", r.source: "has no branch side",
	} {
		if _, err := r.tryCreate(
			Options{Name: "d", Source: clone, Upstream: upstream, Target: "side"},
		); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", upstream, err)
		}
	}
}

// TestWorktreeInclude copies what both .worktreeinclude and .gitignore match.
func TestWorktreeInclude(t *testing.T) {
	each(t, func(r *rig, o Options) {
		outside := t.TempDir()
		r.write(filepath.Join(outside, "secret"), "secret\n")
		r.write(filepath.Join(r.source, ".gitignore"), ".env*\n*.local\nnode_modules/\nbuild/\n*.key\n!docs/own.key\n")
		r.write(filepath.Join(r.source, "docs", "tracked.local"), "tracked\n")
		r.git("add", "-f", "docs/tracked.local")
		r.commit("ignore more")
		r.write(filepath.Join(r.source, "docs", "old.key"), "in the branch\n")
		r.git("add", "-f", "docs/old.key")
		r.commit("a key")
		r.git("branch", "side")
		r.git("rm", "-q", "--cached", "docs/old.key")
		r.write(filepath.Join(r.source, ".gitignore"), ".env*\n*.local\nnode_modules/\nbuild/\n*.key\n")
		r.commit("no key")
		for path, content := range map[string]string{
			".worktreeinclude": ".env*\n!.env.example\n*.local\n*.txt\n*.key\nbuild/*\n!build/big\n",
			".env":             "1", ".env.example": "no", "src/.env.test": "2", "docs/tracked.local": "tracked\n",
			"docs/a.local": "3", "new.txt": "not ignored", "build/out": "4", "build/big": "no", "node_modules/x": "no",
			"docs/own.key": "key", ".claude/settings.local.json": "{}", "docs/日本 語.local": "5",
		} {
			r.write(filepath.Join(r.source, path), content)
		}
		for name, target := range map[string]string{
			"away.local": filepath.Join(outside, "secret"), "near.local": "docs/a.local", "loop.local": "loop.local",
		} {
			if err := os.Symlink(target, filepath.Join(r.source, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(r.source, "pipe.local"), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Target, o.Local = "side", []string{".claude/settings.local.json"}
		w := r.create(o)
		found := r.in(
			w, "git ls-files --others --ignored --exclude-standard | LC_ALL=C sort; find . -type l; git status --short",
		)
		r.want("files", found, `"docs/\346\227\245\346\234\254 \350\252\236.local"`+
			"\n.claude/settings.local.json\n.env\nbuild/out\ndocs/a.local\nnear.local\nsrc/.env.test")
		r.want("linked file", r.in(w, "cat near.local; git show HEAD:docs/old.key"), "3in the branch")
		notes := strings.Join(w.Notes, "\n")
		for _, path := range []string{"away.local", "loop.local", "docs/own.key", "pipe.local"} {
			if !strings.Contains(notes, path+" is not copied") && path != "pipe.local" {
				t.Errorf("no word about %s: %q", path, w.Notes)
			}
		}
	})
}

// TestReuse takes a workspace of the same repository and target alone.
func TestReuse(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		r.in(w, "echo kept > src/kept")
		if !w.Rootless {
			if err := w.unmountTree(); err != nil {
				t.Fatal(err)
			}
		}
		o.Reuse = true
		again := r.create(o)
		if !again.Reused || again.ID != w.ID {
			t.Errorf("another one: %+v", again.Record)
		}
		r.want("work", r.in(again, "cat src/kept"), "kept")
		r.git("branch", "side")
		for name, change := range map[string]func(*Options){
			"target":   func(o *Options) { o.Target = "side" },
			"upstream": func(o *Options) { o.Upstream = filepath.Join(r.source, "..") },
			"source": func(o *Options) {
				o.Source = filepath.Join(t.TempDir(), "web")
				r.git("clone", "-q", ".", o.Source)
			},
		} {
			other := o
			change(&other)
			if _, err := r.tryCreate(other); !errors.Is(err, ErrExists) {
				t.Errorf("another %s: %v", name, err)
			}
		}
	})
}
