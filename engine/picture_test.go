package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// pictureEvents is the number of events that the tests ask for.
const pictureEvents = 4096

// A snapshot written from a picture equals the one that the engine would have written when it
// was taken: also after the engine has continued, and forgotten much of the state.
func TestPicture(t *testing.T) {
	s := newStand()
	id := s.session(t)
	for round := range 3 {
		for i := range 100 {
			gone := s.session(t)
			s.acquire(gone, interlock.Key(fmt.Sprintf("order:%d/%d", round, i)))
			s.step(&engine.CloseSession{Head: s.head(gone)})
			s.want(t, engine.Done)
		}
		s.acquire(id, interlock.Key(fmt.Sprintf("held:%d", round)))
		var want bytes.Buffer
		if err := s.e.WriteSnapshot(&want); err != nil {
			t.Fatal(err)
		}
		p := s.e.Picture(pictureEvents)
		if p == nil {
			t.Fatalf("round %d: no picture of a small state", round)
		}
		written := make(chan error)
		var got bytes.Buffer
		go func() { written <- p.WriteSnapshot(&got) }()
		for i := range overFull / 2 { // with claims of their own: the engine writes their keys
			s.release(id, s.acquire(id, interlock.Key(fmt.Sprintf("account:%d", i%64))))
		}
		err := <-written
		for when := range 2 {
			if err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Fatalf(
					"round %d.%d: %d bytes, want the %d of the snapshot at that time; %v", round, when, got.Len(), want.Len(), err,
				)
			}
			got.Reset()
			err = p.WriteSnapshot(&got)
		}
	}
}

// A picture that cannot be taken quickly is refused, and none is partial.
func TestNoPicture(t *testing.T) {
	many := func(t *testing.T, s *stand, change func(i int, c *engine.Acquire)) (most int) {
		id := s.session(t)
		for i := 0; ; i++ {
			if i == 20_000 {
				t.Fatal("there is a picture of everything")
			}
			if i%100 == 0 && s.e.Picture(pictureEvents) == nil {
				return i
			}
			c := &engine.Acquire{Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
				Claims: distinct(1, fmt.Sprintf("held:%d-%%d", i))[0],
			}}
			change(i, c)
			s.step(c)
			s.want(t, engine.Granted)
		}
	}
	if n := many(t, newStand(), func(int, *engine.Acquire) {}); n < 2000 {
		t.Errorf("%d leases are too many", n)
	}
	if n := many(
		t, newStand(), func(_ int, c *engine.Acquire) { c.Purpose = strings.Repeat("x", interlock.MaxPurposeBytes) },
	); n < 1000 ||
		n >= 2000 {
		t.Errorf("%d leases with long purposes are too many, want a mebibyte", n)
	}
	s := newStand()
	for i := range 10_000 {
		h := s.head(interlock.SessionID{})
		h.Namespace = interlock.Namespace(fmt.Sprintf("tenant-%d", i))
		s.step(&engine.OpenSession{Head: h, ID: interlock.SessionID(s.id()), Agent: "agent", TTL: interlock.MaxTTL})
		s.want(t, engine.Done)
	}
	if s.e.Picture(pictureEvents) != nil {
		t.Error("a picture of ten thousand namespaces")
	}
}

// BenchmarkPicture is for how long the owner of an engine is kept by a picture, and what
// it costs to write it then; beside what writing the engine out at once would take.
func BenchmarkPicture(b *testing.B) {
	for _, leases := range []int{256, 3_900} {
		s := newStand()
		id := s.session(b)
		for i := range leases {
			s.acquire(id, interlock.Key(fmt.Sprintf("held:%d", i)))
		}
		s.settle(id, distinct(64, "account:%d"))
		for _, what := range []struct {
			name string
			run  func() error
		}{
			{"take", func() error { s.e.Picture(pictureEvents); return nil }},
			{"take-and-write", func() error { return s.e.Picture(pictureEvents).WriteSnapshot(io.Discard) }},
			{"engine", func() error { return s.e.WriteSnapshot(io.Discard) }},
		} {
			b.Run(fmt.Sprintf("leases=%d/%s", leases, what.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := what.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
