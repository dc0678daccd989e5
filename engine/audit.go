package engine

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// Refused requests in the audit trail. A refusal changes nothing, so it is journaled only if
// the pattern of a key asks for it (Pattern.AuditRefusals): record.Refused then records the caller,
// the operation, the key and the code.
//
// record.Refused changes no state: evolve ignores it, a replay without it yields the same state, and
// only the decision of this file depends on it. To keep callers from filling the journal with
// refusals, a pattern records at most auditMost of them in auditSpan, and the same refusal
// once. Further refusals are counted, and the pattern's next event carries their number. This
// count, and the list of recent records, belong to the owner alone: a new owner begins with
// neither.

const (
	// auditSpan is how long a recorded refusal counts.
	auditSpan = time.Minute
	// auditMost is how many a pattern may have in that time.
	auditMost = 20
)

// refusalKey is a recorded refusal, as far as it tells one from another.
type refusalKey struct {
	session      uint64
	agent, actor string
	operation    string
	key          interlock.Key
	code         interlock.Code
	at           Time
}

// sameAs reports whether both are of one caller, operation, key and code.
func (r refusalKey) sameAs(o refusalKey) bool {
	r.at = o.at
	return r == o
}

// refusals are those of a pattern.
type refusals struct {
	recent  []refusalKey // the last auditMost that were recorded, oldest first
	leftOut uint64       // since the last one that was recorded
}

// admit reports whether a refusal is recorded, and notes it.
func (l *refusals) admit(r refusalKey) bool {
	lately := func(x refusalKey) bool { return r.at < x.at.Add(auditSpan) }
	full := len(l.recent) == auditMost
	if full && lately(l.recent[0]) || slices.ContainsFunc(l.recent, func(x refusalKey) bool { return lately(x) && r.sameAs(x) }) {
		l.leftOut++
		return false
	}
	if full {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	l.recent = append(l.recent, r)
	return true
}

// audit records that the command was refused, if it was, and a pattern of its keys wants to
// know. A request that stood in line, if only in this step, has events of its own: highest is
// the highest number of a request before the command was carried out.
func (e *Engine) audit(cmd Command, highest uint64) {
	if e.replied < 0 || e.pendingWork.ns == nil || e.pendingWork.ns.audited == 0 {
		return
	}
	eff := &e.out.Effects[e.replied]
	if eff.Outcome != Refused || e.num > highest {
		return
	}
	c, ok := cmd.(claimant)
	if !ok {
		return
	}
	ask := c.summary()
	if eff.Conflict != nil && eff.Conflict.Key != "" {
		ask.first(eff.Conflict.Key)
	}
	p, claim := e.pendingWork.ns.auditor(ask.claims)
	if p == nil {
		return
	}
	if code, _ := checkTexts(text{"agent", ask.agent, interlock.MaxNameBytes}, text{"flow", ask.flow, interlock.MaxNameBytes}); code != "" {
		ask.agent, ask.flow = "", ""
	}
	r := refusalKey{agent: ask.agent, actor: e.head.Actor, operation: ask.operation, key: claim.Key, code: eff.Code, at: e.now}
	if s := e.scope(); s != nil {
		r.session, r.agent = s.num, s.agent
	}
	if p.refusals == nil {
		p.refusals = &refusals{}
	}
	switch {
	case e.lowSpace:
		p.refusals.leftOut++ // what room there is left is for releases
	case p.refusals.admit(r):
		*e.draft() = record.Event{
			Kind: record.Refused, Namespace: e.head.Namespace, Session: r.session, Agent: r.agent, Flow: ask.flow, Actor: r.actor,
			Claims: []interlock.Claim{claim}, PatternName: p.Name, Outcome: r.operation, Code: r.code, Num: p.refusals.leftOut,
		}
		p.refusals.leftOut = 0
		e.emit(e.ev)
	}
}

// auditor returns the first claim on a key with a pattern that records refusals, in its
// canonical spelling, and that pattern; nil if there is none.
func (s *namespace) auditor(claims []interlock.Claim) (*policy, interlock.Claim) {
	for _, c := range claims {
		if keypath.Problem(string(c.Key)) != nil {
			continue
		}
		p, key := s.fit(c.Key)
		if p == nil || !p.AuditRefusals {
			continue
		}
		if c.Mode > interlock.Member || c.Mode.Counts() != (c.Count > 0) || c.Mode == 0 {
			c = interlock.Claim{Mode: lockmode.X} // it has no meaning, or none was given
		}
		c.Key = key
		return p, c
	}
	return nil, interlock.Claim{}
}

// requestSummary is the part of a command that a recorded refusal contains.
type requestSummary struct {
	operation   string // as the session stream calls it
	agent, flow string
	claims      []interlock.Claim // without a mode those that are written
}

func (c *Acquire) summary() requestSummary {
	return requestSummary{"acquire", c.Agent, c.Flow, c.Claims}
}

func (c *Convert) summary() requestSummary {
	return requestSummary{operation: "convert", claims: c.Claims}
}

func (c *StartRun) summary() requestSummary {
	a := requestSummary{operation: "start_run", agent: c.Agent, flow: c.Flow}
	for _, key := range interlock.RunKeys(c.Org, c.Workflow) {
		a.claims = append(a.claims, interlock.Claim{Key: key, Mode: interlock.Permits, Count: 1})
	}
	return a
}

func (c *Commit) summary() requestSummary {
	a := requestSummary{operation: "commit", agent: c.Agent, flow: c.Flow}
	a.commits(c.Writes, c.Reads)
	return a
}

func (c *Ack) summary() requestSummary {
	a := requestSummary{operation: "ack_task"}
	a.commits(c.Writes, c.Reads)
	return a
}

func (c *Submit) summary() requestSummary {
	a := requestSummary{"submit_task", c.Agent, c.Flow, c.Task.Claims}
	if c.Task.Message {
		a.claims = []interlock.Claim{{Key: c.Task.Key}}
	}
	return a
}

func (c *CheckFence) summary() requestSummary {
	return requestSummary{operation: "check_fence", claims: []interlock.Claim{{Key: c.Key}}}
}

func (c *Revoke) summary() requestSummary {
	return requestSummary{operation: "revoke", claims: []interlock.Claim{{Key: c.Key}}}
}

// commits adds the keys of a commit, the written ones first.
func (a *requestSummary) commits(writes []interlock.Write, reads []interlock.Read) {
	for i := range writes {
		a.claims = append(a.claims, interlock.Claim{Key: writes[i].Key})
	}
	for i := range reads {
		a.claims = append(a.claims, interlock.Claim{Key: reads[i].Key, Mode: interlock.Shared})
	}
}

// first puts the claim of a key before the others, if there is one.
func (a *requestSummary) first(key interlock.Key) {
	if i := slices.IndexFunc(a.claims, func(c interlock.Claim) bool { return c.Key == key }); i > 0 {
		claims := slices.Clone(a.claims)
		claims[0], claims[i] = claims[i], claims[0]
		a.claims = claims
	}
}
