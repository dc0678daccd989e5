package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// answer is the expected answer to a command, as far as it is known before the command is
// carried out.
type answer struct {
	none    bool // no answer at all
	outcome interlock.Outcome
	codes   []interlock.Code // for Refused: one of them
	about   *request         // the request described in the answer
	again   bool             // about a lease that stands in line again
	fresh   bool             // about the request that this very command makes
	reused  []*request       // Granted, and it is one of these
	session *session
	worker  *worker // a worker that pulls: check has the details

	check func(got *engine.Effect) error // more about it, nil for nothing
}

func refusalKey(codes ...interlock.Code) answer { return answer{outcome: engine.Refused, codes: codes} }

// expect works out the answer to cmd from the state before it.
func (m *model) expect(cmd engine.Command) answer {
	head := cmd.Header()
	if known := m.known(cmd); known != nil && repeatable(cmd) {
		return m.expectRepeated(cmd, known)
	}
	switch c := cmd.(type) {
	case *engine.OpenSession:
		if c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL) {
			return refusalKey(interlock.CodeInvalidTTL)
		}
		return answer{outcome: engine.Done}
	case *engine.CloseSession:
		if s := m.sessionByID(head.Namespace, head.Session); s != nil && s.ended && s.why == record.BySession {
			return answer{outcome: engine.Done} // it was wanted
		}
		return m.withSession(head, func(*session) answer { return answer{outcome: engine.Done} })
	case *engine.KeepAlive:
		return answer{outcome: engine.Done}
	case *engine.Heartbeat, *engine.Attach:
		return m.withSession(head, func(s *session) answer { return answer{outcome: engine.Done, session: s} })
	case *engine.Acquire:
		return m.expectAcquire(c)
	case *engine.StartRun:
		return m.expectRun(c)
	case *engine.Commit:
		return m.expectCommit(c)
	case *engine.Convert:
		return m.expectConvert(c)
	case *engine.Arrive:
		return m.expectArrive(c)
	case *engine.Declare:
		return m.expectDeclare(c)
	case *engine.Park:
		return m.expectPark(c)
	case *engine.Resume:
		return m.expectResume(c)
	case *engine.ClaimEffect:
		return m.expectClaim(c)
	case *engine.SettleEffect:
		return m.expectSettling(c)
	case *engine.ForgetEffects:
		return m.expectForgetting(c)
	case *engine.SetPattern:
		if c.Pattern.WriterQueue != "" && m.queue(head.Namespace, c.Pattern.WriterQueue) == nil {
			return refusalKey(interlock.CodeInvalidPattern, interlock.CodeUnknownQueue)
		}
		return refusalKey(interlock.CodeInvalidPattern, "") // or Done: what is wrong with it the scripts say
	case *engine.Configure:
		return refusalKey(interlock.CodeInvalidPattern, "") // likewise
	case *engine.SetWebhook, *engine.RotateWebhook, *engine.DeleteWebhook, *engine.AckWebhook:
		return m.expectWebhook(c)
	case *engine.DeleteNamespace:
		return m.expectDeletion(c)
	case *engine.DropPattern:
		if !slices.ContainsFunc(m.patterns[head.Namespace], func(p *interlock.Pattern) bool { return p.Name == c.Name }) {
			return refusalKey(interlock.CodeUnknownPattern)
		}
		return answer{outcome: engine.Done}
	case *engine.RevertPattern:
		return m.expectRevert(c)
	case *engine.Poll:
		return m.withTicket(head, c.Ticket, func(r *request) answer {
			if m.forsakes(c, r) {
				return refusalKey(interlock.CodeTooManyRuns)
			}
			if codes := m.notTaken(head, r.subject()); len(codes) > 0 {
				return refusalKey(codes...)
			}
			return m.showRequest(r)
		})
	case *engine.Leave:
		if slices.ContainsFunc(
			m.workers, func(w *worker) bool { return w.pull.Namespace == c.Namespace && w.pull.ID == c.Ticket },
		) {
			return answer{outcome: engine.Done}
		}
		if m.task(c.Namespace, interlock.TaskID(c.Ticket)) != nil {
			return answer{outcome: engine.Done} // its followers follow it no more
		}
		return m.withTicket(head, c.Ticket, func(r *request) answer {
			if r.subject() != r {
				return answer{outcome: engine.Done} // the lease stays as it is
			}
			if r.phase == over || r.phase == closed {
				return answer{outcome: engine.Refused, codes: append(gone(r), "")} // or Done: it is what was wanted
			}
			return answer{outcome: engine.Done}
		})
	case *engine.GetLease:
		return m.withLease(head, c.Lease, func(r *request) answer { return answer{outcome: engine.Granted, about: r} })
	case *engine.Renew:
		return m.expectRenew(c)
	case *engine.Release:
		return m.withLease(head, c.Lease, func(r *request) answer {
			if c.Run && !r.isRun() {
				return refusalKey(interlock.CodeUnknownLease)
			}
			return answer{outcome: engine.Done}
		})
	case *engine.Revoke:
		if !slices.ContainsFunc(m.requests, func(r *request) bool { return m.revokedBy(c, r) }) {
			return refusalKey(interlock.CodeFenced)
		}
		return answer{outcome: engine.Done}
	case *engine.RequestYield:
		return m.expectRequestYield(c)
	case *engine.CheckFence:
		if r := m.leaseAt(c.Namespace, c.Fence, func(interlock.Claim) bool { return true }); r != nil && r.phase == offered {
			return answer{} // that fence cannot be known yet
		}
		write := interlock.Claim{Key: m.spell(c.Namespace, c.Key), Mode: interlock.Exclusive}
		if _, err := engine.ParseKey(string(write.Key)); err != nil {
			return refusalKey(interlock.CodeInvalidKey)
		}
		r := m.leaseAt(c.Namespace, c.Fence, func(have interlock.Claim) bool { return covers(have, write) })
		if r != nil && (r.member == nil || r.member.phase != closed) {
			return answer{outcome: engine.Done}
		}
		return refusalKey(interlock.CodeFenced)
	}
	return m.expectWork(cmd)
}

func (m *model) expectRenew(c *engine.Renew) answer {
	if c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL) {
		return refusalKey(interlock.CodeInvalidTTL)
	}
	return m.withHeld(&c.Head, c.Lease, func(r *request) answer {
		if codes := m.notTaken(&c.Head, r); len(codes) > 0 {
			return refusalKey(codes...)
		}
		if c.TTL != 0 && r.member != nil {
			return refusalKey(interlock.CodeInvalidRequest)
		}
		ttl := m.renewedTTL(r, c.TTL)
		return answer{outcome: engine.Granted, about: r, check: func(got *engine.Effect) error {
			if got.Outcome == engine.Granted && got.Lease.TTL != ttl && r.member == nil {
				return fmt.Errorf("%v is renewed with a ttl of %v, want %v", r, got.Lease.TTL, ttl)
			}
			return nil
		}}
	})
}

func (m *model) withSession(head *engine.Head, then func(*session) answer) answer {
	s := m.sessionByID(head.Namespace, head.Session)
	switch {
	case s == nil:
		return refusalKey(interlock.CodeUnknownSession)
	case s.ended, s.deadline().mustBeDue(m.now):
		return refusalKey(interlock.CodeSessionEnded)
	}
	return then(s)
}

// mine reports whether the caller may learn of r: knowing the id is enough, except for a
// session's request in another session's name.
func mine(head *engine.Head, r *request) bool {
	return head.Session.IsZero() || r.session == nil || r.session.id == head.Session
}

func (m *model) withTicket(head *engine.Head, id interlock.TicketID, then func(*request) answer) answer {
	r := m.byID(head.Namespace, id)
	switch {
	case r != nil && r.member != nil && r.phase == over: // it need not be remembered
		return refusalKey(append(gone(r), interlock.CodeUnknownTicket, "")...)
	case r != nil && (r.phase == over || r.phase == closed) && !mine(head, r):
		return refusalKey(append(ended(head, r, interlock.CodeUnknownTicket), "")...)
	case r == nil || !mine(head, r):
		return refusalKey(interlock.CodeUnknownTicket)
	}
	return then(r)
}

// ended returns the codes for an ended request: the reason, or, for another session, that it is
// unknown. The engine need not remember its owner, so both are right there.
func ended(head *engine.Head, r *request, unknown interlock.Code) []interlock.Code {
	codes := gone(r)
	if !mine(head, r) {
		codes = append(codes, unknown)
	}
	return codes
}

// withLease finds a lease by its id. A request that was never granted is no lease.
func (m *model) withLease(head *engine.Head, id interlock.LeaseID, then func(*request) answer) answer {
	r := m.byID(head.Namespace, id)
	switch {
	case r != nil && r.member != nil && r.phase == over: // it need not be remembered
		return refusalKey(append(gone(r), interlock.CodeUnknownLease)...)
	case r != nil && r.base != nil && r.why == record.ByBase && r.base.away:
		return answer{} // as in showRequest
	case r != nil && r.base != nil && r.phase == over: // it had a ticket only
		return refusalKey(append(gone(r.subject()), interlock.CodeUnknownLease)...)
	case r != nil && r.member != nil && r.member.phase == closed && mine(head, r):
		return refusalKey(interlock.CodeExpired, interlock.CodeTaken, interlock.CodeInvalidMode, interlock.CodeInvalidRequest)
	case r != nil && (r.phase == over || r.phase == closed):
		return refusalKey(ended(head, r, interlock.CodeUnknownLease)...)
	case r == nil || !mine(head, r) || r.phase == waiting && !r.goesBack:
		return refusalKey(interlock.CodeUnknownLease)
	}
	return then(r)
}

func (m *model) leaseAt(ns interlock.Namespace, fence interlock.Fence, fits func(interlock.Claim) bool) *request {
	for _, r := range m.requests {
		if r.ns == ns && r.active() && r.fence == fence && slices.ContainsFunc(r.claims, fits) {
			return r
		}
	}
	return nil
}

// revokedBy reports whether c takes back r.
func (m *model) revokedBy(c *engine.Revoke, r *request) bool {
	return r.ns == c.Namespace && (r.holds() || r.phase == parked) && r.fence == c.Fence && slices.ContainsFunc(
		r.claims, func(have interlock.Claim) bool {
			return have.Key == m.spell(c.Namespace, c.Key) || have.Key == c.Key // of a lease that is older than the pattern
		},
	)
}

// gone returns the codes that may say why r is over.
func gone(r *request) []interlock.Code {
	if r.phase == parked {
		return []interlock.Code{interlock.CodeParked}
	}
	switch r.why {
	case record.ByTarget:
		return []interlock.Code{interlock.CodeSessionEnded}
	case record.ByBreak:
		return []interlock.Code{interlock.CodeBroken}
	case record.ByPreemption:
		return []interlock.Code{interlock.CodePreempted}
	case record.ByParking:
		return []interlock.Code{interlock.CodeExpired, interlock.CodeTaken}
	case record.ByTakeOver:
		return []interlock.Code{interlock.CodeTaken}
	case record.ByPattern:
		return []interlock.Code{interlock.CodeTooManyPermits}
	case record.ByFull:
		return []interlock.Code{interlock.CodeTooManyRuns}
	case record.ByWaitLimit:
		return []interlock.Code{interlock.CodeWaitLimit}
	case record.ByBase:
		if r.member != nil {
			return append(gone(r.member), interlock.CodeExpired, interlock.CodeTaken, interlock.CodeLeft)
		}
		if r.base.phase == inGrace {
			return []interlock.Code{interlock.CodeInGrace}
		}
		return gone(r.base)
	case record.ByRelease, record.ByNack, record.ByQuestion:
		return []interlock.Code{interlock.CodeReleased}
	case record.ByRevocation:
		return []interlock.Code{interlock.CodeRevoked}
	case record.ByDeadlock:
		if r.fence > 0 {
			return []interlock.Code{interlock.CodeRevoked, interlock.CodeDeadlock} // the latter of a ticket
		}
		return []interlock.Code{interlock.CodeDeadlock}
	case record.ByLeaving:
		return []interlock.Code{interlock.CodeLeft, interlock.CodeReleased}
	case record.BySession:
		return []interlock.Code{interlock.CodeSessionEnded, interlock.CodeReleased}
	case record.ByDeath:
		return []interlock.Code{interlock.CodeSessionEnded, interlock.CodeExpired, interlock.CodeTaken}
	case record.ByLapse:
		return []interlock.Code{interlock.CodeOfferLapsed, interlock.CodeLeft}
	}
	return []interlock.Code{interlock.CodeExpired, interlock.CodeTaken}
}

// showRequest is the answer to a query about a request.
func (m *model) showRequest(r *request) answer {
	r = r.subject()
	switch r.phase {
	case waiting:
		return answer{outcome: engine.Queued, about: r}
	case over, closed:
		if r.why == record.ByBase && r.base != nil && r.base.away {
			return answer{} // the report of a conversion of a parked lease is not specified
		}
		return refusalKey(gone(r)...)
	case parked:
		return refusalKey(interlock.CodeParked)
	}
	return answer{outcome: engine.Granted, about: r}
}

// expectTaken: a party that comes again takes up its offer, if it may hold that.
func (m *model) expectTaken(head *engine.Head, r *request) answer {
	if codes := m.notTaken(head, r); len(codes) > 0 {
		return refusalKey(codes...)
	}
	return answer{outcome: engine.Granted, about: r}
}

func (m *model) expectAcquire(c *engine.Acquire) answer {
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	if codes := m.wrongWith(c); len(codes) > 0 {
		return refusalKey(codes...)
	}
	r, head := m.made(c, m.highestNum()+1), &c.Head
	if covering := m.covering(r); len(covering) > 0 {
		return answer{outcome: engine.Granted, reused: covering}
	}
	if code := m.outOfOrder(r); code != "" {
		return refusalKey(code)
	}
	if lease := m.predecessor(c, r); lease != nil {
		return answer{outcome: engine.Granted, fresh: true}
	}
	if c, ok := r.membership(); ok {
		for _, q := range m.inPhase(waiting, offered, held, inGrace, closed) {
			if other, ok := q.membership(); ok && q.ns == r.ns && other.Key == c.Key && other.Count != c.Count {
				return refusalKey(interlock.CodeMismatch)
			} else if ok && q.ns == r.ns && other.Key == c.Key && r.session != nil && q.party() == r.party() {
				switch q.phase { // a flow is one member
				case waiting:
					return answer{outcome: engine.Queued, about: q}
				case offered:
					return m.expectTaken(head, q)
				}
			}
		}
	}
	if c, ok := r.barrier(); ok {
		for _, q := range m.atBarrier(r.ns, c.Key, waiting, offered, held, inGrace, closed) {
			if other, _ := q.barrier(); other.Count != c.Count {
				return refusalKey(interlock.CodeMismatch)
			}
			if r.session == nil || q.base != nil || q.party() != r.party() {
				continue
			}
			switch q.phase { // each party counts once
			case waiting:
				return answer{outcome: engine.Queued, about: q}
			case offered:
				return m.expectTaken(head, q)
			}
		}
	}
	_, isBarrier := r.barrier()
	switch {
	case m.neverServed(r):
		return refusalKey(interlock.CodeTooManyPermits)
	case m.free(r):
		return answer{outcome: engine.Granted, fresh: true}
	case m.atBest().free(r):
		return answer{} // a task may block it, or stand aside
	case c.OnConflict == interlock.Fail:
		return refusalKey(m.refusals(r)...)
	case c.OnConflict == interlock.Skip:
		return answer{outcome: engine.Skipped}
	case m.waitsForOwn(r, c.Flow):
		return refusalKey(interlock.CodeInvalidRequest)
	case c.MaxPosition > 0 && m.earlier(r) >= c.MaxPosition && !isBarrier:
		return answer{} // an alternative, or an ancestor of the key, may have a shorter queue
	}
	return answer{outcome: engine.Queued, fresh: true}
}

// predecessor returns the lease that ends for the request r of a command.
func (m *model) predecessor(c *engine.Acquire, r *request) (found *request) {
	before := m.sessionByID(c.Namespace, c.TakeOver)
	if before == nil || before.ended || r.session == nil || before == r.session || c.Any ||
		before.owner != r.session.owner {
		return nil
	}
	for _, q := range m.requests {
		costs := func(c interlock.Claim) bool { return m.spends(q.ns, c) }
		if q.session != before || q.phase != held || !claimsSame(q.claims, r.claims) || q.ask.Group != r.ask.Group ||
			q.ask.LockDelay > 0 || q.task != nil || q.org != "" || q.set != nil || q.member != nil || slices.ContainsFunc(q.claims, costs) {
			continue
		}
		_, member := q.membership()
		_, barrier := q.barrier()
		inUse := slices.ContainsFunc(m.requests, func(w *request) bool {
			return w.base == q && w.phase == waiting ||
				w != q && w.holds() && w.holder() == q.holder() && anyClash(w.claims, q.claims)
		})
		if !member && !barrier && !inUse && (found == nil || q.fence < found.fence) {
			found = q
		}
	}
	return found
}

func claimsSame(a, b []interlock.Claim) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c interlock.Claim) bool { return !slices.Contains(b, c) })
}

// earlier returns how many waiters may stand ahead of r at any key, its own flow's among them.
func (m *model) earlier(r *request) (n int) {
	for _, q := range m.requests {
		if q != r && q.ns == r.ns && q.phase == waiting && (anyClash(q.wants(), r.wants()) || shareKey(q, r)) {
			if n++; q.ask.Any {
				n += len(q.claims) - 1 // each alternative may stand in the line of one key
			}
		}
	}
	return n
}

func shareKey(q, r *request) bool {
	return slices.ContainsFunc(q.claims, func(a interlock.Claim) bool {
		return slices.ContainsFunc(r.claims, func(b interlock.Claim) bool { return a.Key == b.Key })
	})
}

// refusals returns the codes that may say why r cannot be had at once.
func (m *model) refusals(r *request) []interlock.Code {
	codes, _ := m.short(r, r.wants())
	if slices.ContainsFunc(m.requests, func(q *request) bool { return m.inTheWay(q, r, r.wants()) }) {
		codes = append(codes, interlock.CodeHeld)
	}
	if _, ok := r.barrier(); ok {
		codes = append(codes, interlock.CodeHeld)
	}
	return codes
}

// checkAnswer compares the first answer with the expectation, after the step.
func (m *model) checkAnswer(cmd engine.Command, want answer, got *engine.Effect) error {
	if want.outcome == 0 {
		return nil
	}
	if want.worker != nil {
		return want.check(got)
	}
	if want.again {
		switch {
		case want.about.why == record.ByDeadlock:
			want = refusalKey(interlock.CodeDeadlock)
		case want.about.phase == held:
			want = answer{outcome: engine.Granted, about: want.about} // another caller left in the same step
		}
	}
	if want.fresh {
		id, _ := idOf(cmd)
		r := m.byID(cmd.Header().Namespace, id)
		if r == nil || r.why == record.ByDeadlock && r.fence == 0 {
			return m.checkVictimAnswer(cmd, r, want, got)
		}
		want.about = r.subject()
		if r.base != nil && r.phase == over && r.base.why == record.ByDeadlock && r.base.ended == m.now {
			want.about = r.base // the lease was forfeited in the same step
		}
		switch {
		case r.phase == over && r.why == record.ByBreak:
			want = refusalKey(interlock.CodeBroken) // another party was a deadlock's victim
		case r.phase != waiting:
			want.outcome = engine.Granted // another waiter left, or stood aside, in the same step
		}
	}
	if r := want.about; want.outcome == engine.Granted && r != nil && r.phase == over && r.why == record.ByDeadlock &&
		r.ended == m.now {
		want = refusalKey(interlock.CodeDeadlock) // it was granted, and forfeited in the same step
	}
	if got.Outcome != want.outcome {
		if want.outcome == engine.Refused && slices.Contains(want.codes, "") && got.Outcome == engine.Done {
			return nil
		}
		return fmt.Errorf("want the answer %v %v, got %v", want.outcome, want.codes, effectText(got))
	}
	if want.check != nil {
		if err := want.check(got); err != nil {
			return err
		}
	}
	switch got.Outcome {
	case engine.Refused:
		if !slices.Contains(want.codes, got.Code) {
			return fmt.Errorf("want a refusal with one of %v, got %v", want.codes, effectText(got))
		}
		if prose.Sentence(got.Message) == "" {
			return fmt.Errorf("the refusal %v says nothing", effectText(got))
		}
	case engine.Queued:
		if want.about == nil && got.Question != nil {
			return nil
		}
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
func (m *model) checkVictimAnswer(cmd engine.Command, r *request, want answer, got *engine.Effect) error {
	if want.outcome != engine.Queued {
		return fmt.Errorf("want %v, but the request is nowhere: %v", want.outcome, effectText(got))
	}
	if r == nil { // else it stood in line for a moment, and permitVictim has judged
		r = m.made(cmd, m.highestNum()+1)
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
