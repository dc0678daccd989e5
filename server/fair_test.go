package server

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
)

func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFair(2)
		f.enter("a")
		f.enter("a")
		var came []interlock.Namespace // one at a time, which leave sees to
		for _, ns := range []interlock.Namespace{"a", "a", "a", "b", "b", "c"} {
			go func() {
				f.enter(ns)
				came = append(came, ns)
			}()
			synctest.Wait()
		}
		if len(came) != 0 {
			t.Fatalf("%v went although all places were taken", came)
		}
		for range 6 {
			f.leave()
			synctest.Wait()
		}
		if want := []interlock.Namespace{"a", "b", "c", "a", "b", "a"}; !slices.Equal(came, want) {
			t.Errorf("they came as %v, want %v", came, want)
		}
		f.leave()
		f.leave()
		if f.free != 2 || len(f.lines)+len(f.next) != 0 {
			t.Errorf("left behind: %d free, lines %v, next %v", f.free, f.lines, f.next)
		}
	})
}

// The answer about what is stale waits for its turn, and no other does.
func TestPacketsAreMadeInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.server.comparing = newFair(1)
		d.commitDoc("k", `{"a":1}`)
		d.server.comparing.enter("another")
		refused := d.start(d.request("PUT", "/v1/state/k", "2", "If-None-Match", "*"))
		pass(1)
		d.get("/v1/state/k").want(200)
		if len(refused) != 0 || len(d.server.comparing.next) != 1 {
			t.Error("it did not wait")
		}
		d.server.comparing.leave()
		(<-refused).want(412, "stale").is("packet.stale.0.now.version", "1")
		if d.server.comparing.free != 1 {
			t.Error("it kept the place")
		}
	})
}
