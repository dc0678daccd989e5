package engine_test

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// target is what a declared wait waits for: a session, or one flow of it.
type target struct {
	session *session
	flow    string // "" for any
	inside  bool   // it works under a lease of the waiter
}

// meets reports whether r waits for q.
func (t *target) meets(q *request, r *request) bool {
	return q.session == t.session && (t.flow == "" || q.ask.Flow == t.flow) && q.party() != r.party()
}

// encloses reports whether r is the wait of a flow for work under its lease.
func (r *request) encloses() bool { return r.target != nil && r.target.inside }

// newDeclared is the wait that c declares; nil if it cannot be.
func (m *model) newDeclared(c *engine.Declare, num uint64) *request {
	on, codes := m.declaredOn(c)
	if len(codes) > 0 {
		return nil
	}
	ask := engine.Acquire{Head: c.Head, ID: c.ID, Agent: c.Agent, LeaseRequest: interlock.LeaseRequest{
		Flow: c.Flow, Purpose: c.Purpose, Terms: interlock.Terms{MaxWait: c.MaxWait}, OnConflict: interlock.Wait,
	}, Attach: c.Attach}
	r := &request{num: num, ns: c.Namespace, ask: ask, arrived: m.now, target: on}
	r.session = m.sessionByID(c.Namespace, c.Session)
	switch {
	case r.session == nil:
		r.ask.Flow = ""
	case c.Flow == "":
		r.ask.Flow = "main"
	}
	return r
}

// declaredOn returns the target of c: a session by its public name, or by the name of an agent
// that has only one.
func (m *model) declaredOn(c *engine.Declare) (*target, []interlock.Code) {
	var live, over []*session
	for _, s := range m.sessions {
		if s.ns != c.Namespace || c.On.Session == "" && s.agent != c.On.Agent || c.On.Session != "" && s.name != c.On.Session {
			continue
		}
		if s.ended {
			over = append(over, s)
		} else {
			live = append(live, s)
		}
	}
	self := m.sessionByID(c.Namespace, c.Session)
	flow := c.Flow
	if flow == "" {
		flow = "main"
	}
	switch {
	case c.On.Session == "" && c.On.Agent == "" || len(live) > 1 || c.MaxWait < 0:
		return nil, []interlock.Code{interlock.CodeInvalidRequest, interlock.CodeInvalidTTL}
	case len(live) == 0 && len(over) > 0:
		return nil, []interlock.Code{interlock.CodeSessionEnded, interlock.CodeUnknownSession}
	case len(live) == 0:
		return nil, []interlock.Code{interlock.CodeUnknownSession}
	case live[0] == self && (c.On.Flow == flow || c.On.Flow == ""):
		return nil, []interlock.Code{interlock.CodeInvalidRequest}
	}
	return &target{live[0], c.On.Flow, c.Encloses}, nil
}

func (m *model) expectDeclare(c *engine.Declare) answer {
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	if _, codes := m.declaredOn(c); len(codes) > 0 {
		return refusalKey(codes...)
	}
	return answer{outcome: engine.Queued, fresh: true}
}
