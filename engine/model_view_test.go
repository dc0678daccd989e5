package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// checkViews compares the public views with the model.
func (m *model) checkViews(e *engine.Engine, namespaces []interlock.Namespace, keys []interlock.Key) error {
	var live, lingering int // an ended session stays for as long as a lease of it is in grace
	for _, s := range m.sessions {
		switch {
		case !s.ended:
			live++
		case slices.ContainsFunc(m.inPhase(inGrace, closed), func(r *request) bool { return r.session == s }):
			lingering++
		}
	}
	c := e.Counts()
	agents := slices.DeleteFunc(m.inPhase(waiting), func(r *request) bool { return r.task != nil || r.awaits != nil })
	active, offers, line := len(m.holding()), len(m.inPhase(offered)), len(agents)
	away := len(m.inPhase(parked)) // those that hold nothing may count or not
	if c.Sessions < live || c.Sessions > live+lingering || c.Waiters != line || c.Leases < active-offers ||
		c.Leases > active+away {
		return fmt.Errorf(
			"the engine counts %+v, the model %d sessions, %d leases with %d offers, %d waiters", c, live, active, offers, line,
		)
	}
	if err := m.checkState(c, namespaces); err != nil {
		return err
	}
	if what, end := m.nextDue(); what != nil {
		if timer, ok := e.NextTimer(); !ok || timer > max(end, m.now) {
			return fmt.Errorf("%v is due at %d, but the next timer is at %d (%v)", what, end, timer, ok)
		}
	}
	for _, ns := range namespaces {
		for _, key := range keys {
			if err := m.checkKey(e, ns, key); err != nil {
				return fmt.Errorf("Key(%s, %s): %w", ns, key, err)
			}
		}
		if err := m.checkDeeds(e, ns); err != nil {
			return fmt.Errorf("EffectList(%s): %w", ns, err)
		}
		if err := m.checkTaskViews(e, ns); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
		if err := m.checkLogs(e, ns, keys); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
		if err := m.checkRuns(e, ns); err != nil {
			return fmt.Errorf("RunList(%s): %w", ns, err)
		}
		if err := m.checkRevisions(e, ns); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
		if err := m.checkDocuments(e, ns, keys); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
		if err := m.checkWebhooks(e, ns); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
		if err := m.checkWaits(e.Waits(ns), ns); err != nil {
			return fmt.Errorf("Waits(%s): %w", ns, err)
		}
	}
	return nil
}

func (m *model) checkKey(e *engine.Engine, ns interlock.Namespace, key interlock.Key) error {
	view, err := e.Key(ns, key)
	if err != nil {
		return err
	}
	var fences, got []interlock.Fence
	for _, r := range m.holding() {
		// An intent above does not count for this key.
		touches := func(c interlock.Claim) bool {
			return c.Key == key || above(key, c.Key) || above(c.Key, key) && plain(c.Mode) >= interlock.Shared
		}
		if r.ns == ns && slices.ContainsFunc(r.claims, touches) {
			fences = append(fences, r.fence)
		}
	}
	for _, h := range view.Holders {
		got = append(got, h.Fence)
		if err := m.checkHolder(ns, &h); err != nil {
			return err
		}
	}
	slices.Sort(fences)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(fences, got) && view.More == 0 {
		return fmt.Errorf("holders with the fences %v, want %v", got, fences)
	}
	var line []*request
	for _, r := range m.inPhase(waiting) {
		// A waiter for a key below stands in line here with an intent.
		touches := func(c interlock.Claim) bool { return c.Key == key || above(key, c.Key) }
		_, party := r.barrier() // one that arrives again stands there, too
		if r.ns == ns && (slices.ContainsFunc(r.wants(), touches) || party && slices.ContainsFunc(r.claims, touches)) {
			line = append(line, r)
		}
	}
	slices.SortFunc(line, func(a, b *request) int {
		if m.aheadOf(a, b) {
			return -1
		}
		return 1
	})
	shown := slices.DeleteFunc(slices.Clone(view.Waiters), func(w engine.WaiterView) bool { return w.Offered })
	// A waiter for any one of several may stand here more than once.
	var any *request
	i := 0
	for _, w := range shown {
		is := func(r *request) bool {
			if t := r.task; t != nil {
				return w.Task == t.id && w.Queue == t.spec.Queue && w.Flow == t.flow && w.Priority == m.priority(r) &&
					w.Waited == m.now.Sub(t.arrived) &&
					(w.Dormant || !t.rests || !m.free(r)) && (!w.Dormant || t.rested)
			}
			return w.Flow == r.flow() && w.Agent == m.agentOf(r) && w.Priority == m.priority(r) &&
				w.Waited == m.now.Sub(r.waitsSince())
		}
		if any != nil && is(any) && (i >= len(line) || !is(line[i])) {
			continue
		}
		if i >= len(line) || !is(line[i]) {
			return fmt.Errorf("waiter %+v is not in its place in the line %v", w, line)
		}
		if line[i].ask.Any {
			any = line[i]
		}
		i++
	}
	if i < len(line) {
		return fmt.Errorf("%v is missing in the line", line[i])
	}
	return nil
}

func (m *model) checkHolder(ns interlock.Namespace, h *interlock.Holder) error {
	for _, r := range m.holding() {
		if r.fence != h.Fence {
			continue
		}
		// The mode shown may be stronger than the claim's: intents for claims below come on top.
		shown := func(c interlock.Claim) bool { return c.Key == h.Key && coversMode(h.Mode, c.Mode) }
		if r.ns != ns || h.Agent != m.agentOf(r) || h.Flow != r.flow() || !slices.ContainsFunc(r.claims, shown) {
			return fmt.Errorf("the holder %+v is not %v", h, r)
		}
		if h.Held != m.now.Sub(r.granted) || (r.phase == offered) != (h.Liveness == interlock.Offered) ||
			(r.phase == inGrace) != (h.Liveness == interlock.LiveGrace) ||
			(r.phase == parked) != (h.Liveness == interlock.LiveParked) ||
			(r.phase == closed) != (h.Liveness == interlock.Closed) {
			return fmt.Errorf("the holder %+v is not %v", h, r)
		}
		return nil
	}
	return fmt.Errorf("nobody holds it with the fence %d", h.Fence)
}

// checkWaits compares the edges of the wait-for graph, by waiter and blocker.
func (m *model) checkWaits(edges []engine.WaitEdge, ns interlock.Namespace) error {
	type pair struct {
		waiter, blocker string
		ahead           bool
	}
	name := func(agent, flow string) string { return agent + "/" + flow }
	want, got := map[pair]bool{}, map[pair]bool{}
	best := m.atBest()
	permitted := map[pair]bool{} // to waiters ahead of a group that is at its maximum
	for _, r := range m.inPhase(waiting) {
		for _, c := range r.claims {
			for _, q := range m.inPhase(waiting) {
				if c.Mode == interlock.Permits && q.needs(c.Key) > 0 && m.aheadOf(q, r) {
					permitted[pair{name(m.agentOf(r), r.flow()), name(m.agentOf(q), q.flow()), true}] = true
				}
			}
		}
		if r.target != nil && r.ns == ns {
			want[pair{name(m.agentOf(r), r.flow()), name(r.target.session.agent, r.target.flow), false}] = true
			continue
		}
		if r.task != nil && !m.isFollowed(r) {
			continue // the edges of a task are in its own view
		}
		if r.awaits != nil && r.ns == ns && m.standing(r.awaits) == nil {
			want[pair{name(m.agentOf(r), r.flow()), name("", ""), false}] = true
		}
		for _, b := range m.blockers(r) {
			permitted[pair{
				name(m.agentOf(r), r.flow()), name(m.agentOf(b), b.flow()), b.phase == waiting && r.awaits == nil,
			}] = true
		}
		for _, b := range best.blockers(r) {
			if r.ns == ns {
				want[pair{name(m.agentOf(r), r.flow()), name(m.agentOf(b), b.flow()), b.phase == waiting && r.awaits == nil}] = true
			}
		}
	}
	for _, e := range edges {
		got[pair{name(e.Waiter.Agent, e.Waiter.Flow), name(e.Blocker.Agent, e.Blocker.Flow), e.Ahead}] = true
	}
	for p := range want {
		if !got[p] {
			return fmt.Errorf("the edge %+v is missing", p)
		}
	}
	for p := range got {
		if !want[p] && !permitted[p] {
			return fmt.Errorf("there is no edge %+v", p)
		}
	}
	return nil
}
