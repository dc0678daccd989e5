package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// isRun reports whether r is a run, or waits to become one.
func (r *request) isRun() bool { return r.org != "" }

// isToStart reports whether r is a run, or waits to become one, and is not a resumption.
func (r *request) isToStart() bool { return r.isRun() && !r.goesBack }

// runAsk is the request that the start of a run is: a permit of each of its keys that
// counts them, and an intent to read the others that may be claimed.
func (m *model) runAsk(c *engine.StartRun) *engine.Acquire {
	a := &engine.Acquire{
		Head: c.Head, ID: c.ID, Agent: c.Agent, LeaseRequest: interlock.LeaseRequest{
			Flow: c.Flow, Purpose: c.Purpose, Priority: c.Priority,
			Terms:      interlock.Terms{TTL: c.TTL, MaxHold: c.MaxHold, MaxWait: c.MaxWait},
			OnConflict: interlock.Fail,
		},
		Attach: c.Attach,
	}
	if c.Attach && c.MaxWait != 0 {
		a.OnConflict = interlock.Wait
	}
	for _, key := range interlock.RunKeys(c.Org, c.Workflow) {
		p := m.pattern(c.Namespace, m.spell(c.Namespace, key))
		switch {
		case p != nil && (p.Capacity > 0 || p.Rate > 0):
			a.Claims = append(a.Claims, interlock.Claim{Key: key, Mode: interlock.Permits, Count: 1})
		case p != nil || !m.settings[c.Namespace].Closed:
			a.Claims = append(a.Claims, interlock.Claim{Key: key, Mode: interlock.IntentShared})
		}
	}
	return a
}

// newRun is the request that c makes.
func (m *model) newRun(c *engine.StartRun, num uint64) *request {
	r := m.newRequest(m.runAsk(c), num)
	r.org, r.workflow = c.Org, c.Workflow
	return r
}

func (m *model) expectRun(c *engine.StartRun) answer {
	for _, name := range []string{c.Org, c.Workflow} {
		if _, err := engine.ParseKey(name); (err != nil || strings.Contains(name, "/")) && (name != "" || c.Org == "") {
			return refusalKey(interlock.CodeInvalidKey)
		}
	}
	a := m.runAsk(c)
	if len(a.Claims) == 0 { // that comes first, since no session helps
		return refusalKey(interlock.CodeUnmatchedKey)
	}
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	if codes := m.wrongWith(a); len(codes) > 0 {
		return refusalKey(codes...)
	}
	r := m.newRun(c, m.highestNum()+1)
	if code := m.outOfOrder(r); code != "" {
		return refusalKey(code)
	}
	switch {
	case m.free(r):
		return answer{outcome: engine.Granted, fresh: true}
	case m.atBest().free(r):
		return answer{} // a task may block it, or stand aside
	case a.OnConflict == interlock.Wait && m.waitsForOwn(r, c.Flow):
		return refusalKey(interlock.CodeInvalidRequest)
	case a.OnConflict == interlock.Wait:
		return answer{outcome: engine.Queued, fresh: true}
	}
	codes := m.refusals(r)
	if i := slices.Index(codes, interlock.CodeAtCapacity); i >= 0 {
		codes[i] = interlock.CodeTooManyRuns
	}
	return refusalKey(codes...)
}

// known returns the remembered answer to the request id of a command. A start of a run that was
// refused is as if it had never been requested.
func (m *model) known(cmd engine.Command) *storedReply {
	a := m.answerTo(cmd.Header())
	if _, starts := cmd.(*engine.StartRun); a == nil || !starts || a.outcome != engine.Queued {
		return a
	}
	if r := m.byNum(a.num); r != nil && r.phase == over && r.fence == 0 {
		return nil
	}
	return a
}

// expectRunAgain: one call at a time waits for a run.
func (m *model) expectRunAgain(c *engine.StartRun, r *request) answer {
	if r != nil && r.phase == waiting && !c.Attach {
		return refusalKey(interlock.CodeTooManyRuns)
	}
	return m.showRequest(r)
}

// forsakes reports whether cmd ends the last attachment to a waiting run.
func (m *model) forsakes(cmd engine.Command, r *request) bool {
	if !r.isToStart() || r.phase != waiting || cmd.Header().Namespace != r.ns || cmd.Header().Link != r.link {
		return false
	}
	switch c := cmd.(type) {
	case *engine.Poll:
		return c.Ticket == interlock.TicketID(r.ask.ID) && !c.Attach && r.attached != nil
	case *engine.Detach:
		meant := c.Ticket == interlock.TicketID(r.ask.ID) ||
			c.Ticket.IsZero() && r.session != nil && c.Session == r.session.id
		return meant && r.attached != nil
	}
	return false
}

// permitFull: the wait for a run ends with its caller's patience, or with its caller.
func (m *model) permitFull(cmd engine.Command, r *request) error {
	limit, limited := r.waitEnd()
	switch {
	case !r.isToStart():
		return fmt.Errorf("%v is no run that is to start", r)
	case limited && limit.mayBeDue(m.now), m.forsakes(cmd, r):
	case m.listener(r) != nil || !m.atBest().free(r):
		return fmt.Errorf("%v waits, and is to leave", r)
	}
	return nil
}

// checkRuns compares the runs that are listed.
func (m *model) checkRuns(e *engine.Engine, ns interlock.Namespace) error {
	l := engine.RunList{Namespace: ns, Limit: 1000}
	for !l.Look(e) {
	}
	type runRow struct {
		fence                interlock.Fence
		org, workflow, agent string
	}
	var want, got []runRow
	for _, r := range m.requests {
		if r.ns == ns && r.isRun() && (r.holds() || r.phase == parked) {
			want = append(want, runRow{r.fence, r.org, r.workflow, m.agentOf(r)})
		}
	}
	slices.SortFunc(want, func(a, b runRow) int { return cmp.Compare(a.fence, b.fence) })
	for _, row := range l.Rows {
		got = append(got, runRow{row.Holder.Fence, row.Org, row.Workflow, row.Holder.Agent})
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("the runs %v are listed, want %v", got, want)
	}
	return nil
}
