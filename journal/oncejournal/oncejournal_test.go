package oncejournal

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/remote"
)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Open {
		s := newMemory().store()
		return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
	})
}

func TestOpenTogether(t *testing.T) { remotetest.OpenTogether(t, newMemory().store) }
func TestReplaced(t *testing.T)     { remotetest.Replaced(t, newMemory().store) }
func TestShare(t *testing.T)        { remotetest.Share(t, newMemory().store) }

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Requests that do not arrive, and answers that are lost, cost repetitions and nothing else.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		random := rand.New(rand.NewPCG(1, 2))
		m.fault = func(context.Context, object) fault {
			return []fault{none, none, none, none, lost, answered}[random.IntN(6)]
		}
		want := ""
		for owner := range 10 {
			j := remotetest.Own(t, m.store())
			if owner > 0 {
				want += " "
			}
			for i := range 20 {
				text := fmt.Sprint(owner, "-", i)
				remotetest.Add(t, j, text)
				want += " " + text
				if err := j.Barrier(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.SaveSnapshot(t.Context(), j.Tail(), write(want)); err != nil {
				t.Fatal(err)
			}
			if err := j.Kept("ring").Save([]byte(want)); err != nil {
				t.Fatal(err)
			}
			if got := remotetest.Texts(t, j); got != want {
				t.Fatalf("the journal holds %q, want %q", got, want)
			}
		}
	})
}

// Whatever the length of the log is, its end is found, and each index in it.
func TestFind(t *testing.T) {
	m := newMemory()
	j := remotetest.Own(t, m.store())
	for n := 2; n < 400; n++ {
		remotetest.Add(t, j, fmt.Sprint(n))
		other := newDriver(m, 0)
		if h, err := other.Head(t.Context()); err != nil || h.Tail.Index != j.Tail() {
			t.Fatalf("the log of %d entries ends at %d, %v", n, h.Tail.Index, err)
		}
		index := j.Tail() / 2
		list, err := other.Frames(t.Context(), index, 1)
		if err != nil || len(list) != 1 || list[0].Last != index {
			t.Fatalf("of %d entries, entry %d is in %+v, %v", n, index, list, err)
		}
	}
}

func TestFilling(t *testing.T) {
	remotetest.Filling(t, func(*testing.T, string) *remote.Store { return newMemory().store() }, synctest.Test)
}

// A store starts from a state of another journal, and names its place.
func TestSeed(t *testing.T) {
	m := newMemory()
	s := m.store()
	remotetest.Seed(t, s)
	// The same objects under another name are a copy.
	elsewhere := newMemory()
	elsewhere.name, elsewhere.all, elsewhere.version = "elsewhere", m.all, m.version
	copied := remotetest.Own(t, elsewhere.store())
	if !copied.Copied() {
		t.Error("a restored backup is taken for the original")
	}
	remotetest.Add(t, copied, "more")
	if err := copied.Adopt(); err != nil {
		t.Fatal(err)
	}
	if remotetest.Own(t, elsewhere.store()).Copied() {
		t.Error("fences jump twice")
	}
}
