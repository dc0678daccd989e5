//go:build unix

package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestLife(t *testing.T) {
	each(t, func(r *rig, o Options) {
		r.write(filepath.Join(r.source, ".env"), "SECRET=1\n")
		o.Include, o.Share, o.Purpose, o.Agent = []string{".env"}, []string{"node_modules"}, "rename login", "coder-1"
		w := r.create(o)
		if w.Kind != o.Kind {
			r.t.Fatalf("kind %s, want %s (%s)", w.Kind, o.Kind, w.Why)
		}
		r.want("key", w.Key(), "workspace:web/fix-1")
		r.want("status", r.in(w, "git status --porcelain"), "")
		r.want("branch", r.in(w, "git branch --show-current"), "fix-1")
		r.want("include", r.in(w, "cat .env"), "SECRET=1")
		r.want("author", r.in(w, "git config user.name"), "Ada")
		r.in(w, "echo shared > node_modules/x; echo swap > a.swp")
		shared, err := os.ReadFile(filepath.Join(r.source, "node_modules", "x"))
		if err != nil || string(shared) != "shared\n" {
			r.t.Errorf("the shared folder has %q, %v", shared, err)
		}
		if s := r.status(w); s.Dirty() || s.Commits != 0 || s.Behind != 0 {
			r.t.Errorf("a new workspace has %+v", s)
		}

		// Work: changed, removed, untracked; and a commit.
		r.in(
			w,
			"sed -i s/login/signIn/ src/auth.go; git commit -qam 'Rename login'; rm src/deep/a.txt; echo new > "+
				"src/new.txt",
		)
		s := r.status(w)
		if s.Changed != 1 || s.Untracked != 1 || s.Commits != 1 || s.Ahead != 1 {
			r.t.Errorf("status %+v", s)
		}
		var diff bytes.Buffer
		if err := w.Diff(r.ctx, &diff, "--name-status"); err != nil {
			r.t.Fatal(err)
		}
		r.want("diff", diff.String(), "M\tsrc/auth.go\nD\tsrc/deep/a.txt\nA\tsrc/new.txt\n")
		r.want("index after diff", r.in(w, "git status --porcelain"), " D src/deep/a.txt\n?? src/new.txt")
		r.want("source", r.git("status", "--porcelain"), "")

		// Nothing is deleted unseen.
		if _, err := r.host.Delete(r.ctx, "web", "fix-1", false); !errors.Is(err, ErrUnsubmitted) {
			r.t.Fatalf("delete: %v", err)
		}
		if _, err := w.Submit(r.ctx, "", false); !errors.Is(err, ErrUncommitted) {
			r.t.Fatalf("submit: %v", err)
		}
		work, err := w.Submit(r.ctx, "Add new", true)
		if err != nil {
			r.t.Fatal(err)
		}
		r.want("paths", strings.Join(work.Paths, " "), "src/auth.go src/deep/a.txt src/new.txt")
		r.want("message", work.Message, "Add new")
		r.want("submitted", r.git("log", "--format=%s by %an", "main.."+work.Ref), "Add new by Ada\nRename login by Ada")
		again, err := w.Submit(r.ctx, "", false)
		if err != nil || again.ID != work.ID {
			r.t.Fatalf("the same submission again: %+v, %v", again, err)
		}
		if s := r.status(w); s.Unsubmitted() {
			r.t.Errorf("after submit: %s", s)
		}
		if _, err := w.Submit(r.ctx, "", false); err != nil {
			r.t.Fatal(err)
		}

		opened, err := r.host.Open("web", "fix-1")
		if err != nil || len(opened.Submissions) != 1 || opened.Purpose != "rename login" {
			r.t.Fatalf("opened %+v, %v", opened, err)
		}
		if _, err := r.tryCreate(o); !errors.Is(err, ErrExists) {
			r.t.Errorf("the name again: %v", err)
		}
		r.want("keeps", r.git("for-each-ref", "--format=%(objectname)", keepAll), w.Start)
		r.want("pruning", r.git("config", "gc.pruneExpire"), "never")
		d, err := r.host.Delete(r.ctx, "web", "fix-1", false)
		if err != nil || d.Saved != "" {
			r.t.Fatalf("delete: %+v, %v", d, err)
		}
		if exists(w.dir) {
			r.t.Errorf("%s is left", w.dir)
		}
		if left, _ := filepath.Glob(filepath.Join(r.host.Root, "web", baseFolder, "*")); len(left) > 0 {
			r.t.Errorf("bases are left: %v", left)
		}
		r.want("keeps", r.git("for-each-ref", keepAll), "")
		if list := r.git("config", "--local", "--name-only", "--list"); strings.Contains(list, "gc.") {
			r.t.Errorf("the source's configuration is left with %s", list)
		}
	})
}

func TestDeleteSavesAll(t *testing.T) {
	each(t, func(r *rig, o Options) {
		for n := 1; n <= 2; n++ {
			w := r.create(o)
			r.in(w, `echo stash1 > src/auth.go; git stash -q
				echo stash2 > src/auth.go; git stash -q
				git switch -qc other; echo other > src/other.txt; git add src; git commit -qm other
				git switch -q fix-1; echo dirty `+strconv.Itoa(n)+` > src/auth.go
				 echo untracked > src/un.txt; mkdir -p build; echo o > build/o`)
			d, err := r.host.Delete(r.ctx, "web", "fix-1", true)
			if err != nil {
				r.t.Fatal(err)
			}
			r.want("ref", d.Saved, savedRef("fix-1", n))
			r.want("dirty", r.git("show", d.Saved+":src/auth.go"), "dirty "+strconv.Itoa(n))
			r.want("untracked", r.git("show", d.Saved+":src/un.txt"), "untracked")
			all := r.git("log", "--format=%s", d.Saved)
			for _, want := range []string{"other", "WIP on fix-1", "Saved workspace web/fix-1"} {
				if !strings.Contains(all, want) {
					r.t.Errorf("%s has no %q:\n%s", d.Saved, want, all)
				}
			}
			patches := r.git("log", "-p", "-m", d.Saved)
			for _, want := range []string{"+stash1", "+stash2", "+other"} {
				if !strings.Contains(patches, want) {
					r.t.Errorf("%s has no %q", d.Saved, want)
				}
			}
			r.git("fsck", "--connectivity-only")
		}
	})
}

func TestDeleteKeepsNestedRepository(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "git init -q inner; cd inner; echo x > x; git add x; git -c user.name=a -c user.email=b commit -qm x")
	if _, err := r.host.Delete(
		r.ctx, "web", "a", false,
	); !errors.Is(err, ErrUnsubmitted) || !strings.Contains(err.Error(), "inner") {
		t.Fatalf("delete: %v", err)
	}
	r.want("file", r.in(w, "cat inner/x"), "x")
	d, err := r.host.Delete(r.ctx, "web", "a", true)
	if err != nil {
		t.Fatal(err)
	}
	r.want("kept", r.shell(nil, filepath.Join(d.Kept, "files", "inner"), "git", "show", "HEAD:x"), "x")
}

func TestSync(t *testing.T) {
	each(t, func(r *rig, o Options) {
		o.Purpose = "sign in & out / now"
		w := r.create(o)
		if s, err := w.Sync(r.ctx); err != nil || s.Commits != 0 {
			r.t.Fatalf("nothing to sync: %+v, %v", s, err)
		}
		r.write(filepath.Join(r.source, "docs/guide.md"), "better guide\n")
		r.commit("Improve the guide")
		if s := r.status(w); s.Behind != 1 {
			r.t.Errorf("behind %d, want 1", s.Behind)
		}
		r.in(w, "echo mine > src/mine.txt")
		s, err := w.Sync(r.ctx)
		if err != nil || s.Commits != 1 || len(s.Conflicts) != 0 {
			r.t.Fatalf("clean sync: %+v, %v", s, err)
		}
		r.want("guide", r.in(w, "git show HEAD:docs/guide.md; cat src/mine.txt"), "better guide\nmine")

		r.write(filepath.Join(r.source, "src/auth.go"), "package src\n\nfunc signIn() {}\n\nfunc logout() {}\n")
		theirs := r.commit("Rename login & such / here")
		r.in(w, "sed -i s/login/enter/ src/auth.go")
		if _, err := w.Sync(r.ctx); !errors.Is(err, ErrUncommitted) {
			r.t.Fatalf("sync over changed files: %v", err)
		}
		r.in(w, "git commit -qam enter")
		var merged bytes.Buffer
		if conflicts, err := w.Merged(r.ctx, &merged); err != nil || len(conflicts) != 1 || !strings.Contains(
			merged.String(), "mine",
		) {
			r.t.Fatalf("merged: %q, %v\n%s", conflicts, err, merged.String())
		}
		s, err = w.Sync(r.ctx)
		if err != nil || len(s.Conflicts) != 1 {
			r.t.Fatalf("sync: %+v, %v", s, err)
		}
		c := s.Conflicts[0]
		if c.Path != "src/auth.go" || len(c.Landed) != 1 || c.Landed[0].Commit != theirs || c.Landed[0].Author != "Ada" {
			r.t.Errorf("conflict %+v", c)
		}
		r.want("markers", r.in(w, "grep -E '^(<<<<<<<|=======|>>>>>>>)' src/auth.go"),
			"<<<<<<< fix-1 (sign in & out / now)\n=======\n>>>>>>> main: Ada (Rename login & such / here)")
		if _, err := w.Sync(r.ctx); !errors.Is(err, ErrConflict) {
			r.t.Errorf("sync in a merge: %v", err)
		}
		if _, err := w.Submit(r.ctx, "", true); !errors.Is(err, ErrConflict) {
			r.t.Errorf("submit in a merge: %v", err)
		}
		r.in(w, "printf 'package src\\n\\nfunc enter() {}\\n' > src/auth.go; git add src/auth.go")
		work, err := w.Submit(r.ctx, "", true)
		if err != nil {
			r.t.Fatal(err)
		}
		r.want("base", work.Base, theirs)
		r.want("message", work.Message, r.git("log", "-1", "--format=%s", work.Ref+"^1"))
		r.want("parents", r.git("log", "-1", "--format=%P", work.Ref), r.git("rev-parse", work.Ref+"^1")+" "+theirs)
	})
}

func TestNothingToSubmit(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Worktree})
	if _, err := w.Submit(r.ctx, "", true); !errors.Is(err, ErrNothing) {
		t.Errorf("submit: %v", err)
	}
}

// A submission that has landed meanwhile is the same one.
func TestSubmitAfterLanding(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "echo x > x")
	work, err := w.Submit(r.ctx, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	r.git("merge", "--quiet", "--ff-only", work.Ref)
	again, err := w.Submit(r.ctx, "", false)
	if err != nil {
		t.Fatal(err)
	}
	again.At = work.At
	if !reflect.DeepEqual(again, work) {
		t.Errorf("got %+v, want %+v", again, work)
	}
}

// TestWithdrawn deletes the ref of a submission: then the workspace alone has the commit again.
func TestWithdrawn(t *testing.T) {
	r := newRig(t)
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "echo x > x")
	work, err := w.Submit(r.ctx, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.status(w); s.Unsubmitted() {
		t.Errorf("submitted, and still %s", s)
	}
	r.git("update-ref", "-d", work.Ref)
	if s := r.status(w); s.Commits != 1 {
		t.Errorf("withdrawn: %d commits are unsubmitted, want 1", s.Commits)
	}
}

// TestAtOnce creates workspaces at the same time, two of each name.
func TestAtOnce(t *testing.T) {
	r := newRig(t)
	const names = 4
	errs := make(chan error, 2*names)
	for i := range 2 * names {
		go func() {
			_, err := r.tryCreate(Options{Name: "w" + strconv.Itoa(i/2), Kind: Overlay})
			errs <- err
		}()
	}
	refused := 0
	for range 2 * names {
		if err := <-errs; errors.Is(err, ErrExists) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != names {
		t.Errorf("%d were refused, want %d", refused, names)
	}
	for i := range names {
		go func() {
			_, err := r.host.Delete(r.ctx, "web", "w"+strconv.Itoa(i), false)
			errs <- err
		}()
	}
	for range names {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	r.want("refs", r.git("for-each-ref", keepAll), "")
	if left, _ := filepath.Glob(filepath.Join(r.host.Root, "web", baseFolder, "*")); len(left) > 0 {
		t.Errorf("bases are left: %v", left)
	}
}

// TestIsolation checks that nothing is shared that a bare git worktree shares.
func TestIsolation(t *testing.T) {
	each(t, func(r *rig, o Options) {
		r.git("config", "alias.hi", "!echo hi")
		r.write(filepath.Join(r.source, ".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n")
		if err := os.Chmod(filepath.Join(r.source, ".git/hooks/pre-commit"), 0o755); err != nil {
			r.t.Fatal(err)
		}
		r.write(filepath.Join(r.source, "README.md"), "stashed\n")
		r.git("stash")
		config, err := os.ReadFile(filepath.Join(r.source, ".git/config"))
		if err != nil {
			r.t.Fatal(err)
		}
		w := r.create(o)
		o.Name = "other"
		other := r.create(o)
		r.want("stashes", r.in(w, "git stash list"), "")
		r.in(
			w,
			"git config core.abbrev 12; echo x > src/auth.go; git stash -q; git branch mine; git tag v1; echo y "+
				"> src/auth.go; git commit -qam y",
		)
		r.want("other", r.in(
			other,
			"git stash list; git branch --list mine; git tag; git config --get core.abbrev || true; cat src/auth.go",
		),
			"package src\n\nfunc login() {}\n\nfunc logout() {}")
		r.want("source", r.git("stash", "list", "--format=%gd")+r.git("branch", "--list", "mine")+r.git("tag"), "stash@{0}")
		after, err := os.ReadFile(filepath.Join(r.source, ".git/config"))
		if err != nil {
			r.t.Fatal(err)
		}
		r.want("source's configuration", string(after), string(config)+"[gc]\n\tpruneExpire = never\n")
	})
}

// TestPruning deletes the branch that a borrowed object belongs to.
func TestPruning(t *testing.T) {
	r := newRig(t)
	r.git("switch", "-qc", "experiment")
	r.write(filepath.Join(r.source, "big.txt"), "only on the branch\n")
	r.commit("experiment")
	r.git("switch", "-q", "main")
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, "echo only on the branch > copy.txt; git add copy.txt; git commit -qm copy")
	r.git("branch", "-qD", "experiment")
	r.git("reflog", "expire", "--expire=now", "--all")
	r.shell(nil, r.source, "sh", "-c", "find .git/objects -type f -exec touch -d 2001-01-01 {} +")
	r.git("gc", "--quiet")
	r.in(w, "git fsck --no-dangling")
	r.want("content", r.in(w, "git show HEAD:copy.txt"), "only on the branch")
}

// TestPruningIsRestored has a value of the user's own.
func TestPruningIsRestored(t *testing.T) {
	r := newRig(t)
	r.git("config", "gc.pruneExpire", "3.weeks")
	for _, name := range []string{"a", "b"} {
		r.create(Options{Name: name, Kind: Worktree})
	}
	for _, step := range [][2]string{{"a", "never"}, {"b", "3.weeks"}} {
		if _, err := r.host.Delete(r.ctx, "web", step[0], false); err != nil {
			t.Fatal(err)
		}
		r.want("gc.pruneExpire", r.git("config", "gc.pruneExpire"), step[1])
	}
}

// Settings of the agent's make no workspace unusable, and the programs that they name run in the sandbox alone.
func TestForeignConfiguration(t *testing.T) {
	r := newRig(t)
	r.git("config", "interlock.allowUnfiltered", "x") // the user has no such filter
	w := r.create(Options{Name: "a", Kind: Worktree})
	mark := filepath.Join(t.TempDir(), "ran")
	for setting := range strings.FieldsSeq(`
		filter.x.clean core.fsmonitor core.hooksPath merge.x.driver diff.x.textconv diff.x.command
		include.path core.sshCommand remote.origin.uploadpack gpg.program core.attributesFile
		diff.external uploadpack.packObjectsHook url.ext::sh.insteadOf branch.a.mergeOptions
		merge.tool core.gitProxy core.alternateRefsCommand credential.helper core.askPass core.editor core.pager
		pager.status alias.status gpg.ssh.program submodule.x.update commit.template
		core.hooksPath submodule.lib.url remote.origin.gh-resolved lfs.url`) {
		r.in(w, "git config '"+setting+"' 'touch "+mark+"'")
	}
	r.in(w, "git config user.name; git config commit.gpgSign true; echo '* filter=x diff=x merge=x' > .gitattributes; "+
		"echo changed > README.md")
	if s := r.status(w); s.Changed != 1 || s.Untracked != 1 {
		t.Errorf("status %s", s)
	}
	var diff bytes.Buffer
	if err := w.Diff(r.ctx, &diff, "--name-only"); err != nil || diff.String() != ".gitattributes\nREADME.md\n" {
		t.Errorf("diff %q, %v", diff.String(), err)
	}
	if _, err := w.Sync(r.ctx); err != nil {
		t.Error(err)
	}
	r.in(w, "git config --unset filter.x.clean; echo '* diff=x merge=x' > .gitattributes")
	if _, err := w.Submit(r.ctx, "all", true); err != nil {
		t.Error(err)
	}
	if _, err := w.Work(r.ctx); err != nil {
		t.Error(err)
	}
	if _, err := r.host.Delete(r.ctx, "web", "a", false); err != nil {
		t.Error(err)
	}
	if exists(mark) {
		t.Error("a program that the agent configured ran outside")
	}
}
