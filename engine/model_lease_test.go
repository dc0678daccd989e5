package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

func (m *model) checkTicket(r *request, got *interlock.Ticket) error {
	if got.ID != interlock.TicketID(r.ask.ID) {
		return fmt.Errorf("the ticket is not that of %v", r)
	}
	if r.target == nil && (got.Position < 1 || got.Length < got.Position) { // a declared wait stands in no line
		return fmt.Errorf("%v: position %d of %d", r, got.Position, got.Length)
	}
	return nil
}

// checkLease compares a lease as its holder sees it with the model.
func (m *model) checkLease(r *request, got *interlock.Lease) error {
	return m.checkLeaseAt(m.moment(r), r, got)
}

// moment is the documents at the keys of a lease when it is handed over, and their changes
// since its holder read them.
type moment struct {
	notes     []interlock.Fence
	moved     []interlock.Stale
	version   interlock.Version
	documents []interlock.Document
}

func (m *model) moment(r *request) moment {
	return moment{m.notesAt(r.ns, r.claims), m.moved(r), m.version(r.ns), m.evidence(r)}
}

// checkLeaseAt is checkLease for a lease that was handed over at a moment of the step.
func (m *model) checkLeaseAt(then moment, r *request, got *interlock.Lease) error {
	bad := func(what string, want, have any) error {
		return fmt.Errorf("%v: %s: want %v, got %v", r, what, want, have)
	}
	if r.member != nil &&
		(got.ID != interlock.LeaseID(r.ask.ID) || got.Fence != r.fence || !slices.Equal(got.Claims, r.claims)) {
		return bad("part", r, *got)
	}
	if r.member != nil {
		return nil // it lives by its member
	}
	switch {
	case got.ID != interlock.LeaseID(r.ask.ID):
		return bad("id", r.ask.ID, got.ID)
	case got.Fence != r.fence:
		return bad("fence", r.fence, got.Fence)
	case !slices.Equal(got.Claims, r.claims):
		return bad("claims", r.claims, got.Claims)
	case got.Flow != r.ask.Flow || got.Purpose != r.ask.Purpose:
		return bad("flow and purpose", r.ask.Flow, got.Flow)
	case got.TTL != r.ttl() || got.Grace != r.ask.Grace:
		return bad("ttl and grace", r.ttl(), got.TTL)
	}
	if err := m.checkMoved(then, r, got); err != nil {
		return err
	}
	if r.set != nil && got.Generation != r.set.generation {
		return bad("generation", r.set.generation, got.Generation)
	}
	if err := m.checkYield(r, got.Yield); err != nil {
		return err
	}
	var notes []interlock.Fence
	for i, n := range got.Notes {
		if i > 0 && n.Age > got.Notes[i-1].Age {
			return bad("notes", "the oldest first", got.Notes)
		}
		notes = append(notes, n.Fence)
	}
	want := slices.Sorted(slices.Values(then.notes))
	slices.Sort(notes)
	if !slices.Equal(notes, want) {
		return bad("notes", want, notes)
	}
	end := r.hardEnd()
	if r.session != nil { // it takes its leases along
		end = earlier(end, r.session.deadline())
	}
	if r.phase == inGrace {
		end = r.graceTo
	}
	inLine := r.phase == waiting // to be resumed
	if r.phase == parked || inLine {
		end = r.parkEnd
		if got.Parking == nil || got.Parking.Freed != (r.freed || inLine) || m.now.Add(got.Parking.Left) != end.lo {
			return bad("parking", r.freed, got.Parking)
		}
	}
	if (got.Decision == nil) != (r.decision == nil) || r.decision != nil && *got.Decision != *r.decision {
		return bad("decision", r.decision, got.Decision)
	}
	if !slices.Equal(got.Moved, r.moved) && r.phase != parked && !inLine {
		return bad("moved", r.moved, got.Moved)
	}
	end = later(end, at(m.now)) // what is overdue ends now
	if e := m.now.Add(got.ExpiresIn); e < end.lo && r.beatenAt() != m.now || e > end.hi {
		return bad("hard end", end, e)
	}
	state := interlock.Held
	soft := r.softFrom()
	switch {
	case r.phase == inGrace:
		state = interlock.Grace
	case r.phase == parked, inLine:
		state = interlock.Parked
	case soft.mayBeDue(m.now) && !soft.mustBeDue(m.now):
		state = got.State
	case soft.mustBeDue(m.now):
		state = interlock.Soft
	}
	if got.State != state {
		return bad("state", state, got.State)
	}
	return nil
}

func effectText(e *engine.Effect) string {
	text := fmt.Sprintf("%v", e.Outcome)
	if e.Code != "" {
		text += fmt.Sprintf(" %v (%s)", e.Code, prose.Sentence(e.Message))
	}
	if !e.Lease.ID.IsZero() {
		text += fmt.Sprintf(
			" %s fence=%d %v until +%v", claimsText(e.Lease.Claims), e.Lease.Fence, e.Lease.State,
			time.Duration(e.Lease.ExpiresIn),
		)
	}
	if !e.Ticket.ID.IsZero() {
		text += fmt.Sprintf(" position %d of %d", e.Ticket.Position, e.Ticket.Length)
	}
	return text
}
