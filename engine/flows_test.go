package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// TestWaitForSessionOfManyFlows closes a cycle through a wait that was declared for a whole
// session, behind the waits of all its other flows. No step looks at all of them.
func TestWaitForSessionOfManyFlows(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	l := newLoad(t)
	s, busy := l.open(interlock.MaxTTL), interlock.SessionID(l.id())
	l.step(&engine.OpenSession{Head: l.head(interlock.SessionID{}), ID: busy, Agent: "busy", TTL: interlock.MaxTTL})
	var nobody interlock.SessionID
	l.acquire(nobody, "", time.Hour, "other")
	l.acquire(s, "", time.Hour, "mine")
	for i := range n {
		if _, eff := l.acquire(busy, fmt.Sprintf("flow-%05d", i), time.Hour, "other"); eff.Outcome != engine.Queued {
			t.Fatal(prose.Sentence(eff.Message))
		}
	}
	if _, eff := l.acquire(busy, "last", time.Hour, "mine"); eff.Outcome != engine.Queued {
		t.Fatal(prose.Sentence(eff.Message))
	}
	wait := &engine.Declare{Head: l.head(s), ID: l.id(), On: engine.FlowRef{Agent: "busy"}, Attach: true}
	eff, most := l.step(wait), l.e.Looked()
	for steps := 0; eff == nil || eff.Outcome == engine.Queued; steps++ {
		if steps > n {
			t.Fatal("the cycle is not found")
		}
		eff = l.step(&engine.Tick{Head: engine.Head{At: l.now}})
		most = max(most, l.e.Looked())
	}
	if eff.Code != interlock.CodeDeadlock {
		t.Errorf("%v %s: %s", eff.Outcome, eff.Code, prose.Sentence(eff.Message))
	}
	if most > engine.StepLooks+fewObjects {
		t.Errorf("a step looked at %d objects", most)
	}
}

// TestNewFlowForEachCall has an agent name a new flow each time. The session keeps a bounded
// number of flows that have nothing, and no call looks at them.
func TestNewFlowForEachCall(t *testing.T) {
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	kept, _ := l.acquire(s, "kept", time.Hour, "kept")
	for i := range 5 * engine.StepObjects {
		id, _ := l.acquire(s, fmt.Sprint("flow ", i), time.Hour, "k")
		if n := l.e.Objects(); n > fewObjects {
			t.Fatalf("a call looked at %d objects", n)
		}
		l.step(&engine.Release{Head: l.head(s), Lease: id})
		if n := l.e.Flows(s); n > engine.IdleFlows+3 {
			t.Fatalf("%d flows", n)
		}
	}
	if eff := l.step(&engine.Release{Head: l.head(s), Lease: kept}); eff.Outcome != engine.Done {
		t.Errorf("%v %s", eff.Outcome, prose.Sentence(eff.Message))
	}
}
