package server

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
)

// reply turns an effect into the reply of the stream's client. Text that came from agents is
// cleaned on the way.
func (d *outgoingEffect) reply(r *proto.Reply, st *stream) {
	eff := &d.eff
	r.Outcome, r.Slot, r.Seq, r.Index = interlock.Outcome(eff.Outcome), d.slot, d.seq, d.at.Index
	r.Code, r.Message = eff.Code, cleanText(prose.Detail(eff))
	switch eff.Outcome {
	case engine.Granted, engine.Warned, engine.Lost, engine.Asked:
		r.Lease = eff.Lease
		if r.AsAsked = d.asAsked; d.asAsked {
			r.Lease.Claims, r.Lease.Agent, r.Lease.Session, r.Lease.Flow, r.Lease.Purpose = nil, "", "", "", ""
		}
		cleanLease(&r.Lease)
	case engine.Refused:
		r.EndedBy = eff.Lease.EndedBy
	case engine.Queued:
		ticket := eff.Ticket
		r.Ticket = &ticket
	case engine.Done:
		r.Lease = eff.Lease
		cleanLease(&r.Lease)
		if s := &eff.Session; !s.ID.IsZero() {
			r.Session = &proto.Session{ID: s.ID, Name: s.Name, Agent: cleanText(s.Agent), TTL: s.TTL, ExpiresIn: s.ExpiresIn}
		}
		r.WantsList = eff.WantsList
		for i := range eff.Losses {
			loss := proto.Loss{
				Lease: eff.Losses[i].Lease, Code: eff.Losses[i].Code, Message: cleanText(prose.Sentence(eff.Losses[i].Message)),
			}
			cleanLease(&loss.Lease)
			r.Losses = append(r.Losses, loss)
		}
	}
	if c := eff.Conflict; c != nil {
		r.Conflict = conflictOf(c)
	}
	r.Warnings = cleanTexts(warningsOf(eff))
	d.addState(r, st)
	d.addTasks(r)
	if d.read != nil {
		r.Patterns, r.More, r.Settings = d.read.patterns, d.read.more, d.read.settings
	}
	if eff.Outcome == engine.Done && len(eff.Tasks) > 0 && eff.Contention == nil {
		return // the task's worker needs no words about it
	}
	if d.brief && (eff.Outcome == engine.Granted || eff.Outcome == engine.Queued) {
		return
	}
	if advice := prose.For(eff); advice != (interlock.Advice{}) {
		r.Advice = &interlock.Advice{Action: advice.Action, RetryAfter: advice.RetryAfter, Message: advice.Message}
	}
}

func cleanLease(l *interlock.Lease) {
	l.Agent, l.Flow, l.Purpose, l.Group = cleanText(l.Agent), cleanText(l.Flow), cleanText(l.Purpose), cleanText(l.Group)
	l.Yield = cleanYield(l.Yield)
	l.Parking, l.Decision = cleanParking(l.Parking), cleanDecision(l.Decision)
	l.Stale, l.StaleMore = nil, false                    // the packet contains it
	l.Documents, l.DocumentsMore, l.AsOf = nil, false, 0 // the reply has them
	if len(l.Notes) == 0 {
		return
	}
	notes := make([]interlock.Note, len(l.Notes))
	for i, n := range l.Notes {
		n.Agent, n.Outcome, n.Text = cleanText(n.Agent), cleanText(n.Outcome), cleanNote(n.Text)
		notes[i] = n
	}
	l.Notes = notes
}

func cleanYield(y *interlock.Yield) *interlock.Yield {
	if y == nil {
		return nil
	}
	clean := *y
	clean.Agent, clean.Flow, clean.Purpose = cleanText(y.Agent), cleanText(y.Flow), cleanText(y.Purpose)
	return &clean
}

func cleanParking(p *interlock.ParkStatus) *interlock.ParkStatus {
	if p == nil {
		return nil
	}
	clean := *p
	clean.Reason = cleanText(p.Reason)
	return &clean
}

func cleanDecision(d *interlock.Decision) *interlock.Decision {
	if d == nil {
		return nil
	}
	clean := *d
	clean.By, clean.Principal, clean.Reason = cleanText(d.By), cleanText(d.Principal), cleanText(d.Reason)
	return &clean
}

func cleanCapacity(c *interlock.Capacity) *interlock.Capacity {
	if c == nil || len(c.Groups) == 0 {
		return c
	}
	clean := *c
	clean.Groups = slices.Clone(c.Groups)
	for i := range clean.Groups {
		clean.Groups[i].Name = cleanText(clean.Groups[i].Name)
	}
	return &clean
}

func conflictOf(c *engine.Conflict) *interlock.Conflict {
	p := c.Conflict
	p.Capacity, p.Nearest, p.Holders, p.Cycle = cleanCapacity(c.Capacity), cleanTexts(c.Nearest), nil, nil
	for _, h := range c.Holders {
		h.Agent, h.Flow, h.Purpose, h.Progress = cleanText(h.Agent), cleanText(h.Flow), cleanText(h.Purpose),
			cleanText(h.Progress)
		h.Yield, h.Parking = cleanYield(h.Yield), cleanParking(h.Parking)
		p.Holders = append(p.Holders, h)
	}
	for _, step := range c.Cycle {
		step.Agent, step.Flow = cleanText(step.Agent), cleanText(step.Flow)
		p.Cycle = append(p.Cycle, step)
	}
	return &p
}

func cleanTexts(list []string) (clean []string) {
	for _, s := range list {
		clean = append(clean, cleanText(s))
	}
	return clean
}
