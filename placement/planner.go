package placement

import (
	"slices"
	"time"
)

// None is the shard that is not given up.
const None = -1

// The times of a Planner that do not depend on the seats'.
const (
	givePause  = 5 * time.Second  // between two shards that leave a server to make shares even
	giveLimit  = 30 * time.Second // after which a shard that is still not given up is chosen anew
	lossWindow = time.Minute      // two losses within it make a server rest
	rest       = 30 * time.Second
	distrust   = time.Minute // in which a member that left a seat free receives nothing
)

// Decision is what a server does now.
type Decision struct {
	// Take are the shards with free seats that the server tries to take at once, all at the same time. The
	// store seats at most one server; a lost race needs no answer.
	Take []int
	// Give is the shard to give up: the server answers what is under way, closes the journal, and
	// frees the seat. A shard is named once. None if there is none.
	Give int
	// Resting is what the server publishes as Member.Resting.
	Resting bool
}

// Planner decides for one server, from what it sees in the store. It belongs to one goroutine.
//
//	take   at once      the plan wants it
//	       3/16 ttl     another member should have taken it and did not: it is passed over, for a minute
//	       1/4 ttl      whichever member should have it
//	give   at once      this server drains, and the shard before is given up
//	       1/4 ttl      the plan has wanted it for so long, and 5 s after the shard before
type Planner struct {
	id  string
	ttl time.Duration

	seats    []seatMemory
	ranks    rankCache
	giving   int
	gaveAt   time.Time
	wishedAt time.Time // since when the plan wants a shard of this server; zero if it does not
	next     Transfer  // the next one to the member that is to receive a shard of this server
	nextAt   time.Time // since when
	lostAt   time.Time // the last loss
	restEnd  time.Time
	slow     map[string]time.Time // the members that left a seat free, and until when they are passed over
}

// seatMemory is what a planner remembers of a seat.
type seatMemory struct {
	freeAt  time.Time // since when it is free; zero if it is not
	taker   string    // the member that should take it
	takerAt time.Time // since when
	mine    bool
	given   bool // it is mine, and was named as the shard to give up
}

// NewPlanner returns the planner of the member with an ID. ttl is the time after which a seat is free
// when its holder is silent; Step is called at least eight times in it.
func NewPlanner(id string, ttl time.Duration) *Planner {
	return &Planner{id: id, ttl: ttl, giving: None, slow: map[string]time.Time{}}
}

// Step decides what to do about a view. now never goes back, and the view is at most a renewal of a seat
// old: a server that cannot reach the store does not call Step.
func (p *Planner) Step(now time.Time, v View) Decision {
	p.observe(now, v)
	d := Decision{Give: None, Resting: now.Before(p.restEnd)}
	t := newTable(v, &p.ranks)
	me := t.find(p.id)
	if me < 0 {
		p.wishedAt = time.Time{}
		return d // the others believe that this server is dead
	}
	if d.Resting {
		t.doubt(me)
	}
	willing, plan := t.tiers[me] == present, t.plan(me)
	wary := plan
	if slices.ContainsFunc(t.members, func(m Member) bool { return now.Before(p.slow[m.ID]) }) {
		wary = p.wary(now, v, d.Resting)
	}
	for s := range v.Seats {
		if p.takes(now, s, plan.Takers[s], wary.Takers[s], willing && t.able(me, s)) {
			d.Take = append(d.Take, s)
		}
	}
	d.Give = p.give(now, wary)
	return d
}

// wary returns the plan that passes over the members that left seats free.
func (p *Planner) wary(now time.Time, v View, resting bool) Plan {
	t := newTable(v, &p.ranks)
	for m := range t.members {
		if id := t.members[m].ID; id == p.id && resting || now.Before(p.slow[id]) {
			t.doubt(m)
		}
	}
	return t.plan(t.find(p.id))
}

// Successors returns the member that is to take each free seat of a view, passing over those that left seats free. It is
// for the server that leaves a shard: it names the next holder of the seat, which then need not find it free.
func (p *Planner) Successors(now time.Time, v View) []string {
	t := newTable(v, &p.ranks)
	for m := range t.members {
		if now.Before(p.slow[t.members[m].ID]) {
			t.doubt(m)
		}
	}
	return t.takers()
}

// observe compares a view with what the planner remembers.
func (p *Planner) observe(now time.Time, v View) {
	for len(p.seats) < len(v.Seats) {
		p.seats = append(p.seats, seatMemory{})
	}
	lost := false
	for s := range v.Seats {
		o, holder := &p.seats[s], v.Seats[s].Holder
		if o.mine && holder != p.id {
			lost = lost || !o.given
			o.given = false
			if p.giving == s {
				p.giving = None
			}
		}
		o.mine = holder == p.id
		switch {
		case holder == "" && o.freeAt.IsZero():
			o.freeAt = now
		case holder == "" && o.taker != p.id && o.taker != "" && now.Sub(o.takerAt) >= p.ttl*3/16:
			p.slow[o.taker] = now.Add(distrust)
		case holder != "" && !o.freeAt.IsZero():
			o.freeAt, o.taker = time.Time{}, ""
			delete(p.slow, holder)
		}
	}
	if p.giving != None && now.Sub(p.gaveAt) >= giveLimit {
		p.giving = None
	}
	// A server that stood still loses all its seats within a ttl: that is one loss.
	if !lost || !p.lostAt.IsZero() && now.Sub(p.lostAt) < p.ttl {
		return
	}
	if !p.lostAt.IsZero() && now.Sub(p.lostAt) < lossWindow {
		p.restEnd = now.Add(rest)
	}
	p.lostAt = now
}

// takes reports whether to try to take a shard. taker is the member that should take it, next the one
// that should if taker is slow.
func (p *Planner) takes(now time.Time, shard int, taker, next string, able bool) bool {
	o := &p.seats[shard]
	if o.freeAt.IsZero() {
		return false
	}
	if taker != o.taker {
		o.taker, o.takerAt = taker, now
	}
	return taker == p.id ||
		next == p.id && now.Sub(o.takerAt) >= p.ttl*3/16 ||
		able && now.Sub(o.freeAt) >= p.ttl/4
}

// give returns the shard to give up, or None.
func (p *Planner) give(now time.Time, plan Plan) int {
	i := slices.IndexFunc(plan.Transfers, func(t Transfer) bool { return t.From == p.id })
	if i < 0 {
		p.wishedAt = time.Time{}
		return None
	}
	if p.wishedAt.IsZero() {
		p.wishedAt = now
	}
	t := plan.Transfers[i]
	turn := p.turn(now, plan, t)
	switch {
	case p.giving != None:
		return None
	case !t.Drains && (!turn || now.Sub(p.wishedAt) < p.ttl/4 || now.Sub(p.gaveAt) < givePause):
		return None
	}
	p.giving, p.gaveAt = t.Shard, now
	p.seats[t.Shard].given = true
	return t.Shard
}

// turn reports whether a transfer is the next to its receiver: a member that joins takes one shard after
// the other. A transfer that comes before and is not carried out is not waited for.
func (p *Planner) turn(now time.Time, plan Plan, t Transfer) bool {
	if slices.Contains(plan.Takers, t.To) {
		return false
	}
	next := plan.Transfers[slices.IndexFunc(plan.Transfers, func(o Transfer) bool { return o.To == t.To })]
	if next != p.next {
		p.next, p.nextAt = next, now
	}
	return next == t || now.Sub(p.nextAt) >= 2*givePause
}
