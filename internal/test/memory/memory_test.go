package memory

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

type tests func() int

func (f tests) Run() int { return f() }

// Each process has a folder of its own, which goes with it. A folder of a process that was killed goes with the next
// one, and one of a living process stays.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	root := t.TempDir()
	t.Setenv("TMPDIR", "")
	folders := func() []string {
		list, err := filepath.Glob(filepath.Join(root, "*", "*", "lock"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	code := run(tests(func() int {
		if got, want := filepath.Dir(filepath.Dir(os.TempDir())), root; got != want {
			t.Errorf("temporary folders are in %s, want %s", got, want)
		}
		living := os.TempDir()
		killed, err := os.MkdirTemp(filepath.Dir(living), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(killed, "lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", "")
		if inner := run(tests(func() int {
			if _, err := os.Stat(killed); !os.IsNotExist(err) {
				t.Errorf("the folder of a killed process is left: %v", err)
			}
			if got := folders(); len(got) != 2 {
				t.Errorf("there are %q, want those of two processes", got)
			}
			return 4
		}), root); inner != 4 {
			t.Errorf("the code is %d, want that of the tests", inner)
		}
		if got := folders(); len(got) != 1 || filepath.Dir(got[0]) != living {
			t.Errorf("there are %q, want that in %s", got, living)
		}
		return 3
	}), root)
	if got := folders(); code != 3 || len(got) > 0 {
		t.Errorf("the code is %d, and there are %q", code, got)
	}
}

// What is set stays, and a folder that cannot be used is not.
func TestNotUsed(t *testing.T) {
	asked := func(root string) (got string) {
		run(tests(func() int {
			got = os.Getenv("TMPDIR")
			return 0
		}), root)
		return got
	}
	set := t.TempDir()
	t.Setenv("TMPDIR", set)
	if got := asked(t.TempDir()); got != set {
		t.Errorf("TMPDIR is %s, want %s", got, set)
	}
	t.Setenv("TMPDIR", "")
	if got := asked(filepath.Join(set, "absent")); got != "" {
		t.Errorf("TMPDIR is %s without a folder in memory", got)
	}
}
