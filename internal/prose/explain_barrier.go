package prose

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// barrierView is a barrier's key as its parties see it.
type barrierView struct {
	size       uint32
	generation uint64
	broken     bool     // the set has lost a party: those missing are what is left of it
	there      []string // the parties that have arrived, for the first time or again
	missing    []string // of a set that has opened before: the parties that have not arrived again
	newcomers  int      // new parties that wait until such a set has ended
}

// gather returns nil for a key that is not used as a barrier.
func gather(view *engine.KeyView) *barrierView {
	g := &barrierView{generation: view.Generation, broken: view.Broken}
	came := map[engine.FlowRef]bool{}
	for i := range view.Waiters {
		// A waiter with an offer is a holder already, and has not arrived again.
		if w := &view.Waiters[i]; w.Mode == interlock.Barrier && !w.Offered {
			g.size = max(g.size, w.Count)
			came[engine.FlowRef{Agent: w.Agent, Session: w.Session, Flow: w.Flow}] = true
		}
	}
	for i := range view.Holders {
		h := &view.Holders[i]
		if h.Mode != interlock.Barrier || h.Key != view.Key {
			continue
		}
		g.size = max(g.size, h.Count)
		party := engine.FlowRef{Agent: h.Agent, Session: h.Session, Flow: h.Flow}
		if came[party] {
			delete(came, party)
			g.there = append(g.there, AgentName(h.Agent))
		} else {
			g.missing = append(g.missing, AgentName(h.Agent))
		}
	}
	if len(g.there)+len(g.missing) > 0 {
		g.newcomers = len(came)
		return g
	}
	for i := range view.Waiters {
		if w := &view.Waiters[i]; w.Mode == interlock.Barrier {
			g.there = append(g.there, AgentName(w.Agent))
		}
	}
	if len(g.there) == 0 {
		return nil
	}
	return g
}

// text reads: gate is a barrier of 3 parties; 2 have arrived (a, b), 1 is missing.
func (g *barrierView) text(key string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a barrier of %d parties", key, g.size)
	if g.generation > 0 {
		fmt.Fprintf(&b, " that has opened %s", Count(int(g.generation), "time", "times"))
	}
	switch {
	case g.broken:
		fmt.Fprintf(&b, " and is broken: it has lost a party and cannot open again; remaining parties: %s", names(g.missing))
	case len(g.there) == 0:
		fmt.Fprintf(&b, "; none of its parties has arrived again: %s", names(g.missing))
	case g.generation == 0:
		fmt.Fprintf(
			&b, "; %s (%s), %s missing", Count(len(g.there), "has arrived", "have arrived"), names(g.there),
			Count(int(g.size)-len(g.there), "is", "are"),
		)
	default:
		fmt.Fprintf(
			&b, "; %s again (%s), still missing: %s", Count(len(g.there), "has arrived", "have arrived"), names(g.there), names(g.missing),
		)
	}
	if g.newcomers > 0 {
		fmt.Fprintf(&b, "; %s until this set has ended", Count(g.newcomers, "new party waits", "new parties wait"))
	}
	return b.String()
}

func (g *barrierView) advice() interlock.Advice {
	switch {
	case g.broken:
		return interlock.Advice{Action: interlock.ActWait, Message: fmt.Sprintf(
			"it cannot open again: %s must release; then all parties can acquire it again", names(g.missing),
		)}
	case len(g.missing) > 0:
		return interlock.Advice{Action: interlock.ActWait, Message: fmt.Sprintf(
			"the barrier waits for %s: find out why it has not arrived; if it dies or releases, the barrier breaks and all "+
				"waiters are notified",
			g.missing[0],
		)}
	}
	return interlock.Advice{
		Action:  interlock.ActWait,
		Message: "start the missing parties, or let the waiting ones leave the line",
	}
}

// names lists the first few of many.
func names(list []string) string {
	const most = 8
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
