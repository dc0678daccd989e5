//go:build unix

package place

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Locate does not wait for a named pipe in the place of a file of git's.
func TestPipes(t *testing.T) {
	for _, pipe := range []string{".git", ".git/config", "git/commondir"} {
		dir := t.TempDir()
		for _, folder := range []string{".git", "git"} {
			if folder != pipe {
				if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
					t.Fatal(err)
				}
			}
		}
		head := filepath.Join(dir, ".git", "HEAD")
		if pipe == "git/commondir" {
			if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			head = filepath.Join(dir, ".git")
		}
		if pipe != ".git" {
			if err := os.WriteFile(head, []byte("gitdir: git\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(dir, pipe), 0o666); err != nil {
			t.Fatal(err)
		}
		if at, ok := Locate(filepath.Join(dir, "file")); !ok || (at.Repo != "") != (pipe != ".git") {
			t.Errorf("%s: %+v, %v", pipe, at, ok)
		}
	}
}
