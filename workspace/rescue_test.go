//go:build unix

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Rescue saves the files as they are, and names what it leaves out.
func TestRescueFiles(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		r.in(w, `echo changed >> README.md; echo new > "new file"; rm src/auth.go; git update-index --skip-worktree README.md
			git init -q empty; echo x > empty/x; mkfifo pipe; echo ref: nonsense > "$(git rev-parse --git-dir)/HEAD"`)
		d, err := w.Rescue(r.ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if want := "what could be read, without git repositories inside it: empty"; d.Had != want {
			r.t.Errorf("it had %q, want %q", d.Had, want)
		}
		changes := r.git("diff", "--name-status", w.Start, d.Saved)
		for _, want := range []string{"M\tREADME.md", "A\tnew file"} {
			if !strings.Contains(changes, want) {
				r.t.Errorf("no %q in\n%s", want, changes)
			}
		}
		// In a sparse workspace, a file that is not there may not have been there.
		if sparse := w.Kind == Sparse; strings.Contains(changes, "D\tsrc/auth.go") == sparse {
			r.t.Errorf("the removed file, sparse %v:\n%s", sparse, changes)
		}
		if strings.Contains(changes, "empty") || strings.Count(changes, "\n") > 3 {
			r.t.Errorf("more than that:\n%s", changes)
		}
	})
}

// Git in a kept git directory shows the commits, and runs nothing that the agent has left for it.
func TestKeptGitRunsNothing(t *testing.T) {
	r := newRig(t)
	canary := filepath.Join(t.TempDir(), "canary")
	w := r.create(Options{Name: "a", Kind: Worktree})
	r.in(w, `echo c > c.txt; git add c.txt; git commit -qm 'a commit'
		for key in core.fsmonitor core.pager pager.log core.editor alias.log log.showSignature gpg.program core.sshCommand; do
			git config "$key" "touch `+canary+`; false"
		done
		git config log.showSignature true; git config include.path evil
		G=$(git rev-parse --git-dir)
		printf '[diff]\n\texternal = touch `+canary+`\n[core]\n\tpager = touch `+canary+`\n' > "$G/evil"
		mkdir -p "$G/hooks" "$G/info" "$G/worktrees/x"; echo '* diff=x filter=x' > "$G/info/attributes"
		for hook in post-index-change reference-transaction post-checkout; do
			printf '#!/bin/sh\ntouch `+canary+`\n' > "$G/hooks/$hook"; chmod +x "$G/hooks/$hook"
		done
		mkdir -p "$G/settings" "$G/lfs/objects/aa/bb"; echo large > "$G/lfs/objects/aa/bb/large"`)
	d, err := r.host.Delete(r.ctx, "web", "a", true)
	if err != nil {
		t.Fatal(err)
	}
	if d.Kept == "" {
		t.Fatal("nothing is kept")
	}
	for range 2 { // disarm can be repeated
		for _, args := range [][]string{
			{"--git-dir", filepath.Join(d.Kept, "git"), "log", "--all", "-p"},
			{"-C", filepath.Join(d.Kept, "git"), "log", "-p"},
			{"-C", filepath.Join(d.Kept, "git"), "update-ref", "refs/heads/more", "HEAD"},
		} {
			out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
			if err != nil || args[2] == "log" && !strings.Contains(string(out), "a commit") {
				t.Errorf("git %q: %v\n%s", args, err, out)
			}
		}
		if err := w.disarm(d.Kept); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(canary); err == nil {
		t.Error("a program of the agent's ran")
	}
	if text, err := os.ReadFile(filepath.Join(d.Kept, "settings", "config")); err != nil ||
		!strings.Contains(string(text), "fsmonitor") {
		t.Errorf("the agent's settings are not kept: %q, %v", text, err)
	}
}

// A change of a file within the second in which git wrote its index is seen, also through copies of the index.
func TestChangedInTheSecondOfTheIndex(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		r.in(w, `f=README.md; sed -i s/[a-z]/X/ $f; i=$(git rev-parse --git-dir)/index
			cp -p $f same; git update-index $f; git commit -qm one; sed -i s/X/Y/ $f
			touch -r same $f; touch -r same "$i"; rm same`)
		if s := r.status(w); s.Changed != 1 {
			r.t.Errorf("%d files are changed, want 1", s.Changed)
		}
	})
}
