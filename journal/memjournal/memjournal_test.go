package memjournal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/memjournal"
)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Open {
		var s memjournal.Store
		return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
	})
}

func TestInject(t *testing.T) {
	var s memjournal.Store
	ctx := t.Context()
	one := [][]byte{[]byte("x")}
	j, _ := s.Open(ctx)
	s.Inject(memjournal.None, memjournal.NoSpace)
	if err := j.Append(ctx, 2, one); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(ctx, 3, one); !errors.Is(err, journal.ErrNoSpace) {
		t.Fatal(err)
	}
	if err := j.Append(ctx, 3, one); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault memjournal.Fault
		grows int
	}{{memjournal.Lost, 0}, {memjournal.Stored, 1}} {
		s.Inject(c.fault)
		before := j.Tail()
		if err := j.Append(ctx, before+1, one); !errors.Is(err, journal.ErrFailed) {
			t.Fatal(err)
		}
		if err := j.Append(ctx, before+1, one); !errors.Is(err, journal.ErrFailed) {
			t.Fatalf("append after a failure: %v", err)
		}
		if err := j.Barrier(ctx); !errors.Is(err, journal.ErrFailed) {
			t.Fatalf("barrier after a failure: %v", err)
		}
		j, _ = s.Open(ctx)
		if got := int(j.Tail() - before); got != c.grows+1 {
			t.Errorf("fault %d: the journal grew by %d with the epoch record, want %d", c.fault, got, c.grows+1)
		}
	}
}

func TestHold(t *testing.T) {
	var s memjournal.Store
	ctx := t.Context()
	old, _ := s.Open(ctx)
	h := s.Hold()
	result := make(chan error)
	go func() { result <- old.Append(ctx, 2, [][]byte{[]byte("x")}) }()
	<-h.Reached
	j, _ := s.Open(ctx)
	h.Release()
	if err := <-result; !errors.Is(err, journal.ErrFenced) {
		t.Fatal(err)
	}
	if err := j.Append(ctx, 3, [][]byte{[]byte("y")}); err != nil {
		t.Fatal(err)
	}
	s.SetLow(true)
	if !j.Low() {
		t.Error("not low")
	}
}
