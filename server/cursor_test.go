package server

import (
	"math/rand/v2"
	"net/url"
	"testing"
)

// A cursor goes into an address as it is and comes back whole, whatever it stands for, and
// is one of its namespace and listing alone.
func TestCursors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mine := call{namespace: "acme"}
	for range 200 {
		after := make([]byte, 1+r.IntN(40))
		for i := range after {
			after[i] = byte(r.Uint32())
		}
		cursor := mine.makeCursor("keys", string(after))
		query, err := url.ParseQuery("cursor=" + cursor)
		if err != nil {
			t.Fatal(err)
		}
		mine.query = query
		if got, ok := mine.openCursor("keys"); !ok || got != string(after) {
			t.Fatalf("cursor %s of %x is read as %x", cursor, after, got)
		}
	}
	for _, other := range []call{{namespace: "acme-2"}, {namespace: "acm"}, {namespace: "acme keys"}} {
		if string(other.cursorMark("keys")) == string(mine.cursorMark("keys")) {
			t.Errorf("namespace %q has the cursors of %q", other.namespace, mine.namespace)
		}
	}
	if string(mine.cursorMark("keys held")) == string(mine.cursorMark("keys")) {
		t.Error("a listing has the cursors of another one")
	}
}
