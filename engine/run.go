package engine

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Runs of workflows: leases on permits, with three things of their own.
//
// A run is admitted or leaves no trace: its wait ends with its caller's patience, or with its
// caller, so it is never offered to a caller that does not listen. A refusal is not remembered
// under the request id, since a repeat means the run that has not started yet. And each start
// is a run of its own, also for a flow that has one already.

// decide asks for the permits of a run.
func (c *StartRun) decide(e *Engine) {
	claims, no := c.claims(e)
	if no != nil {
		e.refuseFor(no)
		return
	}
	a := &Acquire{
		Head: c.Head, ID: c.ID, Agent: c.Agent, LeaseRequest: interlock.LeaseRequest{
			Flow: c.Flow, Purpose: c.Purpose, Priority: c.Priority,
			Terms: interlock.Terms{TTL: c.TTL, MaxHold: c.MaxHold, MaxWait: c.MaxWait}, Claims: claims,
		},
		Attach: c.Attach,
	}
	if c.Attach && c.MaxWait != 0 {
		a.OnConflict = interlock.Wait
	}
	a.decideAs(e, record.Run{Org: c.Org, Workflow: c.Workflow})
}

// claims returns the claims of a run: a permit of each of its keys that counts them, and an intent to
// read of the others. In a namespace that admits only keys that fit a
// pattern, it claims those of its keys that do.
func (c *StartRun) claims(e *Engine) ([]interlock.Claim, *store.Refusal) {
	if no := checkSegment("organisation", c.Org); no != nil {
		return nil, no
	}
	if no := checkSegment("workflow", c.Workflow); no != nil && c.Workflow != "" {
		return nil, no
	}
	s := e.PendingWork.NS
	var claims []interlock.Claim
	for _, key := range interlock.RunKeys(c.Org, c.Workflow) {
		claim := interlock.Claim{Key: key, Mode: lockmode.IS}
		switch p, _ := s.Fit(key); {
		case p == nil && s.Closed():
			continue
		case p != nil && (p.Capacity > 0 || p.Rate > 0):
			claim.Mode, claim.Count = interlock.Permits, 1
		}
		claims = append(claims, claim)
	}
	if len(claims) == 0 {
		return nil, s.UnknownKey(interlock.RunKeys(c.Org, c.Workflow)[0])
	}
	return claims, nil
}

// checkSegment returns why a name cannot be part of a run's keys, or nil.
func checkSegment(what, name string) *store.Refusal {
	problem := keypath.Problem(name)
	if problem == nil && strings.Contains(name, "/") {
		problem = message.New(message.HasSlash)
	}
	if problem == nil {
		return nil
	}
	return &store.Refusal{
		Code: interlock.CodeInvalidKey, Key: interlock.Key(keypath.Clip(name, 64)),
		Message: message.New(
			message.InvalidSegment, message.Str(what), message.Str(keypath.Clip(name, 64)), message.Sub(problem),
		),
	}
}

// counts implements repeatable: a start that was refused is as if it had never been requested.
func (c *StartRun) counts(e *Engine, a *store.StoredAnswer) bool {
	if a.Outcome != Queued {
		return true // no refusal of a start is remembered
	}
	r := e.PendingWork.NS.Request(a.ID)
	return r == nil || r.Phase != store.Over || r.Fence > 0
}

// again answers a repeated start. Only one call at a time waits for a run.
func (c *StartRun) again(e *Engine, a *store.StoredAnswer) {
	r := e.PendingWork.NS.Request(a.ID)
	if r != nil && r.Phase == store.Waiting && !c.Attach {
		e.refuse(interlock.CodeTooManyRuns, message.New(message.CallWaitsForRun)).Conflict = r.Conflict()
		return
	}
	e.followAgain(a, c.Attach)
}

// cancelUnattended ends a wait for a run that has no listener any more.
func (e *Engine) cancelUnattended(r *store.Request) {
	r.Wait.Caller = nil
	e.leaveLine(r, record.ByFull)
}

// fullAt describes what keeps a run from starting that has left the line.
func (e *Engine) fullAt(r *store.Request) *store.Conflict {
	x := e.NewRequest()
	x.Conditions = r.Conditions
	x.SetClaims(r.Claims())
	e.Try(x)
	defer e.Discard(x)
	return x.Conflict()
}

// RunList lists the runs that have not ended, in the order of their fences.
type RunList struct {
	Namespace interlock.Namespace
	Org       string          // "": of all
	After     interlock.Fence // begin after this one
	Limit     int             // 0: 100

	Rows []RunView
	More bool // there are more than Limit

	found first[*store.Request]
	next  int
}

// RunView is a run as callers of its namespace see it.
type RunView struct {
	Org      string
	Workflow string
	Holder   interlock.Holder
}

func (l *RunList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	_, key := s.Fit(interlock.RunKeys(l.Org, "")[0]) // one organisation may have several spellings
	wanted := func(r *store.Request) bool {
		return r.IsRun() && r.Phase != store.Waiting && r.Fence > l.After &&
			(l.Org == "" || r.Run.Org == l.Org || r.Claims()[0].Key == key)
	}
	if !sift(&l.found, s.Requests.Part, &l.next, wanted, byFence) {
		return false
	}
	for _, r := range l.found.list {
		if len(l.Rows) == limit {
			l.More = true
			break
		}
		x := r.Run
		l.Rows = append(l.Rows, RunView{x.Org, x.Workflow, r.Holder(r.Claims()[0])})
	}
	return true
}
