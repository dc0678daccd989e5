package prose

import (
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A chain may go through waits that only their waiters know of.
func TestChainsOfDeclaredWaits(t *testing.T) {
	party := func(agent string) engine.FlowRef {
		return engine.FlowRef{Agent: agent, Session: "s-" + agent, Flow: "main"}
	}
	edges := []engine.WaitEdge{
		{Waiter: party("a"), Blocker: party("b"), Key: "k", Mode: interlock.Exclusive, Has: interlock.Claim{Key: "k"}},
		{Waiter: party("b"), Blocker: party("c")},
		{
			Waiter: party("c"), Blocker: party("d"), Key: "l", Mode: interlock.Shared, Has: interlock.Claim{Key: "l"},
			Ahead: true,
		},
		{Waiter: party("d"), Blocker: party("e")},
	}
	for agent, want := range map[string]string{
		"a": "a holds nothing. a waits for k, which b holds; b itself declares a wait for c; c itself waits for l, behind " +
			"d in line; d itself declares a wait for e.",
		"b": "b holds nothing. 1 other waits for it. b declares a wait for c; c itself waits for l, behind d in line; d " +
			"itself declares a wait for e.",
		"d": "d holds nothing. 1 other waits for it. d declares a wait for e.",
	} {
		x := ExplainAgent(agent, nil, edges)
		if x.Text != want {
			t.Errorf("%s: %s\nwant %s", agent, x.Text, want)
		}
		if last := x.Chain[len(x.Chain)-1]; last.Agent != "d" && last.Agent != "e" {
			t.Errorf("%s: the chain ends with %+v", agent, last)
		}
	}
	// The wait of a nested run is for any flow of the inner one's session.
	anyFlow := engine.FlowRef{Agent: "inner", Session: "s-inner"}
	nested := ExplainAgent("outer", nil, []engine.WaitEdge{
		{Waiter: party("outer"), Blocker: anyFlow},
		{Waiter: party("inner"), Blocker: party("d"), Key: "l", Mode: interlock.Exclusive, Has: interlock.Claim{Key: "l"}},
	})
	want := "outer holds nothing. outer declares a wait for inner; inner itself waits for l, which d holds."
	if nested.Text != want {
		t.Errorf("%s\nwant %s", nested.Text, want)
	}
	parked := []interlock.Holder{{
		Agent: "a", Key: "gpu:1", Mode: interlock.Permits, Count: 2, Liveness: interlock.LiveParked, Held: time.Minute,
	}}
	x := ExplainAgent("a", parked, nil)
	if x.Text != "a holds gpu:1 (2 permits) for 60 s. 1 of them is parked until a human decides. It is not waiting." ||
		x.Advice.Action != interlock.ActAskHuman {
		t.Errorf("%s %+v", x.Text, x.Advice)
	}
}
