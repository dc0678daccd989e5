package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// Deeds: what is done in the world outside and must not happen twice. To users it
// is an effect, interlock.Effect; here that word is taken by what a step tells.
//
//	         ┌───── not done ─────┬───────────────┐
//	         ▼                    │               │
//	free ── claim ──► claimed ────┼───► unknown ──┤
//	                              │               │
//	                              └───► done ◄────┘
//
// A deed is known by the digest of its canonical action, so it is the same whoever
// plans it. Whether its claimer still lives is not journaled: it follows from the
// lease or the session in whose name it was claimed. So a death costs nothing here
// and needs no timer: the deed is unknown from then on, until somebody who found out
// what happened says so. Whatever goes wrong leads there, and not to a second go.

// deed is what is remembered of one.
type deed struct {
	digest [32]byte
	action string
	id     interlock.EffectID
	state  interlock.EffectState // as it was told; 0: it was not done, and may be claimed

	// Who claimed it.
	lease   interlock.LeaseID
	session uint64
	name    string // public, of the session
	agent   string
	flow    string
	owner   string // the principal

	claimed Time
	ttl     time.Duration // of a claim with neither a lease nor a session
	attempt uint64
	settled Time // when it was last told what became of it
	result  string
	reason  string

	seat int32                     // in deeds.all
	link collection.Element[*deed] // in one of the chains of deeds
}

func (d *deed) SetIndex() *int32 { return &d.seat }

// size is what it costs to remember.
func (d *deed) size() int { return len(d.action) + len(d.result) + len(d.reason) }

// deeds are those of a namespace.
type deeds struct {
	known  map[[32]byte]*deed
	claims map[interlock.EffectID]*deed
	all    collection.Set[*deed]
	done   collection.List[*deed] // in the order in which they were settled
	free   collection.List[*deed] // likewise
	bytes  int                    // of all that is remembered of them
	kept   keeper                 // of the namespace
}

// chainOf gives the chain in which a deed in a state stands, nil for none.
func (s *deeds) chainOf(state interlock.EffectState) *collection.List[*deed] {
	switch state {
	case interlock.EffectDone:
		return &s.done
	case 0:
		return &s.free
	}
	return nil
}

// isPast reports whether d need not be remembered any more.
func (d *deed) isPast(now Time) bool {
	return (d.state == interlock.EffectDone || d.state == 0) && now.Sub(d.settled) >= interlock.EffectWindow
}

// at finds a deed by its digest.
func (s *deeds) at(digest [32]byte, now Time) *deed {
	if d := s.known[digest]; d != nil && !d.isPast(now) {
		return d
	}
	return nil
}

// of finds a deed by its claimer's secret.
func (s *deeds) of(id interlock.EffectID, now Time) *deed {
	if d := s.claims[id]; d != nil && !d.isPast(now) {
		return d
	}
	return nil
}

// farewellDeeds is how many past deeds an event drops: more than it adds, so they do not
// become more, and few enough for a step.
const farewellDeeds = 100

// forget drops some of those that are past. No answer shows the others.
func (s *deeds) forget(now Time) {
	for range farewellDeeds {
		if !s.dropPast(now) {
			return
		}
	}
}

// dropPast drops one that is past, and reports whether there was one.
func (s *deeds) dropPast(now Time) bool {
	for _, c := range []*collection.List[*deed]{&s.done, &s.free} {
		if c.Len() > 0 && c.Front().Value.isPast(now) {
			s.drop(c.Front().Value)
			return true
		}
	}
	return false
}

// give drops the first of those that give way to others: one that is past, or else one that
// is free, but for one. It reports whether there was one.
func (s *deeds) give(now Time, but *deed) bool {
	if s.dropPast(now) {
		return true
	}
	if s.free.Len() == 0 || s.free.Front().Value == but {
		return false
	}
	s.drop(s.free.Front().Value)
	return true
}

func (s *deeds) drop(d *deed) {
	s.chainOf(d.state).Remove(&d.link)
	s.all.Remove(d)
	s.bytes -= d.size()
	delete(s.known, d.digest)
	delete(s.claims, d.id)
	s.kept.drop(thing{madeDeed, d.id})
}

// bytesAt is what there is to remember once what is past by now is forgotten.
func (s *deeds) bytesAt(now Time) int {
	n := s.bytes
	for _, c := range []*collection.List[*deed]{&s.done, &s.free} {
		for d := range c.All {
			if !d.isPast(now) {
				break
			}
			n -= d.size()
		}
	}
	return n
}

// room gives how many done deeds are to be forgotten so that n more with so many bytes can
// be remembered, the oldest first. ok is false if those that are old enough do not suffice.
// Those that are free give way before; they need not be forgotten by name. A change that adds
// none needs room for its bytes only, also where there are more than the most.
func (s *deeds) room(n, bytes, most int, retention time.Duration, now Time) (forget, looks int, ok bool) {
	if n == 0 {
		most = len(s.known)
	}
	n, bytes = n+len(s.known), bytes+s.bytes
	fits := func() bool { return n <= most && bytes <= interlock.MaxEffectBytes }
	looksOn := func(d *deed) bool {
		looks++
		return !fits() && (d.state == 0 || d.isPast(now) || now.Sub(d.settled) >= retention)
	}
	for _, past := range []bool{true, false} {
		for _, c := range []*collection.List[*deed]{&s.free, &s.done} {
			for d := range c.All {
				if !looksOn(d) || past && !d.isPast(now) {
					break
				}
				if d.isPast(now) != past {
					continue
				}
				n, bytes = n-1, bytes-d.size()
				if !past && c == &s.done {
					forget++
				}
			}
		}
	}
	return forget, looks, fits()
}

// evolveDeedsForgotten folds that done deeds were forgotten before their time.
func (e *Engine) evolveDeedsForgotten(ev *Event) error {
	s := &e.space(ev.Namespace).deeds
	s.forget(ev.At)
	if len(ev.Blob) > 0 {
		var digest [32]byte
		if copy(digest[:], ev.Blob) != len(digest) {
			return errUnknown
		}
		d := s.known[digest]
		if d == nil || s.chainOf(d.state) == nil {
			return errUnknown
		}
		s.drop(d)
		return nil
	}
	d := s.done.Front()
	for n := ev.Num; n > 0; {
		if d == nil {
			return errUnknown
		}
		of := d.Value
		if d = d.Next(); !of.isPast(ev.At) { // those that are past it does not count
			s.drop(of)
			n--
		}
	}
	return nil
}

// evolveDeed folds that a deed was claimed, or what became of it.
func (e *Engine) evolveDeed(ev *Event) error {
	s := &e.space(ev.Namespace).deeds
	s.forget(ev.At)
	if len(ev.Blob) > 0 {
		return s.claim(ev)
	}
	d, state := s.claims[ev.ID], interlock.EffectState(ev.Op)
	if d == nil || state == interlock.EffectClaimed || state > interlock.EffectUnknown {
		return errUnknown
	}
	if c := s.chainOf(d.state); c != nil {
		c.Remove(&d.link)
	}
	s.bytes -= d.size()
	d.state, d.settled, d.result, d.reason = state, ev.At, ev.Note, ev.Outcome
	s.bytes += d.size()
	if c := s.chainOf(state); c != nil {
		c.PushBack(&d.link)
	}
	for s.bytes > interlock.MaxEffectBytes && s.give(ev.At, d) {
	}
	return nil
}

func (s *deeds) claim(ev *Event) error {
	digest := sha256.Sum256(ev.Blob)
	for _, d := range []*deed{s.known[digest], s.claims[ev.ID]} {
		if d != nil && d.isPast(ev.At) && s.known[d.digest] == d {
			s.drop(d)
		}
	}
	d := s.known[digest]
	switch {
	case s.claims[ev.ID] != nil && s.claims[ev.ID] != d, d != nil && d.state != 0:
		return fmt.Errorf("engine: effect %x is claimed twice", digest[:8])
	case d != nil:
		s.drop(d)
	}
	for (len(s.known) >= interlock.MaxEffects || s.bytes+len(ev.Blob) > interlock.MaxEffectBytes) && s.give(ev.At, nil) {
	}
	if s.known == nil {
		s.known, s.claims = map[[32]byte]*deed{}, map[interlock.EffectID]*deed{}
	}
	d = &deed{
		digest: digest, action: string(ev.Blob), id: ev.ID, state: interlock.EffectClaimed,
		lease: ev.BaseID, session: ev.Session, name: ev.Purpose, agent: ev.Agent, flow: ev.Flow, owner: ev.Actor,
		claimed: ev.At, ttl: ev.TTL, attempt: ev.Generation,
	}
	d.link.Value = d
	s.known[digest], s.claims[d.id] = d, d
	s.all.Add(d)
	s.bytes += d.size()
	return nil
}

// deeds writes those of a namespace: first how each was claimed, then what became
// of it, in the order in which the chains have it. Those that are past are not in it, for when
// they are dropped does not matter.
func (s *snapshotter) deeds(sp *space) {
	all := make([]*deed, 0, len(sp.deeds.known))
	for _, d := range sp.deeds.all {
		if !d.isPast(s.e.last) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, byDigest)
	for _, d := range all {
		s.event(d.claimed, &Event{
			Kind: EvEffect, Namespace: sp.name, ID: d.id, Blob: []byte(d.action), Terms: interlock.Terms{TTL: d.ttl}, BaseID: d.lease,
			Session: d.session, Purpose: d.name, Agent: d.agent, Flow: d.flow, Actor: d.owner, Generation: d.attempt,
		})
	}
	for _, c := range []*collection.List[*deed]{&sp.deeds.done, &sp.deeds.free} {
		for d := range c.All {
			if !d.isPast(s.e.last) {
				s.settled(sp, d)
			}
		}
	}
	for _, d := range all {
		if d.state == interlock.EffectUnknown {
			s.settled(sp, d)
		}
	}
}

func (s *snapshotter) settled(sp *space, d *deed) {
	s.event(d.settled, &Event{Kind: EvEffect, Namespace: sp.name, ID: d.id, Op: uint8(d.state), Note: d.result, Outcome: d.reason})
}
