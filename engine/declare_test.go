package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// TestManyWaitForOne: when a session ends that very many waits are declared for, a step ends as
// many of them as it may, and a restart in the middle loses none.
func TestManyWaitForOne(t *testing.T) {
	const count = 8000
	g := newRig()
	g.blind = true
	step := func(cmd engine.Command) {
		t.Helper()
		if err := g.step(cmd); err != nil {
			t.Fatal(err)
		}
	}
	step(&engine.Recover{Epoch: g.epoch})
	id := interlock.SessionID(g.id())
	head := engine.Head{Namespace: "one"}
	step(&engine.OpenSession{Head: head, ID: id, Agent: "busy", TTL: time.Hour})
	for i := range count {
		step(&engine.Declare{
			Head: head, ID: g.id(), Agent: fmt.Sprintf("waiter-%d", i), On: engine.FlowRef{Agent: "busy"}, Attach: true,
		})
	}
	left := func() (n int) {
		for i := range g.last.Events {
			if ev := &g.last.Events[i]; ev.Kind == record.Left && ev.Reason == record.ByTarget {
				n++
			}
		}
		return n
	}
	closing := head
	closing.Session = id
	step(&engine.CloseSession{Head: closing})
	total := left()
	if total == 0 || total >= count {
		t.Fatalf("the step that closed the session ended %d of %d waits", total, count)
	}
	if err := g.snap(); err != nil {
		t.Fatal(err)
	}
	if err := g.restart(0); err != nil {
		t.Fatal(err)
	}
	total += left()
	for range 100 {
		if _, due := g.e.NextTimer(); !due {
			break
		}
		step(&engine.Tick{})
		total += left()
	}
	if total != count {
		t.Errorf("%d of %d waits ended", total, count)
	}
	if c := g.e.Counts(); c.Waiters != 0 || c.Sessions != 0 {
		t.Errorf("what is left: %+v", c)
	}
}
