package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// answer is what a command must be told, as far as it is known before it is
// carried out.
type answer struct {
	none    bool // no answer at all
	outcome engine.Outcome
	codes   []interlock.Code // for Refused: one of them
	about   *request         // whose ticket or lease is shown
	fresh   bool             // about the request that this very command makes
	reused  []*request       // Granted, and it is one of these
	session *session
}

func refused(codes ...interlock.Code) answer { return answer{outcome: engine.Refused, codes: codes} }

func headOf(cmd engine.Command) *engine.Head {
	return reflect.ValueOf(cmd).Elem().FieldByName("Head").Addr().Interface().(*engine.Head)
}

// expect works out the answer to cmd from the state before it.
func (m *model) expect(cmd engine.Command) answer {
	head := headOf(cmd)
	if known := m.answerTo(head); known != nil && repeatable(cmd) {
		return m.expectRepeated(cmd, known)
	}
	switch c := cmd.(type) {
	case *engine.OpenSession:
		if c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL) {
			return refused(interlock.CodeInvalidTTL)
		}
		return answer{outcome: engine.Done}
	case *engine.CloseSession:
		if s := m.sessionByID(head.Namespace, head.Session); s != nil && s.ended && s.why == engine.BySession {
			return answer{outcome: engine.Done} // it is what was wanted
		}
		return m.withSession(head, func(*session) answer { return answer{outcome: engine.Done} })
	case *engine.Heartbeat, *engine.Attach:
		return m.withSession(head, func(s *session) answer { return answer{outcome: engine.Done, session: s} })
	case *engine.Acquire:
		return m.expectAcquire(c)
	case *engine.Poll:
		return m.withTicket(head, c.Ticket, m.showRequest)
	case *engine.Leave:
		return m.withTicket(head, c.Ticket, func(r *request) answer {
			if r.phase == over {
				return answer{outcome: engine.Refused, codes: append(gone(r), "")} // or Done: it is what was wanted
			}
			return answer{outcome: engine.Done}
		})
	case *engine.GetLease:
		return m.withLease(head, c.Lease, func(r *request) answer { return answer{outcome: engine.Granted, about: r} })
	case *engine.Renew:
		return m.withLease(head, c.Lease, func(r *request) answer {
			switch {
			case r.phase == inGrace, r.hardEnd().mustBeDue(m.now) && r.ask.Grace > 0:
				return refused(interlock.CodeInGrace)
			case r.hardEnd().mustBeDue(m.now):
				return refused(interlock.CodeExpired, interlock.CodeTaken)
			}
			return answer{outcome: engine.Granted, about: r}
		})
	case *engine.Release:
		return m.withLease(head, c.Lease, func(*request) answer { return answer{outcome: engine.Done} })
	case *engine.Revoke:
		if m.leaseAt(c.Namespace, c.Fence, func(have interlock.Claim) bool { return have.Key == c.Key }) == nil {
			return refused(interlock.CodeFenced)
		}
		return answer{outcome: engine.Done}
	case *engine.CheckFence:
		if r := m.leaseAt(c.Namespace, c.Fence, func(interlock.Claim) bool { return true }); r != nil && r.phase == offered {
			return answer{} // nobody can know that fence yet
		}
		write := interlock.Claim{Key: c.Key, Mode: interlock.Exclusive}
		if m.leaseAt(c.Namespace, c.Fence, func(have interlock.Claim) bool { return covers(have, write) }) != nil {
			return answer{outcome: engine.Done}
		}
		return refused(interlock.CodeFenced)
	}
	return answer{none: true}
}

func (m *model) withSession(head *engine.Head, then func(*session) answer) answer {
	s := m.sessionByID(head.Namespace, head.Session)
	switch {
	case s == nil:
		return refused(interlock.CodeUnknownSession)
	case s.ended, s.deadline().mustBeDue(m.now):
		return refused(interlock.CodeSessionEnded)
	}
	return then(s)
}

// mine reports whether the caller may know of r: whoever knows the id may act,
// but not on a session's request in another session's name.
func mine(head *engine.Head, r *request) bool {
	return head.Session.IsZero() || r.session == nil || r.session.id == head.Session
}

func (m *model) withTicket(head *engine.Head, id interlock.TicketID, then func(*request) answer) answer {
	r := m.byID(head.Namespace, id)
	switch {
	case r != nil && r.phase == over && !mine(head, r):
		return refused(append(ended(head, r, interlock.CodeUnknownTicket), "")...)
	case r == nil || !mine(head, r):
		return refused(interlock.CodeUnknownTicket)
	}
	return then(r)
}

// ended gives the codes for what is over: why, or, for another session, that it
// is unknown. Whose it was need not be remembered, so both are right there.
func ended(head *engine.Head, r *request, unknown interlock.Code) []interlock.Code {
	codes := gone(r)
	if !mine(head, r) {
		codes = append(codes, unknown)
	}
	return codes
}

// withLease leads to a lease by its id. What was never granted is no lease.
func (m *model) withLease(head *engine.Head, id interlock.LeaseID, then func(*request) answer) answer {
	r := m.byID(head.Namespace, id)
	switch {
	case r != nil && r.phase == over:
		return refused(ended(head, r, interlock.CodeUnknownLease)...)
	case r == nil || !mine(head, r) || r.phase == waiting:
		return refused(interlock.CodeUnknownLease)
	}
	return then(r)
}

func (m *model) leaseAt(ns interlock.Namespace, fence interlock.Fence, fits func(interlock.Claim) bool) *request {
	for _, r := range m.requests {
		if r.ns == ns && r.active() && r.fence == fence && slices.ContainsFunc(r.ask.Claims, fits) {
			return r
		}
	}
	return nil
}

// gone gives the codes that may say why r is over.
func gone(r *request) []interlock.Code {
	switch r.why {
	case engine.ByRelease:
		return []interlock.Code{interlock.CodeReleased}
	case engine.ByRevocation:
		return []interlock.Code{interlock.CodeRevoked}
	case engine.ByDeadlock:
		return []interlock.Code{interlock.CodeDeadlock}
	case engine.ByLeaving:
		return []interlock.Code{interlock.CodeLeft, interlock.CodeReleased}
	case engine.BySession:
		return []interlock.Code{interlock.CodeSessionEnded, interlock.CodeReleased}
	case engine.ByDeath:
		return []interlock.Code{interlock.CodeSessionEnded, interlock.CodeExpired, interlock.CodeTaken}
	case engine.ByLapse:
		return []interlock.Code{interlock.CodeOfferLapsed, interlock.CodeLeft}
	}
	return []interlock.Code{interlock.CodeExpired, interlock.CodeTaken}
}

// showRequest is the answer to who asks how its request stands.
func (m *model) showRequest(r *request) answer {
	switch r.phase {
	case waiting:
		return answer{outcome: engine.Queued, about: r}
	case over:
		return refused(gone(r)...)
	}
	return answer{outcome: engine.Granted, about: r}
}

func (m *model) expectAcquire(c *engine.Acquire) answer {
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refused(interlock.CodeUnknownSession)
		} else if s.ended {
			return refused(interlock.CodeSessionEnded)
		}
	}
	if code := wrongWith(c); code != "" {
		return refused(code)
	}
	r := m.newRequest(c, m.highestNum()+1)
	if covering := m.covering(r); len(covering) > 0 {
		return answer{outcome: engine.Granted, reused: covering}
	}
	switch {
	case len(m.blockers(r)) == 0:
		return answer{outcome: engine.Granted, fresh: true}
	case c.OnConflict == interlock.Fail:
		return refused(interlock.CodeHeld)
	case c.OnConflict == interlock.Skip:
		return answer{outcome: engine.Skipped}
	}
	return answer{outcome: engine.Queued, fresh: true}
}

// covering gives the leases of the same flow each of which has all that r asks
// for. One in grace does no new work, and of an offer the holder does not know yet, so
// they are not among them.
func (m *model) covering(r *request) (list []*request) {
	if r.session == nil {
		return nil
	}
	for _, q := range m.requests {
		if q.phase == held && q.party() == r.party() && coversAll(q.ask.Claims, r.ask.Claims) {
			list = append(list, q)
		}
	}
	return list
}

func (m *model) highestNum() (num uint64) {
	for _, r := range m.requests {
		num = max(num, r.num)
	}
	return num
}

// wrongWith names the rule that a request breaks. The random runs break at most
// one at a time.
func wrongWith(c *engine.Acquire) interlock.Code {
	if len(c.Claims) == 0 || len(c.Claims) > interlock.MaxClaims {
		return interlock.CodeTooManyClaims
	}
	for i, claim := range c.Claims {
		if _, err := engine.ParseKey(string(claim.Key)); err != nil {
			return interlock.CodeInvalidKey
		}
		if slices.ContainsFunc(c.Claims[:i], func(other interlock.Claim) bool { return other.Key == claim.Key }) {
			return interlock.CodeDuplicateClaim
		}
	}
	switch {
	case slices.ContainsFunc(c.Claims, func(claim interlock.Claim) bool { return claim.Mode > interlock.Exclusive }):
		return interlock.CodeInvalidMode
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL),
		c.Grace != engine.NoGrace && (c.Grace < 0 || c.Grace > interlock.MaxGrace),
		c.MaxHold < 0 || c.MaxHold > interlock.MaxMaxHold:
		return interlock.CodeInvalidTTL
	case c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority:
		return interlock.CodeInvalidPriority
	}
	return ""
}

// Request ids.

// repeatable are the commands for which a request id counts: the others change
// nothing, or may happen twice.
func repeatable(cmd engine.Command) bool {
	switch cmd.(type) {
	case *engine.Acquire, *engine.Release, *engine.Leave, *engine.Revoke, *engine.OpenSession:
		return true
	}
	return false
}

func (m *model) answerTo(head *engine.Head) *remembered {
	if head.RequestID == "" {
		return nil
	}
	for _, a := range m.answers {
		if a.ns == head.Namespace && a.session == head.Session && a.id == head.RequestID && m.now.Sub(a.at) < interlock.RequestIDWindow {
			return a
		}
	}
	return nil
}

// bodyOf is everything of a command that must be the same when its request id is
// repeated.
func bodyOf(cmd engine.Command) string {
	if c, ok := cmd.(*engine.Acquire); ok {
		plain := *c
		plain.Head, plain.ID, plain.Attach = engine.Head{}, [16]byte{}, false
		return fmt.Sprintf("%+v", plain)
	}
	plain := reflect.New(reflect.TypeOf(cmd).Elem())
	plain.Elem().Set(reflect.ValueOf(cmd).Elem())
	plain.Elem().FieldByName("Head").SetZero()
	return fmt.Sprintf("%T%+v", cmd, plain.Elem().Interface())
}

func (m *model) remember(cmd engine.Command, ev *engine.Event) {
	head := headOf(cmd)
	if m.answerTo(head) != nil {
		return
	}
	a := &remembered{
		ns: head.Namespace, session: head.Session, id: head.RequestID, body: bodyOf(cmd),
		outcome: ev.Answer, code: ev.Code, num: ev.Num, at: m.now,
	}
	if r := m.byID(head.Namespace, ev.ID); a.num == 0 && r != nil {
		a.num = r.num // a lease that the holder had already
	}
	m.answers = append(m.answers, a)
}

// expectRepeated: same id, same answer, with the request's state of today;
// another body is refused.
func (m *model) expectRepeated(cmd engine.Command, known *remembered) answer {
	if known.body != bodyOf(cmd) {
		return refused(interlock.CodeRequestIDReused)
	}
	r := m.byNum(known.num)
	switch {
	case known.outcome == engine.Refused:
		return refused(known.code)
	case (known.outcome == engine.Granted || known.outcome == engine.Queued) && r != nil:
		return m.showRequest(r)
	}
	return answer{outcome: known.outcome}
}

// checkAnswer compares the first answer with the expectation, after the step.
func (m *model) checkAnswer(cmd engine.Command, want answer, got *engine.Effect) error {
	if want.outcome == 0 {
		return nil
	}
	if ask, ok := cmd.(*engine.Acquire); ok && want.fresh {
		r := m.byID(ask.Namespace, ask.ID)
		if r == nil || r.why == engine.ByDeadlock {
			return m.checkVictimAnswer(ask, r, want, got)
		}
		want.about = r
		if got.Outcome == engine.Granted && r.phase == held {
			want.outcome = engine.Granted // somebody else left in the same step
		}
	}
	if got.Outcome != want.outcome {
		if want.outcome == engine.Refused && slices.Contains(want.codes, "") && got.Outcome == engine.Done {
			return nil
		}
		return fmt.Errorf("want the answer %v %v, got %v", want.outcome, want.codes, effectText(got))
	}
	switch got.Outcome {
	case engine.Refused:
		if !slices.Contains(want.codes, got.Code) {
			return fmt.Errorf("want a refusal with one of %v, got %v", want.codes, effectText(got))
		}
		if got.Message == "" {
			return fmt.Errorf("the refusal %v says nothing", effectText(got))
		}
	case engine.Queued:
		return m.checkTicket(want.about, &got.Ticket)
	case engine.Granted:
		if len(want.reused) > 0 {
			i := slices.IndexFunc(want.reused, func(r *request) bool { return r.fence == got.Lease.Fence })
			if i < 0 || !got.Lease.Reused {
				return fmt.Errorf("the lease %+v is none that the holder has already", got.Lease)
			}
			want.about = want.reused[i]
		}
		return m.checkLease(want.about, &got.Lease)
	}
	return nil
}

// checkVictimAnswer: the new request closed a cycle and was its victim.
func (m *model) checkVictimAnswer(ask *engine.Acquire, r *request, want answer, got *engine.Effect) error {
	if want.outcome != engine.Queued {
		return fmt.Errorf("want %v, but the request is nowhere: %v", want.outcome, effectText(got))
	}
	if r != nil { // it stood in line for a moment, and permitVictim has judged
		if got.Outcome == engine.Queued {
			return nil
		}
	} else {
		r = m.newRequest(ask, m.highestNum()+1)
		r.phase = waiting
		m.requests = append(m.requests, r)
		defer func() { m.requests = m.requests[:len(m.requests)-1] }()
		if got.Conflict == nil {
			return fmt.Errorf("a refusal for a deadlock without its cycle: %v", effectText(got))
		}
		if err := m.permitVictim(r, got.Conflict.Cycle); err != nil {
			return err
		}
	}
	if got.Outcome != engine.Refused || got.Code != interlock.CodeDeadlock {
		return fmt.Errorf("want a refusal as a deadlock's victim, got %v", effectText(got))
	}
	return nil
}

func (m *model) checkTicket(r *request, got *interlock.Ticket) error {
	if got.ID != interlock.TicketID(r.ask.ID) {
		return fmt.Errorf("the ticket is not that of %v", r)
	}
	if got.Position < 1 || got.Length < got.Position {
		return fmt.Errorf("%v: position %d of %d", r, got.Position, got.Length)
	}
	return nil
}

// checkLease compares a lease as its holder sees it with the model.
func (m *model) checkLease(r *request, got *interlock.Lease) error {
	bad := func(what string, want, have any) error {
		return fmt.Errorf("%v: %s: want %v, got %v", r, what, want, have)
	}
	switch {
	case got.ID != interlock.LeaseID(r.ask.ID):
		return bad("id", r.ask.ID, got.ID)
	case got.Fence != r.fence:
		return bad("fence", r.fence, got.Fence)
	case !slices.Equal(got.Claims, r.ask.Claims):
		return bad("claims", r.ask.Claims, got.Claims)
	case got.Flow != r.ask.Flow || got.Purpose != r.ask.Purpose:
		return bad("flow and purpose", r.ask.Flow, got.Flow)
	case got.TTL != r.ttl() || got.Grace != r.ask.Grace:
		return bad("ttl and grace", r.ttl(), got.TTL)
	}
	if got.Changed != r.changed {
		return bad("changed", r.changed, got.Changed)
	}
	var notes []interlock.Fence
	for i, n := range got.Notes {
		if i > 0 && n.Age > got.Notes[i-1].Age {
			return bad("notes", "the oldest first", got.Notes)
		}
		notes = append(notes, n.Fence)
	}
	want := m.notesAt(r.ns, r.ask.Claims)
	slices.Sort(notes)
	slices.Sort(want)
	if !slices.Equal(notes, want) {
		return bad("notes", want, notes)
	}
	end := r.hardEnd()
	if r.phase == inGrace {
		end = r.graceTo
	}
	end = later(end, at(m.now)) // what is overdue ends now
	if e := m.now.Add(got.ExpiresIn); e < end.lo || e > end.hi {
		return bad("hard end", end, e)
	}
	state := interlock.Held
	soft := r.ttlEnd().add(-r.ttl() / 3)
	switch {
	case r.phase == inGrace:
		state = interlock.Grace
	case r.ask.MaxHold > 0 || soft.lo != soft.hi:
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
		text += fmt.Sprintf(" %v (%s)", e.Code, e.Message)
	}
	if !e.Lease.ID.IsZero() {
		text += fmt.Sprintf(" %s fence=%d %v until +%v", claimsText(e.Lease.Claims), e.Lease.Fence, e.Lease.State, time.Duration(e.Lease.ExpiresIn))
	}
	if !e.Ticket.ID.IsZero() {
		text += fmt.Sprintf(" position %d of %d", e.Ticket.Position, e.Ticket.Length)
	}
	return text
}
