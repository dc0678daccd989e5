package merger

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlockdev/interlock/merge"
)

// A git that was killed has left lock files: the merger removes the old ones when it takes the seat. A young one may
// be of a program that runs. It stays, and the merger lands when it is gone.
func TestLeftoverLocks(t *testing.T) {
	lock := func(r *rig, ref string, age time.Duration) string {
		t.Helper()
		name := filepath.Join(r.git.Dir, filepath.FromSlash(ref)+".lock")
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = os.WriteFile(name, nil, 0o666)
		}
		if when := time.Now().Add(-age); err == nil {
			err = os.Chtimes(name, when, when)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, ref := range []string{"refs/heads/main", merge.FenceRef("refs/heads/main"), merge.IdentityRef, "HEAD"} {
		t.Run(filepath.Base(ref), func(t *testing.T) {
			r := newRig(t)
			r.work(good)
			lock(r, ref, time.Minute)
			packed := lock(r, "packed-refs", time.Minute)
			c := r.config("merger")
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			r.start(c)
			if o := r.result(a); o.Code != Landed {
				t.Errorf("%+v", o)
			}
			if _, err := os.Stat(packed); err != nil {
				t.Errorf("the lock of packed-refs, which no merger takes: %v", err)
			}
		})
	}
	t.Run("young", func(t *testing.T) {
		r := newRig(t)
		r.work(good)
		name := lock(r, "refs/heads/main", 0)
		c := r.config("merger")
		asked := make(chan struct{}, 1000)
		c.Target = &askedRef{c.Target, asked}
		a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
		r.start(c)
		for range 3 { // seats
			<-asked
		}
		if err := os.Remove(name); err != nil {
			t.Errorf("the lock of a program that may run: %v", err)
		}
		if o := r.result(a); o.Code != Landed {
			t.Errorf("%+v", o)
		}
	})
}

// askedRef reports when locks are removed.
type askedRef struct {
	Ref
	asked chan<- struct{}
}

func (a *askedRef) RemoveLocks(ctx context.Context, before time.Time) ([]string, error) {
	select {
	case a.asked <- struct{}{}:
	default:
	}
	return a.Ref.RemoveLocks(ctx, before)
}
