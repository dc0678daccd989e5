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
//	       3/8 ttl      whichever member should have it
//	give   at once      this server drains, and the shard before is given up
//	       1/4 ttl      the plan has wanted it for so long, and 5 s after the shard before
type Planner struct {
	id  string
	ttl time.Duration

	seats    []seatMemory
	giving   int
	gaveAt   time.Time
	wishedAt time.Time // since when the plan wants a shard of this server; zero if it does not
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
	t := newTable(v)
	me := t.find(p.id)
	if me < 0 {
		p.wishedAt = time.Time{}
		return d // the others believe that this server is dead
	}
	if d.Resting {
		t.tiers[me] = max(t.tiers[me], hesitant)
	}
	for m := range t.members {
		if m != me && now.Before(p.slow[t.members[m].ID]) {
			t.tiers[m] = max(t.tiers[m], hesitant)
		}
	}
	plan := t.plan()
	d.Take = p.take(now, t, me, plan)
	d.Give = p.give(now, plan)
	return d
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
		case holder != "":
			o.freeAt, o.taker = time.Time{}, ""
		case o.freeAt.IsZero():
			o.freeAt = now
		}
		if o.taker != "" && o.taker != p.id && now.Sub(o.takerAt) >= p.ttl*3/16 {
			p.slow[o.taker] = now.Add(distrust)
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

// take returns the seats to try to take.
func (p *Planner) take(now time.Time, t *table, me int, plan Plan) (shards []int) {
	for s := range t.seats {
		o := &p.seats[s]
		if o.freeAt.IsZero() {
			continue
		}
		if taker := plan.Takers[s]; taker != o.taker {
			o.taker, o.takerAt = taker, now
		}
		late := now.Sub(o.freeAt) >= p.ttl*3/8 && t.tiers[me] == present && t.able(me, s)
		if o.taker == p.id || late {
			shards = append(shards, s)
		}
	}
	return shards
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
	if p.giving != None || !t.Drains && (now.Sub(p.wishedAt) < p.ttl/4 || now.Sub(p.gaveAt) < givePause) {
		return None
	}
	p.giving, p.gaveAt = t.Shard, now
	p.seats[t.Shard].given = true
	return t.Shard
}
