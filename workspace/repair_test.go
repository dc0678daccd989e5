//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepair moves the repository, then the folder of all workspaces.
func TestRepair(t *testing.T) {
	each(t, func(r *rig, o Options) {
		o.Share = []string{"node_modules"}
		w := r.create(o)
		r.in(w, "echo work > src/work; git add src/work; git commit -qm work; echo more > src/more")
		if done, err := w.Repair(r.ctx, r.source); err != nil || len(done) > 0 {
			t.Errorf("repaired without a need: %q, %v", done, err)
		}
		other := filepath.Join(t.TempDir(), "other")
		r.git("clone", "-q", ".", other)
		moved := filepath.Join(filepath.Dir(r.source), "Moved")
		if err := os.Rename(r.source, moved); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{other, t.TempDir()} {
			_, err := w.Repair(r.ctx, path)
			if err == nil || !errors.Is(err, ErrSource) && !strings.Contains(err.Error(), "--repo") {
				t.Errorf("repaired with %s: %v", path, err)
			}
		}
		r.source = moved
		repair := func() {
			t.Helper()
			again, err := r.host.Open("web", w.Name)
			if err != nil {
				t.Fatal(err)
			}
			if done, err := again.Repair(r.ctx, filepath.Join(moved, "src")); err != nil || len(done) == 0 {
				t.Fatalf("repaired: %q, %v", done, err)
			}
			w = again
			if s := r.status(w); s.Commits != 1 || s.Untracked != 1 || s.Changed != 0 {
				t.Errorf("status %+v", s)
			}
			r.want("git", r.in(w, "git log --format=%s; git status --short; readlink node_modules"),
				"work\nfirst\n?? src/more\n"+filepath.Join(moved, "node_modules"))
		}
		repair()
		if !w.Rootless {
			if err := w.unmountTree(); err != nil {
				t.Fatal(err)
			}
		}
		root := r.host.Root + "-moved"
		if err := os.Rename(r.host.Root, root); err != nil {
			t.Fatal(err)
		}
		r.host.Root = root
		repair()
		work, err := w.Submit(r.ctx, "more", true)
		if err != nil {
			t.Fatal(err)
		}
		r.want("submitted", r.git("show", work.Ref+":src/more"), "more")
		if _, err := r.host.Delete(r.ctx, "web", w.Name, false); err != nil {
			t.Error(err)
		}
		r.want("refs", r.git("for-each-ref", keepAll), "")
		r.want("pruning", r.git("config", "--default", "none", "--get", pruneKey), "none")
	})
}
