package merge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// lockRefs starts a git of a merger that has the target's refs locked, inside its transaction.
func (p *place) lockRefs() *git.Process {
	p.t.Helper()
	guard, err := p.target.guard(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer guard.Close()
	process, err := p.rig.git.Start(p.t.Context(), git.Call{
		Args: []string{"update-ref", "--stdin"}, Files: inherited(guard),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintf(
		process.In, "start\nupdate %s %s %s\nupdate %s %s %s\nprepare\n", mainRef, p.at[1], p.at[0],
		FenceRef(mainRef), p.at[1], p.run("rev-parse", FenceRef(mainRef)),
	)
	for _, want := range []string{"start: ok\n", "prepare: ok\n"} {
		if line, err := process.Out.ReadString('\n'); err != nil || line != want {
			p.t.Fatalf("git printed %q, %v, want %q", line, err, want)
		}
	}
	return process
}

// removed removes locks from before a time, and returns which.
func (p *place) removed(before time.Time) (names []string, err error) {
	list, err := p.target.RemoveLocks(p.t.Context(), before)
	for _, name := range list {
		short, err := filepath.Rel(p.rig.git.Dir, name)
		if err != nil {
			p.t.Fatal(err)
		}
		names = append(names, short)
	}
	return names, err
}

// A git that was killed in its transaction leaves locks, and no ref moved. The locks are removed when they are older
// than the seat, and when no git of a merger runs.
func TestKilledTransaction(t *testing.T) {
	r := newRig(t)
	p := (&place{rig: r, target: Target{Repository: r.git, Ref: mainRef}}).fill(r)
	p.claim(5)
	begin := time.Now().Add(-time.Second) // a file's time may be some milliseconds behind the clock
	process := p.lockRefs()
	move := Move{5, 1, p.at[0], p.at[1]}
	locked := func(when string) {
		t.Helper()
		if _, ok := errors.AsType[*Locked](p.move(t.Context(), move)); !ok {
			t.Errorf("%s, a move is not refused as Locked", when)
		}
		p.expect(p.at[0], Fence{5, 0, p.at[0], ""})
	}
	locked("while a git has the refs")
	future := time.Now().Add(time.Hour)
	names, err := p.removed(future)
	if _, ok := errors.AsType[*Locked](err); !ok || len(names) > 0 {
		t.Fatalf("while the git of a merger runs: removed %v, %v", names, err)
	}
	process.Fail(errors.New("killed")) // and not Close, which ends its input first
	packed := filepath.Join(r.git.Dir, "packed-refs.lock")
	if err := os.WriteFile(packed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked("with the locks of a killed git")
	if names, err := p.removed(begin); err != nil || len(names) > 0 {
		t.Fatalf("locks that are younger than the seat: removed %v, %v", names, err)
	}
	want := []string{"HEAD.lock", mainRef + ".lock", FenceRef(mainRef) + ".lock"}
	if names, err := p.removed(future); err != nil || !slices.Equal(names, want) {
		t.Fatalf("removed %v, %v, want %v", names, err, want)
	}
	if names, err := p.removed(future); err != nil || len(names) > 0 {
		t.Fatalf("without locks: removed %v, %v", names, err)
	}
	if err := p.move(t.Context(), move); err != nil {
		t.Fatal(err)
	}
	p.expect(p.at[1], Fence{5, 1, p.at[1], ""})
	if _, err := os.Stat(packed); err != nil {
		t.Errorf("the lock of packed-refs: %v", err)
	}
}
