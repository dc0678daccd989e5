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

// LastUse returns when the workspace was made, was noted as used, had a submission, or had a change of its index or of
// its HEAD, whatever was last. So it also counts what was done without any command of Interlock, if git was part of it.
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
		if info, err := os.Stat(filepath.Join(w.GitDir(), name)); err == nil {
			later(info.ModTime())
		}
	}
	return last
}
