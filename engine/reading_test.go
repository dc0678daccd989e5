package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestReadingBounds: one answer has so many keys and so many bytes, and a listing continues
// where it ended.
func TestReadingBounds(t *testing.T) {
	s := newStand()
	const docs = interlock.MaxReadBytes/interlock.MaxDocumentBytes + 1
	var keys []interlock.Key
	for i := range docs {
		keys = append(keys, interlock.Key(fmt.Sprintf("large:%d", i)))
		s.commit(put(string(keys[i]), make([]byte, interlock.MaxDocumentBytes)))
	}
	read := func(want interlock.Code, bodies bool, keys ...interlock.Key) {
		t.Helper()
		list, _, err := s.e.Documents("bench", keys, bodies)
		if want == "" && (err != nil || len(list) != len(keys)) ||
			want != "" && !errors.Is(err, &interlock.Error{Code: want}) {
			t.Errorf("%d keys: %d documents, %v, want %q", len(keys), len(list), err, want)
		}
	}
	read("", false, keys...)
	read("", true, keys[1:]...)
	read(interlock.CodeBodyTooLarge, true, keys...)
	read("", false, slicesOf(keys[0], interlock.MaxReads)...)
	read(interlock.CodeInvalidRequest, false, slicesOf(keys[0], interlock.MaxReads+1)...)

	for _, bodies := range []bool{true, false} {
		var found []interlock.Key
		for pages := 1; ; pages++ {
			l := engine.DocumentList{Namespace: "bench", Prefix: "large:", Limit: docs, Bodies: bodies}
			if pages > 1 {
				l.After = found[len(found)-1]
			}
			for !l.Look(s.e) {
			}
			for _, d := range l.Rows {
				found = append(found, d.Key)
			}
			if !l.More {
				if want := map[bool]int{true: 2, false: 1}[bodies]; pages != want || len(found) != docs {
					t.Errorf("%d documents on %d pages, want %d on %d", len(found), pages, docs, want)
				}
				break
			}
		}
	}
}

// TestLongListing: a listing comes to its end piece by piece, in order and without gaps.
func TestLongListing(t *testing.T) {
	s := newStand()
	const docs = 3000
	for i := range docs {
		s.commit(put(fmt.Sprintf("k%04d", i*7%docs), nil))
	}
	var after interlock.Key
	n, looks := 0, 0
	for more := true; more; {
		l := engine.DocumentList{Namespace: "bench", After: after, Limit: 700}
		for looks++; !l.Look(s.e); looks++ {
		}
		for _, d := range l.Rows {
			if want := interlock.Key(fmt.Sprintf("k%04d", n)); d.Key != want {
				t.Fatalf("row %d is %s", n, d.Key)
			}
			n++
			after = d.Key
		}
		more = l.More
	}
	if n != docs || looks < docs/256 {
		t.Errorf("%d rows in %d pieces, want %d in more", n, looks, docs)
	}
}
