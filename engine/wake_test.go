package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// Only places that something of their own flow would block are watched one by one: for each of
// them every change at its key costs a look.
func TestFewAreWatchedOneByOne(t *testing.T) {
	e := New()
	var out Output
	e.Step(&Recover{Epoch: 1}, &out)
	id := func(n int) (id [16]byte) {
		id[14], id[15] = byte(n>>8), byte(n)
		return id
	}
	ask := func(n int, flow string, any bool, keys ...string) {
		c := &Acquire{
			Head: Head{Namespace: "default", Session: id(1)}, ID: id(n), LeaseRequest: interlock.LeaseRequest{
				Flow: flow, Any: any,
				Terms: interlock.Terms{TTL: time.Hour}, OnConflict: interlock.Wait,
			},
		}
		for _, key := range keys {
			c.Claims = append(c.Claims, interlock.Claim{Key: interlock.Key(key)})
		}
		e.Step(c, &out)
	}
	apart := func() (n int) {
		for _, node := range e.Namespaces["default"].Nodes.All() {
			if node.Line != nil {
				for c := node.Line.First; c != nil; c = c.Next {
					n += len(c.WatchedAlone)
				}
			}
		}
		return n
	}
	e.Step(&OpenSession{Head: Head{Namespace: "default"}, ID: id(1), Agent: "a", TTL: time.Hour}, &out)
	ask(2, "holder", false, "pool")
	for i := range 20 {
		ask(100+i, fmt.Sprint("one ", i), false, "pool/a")
		ask(200+i, fmt.Sprint("any ", i), true, "pool/a", "pool/b", "pool/c")
	}
	if n := apart(); n != 0 {
		t.Errorf("%d places are watched one by one, and none needs it", n)
	}
	ask(400, "twice", false, "pool/a")
	ask(401, "twice", true, "pool/a", "pool/b")
	if n := apart(); n != 0 {
		t.Errorf("%d places are watched one by one before a key that blocks them all", n)
	}
	e.Step(&Release{Head: Head{Namespace: "default", Session: id(1)}, Lease: id(2)}, &out)
	if n := apart(); n != 2 {
		t.Errorf("%d places are watched one by one, want the two of one flow at one key", n)
	}
}
