package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// push is an effect that somebody other than the caller is told, or the caller
// a second time.
type push struct {
	to      engine.Caller
	outcome engine.Outcome
	about   *request
	must    bool // otherwise it may also be left out
	told    bool
}

// observe follows one step of the engine: it judges every event by the state in
// which it happened, then the answer and the pushes, then what must hold between
// steps. What is due by the time of a command ends before the command is carried
// out, so its answer is expected from the state after that.
func (m *model) observe(cmd engine.Command, out *engine.Output) error {
	head := headOf(cmd)
	m.now = head.At
	var want answer
	var known, expected bool
	var pushes []*push
	for i := range out.Events {
		ev := &out.Events[i]
		if !byTime(ev) && !expected {
			want, known, expected = m.expect(cmd), m.answerTo(head) != nil, true
		}
		if err := m.permit(cmd, ev); err != nil {
			return fmt.Errorf("event %v of request %d, session %d: %w", ev.Kind, ev.Num, ev.Session, err)
		}
		pushes = append(pushes, m.pushesFor(cmd, ev)...)
		m.fold(cmd, ev)
	}
	if !expected {
		want, known = m.expect(cmd), m.answerTo(head) != nil
	}
	if err := m.checkRemembered(cmd, known, out); err != nil {
		return err
	}
	effects := slices.DeleteFunc(slices.Clone(out.Effects), func(e engine.Effect) bool { return e.Outcome == engine.Warned })
	for i := range out.Effects {
		if e := &out.Effects[i]; e.Outcome == engine.Warned {
			if err := m.checkWarning(e); err != nil {
				return err
			}
		}
	}
	var first *engine.Effect
	if head.From != nil && !want.none {
		i := slices.IndexFunc(effects, func(e engine.Effect) bool {
			return e.To == head.From && e.Outcome != engine.Lost
		})
		if i < 0 {
			return errors.New("the caller got no answer")
		}
		told := effects[i]
		first, effects = &told, slices.Delete(effects, i, i+1)
	}
	if first != nil {
		if err := m.heard(cmd, first); err != nil {
			return err
		}
		if err := m.checkAnswer(cmd, want, first); err != nil {
			return err
		}
	}
	m.forget(cmd)
	for _, p := range pushes {
		// A wait that was over in its own step needs one answer only.
		if first != nil && p.to == head.From && p.outcome == first.Outcome && p.outcome != engine.Lost {
			p.told = true
		}
	}
	return m.checkPushes(pushes, effects)
}

// byTime reports whether time alone brought ev about.
func byTime(ev *engine.Event) bool {
	switch ev.Reason {
	case engine.ByTTL, engine.ByMaxHold, engine.ByDeath, engine.ByLapse:
		return ev.RequestID == ""
	}
	return false
}

// pushesFor gives the pushes that ev brings with it, from the state before it.
func (m *model) pushesFor(cmd engine.Command, ev *engine.Event) (list []*push) {
	r := m.byNum(ev.Num)
	if r == nil {
		return nil
	}
	switch ev.Kind {
	case engine.EvAdmitted:
		if to := m.listener(r); to != nil {
			list = append(list, &push{to: to, outcome: engine.Granted, about: r, must: true})
		}
	case engine.EvQueued:
	case engine.EvClaimed:
		if _, ok := cmd.(*engine.Attach); ok {
			list = append(list, &push{to: headOf(cmd).From, outcome: engine.Granted, about: r, must: true})
		}
	case engine.EvLeft:
		if r.attached != nil {
			// The victim of its own request may get the refusal as its only answer.
			own := r.attached == headOf(cmd).From && ev.Reason == engine.ByDeadlock
			list = append(list, &push{to: r.attached, outcome: engine.Refused, about: r, must: !own})
		} else if r.session != nil && r.session.receiver != nil {
			list = append(list, &push{to: r.session.receiver, outcome: engine.Refused, about: r})
		}
	case engine.EvGrace, engine.EvEnded:
		if r.session == nil || r.session.receiver == nil {
			break
		}
		switch ev.Reason {
		case engine.ByTTL, engine.ByMaxHold, engine.ByRevocation:
			list = append(list, &push{to: r.session.receiver, outcome: engine.Lost, about: r, must: true})
		case engine.ByDeath, engine.ByLapse, engine.BySession:
			list = append(list, &push{to: r.session.receiver, outcome: engine.Lost, about: r})
		}
	}
	return list
}

func (m *model) checkPushes(due []*push, effects []engine.Effect) error {
	for i := range effects {
		got := &effects[i]
		if got.To == nil {
			continue
		}
		k := slices.IndexFunc(due, func(p *push) bool {
			id := got.Ticket.ID
			if got.Outcome != engine.Refused {
				id = interlock.TicketID(got.Lease.ID)
			}
			return !p.told && p.to == got.To && p.outcome == got.Outcome && (id == interlock.TicketID(p.about.ask.ID) || id.IsZero())
		})
		if k < 0 {
			return fmt.Errorf("%v was told %s, which does not concern it", got.To, effectText(got))
		}
		due[k].told = true
		if got.Outcome == engine.Granted && due[k].about.phase == held {
			if err := m.checkLease(due[k].about, &got.Lease); err != nil {
				return err
			}
		}
	}
	for _, p := range due {
		if p.must && !p.told {
			return fmt.Errorf("%v was not told %v about %v", p.to, p.outcome, p.about)
		}
	}
	return nil
}

// checkWarning: a warning goes to the receiver of a lease of which at most a
// third of the time is left.
func (m *model) checkWarning(got *engine.Effect) error {
	for _, r := range m.requests {
		if interlock.LeaseID(r.ask.ID) != got.Lease.ID || r.fence == 0 {
			continue
		}
		if r.phase != held && r.ended == m.now {
			return nil // its soft and its hard end were due at once
		}
		soft := r.ttlEnd().add(-r.ttl() / 3)
		if r.ask.MaxHold > 0 {
			soft = earlier(soft, at(r.granted.Add(r.ask.MaxHold-r.ask.MaxHold/3)))
		}
		if r.session == nil || r.session.receiver != got.To || !soft.mayBeDue(m.now) {
			return fmt.Errorf("a warning without reason for %v: %v", r, effectText(got))
		}
		return nil
	}
	return fmt.Errorf("a warning for what is not held: %v", effectText(got))
}

// checkRemembered: an answer with a request id is remembered once, unless it is a
// refusal that another attempt may be spared.
func (m *model) checkRemembered(cmd engine.Command, before bool, out *engine.Output) error {
	n := 0
	for i := range out.Events {
		if out.Events[i].RequestID != "" {
			n++
		}
	}
	head := headOf(cmd)
	if !repeatable(cmd) || head.RequestID == "" {
		return nil
	}
	switch {
	case before && n > 0, n > 1:
		return fmt.Errorf("the request id is remembered %d times more", n)
	case !before && n == 0:
		for i := range out.Effects {
			if e := &out.Effects[i]; e.To == head.From && (e.Outcome != engine.Refused || e.Code == interlock.CodeHeld) {
				return errors.New("the answer to the request id is not remembered")
			}
		}
	}
	return nil
}

// heard takes in what is not journaled: that somebody was heard of, or listens.
func (m *model) heard(cmd engine.Command, got *engine.Effect) error {
	head := headOf(cmd)
	s := m.sessionByID(head.Namespace, head.Session)
	switch c := cmd.(type) {
	case *engine.Heartbeat, *engine.Attach:
		if got.Outcome != engine.Done {
			break
		}
		s.beat = at(m.now)
		if _, ok := c.(*engine.Attach); ok {
			s.receiver, s.link = head.From, head.Link
		}
		if got.Session.ExpiresIn != s.ttl || got.Session.ID != s.id {
			return fmt.Errorf("a heartbeat gives a full ttl, and not %v", got.Session.ExpiresIn)
		}
		return m.checkLosses(s, got.Losses)
	case *engine.Renew:
		if got.Outcome != engine.Granted {
			break
		}
		r := m.byID(head.Namespace, c.Lease)
		if r == nil {
			return errors.New("a lease was renewed that does not exist")
		}
		if r.session != nil {
			r.session.beat = at(m.now)
		} else {
			r.beat = at(m.now)
		}
	case *engine.Poll:
		if r := m.byID(head.Namespace, c.Ticket); r != nil && got.Outcome == engine.Queued {
			m.attach(r, head, c.Attach)
		}
	case *engine.Acquire:
		if r := m.byID(head.Namespace, c.ID); r != nil && !c.Attach {
			r.attached = nil
		}
		if known := m.answerTo(head); known != nil && got.Outcome == engine.Queued {
			if r := m.byNum(known.num); r != nil && r.phase == waiting {
				m.attach(r, head, c.Attach)
			}
		}
	}
	return nil
}

// checkLosses: a heartbeat tells of every lease that was lost since the last one.
func (m *model) checkLosses(s *session, losses []engine.Loss) error {
	for _, r := range s.losses {
		if !slices.ContainsFunc(losses, func(l engine.Loss) bool { return l.Lease.Fence == r.fence }) {
			return fmt.Errorf("the heartbeat does not tell of the loss of %v", r)
		}
	}
	for _, l := range losses {
		if r := m.byID(s.ns, l.Lease.ID); r == nil || r.session != s {
			return fmt.Errorf("the heartbeat tells of a loss of somebody else: %+v", l)
		}
	}
	s.losses = nil
	return nil
}

func (m *model) attach(r *request, head *engine.Head, on bool) {
	r.lapse = at(m.now.Add(interlock.BareTicketTTL))
	switch {
	case on:
		r.attached, r.link = head.From, head.Link
	case r.link == head.Link: // a look from elsewhere takes the answer away from nobody
		r.attached = nil
	}
}

// forget takes in who no longer listens.
func (m *model) forget(cmd engine.Command) {
	switch c := cmd.(type) {
	case *engine.Detach:
		for _, r := range m.requests {
			meant := r.session != nil && r.session.id == c.Session
			if !c.Ticket.IsZero() {
				meant = interlock.TicketID(r.ask.ID) == c.Ticket
			}
			if r.ns == c.Namespace && meant && r.attached != nil && r.link == c.Link {
				r.attached, r.lapse = nil, at(m.now.Add(interlock.BareTicketTTL))
			}
		}
		if s := m.sessionByID(c.Namespace, c.Session); s != nil && c.Ticket.IsZero() && s.link == c.Link {
			s.receiver = nil
		}
	case *engine.Recover:
		for _, s := range m.sessions {
			s.receiver, s.losses, s.beat = nil, nil, m.anew(s.ttl).add(-s.ttl)
		}
		for _, r := range m.requests {
			r.attached = nil
			switch r.phase {
			case waiting:
				r.lapse = m.anew(interlock.BareTicketTTL)
			case offered:
				wait := interlock.OfferTTL
				if r.session == nil {
					wait = interlock.BareOfferTTL
				}
				r.lapse = span{min(r.lapse.lo, m.now.Add(wait)), m.anew(wait).hi}
			case held:
				r.beat = m.anew(r.ttl()).add(-r.ttl())
			case inGrace:
				r.graceTo = span{r.graceTo.lo, max(r.graceTo.hi, m.anew(r.ask.Grace).hi)}
			}
		}
	}
}

// anew is a deadline that a restart gave: d from now, and up to a quarter of it
// later.
func (m *model) anew(d time.Duration) span { return span{m.now.Add(d), m.now.Add(d + d/4)} }

// between checks what must hold between steps. settled says that the timers were
// served up to now.
func (m *model) between(settled bool) error {
	active := m.inPhase(offered, held, inGrace)
	for i, a := range active {
		for _, b := range active[:i] {
			if conflict(a, b) {
				return fmt.Errorf("%v and %v exclude each other (I1)", a, b)
			}
		}
	}
	for _, r := range m.inPhase(waiting) {
		if len(m.blockers(r)) == 0 {
			return fmt.Errorf("%v was left waiting, and nothing blocks it (I4)", r)
		}
		if m.onCycle(r, func(*request) bool { return true }) {
			return fmt.Errorf("%v waits for itself (I6)", r)
		}
		if r.session != nil && r.session.ended {
			return fmt.Errorf("%v is of a session that has ended", r)
		}
	}
	for _, r := range active {
		if r.session != nil && r.session.ended && r.phase != inGrace {
			return fmt.Errorf("%v is of a session that has ended", r)
		}
	}
	if settled {
		if what, end := m.nextDue(); what != nil && end <= m.now {
			return fmt.Errorf("%v should have come to its next deadline at %d, and it is %d (I8)", what, end, m.now)
		}
	}
	return nil
}

// nextDue gives the next thing that time must end, and when at the latest.
func (m *model) nextDue() (what any, end engine.Time) {
	note := func(w any, s span) {
		if what == nil || s.hi < end {
			what, end = w, s.hi
		}
	}
	for _, s := range m.sessions {
		if !s.ended {
			note(fmt.Sprintf("session %s", s.agent), s.deadline())
		}
	}
	for _, r := range m.requests {
		switch {
		case r.phase == held:
			note(r, r.hardEnd())
		case r.phase == inGrace:
			note(r, r.graceTo)
		case r.phase == offered, r.phase == waiting && r.session == nil && r.attached == nil:
			note(r, r.lapse)
		}
	}
	return what, end
}

// checkViews compares what anybody may look at with the model.
func (m *model) checkViews(e *engine.Engine, namespaces []interlock.Namespace, keys []interlock.Key) error {
	var live, lingering int // an ended session stays for as long as a lease of it is in grace
	for _, s := range m.sessions {
		switch {
		case !s.ended:
			live++
		case slices.ContainsFunc(m.inPhase(inGrace), func(r *request) bool { return r.session == s }):
			lingering++
		}
	}
	c := e.Counts()
	active, offers, line := len(m.inPhase(offered, held, inGrace)), len(m.inPhase(offered)), len(m.inPhase(waiting))
	if c.Sessions < live || c.Sessions > live+lingering || c.Waiters != line || c.Leases < active-offers || c.Leases > active {
		return fmt.Errorf("the engine counts %+v, the model %d sessions, %d leases with %d offers, %d waiters", c, live, active, offers, line)
	}
	if what, end := m.nextDue(); what != nil {
		if timer, ok := e.NextTimer(); !ok || timer > end {
			return fmt.Errorf("%v is due at %d, but the next timer is at %d (%v)", what, end, timer, ok)
		}
	}
	for _, ns := range namespaces {
		for _, key := range keys {
			if err := m.checkKey(e, ns, key); err != nil {
				return fmt.Errorf("Key(%s, %s): %w", ns, key, err)
			}
		}
		if err := m.checkWaits(e.Waits(ns), ns); err != nil {
			return fmt.Errorf("Waits(%s): %w", ns, err)
		}
	}
	return nil
}

func (m *model) checkKey(e *engine.Engine, ns interlock.Namespace, key interlock.Key) error {
	view, err := e.Key(ns, key)
	if err != nil {
		return err
	}
	var fences, got []interlock.Fence
	for _, r := range m.inPhase(offered, held, inGrace) {
		// An intent above says nothing about this key.
		touches := func(c interlock.Claim) bool {
			return c.Key == key || above(key, c.Key) || above(c.Key, key) && c.Mode >= interlock.Shared
		}
		if r.ns == ns && slices.ContainsFunc(r.ask.Claims, touches) {
			fences = append(fences, r.fence)
		}
	}
	for _, h := range view.Holders {
		got = append(got, h.Fence)
		if err := m.checkHolder(ns, &h); err != nil {
			return err
		}
	}
	slices.Sort(fences)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(fences, got) && view.More == 0 {
		return fmt.Errorf("holders with the fences %v, want %v", got, fences)
	}
	var line []*request
	for _, r := range m.inPhase(waiting) {
		// Who waits for something below stands in line here for an intent.
		touches := func(c interlock.Claim) bool { return c.Key == key || above(key, c.Key) }
		if r.ns == ns && slices.ContainsFunc(r.ask.Claims, touches) {
			line = append(line, r)
		}
	}
	slices.SortFunc(line, func(a, b *request) int {
		if aheadOf(a, b) {
			return -1
		}
		return 1
	})
	shown := slices.DeleteFunc(slices.Clone(view.Waiters), func(w engine.WaiterView) bool { return w.Offered })
	if len(shown) != len(line) {
		return fmt.Errorf("a line of %d, want %d", len(shown), len(line))
	}
	for i, w := range shown {
		r := line[i]
		if w.Flow != r.ask.Flow || w.Agent != m.agentOf(r) || w.Priority != r.ask.Priority || w.Waited != m.now.Sub(r.arrived) {
			return fmt.Errorf("waiter %d is %+v, want %v", i+1, w, r)
		}
	}
	return nil
}

func (m *model) agentOf(r *request) string {
	if r.session != nil {
		return r.session.agent
	}
	return r.ask.Agent
}

func (m *model) checkHolder(ns interlock.Namespace, h *interlock.Holder) error {
	for _, r := range m.inPhase(offered, held, inGrace) {
		if r.fence != h.Fence {
			continue
		}
		// The mode shown may be stronger than the claim's: intents for claims below come on top.
		shown := func(c interlock.Claim) bool { return c.Key == h.Key && coversMode(h.Mode, c.Mode) }
		if r.ns != ns || h.Agent != m.agentOf(r) || h.Flow != r.ask.Flow || !slices.ContainsFunc(r.ask.Claims, shown) {
			return fmt.Errorf("the holder %+v is not %v", h, r)
		}
		if h.Held != m.now.Sub(r.granted) || (r.phase == offered) != (h.Liveness == interlock.Offered) || (r.phase == inGrace) != (h.Liveness == interlock.LiveGrace) {
			return fmt.Errorf("the holder %+v is not %v", h, r)
		}
		return nil
	}
	return fmt.Errorf("nobody holds it with the fence %d", h.Fence)
}

// checkWaits compares the edges of the wait-for graph, by who waits for whom.
func (m *model) checkWaits(edges []engine.WaitEdge, ns interlock.Namespace) error {
	type pair struct {
		waiter, blocker string
		ahead           bool
	}
	name := func(agent, flow string) string { return agent + "/" + flow }
	want, got := map[pair]bool{}, map[pair]bool{}
	for _, r := range m.inPhase(waiting) {
		for _, b := range m.blockers(r) {
			if r.ns == ns {
				want[pair{name(m.agentOf(r), r.ask.Flow), name(m.agentOf(b), b.ask.Flow), b.phase == waiting}] = true
			}
		}
	}
	for _, e := range edges {
		got[pair{name(e.Waiter.Agent, e.Waiter.Flow), name(e.Blocker.Agent, e.Blocker.Flow), e.Ahead}] = true
	}
	for p := range want {
		if !got[p] {
			return fmt.Errorf("the edge %+v is missing", p)
		}
	}
	for p := range got {
		if !want[p] {
			return fmt.Errorf("there is no edge %+v", p)
		}
	}
	return nil
}
