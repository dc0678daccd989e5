package cluster

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// A beat proves that a member reaches the engine. Whether it can answer callers is tried from outside: each member
// asks all others, at each look, at the addresses that calls are forwarded to.
//
//	no answer                         callers are refused without that address, and this server is not ready
//	no answer for markAfter           the table shows the mark of this server
//	the marks of most other members   the member leaves its seats, and takes none as long as that lasts
//	refused, where one answered       the process is gone: its seats are free at once
//	no answer where one answered,     the machine is gone, or the process stands still: its seats are free in half the
//	nor a beat                        time that a member has which still answers
//
// Two signs that stay away need less time than one: a slow engine delays beats, and not answers; a cut between two
// members delays answers, and not beats.
//
// A member cannot tell whether it or the other one is cut off. If each member is marked by most, the one with the
// least ID stays.
const (
	probeEvery   = 400 * time.Millisecond // at least: each look at the table may begin one
	probeTimeout = 1500 * time.Millisecond
	// closeLook is the time between two refused probes: then the member counts as gone.
	closeLook = 150 * time.Millisecond
	// markAfter, and marksFails probes, are less than what a lease of 10 s has left.
	markAfter  = 4 * time.Second
	marksFails = 3
)

// reach is how this server reaches a member.
type reach struct {
	asking bool
	asked  time.Time // when the last probe began
	since  time.Time // when the first of the probes without an answer began; zero if the last one was answered
	fails  int
	ever   bool // it has answered
	gone   bool // and then it refused
}

func (r *reach) note(err error, began time.Time) {
	if err == nil {
		*r = reach{asking: r.asking, asked: r.asked, ever: true}
		return
	}
	if r.fails++; r.since.IsZero() {
		r.since = began
	}
}

func (r *reach) marked(now time.Time) bool {
	return r.fails >= marksFails && now.Sub(r.since) >= markAfter
}

// lostAt needs mu. It returns when a member counts as gone unless it shows a sign of life until then.
func (n *Node) lostAt(id string) time.Time {
	beat := n.seen[id].at
	at := beat.Add(n.cfg.TTL)
	r := n.reach[id]
	if r == nil || !r.ever || r.since.IsZero() {
		return at
	}
	both := beat.Add(n.cfg.TTL / 2)
	if probed := r.since.Add(n.cfg.TTL * looksInProbe / looks); probed.After(both) {
		both = probed
	}
	if both.Before(at) {
		return both
	}
	return at
}

// probe asks the members of a table that were not asked for a while.
func (n *Node) probe(t *table, now time.Time) {
	if n.cfg.Probe == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.reach {
		if t.member(id) == nil {
			delete(n.reach, id)
		}
	}
	for _, m := range t.Members {
		if m.ID == n.id {
			continue
		}
		r := n.reach[m.ID]
		if r == nil {
			r = &reach{}
			n.reach[m.ID] = r
		}
		if !r.asking && now.Sub(r.asked) >= probeEvery {
			r.asking, r.asked = true, now
			go n.ask(m, r)
		}
	}
}

// ask probes a member once, and once more at once if it refuses.
func (n *Node) ask(m Member, r *reach) {
	for refused := 0; ; {
		began := time.Now()
		ctx, cancel := context.WithTimeout(n.life, probeTimeout)
		err := n.cfg.Probe(ctx, m)
		cancel()
		if n.life.Err() != nil {
			return
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused++
		}
		n.mu.Lock()
		changed := (err == nil) != r.since.IsZero() || r.marked(time.Now())
		r.note(err, began)
		r.gone = r.ever && refused > 1 && !m.Draining
		again := r.ever && refused == 1
		r.asking = again
		changed = changed || r.gone
		n.mu.Unlock()
		if changed {
			n.ring()
		}
		if !again || !pause(n.life, closeLook) {
			return
		}
	}
}

// Suspect has a member asked at once that did not answer a call.
func (n *Node) Suspect(http string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table == nil {
		return
	}
	for _, m := range n.table.Members {
		if r := n.reach[m.ID]; m.HTTP == http && r != nil && !r.asking {
			r.asking, r.asked = true, time.Now()
			go n.ask(m, r)
		}
	}
}

// marks needs mu. It returns the IDs of the members that this server cannot reach.
func (n *Node) marks(now time.Time) (ids []string) {
	for id, r := range n.reach {
		if r.marked(now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// unreached reports whether most other members cannot reach one.
func (t *table) unreached(id string) bool {
	by := 0
	for _, m := range t.Members {
		if slices.Contains(m.Unreached, id) {
			by++
		}
	}
	return 2*by > len(t.Members)-1
}

// cutOff reports whether a member should leave its seats to those that others reach.
func (t *table) cutOff(id string) bool {
	if !t.unreached(id) {
		return false
	}
	least := id
	for _, m := range t.Members {
		if !t.unreached(m.ID) {
			return true
		}
		least = min(least, m.ID)
	}
	return least != id
}
