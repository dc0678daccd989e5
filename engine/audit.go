package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// audit records that the command was refused, if it was, and a pattern of its keys wants to
// know. A request that stood in line, if only in this step, has events of its own: highest is
// the highest number of a request before the command was carried out.
func (e *Engine) audit(cmd Command, highest uint64) {
	if e.replied < 0 || e.PendingWork.NS == nil || e.PendingWork.NS.Audited == 0 {
		return
	}
	eff := &e.out.Effects[e.replied]
	if eff.Outcome != Refused || e.Num > highest {
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
	p, claim := e.PendingWork.NS.Auditor(ask.claims)
	if p == nil {
		return
	}
	if code, _ := store.CheckTexts(
		store.Text{Name: "agent", Value: ask.agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: ask.flow, Limit: interlock.MaxNameBytes},
	); code != "" {
		ask.agent, ask.flow = "", ""
	}
	r := store.RefusalKey{
		Agent: ask.agent, Actor: e.head.Actor, Operation: ask.operation, Key: claim.Key, Code: eff.Code, At: e.Clock,
	}
	if s := e.scope(); s != nil {
		r.Session, r.Agent = s.Num, s.Agent
	}
	if p.Refusals == nil {
		p.Refusals = &store.Refusals{}
	}
	switch {
	case e.lowSpace:
		p.Refusals.LeftOut++ // what room there is left is for releases
	case p.Refusals.Admit(r):
		*e.draft() = record.Event{
			Kind: record.Refused, Namespace: e.head.Namespace, Session: r.Session, Agent: r.Agent, Flow: ask.flow,
			Actor: r.Actor, Fence: ask.fence,
			Claims: []interlock.Claim{claim}, PatternName: p.Name, Outcome: r.Operation, Code: r.Code, Num: p.Refusals.LeftOut,
		}
		p.Refusals.LeftOut = 0
		e.emit(e.ev)
	}
}

// requestSummary is the part of a command that a recorded refusal contains.
type requestSummary struct {
	operation   string // as the session stream calls it
	agent, flow string
	claims      []interlock.Claim // without a mode those that are written
	fence       interlock.Fence   // that it proves itself with, or 0
}

func (c *Acquire) summary() requestSummary {
	return requestSummary{operation: "acquire", agent: c.Agent, flow: c.Flow, claims: c.Claims}
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
	a := requestSummary{operation: "submit_task", agent: c.Agent, flow: c.Flow, claims: c.Task.Claims}
	if c.Task.Message {
		a.claims = []interlock.Claim{{Key: c.Task.Key}}
	}
	return a
}

func (c *CheckFence) summary() requestSummary {
	return requestSummary{operation: "check_fence", claims: []interlock.Claim{{Key: c.Key}}, fence: c.Fence}
}

func (c *Revoke) summary() requestSummary {
	return requestSummary{operation: "revoke", claims: []interlock.Claim{{Key: c.Key}}, fence: c.Fence}
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
