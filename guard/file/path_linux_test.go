package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadWithoutWriting(t *testing.T) {
	root := t.TempDir()
	put(t, root, "f", "x")
	for dir, mode := range map[string]fs.FileMode{root: 0o555, filepath.Dir(root): 0o755} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	dropRights(t)
	d := open(t, root)
	if f := read(t, d, "f"); string(f.Body) != "x" {
		t.Errorf("read %q", f.Body)
	}
	if _, err := d.Write(
		t.Context(), Change{Path: "f", Base: versionOf([]byte("x")), Body: []byte("y")},
	); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writing gives %v", err)
	}
}

// dropRights makes root's test access the file system as a user without write rights
// everywhere.
func dropRights(t *testing.T) {
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
		runtime.UnlockOSThread()
	})
}
