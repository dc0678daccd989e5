//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// works are kinds of work that an agent, or a tool, can leave in a workspace, as shell scripts. Each writes the text
// $x, which no other one has, where it belongs.
var works = []struct{ name, script string }{
	{"changed", `echo "$x" >> README.md`},
	{"untracked", `mkdir -p new; echo "$x" > "new/f $x"`},
	{"executable", `echo "$x" > "run-$x"; chmod +x "run-$x"`},
	{"staged", `echo "$x" > "s-$x"; git add "s-$x"`},
	{"committed", `echo "$x" > "c-$x"; git add "c-$x"; git commit -qm "$x" -- "c-$x"`},
	{"amended", `echo "$x" > "m-$x"; git add "m-$x"; git commit -qm "$x" -- "m-$x"; git commit -q --amend -m "other $x"
		git rm -q --cached "m-$x"; rm "m-$x"; git commit -q --amend --allow-empty -m gone`},
	{"branch", `git branch "b-$x"; b=$(git commit-tree -p HEAD -m "$x" HEAD^{tree}); git update-ref "refs/heads/b-$x" $b`},
	{"stash", `git add -A; git commit -qm base; echo "$x" > src/auth.go; git stash -q`},
	{"second stash", `git add -A; git commit -qm base; echo "$x" > src/auth.go; git stash -q
		echo 2 > src/auth.go; git stash -q`},
	{"tool ref", `git update-ref "refs/jj/keep/$x" $(git commit-tree -p HEAD -m "$x" HEAD^{tree})`},
	{"note", `git notes add -f -m "$x" HEAD`},
	{"tag", `git tag -a -m "$x" "t-$x"`},
	{"blob ref", `git update-ref "refs/blobs/$x" $(echo "$x" | git hash-object -w --stdin)`},
	{"detached", `h=$(git commit-tree -p HEAD -m "$x" HEAD^{tree}); git checkout -q --detach; git update-ref HEAD $h`},
	{"reset", `git commit -q --allow-empty -m "$x"; git reset -q --soft HEAD~1`},
	{"skip-worktree", `git update-index --skip-worktree README.md; echo "$x" >> README.md`},
	{"assume-unchanged", `git update-index --assume-unchanged docs/guide.md; echo "$x" >> docs/guide.md`},
	{"nested", `git init -q "n-$x"; echo "$x" > "n-$x/f"; git -C "n-$x" add f
		git -C "n-$x" -c user.name=a -c user.email=a@b commit -qm x`},
	{"ignored nested", `mkdir -p build; git init -q "build/$x"; echo "$x" > "build/$x/f"
		git -C "build/$x" add f; git -C "build/$x" -c user.name=a -c user.email=a@b commit -qm x`},
	{"linked worktree", `git worktree add -q "$OUT/l-$x" -b "l-$x"; echo "$x" > "$OUT/l-$x/f"; git -C "$OUT/l-$x" add f`},
	{"LFS", `mkdir -p "$G/lfs/objects/aa/bb"; echo "$x" > "$G/lfs/objects/aa/bb/$x"`},
	{"rebase", `mkdir -p "$G/rebase-merge"; echo "$x" > "$G/rebase-merge/message"`},
	{"merge", `[ -e "$G/MERGE_HEAD" ] || git update-ref MERGE_HEAD $(git commit-tree -p HEAD -m "$x" HEAD^{tree})`},
	{"broken", `echo "$x" > "$G/commondir"`},
	{"settings", `git config core.hooksPath "$x"; git config status.showUntrackedFiles no
		git config diff.ignoreSubmodules all`},
}

// Random work of all kinds, and then a delete: with force each text is in the repository, or in what was moved aside;
// without, the workspace is as it was, or the same holds.
func TestDeleteLosesNothing(t *testing.T) {
	worlds := 60
	if testing.Short() || os.Getenv(asOther) != "" {
		worlds = 8
	}
	for seed := range worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { deleteWorld(t, rand.New(rand.NewPCG(uint64(seed), 40))) })
	}
}

func deleteWorld(t *testing.T, random *rand.Rand) {
	r := newRig(t)
	out := t.TempDir()
	w := r.create(Options{Name: "a", Kind: Worktree})
	var texts, did []string
	kept := map[string]string{} // by the work's text, that of the works that Rescue saves
	for i := range 1 + random.IntN(4) {
		work := works[random.IntN(len(works))]
		text := fmt.Sprintf("work%d%x", i, random.Uint32())
		cmd := exec.Command("sh", "-c", work.script)
		cmd.Dir, cmd.Env = w.Path(), append(os.Environ(), "x="+text, "OUT="+out, "G="+w.GitDir())
		if message, err := cmd.CombinedOutput(); err != nil {
			did = append(did, work.name+" failed: "+string(message)) // such as a commit where the last work left no git
			continue
		}
		did = append(did, work.name)
		if work.name != "settings" {
			texts = append(texts, text)
		}
		if !slices.Contains(notRescued, work.name) {
			kept[text] = work.name
		}
	}
	// Later work may have overwritten what was there.
	all := r.all(w.dir, out)
	texts = slices.DeleteFunc(texts, func(text string) bool { return !strings.Contains(all, text) })
	maps.DeleteFunc(kept, func(text, _ string) bool { return !strings.Contains(all, text) })
	if rescue, err := w.Rescue(r.ctx); err != nil {
		t.Errorf("%q: rescue: %v", did, err)
	} else {
		r.rescued(did, rescue, kept)
	}
	d, err := r.host.Delete(r.ctx, "web", "a", false)
	if err != nil {
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%q: delete: %v", did, err)
		}
		r.holds(did, texts, w.dir, out)
		if d, err = r.host.Delete(r.ctx, "web", "a", true); err != nil {
			t.Fatalf("%q: delete --force: %v", did, err)
		}
	}
	if exists(w.dir) {
		t.Errorf("%q: it is left", did)
	}
	r.holds(did, texts, d.Kept, out)
}

// notRescued are the works that Rescue leaves where they are: it takes commits and files.
var notRescued = []string{
	"tag", "blob ref", "nested", "ignored nested", "linked worktree", "LFS", "rebase", "broken", "settings",
}

// rescued checks that the commit of a rescue reaches each text.
func (r *rig) rescued(did []string, rescue *Rescue, texts map[string]string) {
	r.t.Helper()
	all := r.shell(
		nil, r.source, "sh", "-c", "git rev-list --objects "+rescue.Saved+" | cut -d' ' -f1 | git cat-file --batch",
	)
	for text, work := range texts {
		if !strings.Contains(all, text) {
			r.t.Errorf("%q: Rescue lacks %s of %s: it saved %s", did, text, work, rescue.Had)
		}
	}
}

// holds checks that each text is in an object that a ref of the repository reaches, or below one of the folders.
func (r *rig) holds(did, texts []string, dirs ...string) {
	r.t.Helper()
	all := r.all(dirs...)
	for _, text := range texts {
		if !strings.Contains(all, text) {
			r.t.Errorf("%q: %s is lost", did, text)
		}
	}
}

// all is what is in the objects that a ref of the repository reaches, and below the folders, also in their objects.
func (r *rig) all(dirs ...string) (objects string) {
	r.t.Helper()
	objects = r.shell(
		nil, r.source, "sh", "-c", "git rev-list --objects --all | cut -d' ' -f1 | git cat-file --batch",
	)
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				content, _ := os.ReadFile(path)
				objects += string(content)
			}
			return nil
		})
		if exists(filepath.Join(dir, "git", "objects")) {
			objects += r.shell(
				nil, r.source, "sh", "-c",
				`GIT_OBJECT_DIRECTORY=$0 git cat-file --batch-all-objects --batch --unordered`,
				filepath.Join(dir, "git", "objects"),
			)
		}
	}
	return objects
}
