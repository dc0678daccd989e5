package mcp

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// places are the tickets that calls wait with, and those that agents know. An agent that asks again
// for the same keys has the ticket that it has already, and a call that is cancelled leaves the queue
// only if no agent knows its ticket and no other call waits with it.
type places struct {
	mu     sync.Mutex
	list   map[string]*place         // by the digits of ticket and lease
	open   map[request]string        // the tickets of requests
	asking map[request]chan struct{} // closed when the request has its answer
}

// request is a request of an agent with a session.
type request struct {
	agent *agent.Party
	body  string
}

type place struct {
	ticket string
	of     request
	calls  int
	known  time.Time // when an agent last had it in an answer; zero if none had
}

const (
	rememberPlaces = 1024
	rememberFor    = time.Hour
)

// ask begins a request. It returns the ticket that the agent has for the same one, else "". The caller
// calls asked with the ticket that came of it, or with "": with a ticket, the call has a place from
// then on.
func (p *places) ask(c *agent.Caller, r api.AcquireRequest) (ticket string, asked func(string)) {
	r.Purpose = ""
	body, _ := json.Marshal(r)
	of := request{c.Party, string(body)}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.asking[of] != nil {
		done := p.asking[of]
		p.mu.Unlock()
		<-done
		p.mu.Lock()
	}
	if p.list == nil {
		p.list, p.open, p.asking = map[string]*place{}, map[request]string{}, map[request]chan struct{}{}
	}
	done := make(chan struct{})
	p.asking[of] = done
	return p.open[of], func(ticket string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if old := p.open[of]; old != "" && old != ticket {
			p.remove(api.Digits(old))
		}
		if ticket != "" {
			p.enter(ticket).of = of
			p.open[of] = ticket
		}
		delete(p.asking, of)
		close(done)
	}
}

// isKnown reports whether an agent has had a ticket in an answer, or another call waits with it.
func (p *places) isKnown(ticket string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.list[api.Digits(ticket)]
	return one != nil && (one.calls > 1 || !one.known.IsZero())
}

// wait begins a call that waits with a ticket.
func (p *places) wait(ticket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enter(ticket)
}

func (p *places) enter(ticket string) *place {
	if p.list == nil {
		p.list, p.open, p.asking = map[string]*place{}, map[request]string{}, map[request]chan struct{}{}
	}
	one := p.list[api.Digits(ticket)]
	if one == nil {
		p.sweep()
		one = &place{ticket: ticket}
		p.list[api.Digits(ticket)] = one
	}
	one.calls++
	return one
}

// exit ends a call's wait. answered means that the agent is about to know the ticket.
func (p *places) exit(ticket string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.list[api.Digits(ticket)]
	if one == nil {
		return
	}
	if one.calls--; one.calls <= 0 && one.known.IsZero() && !answered {
		p.remove(api.Digits(ticket))
	}
}

// given notes that an agent has a ticket in an answer.
func (p *places) given(ticket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.enter(ticket)
	one.calls--
	one.known = time.Now()
}

// over ends a place: its turn has come, or it was left. id is that of the ticket or its lease.
func (p *places) over(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(api.Digits(id))
}

func (p *places) remove(id string) {
	one := p.list[id]
	if one == nil {
		return
	}
	if p.open[one.of] == one.ticket {
		delete(p.open, one.of)
	}
	delete(p.list, id)
}

// sweep forgets old tickets when there are many.
func (p *places) sweep() {
	if len(p.list) < rememberPlaces {
		return
	}
	for id, one := range p.list {
		if one.calls == 0 && time.Since(one.known) > rememberFor {
			p.remove(id)
		}
	}
}
