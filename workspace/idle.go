package workspace

import (
	"os"
	"path/filepath"
	"time"
)

// Use notes that the workspace is used now.
func (w *Workspace) Use() error {
	w.Used = time.Now().UTC().Truncate(time.Second)
	return w.write(w.dir)
}

// Prepared notes that the setup command has succeeded.
func (w *Workspace) Prepared() error {
	w.SetUp = true
	return w.write(w.dir)
}

// LastUse returns the last time that the workspace was made, was used, had a submission, or had a change of its index or
// its HEAD. A commit counts also if no command of Interlock made it.
func (w *Workspace) LastUse() time.Time {
	last := w.Created
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	later(w.Used)
	for _, s := range w.Submissions {
		later(s.At)
	}
	for _, name := range []string{"index", "HEAD", "logs/HEAD"} {
		if info, err := os.Lstat(filepath.Join(w.GitDir(), name)); err == nil {
			later(info.ModTime())
		}
	}
	return last
}
