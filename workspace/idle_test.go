//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A use that was noted counts, and so does a commit.
func TestLastUse(t *testing.T) {
	each(t, func(r *rig, o Options) {
		w := r.create(o)
		long := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
		age := func() {
			for _, name := range []string{"index", "HEAD", "logs/HEAD"} {
				if err := os.Chtimes(filepath.Join(w.GitDir(), name), long, long); err != nil && !os.IsNotExist(err) {
					r.t.Fatal(err)
				}
			}
		}
		age()
		w.Created = long
		if got := w.LastUse(); !got.Equal(long) {
			r.t.Errorf("an old workspace was used at %v, want %v", got, long)
		}
		if err := w.Use(); err != nil {
			r.t.Fatal(err)
		}
		if time.Since(w.LastUse()) > time.Hour {
			r.t.Errorf("a use was not noted: %v", w.LastUse())
		}
		w.Used = long
		r.in(w, "echo x > x; git add x; git commit -qm x")
		if time.Since(w.LastUse()) > time.Hour {
			r.t.Errorf("a commit does not count: %v", w.LastUse())
		}
	})
}
