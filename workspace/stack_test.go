//go:build unix

package workspace

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A workspace on a submission has its files, and what it submits is only its own, on that submission, until the target
// has that one's commit.
func TestStack(t *testing.T) {
	each(t, func(r *rig, o Options) {
		for name, upstream := range map[string]string{"the source": "", "elsewhere": "file://" + r.source} {
			if upstream != "" && o.Kind != Worktree {
				continue
			}
			from := Options{Kind: o.Kind, Sparse: o.Sparse, Source: r.source, Upstream: upstream}
			if upstream != "" {
				from.Source, from.Repo = filepath.Join(filepath.Dir(r.source), "clone"), "clone"
				r.git("clone", "--quiet", r.source, from.Source)
			}
			make := func(name, on string) (*Workspace, error) {
				from := from
				from.Name, from.On = name, on
				return r.tryCreate(from)
			}
			submit := func(w *Workspace) *Work {
				t.Helper()
				work, err := w.Submit(r.ctx, "", true)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return work
			}
			if _, err := make("none", "no-such"); !errors.Is(err, ErrSource) {
				t.Errorf("%s: on a submission that is not there: %v", name, err)
			}
			base, err := make("base", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := make("none", "base"); !errors.Is(err, ErrSource) {
				t.Errorf("%s: on a workspace without a submission: %v", name, err)
			}
			r.in(base, "echo base > src/base-"+r.suffix(upstream))
			first := submit(base)
			for i, named := range []string{"base", first.ID} {
				w, err := make([]string{"by-name", "by-id"}[i], named)
				if err != nil {
					t.Fatal(err)
				}
				r.want(name+": the file of the base", r.in(w, "cat src/base-"+r.suffix(upstream)), "base")
				if w.Start != first.Head || w.On != first.ID {
					t.Errorf("%s: at %s on %q, want %+v", name, w.Start, w.On, first)
				}
				if s := r.status(w); s.Unsubmitted() {
					t.Errorf("%s: a new workspace has %s", name, s)
				}
				if _, err := w.Submit(r.ctx, "", true); !errors.Is(err, ErrNothing) {
					t.Errorf("%s: submitted without a change: %v", name, err)
				}
				r.in(w, "echo own > src/own")
				var diff strings.Builder
				if err := w.Diff(r.ctx, &diff, "--name-only"); err != nil {
					t.Fatal(err)
				}
				r.want(name+": the difference", diff.String(), "src/own\n")
				work := submit(w)
				if work.On != first.ID || work.Base != first.Head || !slices.Equal(work.Paths, []string{"src/own"}) {
					t.Errorf("%s: submitted %+v, on %+v", name, work, first)
				}
				if again := submit(w); again.On != first.ID || again.Head != work.Head {
					t.Errorf("%s: submitted again as %+v", name, again)
				}
				if i == 1 {
					r.git("merge", "--quiet", "--no-ff", "-m", "land", first.Ref)
					if _, err := w.Sync(r.ctx); err != nil {
						t.Fatal(err)
					}
					if work := submit(w); work.On != "" || !slices.Equal(work.Paths, []string{"src/own"}) {
						t.Errorf("%s: the base has landed, and submitted is %+v", name, work)
					}
				}
				if _, err := r.host.Delete(r.ctx, w.Repo, w.Name, false); err != nil {
					t.Errorf("%s: nothing is unsubmitted: %v", name, err)
				}
			}
			// What has left the submission behind is not on it.
			w, err := make("away", first.ID)
			if err != nil {
				t.Fatal(err)
			}
			r.in(w, "git reset --quiet --hard HEAD~1 && echo away > src/away")
			if work := submit(w); work.On != "" {
				t.Errorf("%s: without the commit of the base: %+v", name, work)
			}
		}
	})
}

// suffix keeps the files of two upstreams apart.
func (r *rig) suffix(upstream string) string { return NameFrom(upstream[:min(4, len(upstream))] + "x") }
