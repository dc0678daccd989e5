package placement

import (
	"slices"
	"time"
)

const mostUnowned = 6 * time.Second

// leaves allows what a server has to go to others.
func (w *simWorld) leaves(v *simServer) {
	w.epoch++
	w.tally.Disturbances++
	w.tally.Allowed += v.holding()
}

// returns allows a server to get its share.
func (w *simWorld) returns(v *simServer) {
	w.epoch++
	all := 0
	for _, o := range w.servers {
		if o.up || o == v {
			all += int(o.weight)
		}
	}
	w.tally.Allowed += (len(w.store.seats)*int(v.weight) + all - 1) / all
}

// moved checks that a shard never comes back to a server that gave it up since the last disturbance, unless
// a server takes no seats, which others do not know until they have tried it.
func (w *simWorld) moved(shard int, v *simServer) {
	w.tally.Moves++
	if g := &w.given[shard]; g.epoch == w.epoch && g.by[v.number] && !w.refused() {
		w.fail("shard %d comes back to %s", shard, v.id)
	}
}

// gave checks that no shard is given up twice between two disturbances. Only where not all servers can read
// all shards, one may have to move on to make room.
func (w *simWorld) gave(shard int, v *simServer) {
	w.tally.Gives++
	w.note("%s gives up shard %d", v.id, shard)
	g := &w.given[shard]
	if g.epoch != w.epoch {
		*g = simGiven{epoch: w.epoch}
	} else if len(g.by) > 0 && !w.mixed && !w.refused() {
		w.fail("shard %d is given up twice since the last disturbance", shard)
	}
	if g.by == nil {
		g.by = map[int]bool{}
	}
	g.by[v.number] = true
}

// refused reports whether a server takes no seats.
func (w *simWorld) refused() bool { return slices.ContainsFunc(w.servers, (*simServer).refuses) }

// simGiven are the servers that gave a shard up between two disturbances.
type simGiven struct {
	epoch int
	by    map[int]bool
}

// checkDecision checks what holds for each decision by itself.
func (w *simWorld) checkDecision(v *simServer) {
	d, seats := v.decision, v.view.Seats
	for _, s := range d.Take {
		switch {
		case seats[s].Holder != "":
			w.fail("%s takes shard %d, which %s holds", v.id, s, seats[s].Holder)
		case seats[s].Needs > v.reads:
			w.fail("%s takes shard %d with format %d, and reads %d", v.id, s, seats[s].Needs, v.reads)
		}
	}
	switch {
	case d.Give != None && seats[d.Give].Holder != v.id:
		w.fail("%s gives up shard %d, which %q holds", v.id, d.Give, seats[d.Give].Holder)
	case d.Give != None && slices.ContainsFunc(v.closing, func(at time.Duration) bool { return at != 0 }):
		w.fail("%s gives up shard %d before another is closed", v.id, d.Give)
	}
}

// checkOwners checks that no shard is without an owner for too long while a server could be it.
func (w *simWorld) checkOwners() {
	for _, v := range w.servers {
		if !v.reaches() || v.refuses() || v.draining || v.resting || w.store.members[v.number].expires <= w.now {
			v.well = w.now
		}
	}
	for s := range w.store.seats {
		h := w.store.holder(s)
		if h.life != 0 {
			if v := w.servers[h.server]; v.life == h.life && v.reaches() && v.holds[s] {
				w.unowned[s] = w.now
				continue
			}
		}
		since := w.now
		for _, v := range w.servers {
			if v.reads >= w.store.seats[s].needs {
				since = min(since, max(v.well, w.unowned[s]))
			}
		}
		w.tally.Longest = max(w.tally.Longest, w.now-since)
		if w.now-since > mostUnowned {
			w.fail("shard %d has no owner for %v", s, w.now-since)
		}
	}
}

// load returns how many shards each server holds by the store.
func (w *simWorld) load() []int {
	load := make([]int, len(w.servers))
	for s := range w.store.seats {
		if h := w.store.holder(s); h.life != 0 {
			load[h.server]++
		}
	}
	return load
}

// even reports whether all shards that have an able server are owned, and none should move: no server has
// by so many more than another one, by their weights, that one shard less would be more even.
func (w *simWorld) even() bool {
	load := w.load()
	for s := range w.store.seats {
		h := w.store.holder(s)
		for _, v := range w.servers {
			if !v.up || v.draining || v.reads < w.store.seats[s].needs {
				continue
			}
			if h.life == 0 {
				return false
			}
			from := w.servers[h.server]
			if from.draining || !from.up {
				return false
			}
			// load²/weight of both, before and after, times both weights
			a, b, wa, wb := load[h.server], load[v.number], int(from.weight), int(v.weight)
			if from != v && (a-1)*(a-1)*wb+(b+1)*(b+1)*wa < a*a*wb+b*b*wa {
				return false
			}
		}
	}
	return true
}

// checkRest checks the state in which the servers came to rest, and that they stay in it.
func (w *simWorld) checkRest() {
	owners := slices.Clone(w.store.seats)
	gives := w.tally.Gives
	for range 20 * time.Second / simStep {
		w.tick()
	}
	for s := range owners {
		if owners[s].holder != w.store.seats[s].holder {
			w.fail("shard %d moves at rest", s)
		}
	}
	if w.tally.Gives != gives {
		w.fail("shards are given up at rest")
	}
	if !w.mixed {
		w.checkShares()
	}
	// The first seats are no moves, and neither are those of servers that start one after the other.
	if w.tally.Moves > w.tally.Allowed || w.tally.Gives > w.tally.Allowed {
		w.fail("%d moves, and %d shards given up: at most %d are allowed", w.tally.Moves, w.tally.Gives, w.tally.Allowed)
	}
}

// checkShares checks that each server has its share, rounded to one of the next whole numbers; and with
// different weights one more or less at most.
func (w *simWorld) checkShares() {
	all := 0
	for _, v := range w.servers {
		if v.up && !v.draining {
			all += int(v.weight)
		}
	}
	slack := 0
	if w.weighted {
		slack = 1
	}
	for i, n := range w.load() {
		v := w.servers[i]
		if !v.up || v.draining {
			continue
		}
		parts := len(w.store.seats) * int(v.weight)
		if n < parts/all-slack || n > (parts+all-1)/all+slack {
			w.fail("%s has %d of %d shards, and weight %d of %d", v.id, n, len(w.store.seats), v.weight, all)
		}
	}
}
