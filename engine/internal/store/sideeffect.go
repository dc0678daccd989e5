package store

import (
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

// SideEffect is the record of one.
type SideEffect struct {
	Digest [32]byte
	Action string
	ID     interlock.EffectID
	State  interlock.EffectState // as settled; 0: it was not done, and may be claimed

	// The claimer.
	Lease   interlock.LeaseID
	Session uint64
	Name    string // public, of the session
	Agent   string
	Flow    string
	Owner   string // the principal

	Claimed Time
	TTL     time.Duration // of a claim with neither a lease nor a session
	Attempt uint64
	Settled Time // when its outcome was last reported
	Result  string
	Reason  string

	seat int32                           // in side effects.all
	link collection.Element[*SideEffect] // in one of the chains of side effects
}

func (d *SideEffect) SetIndex() *int32 { return &d.seat }

// Size returns the cost of remembering it.
func (d *SideEffect) Size() int { return len(d.Action) + len(d.Result) + len(d.Reason) }

// SideEffects are those of a namespace.
type SideEffects struct {
	Known  map[[32]byte]*SideEffect
	claims map[interlock.EffectID]*SideEffect
	All    collection.Set[*SideEffect]
	Done   collection.List[*SideEffect] // in the order in which they were settled
	Free   collection.List[*SideEffect] // likewise
	bytes  int                          // of all that is remembered of them
	kept   objectWindows                // of the namespace
}

// ChainOf returns the chain in which a side effect in a state stands, nil for none.
func (s *SideEffects) ChainOf(state interlock.EffectState) *collection.List[*SideEffect] {
	switch state {
	case interlock.EffectDone:
		return &s.Done
	case 0:
		return &s.Free
	}
	return nil
}

// IsPast reports whether d need not be remembered any more.
func (d *SideEffect) IsPast(now Time) bool {
	return (d.State == interlock.EffectDone || d.State == 0) && now.Sub(d.Settled) >= interlock.EffectWindow
}

// At finds a side effect by its digest.
func (s *SideEffects) At(digest [32]byte, now Time) *SideEffect {
	if d := s.Known[digest]; d != nil && !d.IsPast(now) {
		return d
	}
	return nil
}

// Of finds a side effect by its claimer's secret.
func (s *SideEffects) Of(id interlock.EffectID, now Time) *SideEffect {
	if d := s.claims[id]; d != nil && !d.IsPast(now) {
		return d
	}
	return nil
}

// FarewellEffects is how many past side effects an event drops: more than it adds, so they do not
// become more, and few enough for a step.
const FarewellEffects = 100

// forget drops some of those that are past. No answer shows the others.
func (s *SideEffects) forget(now Time) {
	for range FarewellEffects {
		if !s.dropPast(now) {
			return
		}
	}
}

// dropPast drops one that is past, and reports whether there was one.
func (s *SideEffects) dropPast(now Time) bool {
	for _, c := range []*collection.List[*SideEffect]{&s.Done, &s.Free} {
		if c.Len() > 0 && c.Front().Value.IsPast(now) {
			s.drop(c.Front().Value)
			return true
		}
	}
	return false
}

// give drops the first side effect that can make room, except but: one that is past, or else
// one that is free. It reports whether there was one.
func (s *SideEffects) give(now Time, but *SideEffect) bool {
	if s.dropPast(now) {
		return true
	}
	if s.Free.Len() == 0 || s.Free.Front().Value == but {
		return false
	}
	s.drop(s.Free.Front().Value)
	return true
}

func (s *SideEffects) drop(d *SideEffect) {
	s.ChainOf(d.State).Remove(&d.link)
	s.All.Remove(d)
	s.bytes -= d.Size()
	delete(s.Known, d.Digest)
	delete(s.claims, d.ID)
	s.kept.drop(createdObject{MadeEffect, d.ID})
}

// BytesAt returns the remembered bytes once everything past is forgotten.
func (s *SideEffects) BytesAt(now Time) int {
	n := s.bytes
	for _, c := range []*collection.List[*SideEffect]{&s.Done, &s.Free} {
		for d := range c.All {
			if !d.IsPast(now) {
				break
			}
			n -= d.Size()
		}
	}
	return n
}

// Room returns how many done side effects are to be forgotten so that n more with so many bytes
// can be remembered, the oldest first. ok is false if those that are old enough do not suffice.
// Free ones are dropped before; they need not be forgotten by name. A change that adds none
// needs room for its bytes only, also where there are more than the most.
func (s *SideEffects) Room(n, bytes, most int, retention time.Duration, now Time) (forget, looks int, ok bool) {
	if n == 0 {
		most = len(s.Known)
	}
	n, bytes = n+len(s.Known), bytes+s.bytes
	fits := func() bool { return n <= most && bytes <= interlock.MaxEffectBytes }
	looksOn := func(d *SideEffect) bool {
		looks++
		return !fits() && (d.State == 0 || d.IsPast(now) || now.Sub(d.Settled) >= retention)
	}
	for _, past := range []bool{true, false} {
		for _, c := range []*collection.List[*SideEffect]{&s.Free, &s.Done} {
			for d := range c.All {
				if !looksOn(d) || past && !d.IsPast(now) {
					break
				}
				if d.IsPast(now) != past {
					continue
				}
				n, bytes = n-1, bytes-d.Size()
				if !past && c == &s.Done {
					forget++
				}
			}
		}
	}
	return forget, looks, fits()
}

// evolveEffectsForgotten folds that done side effects were forgotten before their time.
func (sp *Namespace) evolveEffectsForgotten(ev *record.Event) error {
	s := &sp.SideEffects
	s.forget(ev.At)
	if len(ev.Blob) > 0 {
		var digest [32]byte
		if copy(digest[:], ev.Blob) != len(digest) {
			return errUnknown
		}
		d := s.Known[digest]
		if d == nil || s.ChainOf(d.State) == nil {
			return errUnknown
		}
		s.drop(d)
		return nil
	}
	d := s.Done.Front()
	for n := ev.Num; n > 0; {
		if d == nil {
			return errUnknown
		}
		of := d.Value
		if d = d.Next(); !of.IsPast(ev.At) { // those that are past it does not count
			s.drop(of)
			n--
		}
	}
	return nil
}

// evolveEffect folds that a side effect was claimed, or what became of it.
func (sp *Namespace) evolveEffect(ev *record.Event) error {
	s := &sp.SideEffects
	s.forget(ev.At)
	if len(ev.Blob) > 0 {
		return s.claim(ev)
	}
	d, state := s.claims[ev.ID], interlock.EffectState(ev.Op)
	if d == nil || state == interlock.EffectClaimed || state > interlock.EffectUnknown {
		return errUnknown
	}
	if c := s.ChainOf(d.State); c != nil {
		c.Remove(&d.link)
	}
	s.bytes -= d.Size()
	d.State, d.Settled, d.Result, d.Reason = state, ev.At, ev.Result, ev.Outcome
	s.bytes += d.Size()
	if c := s.ChainOf(state); c != nil {
		c.PushBack(&d.link)
	}
	for s.bytes > interlock.MaxEffectBytes && s.give(ev.At, d) {
	}
	return nil
}

func (s *SideEffects) claim(ev *record.Event) error {
	digest := sha256.Sum256(ev.Blob)
	for _, d := range []*SideEffect{s.Known[digest], s.claims[ev.ID]} {
		if d != nil && d.IsPast(ev.At) && s.Known[d.Digest] == d {
			s.drop(d)
		}
	}
	d := s.Known[digest]
	switch {
	case s.claims[ev.ID] != nil && s.claims[ev.ID] != d, d != nil && d.State != 0:
		return fmt.Errorf("engine: effect %x is claimed twice", digest[:8])
	case d != nil:
		s.drop(d)
	}
	for (len(s.Known) >= interlock.MaxEffects || s.bytes+len(ev.Blob) > interlock.MaxEffectBytes) && s.give(ev.At, nil) {
	}
	if s.Known == nil {
		s.Known, s.claims = map[[32]byte]*SideEffect{}, map[interlock.EffectID]*SideEffect{}
	}
	d = &SideEffect{
		Digest: digest, Action: string(ev.Blob), ID: ev.ID, State: interlock.EffectClaimed,
		Lease: ev.BaseID, Session: ev.Session, Name: ev.SessionName, Agent: ev.Agent, Flow: ev.Flow, Owner: ev.Actor,
		Claimed: ev.At, TTL: ev.TTL, Attempt: ev.Generation,
	}
	d.link.Value = d
	s.Known[digest], s.claims[d.ID] = d, d
	s.All.Add(d)
	s.bytes += d.Size()
	return nil
}

func (s *Namespace) EffectRetention() time.Duration {
	if r := s.Settings.EffectRetention; r > 0 {
		return r
	}
	return interlock.DefaultEffectRetention
}

// Lives reports whether the claimer of d, in namespace s, may still be about to do it.
func (d *SideEffect) Lives(s *Namespace) bool {
	if d.State != interlock.EffectClaimed {
		return false
	}
	if !d.Lease.IsZero() {
		r := s.Live(d.Lease)
		return r != nil && !r.IsOver()
	}
	if d.Session != 0 {
		sess := s.ByNum[d.Session]
		return sess != nil && !sess.Dead
	}
	return s.Now() < d.Claimed.Add(d.TTL)
}

// StateIn returns d's state as callers of namespace s see it.
func (d *SideEffect) StateIn(s *Namespace) interlock.EffectState {
	if d.State == interlock.EffectClaimed && !d.Lives(s) {
		return interlock.EffectUnknown
	}
	return d.State
}
