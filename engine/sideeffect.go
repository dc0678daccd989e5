package engine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// Side effects: external actions that must not happen twice. To users such an action is an
// effect, interlock.Effect; the engine's Effect is an output of a step.
//
//	         ┌───── not done ─────┬───────────────┐
//	         ▼                    │               │
//	free ── claim ──► claimed ────┼───► unknown ──┤
//	                              │               │
//	                              └───► done ◄────┘
//
// A side effect is identified by the digest of its canonical action, so it is the same whatever
// caller plans it. Whether its claimer still lives is not journaled: it follows from the lease
// or the session that it was claimed under. So a death costs nothing here and needs no timer:
// the side effect is unknown from then on, until a caller that found out the outcome settles
// it. Every failure leads there, and never to a second execution.

// sideEffect is the record of one.
type sideEffect struct {
	digest [32]byte
	action string
	id     interlock.EffectID
	state  interlock.EffectState // as settled; 0: it was not done, and may be claimed

	// The claimer.
	lease   interlock.LeaseID
	session uint64
	name    string // public, of the session
	agent   string
	flow    string
	owner   string // the principal

	claimed Time
	ttl     time.Duration // of a claim with neither a lease nor a session
	attempt uint64
	settled Time // when its outcome was last reported
	result  string
	reason  string

	seat int32                           // in side effects.all
	link collection.Element[*sideEffect] // in one of the chains of side effects
}

func (d *sideEffect) SetIndex() *int32 { return &d.seat }

// size returns the cost of remembering it.
func (d *sideEffect) size() int { return len(d.action) + len(d.result) + len(d.reason) }

// sideEffects are those of a namespace.
type sideEffects struct {
	known  map[[32]byte]*sideEffect
	claims map[interlock.EffectID]*sideEffect
	all    collection.Set[*sideEffect]
	done   collection.List[*sideEffect] // in the order in which they were settled
	free   collection.List[*sideEffect] // likewise
	bytes  int                          // of all that is remembered of them
	kept   objectWindows                // of the namespace
}

// chainOf returns the chain in which a side effect in a state stands, nil for none.
func (s *sideEffects) chainOf(state interlock.EffectState) *collection.List[*sideEffect] {
	switch state {
	case interlock.EffectDone:
		return &s.done
	case 0:
		return &s.free
	}
	return nil
}

// isPast reports whether d need not be remembered any more.
func (d *sideEffect) isPast(now Time) bool {
	return (d.state == interlock.EffectDone || d.state == 0) && now.Sub(d.settled) >= interlock.EffectWindow
}

// at finds a side effect by its digest.
func (s *sideEffects) at(digest [32]byte, now Time) *sideEffect {
	if d := s.known[digest]; d != nil && !d.isPast(now) {
		return d
	}
	return nil
}

// of finds a side effect by its claimer's secret.
func (s *sideEffects) of(id interlock.EffectID, now Time) *sideEffect {
	if d := s.claims[id]; d != nil && !d.isPast(now) {
		return d
	}
	return nil
}

// farewellDeeds is how many past side effects an event drops: more than it adds, so they do not
// become more, and few enough for a step.
const farewellDeeds = 100

// forget drops some of those that are past. No answer shows the others.
func (s *sideEffects) forget(now Time) {
	for range farewellDeeds {
		if !s.dropPast(now) {
			return
		}
	}
}

// dropPast drops one that is past, and reports whether there was one.
func (s *sideEffects) dropPast(now Time) bool {
	for _, c := range []*collection.List[*sideEffect]{&s.done, &s.free} {
		if c.Len() > 0 && c.Front().Value.isPast(now) {
			s.drop(c.Front().Value)
			return true
		}
	}
	return false
}

// give drops the first side effect that can make room, except but: one that is past, or else
// one that is free. It reports whether there was one.
func (s *sideEffects) give(now Time, but *sideEffect) bool {
	if s.dropPast(now) {
		return true
	}
	if s.free.Len() == 0 || s.free.Front().Value == but {
		return false
	}
	s.drop(s.free.Front().Value)
	return true
}

func (s *sideEffects) drop(d *sideEffect) {
	s.chainOf(d.state).Remove(&d.link)
	s.all.Remove(d)
	s.bytes -= d.size()
	delete(s.known, d.digest)
	delete(s.claims, d.id)
	s.kept.drop(createdObject{madeDeed, d.id})
}

// bytesAt returns the remembered bytes once everything past is forgotten.
func (s *sideEffects) bytesAt(now Time) int {
	n := s.bytes
	for _, c := range []*collection.List[*sideEffect]{&s.done, &s.free} {
		for d := range c.All {
			if !d.isPast(now) {
				break
			}
			n -= d.size()
		}
	}
	return n
}

// room returns how many done side effects are to be forgotten so that n more with so many bytes
// can be remembered, the oldest first. ok is false if those that are old enough do not suffice.
// Free ones are dropped before; they need not be forgotten by name. A change that adds none
// needs room for its bytes only, also where there are more than the most.
func (s *sideEffects) room(n, bytes, most int, retention time.Duration, now Time) (forget, looks int, ok bool) {
	if n == 0 {
		most = len(s.known)
	}
	n, bytes = n+len(s.known), bytes+s.bytes
	fits := func() bool { return n <= most && bytes <= interlock.MaxEffectBytes }
	looksOn := func(d *sideEffect) bool {
		looks++
		return !fits() && (d.state == 0 || d.isPast(now) || now.Sub(d.settled) >= retention)
	}
	for _, past := range []bool{true, false} {
		for _, c := range []*collection.List[*sideEffect]{&s.free, &s.done} {
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

// evolveDeedsForgotten folds that done side effects were forgotten before their time.
func (sp *namespace) evolveDeedsForgotten(ev *record.Event) error {
	s := &sp.sideEffects
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

// evolveDeed folds that a side effect was claimed, or what became of it.
func (sp *namespace) evolveDeed(ev *record.Event) error {
	s := &sp.sideEffects
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
	d.state, d.settled, d.result, d.reason = state, ev.At, ev.Result, ev.Outcome
	s.bytes += d.size()
	if c := s.chainOf(state); c != nil {
		c.PushBack(&d.link)
	}
	for s.bytes > interlock.MaxEffectBytes && s.give(ev.At, d) {
	}
	return nil
}

func (s *sideEffects) claim(ev *record.Event) error {
	digest := sha256.Sum256(ev.Blob)
	for _, d := range []*sideEffect{s.known[digest], s.claims[ev.ID]} {
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
		s.known, s.claims = map[[32]byte]*sideEffect{}, map[interlock.EffectID]*sideEffect{}
	}
	d = &sideEffect{
		digest: digest, action: string(ev.Blob), id: ev.ID, state: interlock.EffectClaimed,
		lease: ev.BaseID, session: ev.Session, name: ev.SessionName, agent: ev.Agent, flow: ev.Flow, owner: ev.Actor,
		claimed: ev.At, ttl: ev.TTL, attempt: ev.Generation,
	}
	d.link.Value = d
	s.known[digest], s.claims[d.id] = d, d
	s.all.Add(d)
	s.bytes += d.size()
	return nil
}

func (s *namespace) effectRetention() time.Duration {
	if r := s.settings.EffectRetention; r > 0 {
		return r
	}
	return interlock.DefaultEffectRetention
}

// lives reports whether the claimer of d may still be about to do it.
func (e *Engine) lives(d *sideEffect) bool {
	if d.state != interlock.EffectClaimed {
		return false
	}
	if !d.lease.IsZero() {
		r := e.pendingWork.ns.live(d.lease)
		return r != nil && !r.isOver()
	}
	if d.session != 0 {
		s := e.pendingWork.ns.byNum[d.session]
		return s != nil && !s.dead
	}
	return e.now < d.claimed.Add(d.ttl)
}

func byEffectDigest(a, b *sideEffect) int { return bytes.Compare(a.digest[:], b.digest[:]) }
