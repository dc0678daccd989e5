package engine_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// membership returns the partitioned key that r is a member of.
func (r *request) membership() (c interlock.Claim, ok bool) {
	if len(r.claims) == 1 && r.claims[0].Mode == interlock.Member {
		return r.claims[0], true
	}
	return c, false
}

// newPart is the request on a part of its key that ev makes in a member's name.
func (m *model) newPart(ev *record.Event) *request {
	member := m.byNum(ev.Base)
	r := &request{
		num: ev.Num, ns: member.ns, session: member.session, member: member, arrived: m.now, claims: ev.Claims,
		lead: ev.Lead,
	}
	r.ask.ID, r.ask.Agent, r.ask.Flow, r.ask.Priority = ev.ID, member.ask.Agent, member.ask.Flow, ev.Priority
	r.ask.TTL, r.ask.Grace = member.ask.TTL, member.ask.Grace
	return r
}

// permitPart: a member gets a part of its key as soon as it is due and free, and no other
// request gets it.
func (m *model) permitPart(ev *record.Event) error {
	member := m.byNum(ev.Base)
	if member == nil || member.phase != held {
		return fmt.Errorf("%v has no parts", member)
	}
	c, ok := member.membership()
	if !ok || len(ev.Claims) != 1 || ev.Claims[0].Mode != interlock.Exclusive ||
		!slices.Contains(partsOf(c), ev.Claims[0].Key) {
		return fmt.Errorf("%s is no part of what %v shares out", claimsText(ev.Claims), member)
	}
	if m.byNum(ev.Num) != nil {
		return fmt.Errorf("the number %d was used before", ev.Num)
	}
	for _, q := range m.inPhase(waiting) {
		if q.member != nil && q.ns == member.ns && q.claims[0].Key == ev.Claims[0].Key {
			return fmt.Errorf("%v waits for that part already", q)
		}
	}
	r := m.newPart(ev)
	// One that is free may still come into line: when another part in the same step has
	// changed the ranks, they are found anew later in that step. It has the part at the
	// step's end (I4).
	if ev.Kind == record.Granted && !m.atBest().free(r) {
		return fmt.Errorf("%v is not free: %v", r, m.blockers(r))
	}
	if ev.Kind == record.Granted {
		return m.permitFence(ev.Fence)
	}
	return nil
}

// join takes in a new member: the first one of a key has decided how it is divided.
func (m *model) join(r *request) {
	c, ok := r.membership()
	if !ok {
		return
	}
	r.division = r.ask.Division
	for _, q := range m.holding() {
		if other, ok := q.membership(); ok && q != r && q.ns == r.ns && other.Key == c.Key {
			r.division = q.division
		}
	}
}

// partsOf returns the keys of the parts.
func partsOf(c interlock.Claim) (keys []interlock.Key) {
	for i := range int(c.Count) {
		keys = append(keys, c.Key+"/"+interlock.Key(strconv.Itoa(i)))
	}
	return keys
}

// foldPart takes in a part that a member is to have.
func (m *model) foldPart(ev *record.Event) {
	r := m.newPart(ev)
	m.requests = append(m.requests, r)
	if ev.Kind == record.Granted {
		m.hand(r, held, ev.Fence)
		return
	}
	r.phase, r.queuedAt = waiting, m.events
}

// wanted reports whether another member will get the part that r has.
func (m *model) wanted(r *request) bool {
	return slices.ContainsFunc(m.inPhase(waiting), func(q *request) bool {
		return q.member != nil && q.member != r.member && q.ns == r.ns && q.claims[0].Key == r.claims[0].Key
	})
}

// checkParts: where a key has members, each part is one member's or on its way to
// one, and no member is to have more than its even share.
func (m *model) checkParts() error {
	divisions := map[queueEntry][]*request{}
	for _, r := range m.inPhase(held) {
		if c, ok := r.membership(); ok {
			divisions[queueEntry{r.ns, c.Key}] = append(divisions[queueEntry{r.ns, c.Key}], r)
		}
	}
	for pl, members := range divisions {
		c, _ := members[0].membership()
		share := map[*request]int{}
		for _, key := range partsOf(c) {
			var has, next []*request
			for _, r := range m.requests {
				if r.member == nil || r.ns != pl.ns || r.claims[0].Key != key {
					continue
				}
				switch {
				case r.active():
					has = append(has, r)
				case r.phase == waiting:
					next = append(next, r)
				}
			}
			switch {
			case len(has) > 1 || len(next) > 1:
				return fmt.Errorf("part %s has %v, and is to go to %v", key, has, next)
			case len(next) == 1:
				share[next[0].member]++
			case len(has) == 1:
				share[has[0].member]++
			default:
				return fmt.Errorf("part %s of %v is nobody's", key, members)
			}
		}
		most := (int(c.Count) + len(members) - 1) / len(members)
		for _, member := range members {
			if share[member] > most && member.division != interlock.ByLoad {
				return fmt.Errorf("%v is to have %d parts of %d, with %d members", member, share[member], c.Count, len(members))
			}
		}
	}
	for _, r := range m.requests {
		if r.member == nil || r.member.phase == held || r.member.phase == inGrace {
			continue
		}
		if r.phase == waiting || r.active() && r.member.phase != closed { // with its lock_delay it keeps its parts shut
			return fmt.Errorf("%v outlives its member", r)
		}
	}
	return nil
}
