package merger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/merge"
)

// forge makes a bare repository that the merger pushes to, with a hook pre-receive. An empty hook is none.
func (r *rig) forge(hook string) (dir string, setHook func(string)) {
	r.t.Helper()
	dir = filepath.Join(r.t.TempDir(), "forge.git")
	r.run("clone", "--quiet", "--bare", "--end-of-options", r.git.Dir, dir)
	name := filepath.Join(dir, "hooks", "pre-receive")
	setHook = func(text string) {
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = os.WriteFile(name+".new", []byte("#!/bin/sh\n"+text), 0o755)
		}
		if err == nil {
			err = os.Rename(name+".new", name)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	setHook(hook)
	return dir, setHook
}

// pushing is the configuration of a merger that pushes to a forge.
func (r *rig) pushing(forge string) Config {
	c := r.config("merger")
	c.Target = &merge.Target{Repository: r.git, Ref: "refs/heads/main", Remote: forge, Signer: r.signer}
	return c
}

// at lists the submissions that have landed at a forge.
func (r *rig) at(forge string) []string {
	g := r.git
	g.Dir = forge
	out, err := g.Output(
		r.t.Context(), "log", "--first-parent", "--reverse",
		"--format=%(trailers:key=Interlock-Submission,valueonly)", "refs/heads/main",
	)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Fields(out)
}

const refusesSecrets = `while read old new ref; do
git ls-tree -r --name-only $new 2>/dev/null | grep -q ^secret && { echo "GH013: secret found"; exit 1; }
done; exit 0
`

// A forge that refuses some landings for their content gets the others, and each refused one comes back with its
// words, wherever it stands in the batch.
func TestForgeRefusesSome(t *testing.T) {
	for _, bad := range []string{"a", "c", "e", "bd", "abcde"} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(anything)
			forge, _ := r.forge(refusesSecrets)
			tasks := map[string]interlock.TaskID{}
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				name := id
				if strings.Contains(bad, id) {
					name = "secret-" + id
				}
				tasks[id] = r.submit(Submission{ID: "s-" + id, Head: r.commit(r.begin, files{name: "1\n"})})
			}
			r.start(r.pushing(forge))
			var want []string
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				o := r.result(tasks[id])
				if !strings.Contains(bad, id) {
					if want = append(want, "s-"+id); o.Code != Landed {
						t.Errorf("%s: %+v", id, o)
					}
					continue
				}
				if o.Code != Returned || o.Reason != WhyRefused || o.Cause != CausePush || !strings.Contains(o.Words, "GH013") {
					t.Errorf("%s: %+v", id, o)
				}
			}
			if got := r.at(forge); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the forge has %v, want %v", got, want)
			}
		})
	}
}

// waitHealth waits until the health of the merger meets a condition.
func (r *rig) waitHealth(met func(*Health) bool) Health {
	r.t.Helper()
	ctx := busy.Context(r.t)
	for {
		h, err := HealthOf(ctx, r.author, web)
		if err != nil {
			r.t.Fatal(err)
		}
		if met(&h) {
			return h
		}
	}
}

// A forge that takes no landing at all, or is gone, is no fault of a submission: none comes back, the health has the
// failure, and all land when it has gone.
func TestForgeTakesNothing(t *testing.T) {
	type forge struct {
		break_, mend func(dir string, setHook func(string))
	}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]forge{
		"a hook refuses all": {
			func(_ string, set func(string)) { set("echo no landings on Friday $$; exit 1\n") },
			func(_ string, set func(string)) { set("exit 0\n") },
		},
		"it is gone": {
			func(dir string, _ func(string)) { move(dir, dir+".away") },
			func(dir string, _ func(string)) { move(dir+".away", dir) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.work(anything)
			dir, set := r.forge("exit 0\n")
			c := r.pushing(dir)
			f.break_(dir, set)
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
			r.start(c)
			h := r.waitHealth(func(h *Health) bool { return h.Failure != nil && h.Failure.Times > 2 })
			if h.Failure.Message == "" || h.Failure.Next == 0 || h.Died != 0 {
				t.Errorf("%+v", h)
			}
			f.mend(dir, set)
			for _, id := range []interlock.TaskID{a, b} {
				if o := r.result(id); o.Code != Landed {
					t.Errorf("%+v", o)
				}
			}
			r.waitHealth(func(h *Health) bool { return h.Failure == nil })
		})
	}
}

// deadly is a boundary that kills the merger while it merges a submission.
type deadly struct {
	Boundary
	head string
	die  func()
}

func (d *deadly) Land(ctx context.Context, t merge.Turn) (merge.Landing, error) {
	if t.Head == d.head {
		d.die()
		<-ctx.Done()
		return merge.Landing{}, ctx.Err()
	}
	return d.Boundary.Land(ctx, t)
}

// A submission that kills mergers comes back after some deaths, and the others land.
func TestDeadlySubmissionComesBack(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	tasks := map[string]interlock.TaskID{}
	var head string
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		commit := r.commit(r.begin, files{id: "1\n"})
		if id == "c" {
			head = commit
		}
		tasks[id] = r.submit(Submission{ID: id, Head: commit})
	}
	done := make(chan Outcome, 1)
	go func() { done <- r.result(tasks["c"]) }()
	var o Outcome
	for deaths := 0; o.Code == ""; deaths++ {
		if deaths > waryAfter+maxDeaths+5 {
			t.Fatalf("%d mergers have died", deaths)
		}
		c := r.config(fmt.Sprintf("victim-%d", deaths))
		died := make(chan struct{}, 1)
		c.Boundary = &deadly{c.Boundary, head, func() {
			select {
			case died <- struct{}{}:
			default:
			}
		}}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		select {
		case <-died:
			_ = c.Client.Close(t.Context())
		case o = <-done:
		}
		kill()
		<-ended
	}
	if o.Code != Returned || o.Reason != WhyFailed || o.Cause != CauseCrash {
		t.Errorf("%+v", o)
	}
	r.start(r.config("heir"))
	for _, id := range []string{"a", "b", "d", "e"} {
		if o := r.result(tasks[id]); o.Code != Landed {
			t.Errorf("%s: %+v", id, o)
		}
	}
}

// hanging is a boundary that hangs with a submission.
type hanging struct {
	Boundary
	head string
}

func (h *hanging) Land(ctx context.Context, t merge.Turn) (merge.Landing, error) {
	if t.Head == h.head {
		<-ctx.Done()
		return merge.Landing{}, context.Cause(ctx)
	}
	return h.Boundary.Land(ctx, t)
}

// A merge that takes too long comes back, and the others land.
func TestMergeThatHangs(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	bad := r.commit(r.begin, files{"bad": "1\n"})
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	b := r.submit(Submission{ID: "b", Head: bad})
	d := r.submit(Submission{ID: "d", Head: r.commit(r.begin, files{"d": "1\n"})})
	c := r.config("merger")
	c.GitWithin = 3 * time.Second
	c.Boundary = &hanging{c.Boundary, bad}
	r.start(c)
	if o := r.result(b); o.Code != Returned || o.Reason != WhyFailed || o.Cause != CauseTimeout {
		t.Errorf("%+v", o)
	}
	for _, id := range []interlock.TaskID{a, d} {
		if o := r.result(id); o.Code != Landed {
			t.Errorf("%+v", o)
		}
	}
}
