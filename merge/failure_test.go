package merge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
)

// A git that fails is no conflict, wherever it fails, and the same turn lands as before when the cause is gone.
func TestFailuresAreNoConflicts(t *testing.T) {
	type world struct {
		*rig
		base, ours, theirs string
	}
	build := func(t *testing.T) world {
		r := newRig(t)
		base := r.commit(files{".gitattributes": text("*.d merge=d\n"), "a.d": text(tenLines), "a": text(tenLines)})
		ours := r.commit(files{"a.d": text("ours\n" + tenLines), "a": text("ours\n" + tenLines)}, base)
		theirs := r.commit(files{"a.d": text(tenLines + "theirs\n"), "a": text(tenLines + "theirs\n")}, base)
		return world{r, base, ours, theirs}
	}
	script := func(t *testing.T, text string) Driver {
		program := filepath.Join(t.TempDir(), "driver")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return Driver{Name: "d", Program: program, Arguments: "%O %A %B"}
	}
	fails := func(t *testing.T, b *Boundary, w world) {
		t.Helper()
		l, err := b.Land(t.Context(), turn(1, w.ours, w.theirs))
		if _, ok := errors.AsType[*git.Error](err); !ok {
			t.Errorf("landed %+v, %v, want an error of git", l, err)
		}
	}

	t.Run("the store takes no object", func(t *testing.T) {
		w := build(t)
		// What a full disk or a wrong owner does, also to root: no folder can be made.
		var blocked []string
		for i := range 256 {
			name := filepath.Join(w.git.Dir, "objects", fmt.Sprintf("%02x", i))
			f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if errors.Is(err, os.ErrExist) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			blocked = append(blocked, name)
		}
		b := w.boundary()
		fails(t, b, w)
		for _, name := range blocked {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		got, want := w.land(b, turn(1, w.ours, w.theirs)), w.land(w.boundary(), turn(1, w.ours, w.theirs))
		if got.Commit != want.Commit {
			t.Errorf("after the failure %s, want %s", got.Commit, want.Commit)
		}
	})

	t.Run("a file of the target is torn", func(t *testing.T) {
		w := build(t)
		id := w.run("rev-parse", w.ours+":a")
		name := filepath.Join(w.git.Dir, "objects", id[:2], id[2:])
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(content []byte) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, content, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		b := w.boundary()
		replace(nil)
		fails(t, b, w)
		replace(whole[:len(whole)/2])
		fails(t, b, w)
		replace(whole)
		w.land(b, turn(1, w.ours, w.theirs))
	})

	t.Run("git is killed while it merges", func(t *testing.T) {
		w := build(t)
		fails(t, w.boundary(script(t, "kill -9 $(ps -o ppid= -p $PPID)\n")), w)
	})

	t.Run("a driver that is killed", func(t *testing.T) {
		w := build(t)
		fails(t, w.boundary(script(t, "kill -9 $$\n")), w)
	})

	t.Run("a driver that is gone", func(t *testing.T) {
		w := build(t)
		driver := script(t, "exit 0\n")
		b := w.boundary(driver)
		if err := os.Remove(driver.Program); err != nil {
			t.Fatal(err)
		}
		fails(t, b, w)
	})

	t.Run("a driver that finds a conflict", func(t *testing.T) {
		w := build(t)
		for _, code := range []string{"1", "2", "101", "255"} {
			w.refused(w.boundary(script(t, "exit "+code+"\n")), turn(1, w.ours, w.theirs))
		}
	})

	t.Run("the programs that answer requests are gone", func(t *testing.T) {
		w := build(t)
		b := w.boundary()
		want := w.land(b, turn(1, w.ours, w.theirs))
		b.read.process.Close()
		b.diff.process.Close()
		fails(t, b, w)
		var got Landing
		var err error
		for range 2 { // each program is found missing once
			if got, err = b.Land(t.Context(), turn(1, w.ours, w.theirs)); err == nil {
				break
			}
		}
		if err != nil || got.Commit != want.Commit {
			t.Errorf("landed %+v, %v, want %s", got, err, want.Commit)
		}
	})
}
