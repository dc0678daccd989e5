package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// player turns ops into commands.
type player struct {
	*rig
	asked     []engine.Acquire     // those with a request id
	renewed   []engine.Renew       // likewise
	claimed   []engine.ClaimEffect // likewise
	committed []engine.Commit      // likewise
	submitted []engine.Submit      // likewise
	acked     []engine.Ack         // likewise
	pulled    []engine.Pull
	questions []engine.AskHuman // likewise
	started   []engine.StartRun // likewise
}

func pick[T any](r uint32, list []T) (one T, ok bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[int(r)%len(list)], true
}

// among picks one of a few by weight.
func among[T any](r uint32, list ...T) T { return list[int(r)%len(list)] }

func (p *player) play(o *op) error {
	p.who = among(o.r[7]>>25, "", "", "", "web", "web", "ops", "red", "blue")
	switch o.kind {
	case opAcquire, opBarrier, opMember:
		return p.acquire(o)
	case opRepeat:
		switch o.r[9] % 4 {
		case 0:
			return p.recommit(o)
		case 1:
			return p.repeatWork(o)
		}
		return p.repeat(o)
	case opQueue:
		return p.setQueue(o)
	case opSubmit:
		return p.submit(o)
	case opSend:
		return p.send(o)
	case opPull:
		return p.pull(o)
	case opAck:
		return p.ack(o)
	case opNack:
		return p.nack(o)
	case opRun:
		return p.startRun(o)
	case opAskHuman:
		return p.askHuman(o)
	case opAnswer:
		return p.answer(o)
	case opChangeTask:
		return p.changeTask(o)
	case opFollow:
		return p.followTask(o)
	case opCross:
		return p.cross(o)
	case opCommit:
		return p.commit(o)
	case opOpen:
		return p.step(&engine.OpenSession{
			Head: engine.Head{Namespace: among(o.r[0], firstNamespace, firstNamespace, firstNamespace, otherNamespace)},
			ID:   p.id(), Agent: fmt.Sprintf("agent-%d", p.ids),
			TTL: among(o.r[1], 0, 9*time.Second, 30*time.Second, 5*time.Minute, time.Hour),
		})
	case opClose:
		if s := p.session(o.r[0], o.r[1]); s != nil {
			return p.step(&engine.CloseSession{Head: p.in(s)})
		}
	case opHeartbeat:
		if s := p.session(o.r[0], o.r[1]); s != nil {
			if o.r[2]%8 == 7 {
				return p.keepAlive(o, s)
			}
			return p.step(&engine.Heartbeat{Head: p.in(s), Progress: progress(o.r[2]), Known: p.known(s, o.r[3])})
		}
	case opAttach:
		if s := p.session(o.r[0], o.r[1]); s != nil {
			head := p.in(s)
			head.Link = uint64(1 + o.r[2]%3)
			return p.step(&engine.Attach{Head: head})
		}
	case opDetach:
		return p.detach(o)
	case opPoll, opLeave:
		return p.ticket(o)
	case opGetLease, opRenew, opRelease:
		return p.lease(o)
	case opRevoke, opRequestYield, opCheck:
		return p.fenced(o)
	case opAdvance:
		return p.advance(p.moment(o), among(o.r[2], everyTimer, everyTimer, atOnce))
	case opRace:
		return p.race(o)
	case opPattern:
		return p.pattern(o)
	case opArrive:
		return p.arrive(o)
	case opDeclare:
		return p.declare(o)
	case opPark:
		return p.park(o)
	case opResume:
		return p.resume(o)
	case opConvert:
		return p.convert(o)
	case opClaimEffect:
		return p.claimEffect(o)
	case opSettleEffect:
		return p.settleEffect(o)
	case opSnapshot:
		return p.snap()
	case opRestart:
		p.now = p.now.Add(among(o.r[0], 0, time.Second, time.Minute))
		again := func() error { return p.restart(uint64(among(o.r[1], 0, 0, 1000))) }
		if o.r[2]%3 == 0 {
			again = p.relocate
		}
		if err := again(); err != nil {
			return err
		}
		return p.advance(p.now, atOnce)
	}
	return nil
}

// known reports the leases that the client of a session knows of: all, or all but one, or none, or one that has ended.
func (p *player) known(s *session, r uint32) *interlock.KnownLeases {
	ids, all := map[[16]byte]bool{}, []interlock.LeaseID(nil)
	for _, l := range p.m.inPhase(held) {
		if l.session == s && l.member == nil {
			ids[l.ask.ID] = true
			all = append(all, interlock.LeaseID(l.ask.ID))
		}
	}
	if lost := int(r/8) % 4; lost < len(all) {
		delete(ids, all[lost])
		all = slices.Delete(all, lost, lost+1)
	}
	if lost, ok := pick(r, p.m.requests); ok && lost.session == s && lost.phase == over {
		all = append(all, interlock.LeaseID(lost.ask.ID)) // the answer that reported its loss has not arrived
	}
	switch r % 8 {
	case 0:
		return &interlock.KnownLeases{Listed: true, Leases: all}
	case 1:
		return &interlock.KnownLeases{Listed: true}
	case 2, 3:
		return &interlock.KnownLeases{Count: len(ids), Digest: *digestOf(ids)}
	}
	return nil
}

func progress(r uint32) string { return among(r, "", "", "", "one", "two") }

func (p *player) in(s *session) engine.Head {
	return engine.Head{Namespace: s.ns, Session: s.id}
}

// session picks a session, mostly a live one.
func (p *player) session(r, odd uint32) *session {
	var live []*session
	for _, s := range p.m.sessions {
		if !s.ended {
			live = append(live, s)
		}
	}
	if odd%20 == 0 {
		live = p.m.sessions
	}
	s, _ := pick(r, live)
	return s
}

func (p *player) acquire(o *op) error {
	id := p.id()
	c := &engine.Acquire{
		ID: id,
		LeaseRequest: interlock.LeaseRequest{
			Flow: among(o.r[1]>>4, "main", "main", "sub"),
			Terms: interlock.Terms{
				TTL:     among(o.r[2], 0, 0, 3*time.Second, 9*time.Second, 30*time.Second, 90*time.Second),
				Grace:   among(o.r[2]>>8, 0, engine.NoGrace, 2*time.Second),
				MaxHold: among(o.r[2]>>16, 0, 0, 0, 12*time.Second),
			},
			Priority: among(o.r[3], 0, 0, 0, 0, 1, -1, 5),
			OnConflict: among(
				o.r[3]>>8, interlock.Wait, interlock.Wait, interlock.Wait, interlock.Preempt, interlock.Wait, interlock.Fail,
				interlock.Skip,
			),
		},
		Attach: o.r[3]>>16%5 < 3,
	}
	if o.r[8]>>16%8 == 0 {
		c.MaxPosition = 1 + int(o.r[8]>>19%3)
	}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]%7 > 0 {
		c.Head = p.in(s)
	} else {
		c.Namespace, c.Agent = among(o.r[0], firstNamespace, firstNamespace, otherNamespace), fmt.Sprintf("bare-%d", p.ids)
	}
	if o.r[8]%4 == 0 {
		c.Stall = among(o.r[8]>>4, 0, 4*time.Second, 11*time.Second, time.Minute)
		c.MaxWait = among(o.r[8]>>8, 0, time.Nanosecond, 3*time.Second, 8*time.Second)
	}
	if o.r[8]%4 == 0 {
		c.LockDelay = among(o.r[8]>>12, 0, 2*time.Second, 10*time.Second)
	}
	if v := p.m.version(c.Namespace); o.r[3]>>20%4 == 0 {
		c.AsOf = among(o.r[3]>>24, v, v-min(1, v), v-min(3, v), 1, v+1)
	}
	c.Documents = o.r[3]>>28%4 == 0
	c.Link = uint64(1 + o.r[1]>>12%3)
	c.Group = among(o.r[9]>>20, "", "", "x", "y")
	c.Actor = among(o.r[9]>>24, "", "", "web")
	c.Claims = p.claims(o)
	if len(c.Claims) > 1 && o.r[9]%4 == 0 {
		c.Claims, c.Any = dedupe(c.Claims), true
	}
	if o.kind == opMember {
		c.Claims, c.Any = []interlock.Claim{{Key: "m", Mode: interlock.Member, Count: 3}}, false
		switch o.r[9] % 16 {
		case 0:
			c.Claims[0].Count = among(o.r[9]>>4, uint32(0), 2, 4)
		case 1, 2:
			c.Claims[0] = interlock.Claim{Key: "m/1", Mode: interlock.Exclusive}
		case 3:
			c.Claims[0] = interlock.Claim{Key: "m", Mode: interlock.Shared}
		case 4:
			c.Claims[0] = interlock.Claim{Key: "m/0/x", Mode: interlock.Exclusive}
		}
		c.Division = among(o.r[9]>>8, interlock.ByHash, interlock.ByHash, interlock.ByRange, interlock.ByLoad)
	}
	if o.kind == opBarrier {
		c.Claims, c.Any = []interlock.Claim{among(o.r[9]>>8,
			interlock.Claim{Key: "bar", Mode: interlock.Barrier, Count: 2},
			interlock.Claim{Key: "bar", Mode: interlock.Barrier, Count: 2},
			interlock.Claim{Key: "c/bar", Mode: interlock.Barrier, Count: 3})}, false
		if lacking[barrierLine] {
			c.Claims[0].Key = "bar"
		}
		if o.r[9]%24 == 0 {
			c.Claims[0].Count = among(o.r[9]>>4, uint32(1), 2, 3)
		}
		if o.r[9]>>16%8 > 0 {
			c.OnConflict = interlock.Wait
		}
	}
	if l, ok := pick(o.r[8]>>4, p.m.inPhase(held)); ok && o.r[8]>>26%8 == 0 && l.session != nil && !c.Session.IsZero() &&
		l.org == "" && len(l.claims) > 0 {
		c.TakeOver, c.Claims, c.Group, c.Any = l.session.id, slices.Clone(l.claims), l.ask.Group, false
	}
	if o.r[4]>>8%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.asked = append(p.asked, *c)
	}
	if o.r[7]%40 == 0 {
		p.spoil(c, o.r[7])
	} else if c.RequestID == "" && o.r[4]>>8%4 == 1 {
		c.Claims = dedupe(c.Claims)
	}
	return p.step(c)
}

// claims chooses what to ask for.
func (p *player) claims(o *op) (list []interlock.Claim) {
	n := 1 + int(among(o.r[4], 0, 0, 0, 1, 1, 2))
	for i := range n {
		if o.r[9]>>(8+4*i)%4 == 0 && len(p.m.patterns["one"]) > 0 {
			c := interlock.Claim{
				Key: among(o.r[5]>>(4*i), interlock.Key("p"), "p", "p", "g:1", "g:01", "gg-1", "t", "t"),
				Mode: among(
					o.r[6]>>(6*i+3), interlock.Permits, interlock.Permits, interlock.Permits, interlock.Permits, 0,
					interlock.Exclusive, interlock.Shared,
				),
			}
			if c.Mode == interlock.Permits {
				c.Count = among(o.r[6]>>(6*i), uint32(1), 1, 1, 2, 2, 3)
			}
			list = append(list, c)
			continue
		}
		key := p.plain[int(o.r[5]>>(4*i))%len(p.plain)]
		list = append(list, interlock.Claim{Key: key, Mode: among(o.r[6]>>(6*i)%64,
			interlock.Exclusive, interlock.Exclusive, interlock.Exclusive, 0, interlock.Shared, interlock.Shared,
			interlock.Shared,
			interlock.IntentExclusive, interlock.IntentShared, interlock.SharedIntentExclusive)})
	}
	return list
}

func dedupe(claims []interlock.Claim) (list []interlock.Claim) {
	seen := map[interlock.Key]bool{}
	for _, c := range claims {
		if !seen[c.Key] {
			list = append(list, c)
		}
		seen[c.Key] = true
	}
	return list
}

// spoil breaks one rule.
func (p *player) spoil(c *engine.Acquire, r uint32) {
	c.Claims, c.Any = dedupe(c.Claims), false
	switch r >> 8 % 6 {
	case 0:
		c.Claims = nil
	case 1:
		c.Claims[0].Key = "a//b"
	case 2:
		c.TTL = time.Millisecond
	case 3:
		c.Priority = 1000
	case 4:
		c.Claims = append(c.Claims, c.Claims[0])
	case 5:
		c.Session = interlock.SessionID{1, 2, 3}
	}
	c.RequestID = ""
}

// repeat sends a request with an id again, sometimes changed.
func (p *player) repeat(o *op) error {
	c, ok := pick(o.r[0], p.asked)
	if !ok {
		return nil
	}
	if s := p.m.sessionByID(c.Namespace, c.Session); s != nil && s.ended {
		return nil
	}
	if o.r[3]%6 == 0 {
		if err := p.crowd(c.Head); err != nil {
			return err
		}
	}
	c.ID, c.From = p.id(), nil
	c.Attach = o.r[2]%2 == 0
	if o.r[1]%4 == 0 {
		c.Purpose = "something else"
	}
	return p.step(&c)
}

// crowd makes older ids leave the window to which head's belongs.
func (p *player) crowd(head engine.Head) error {
	for i := range engine.NamespaceIDs + 1 {
		c := &engine.Configure{Head: head, Settings: p.m.settings[head.Namespace]}
		if c.RequestID = fmt.Sprintf("crowd %d %d", len(p.trace), i); i > engine.SessionIDs && !head.Session.IsZero() {
			break
		}
		if err := p.step(c); err != nil {
			return err
		}
	}
	return nil
}

// keepAlive renews a session by its id, or by a ticket of anyone.
func (p *player) keepAlive(o *op, s *session) error {
	head := p.in(s)
	head.RequestID, head.Seq, head.Acked = "", 0, 0
	if o.r[0]%2 == 0 {
		return p.step(&engine.KeepAlive{Head: head})
	}
	c := &engine.KeepAlive{Head: engine.Head{Namespace: head.Namespace}}
	if r, ok := pick(o.r[1], p.m.requests); ok {
		c.Namespace, c.Ticket = r.ns, interlock.TicketID(r.ask.ID)
	}
	return p.step(c)
}

func (p *player) detach(o *op) error {
	if o.r[0]%2 == 0 {
		if s := p.session(o.r[1], 1); s != nil {
			head := p.in(s)
			head.Link = uint64(1 + o.r[2]%3)
			return p.step(&engine.Detach{Head: head})
		}
		return nil
	}
	r, ok := pick(o.r[1], p.m.inPhase(waiting))
	if !ok {
		return nil
	}
	head := engine.Head{Namespace: r.ns, Link: r.link}
	if r.session != nil {
		head.Session = r.session.id
	}
	return p.step(&engine.Detach{Head: head, Ticket: interlock.TicketID(r.ask.ID)})
}

// head returns a head for a query about r: with its session, with none, or, seldom, with an
// unauthorised one.
func (p *player) head(r *request, odd uint32) engine.Head {
	head := engine.Head{Namespace: r.ns}
	if r.session != nil && odd%4 > 0 {
		head.Session = r.session.id
	}
	switch odd % 24 {
	case 0:
		head.Namespace = among(odd>>8, firstNamespace, otherNamespace)
		if head.Namespace != r.ns {
			head.Session = interlock.SessionID{}
		}
	case 1:
		if s := p.session(odd>>8, 1); s != nil && s.ns == r.ns {
			head.Session = s.id
		}
	}
	return head
}

func (p *player) ticket(o *op) error {
	list := p.m.inPhase(waiting, offered)
	if o.r[1]%5 == 0 {
		list = p.m.requests
	}
	r, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	if o.kind == opLeave {
		return p.step(&engine.Leave{Head: p.head(r, o.r[2]), Ticket: interlock.TicketID(r.ask.ID)})
	}
	head := p.head(r, o.r[2])
	head.Link = uint64(1 + o.r[3]%3)
	return p.step(&engine.Poll{Head: head, Ticket: interlock.TicketID(r.ask.ID), Attach: o.r[4]%2 == 0})
}

func (p *player) lease(o *op) error {
	list := p.m.inPhase(held, held, inGrace)
	if o.r[1]%8 == 2 {
		list = p.m.inPhase(parked)
	}
	if o.r[1]%8 == 0 && o.kind != opGetLease {
		list = p.m.inPhase(held, inGrace, offered)
	}
	if o.r[1]%8 == 1 {
		list = p.m.inPhase(held, inGrace, over)
	}
	r, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	if p.isClosedPart(r) {
		return nil
	}
	head := p.head(r, o.r[2])
	id := interlock.LeaseID(r.ask.ID)
	switch o.kind {
	case opGetLease:
		return p.step(&engine.GetLease{Head: head, Lease: id})
	case opRenew:
		return p.renew(o, engine.Renew{Head: head, Lease: id, Progress: progress(o.r[3])})
	}
	return p.step(&engine.Release{
		Head: head, Lease: id, Outcome: "done", Note: among(o.r[3], "", "a note"), Run: r.isRun(),
	})
}

// renew sends a renewal, or one of before again.
func (p *player) renew(o *op, c engine.Renew) error {
	before, ok := pick(o.r[5], p.renewed)
	if s := p.m.sessionByID(before.Namespace, before.Session); ok && o.r[4]%4 == 0 && (s == nil || !s.ended) {
		before.From = nil
		return p.step(&before)
	}
	if o.r[4]%4 > 1 {
		c.TTL = among(o.r[5], time.Millisecond, time.Second, 5*time.Second, 15*time.Second, time.Minute, 2*time.Hour)
	}
	if o.r[6]%2 == 0 {
		c.RequestID = fmt.Sprintf("renewal %d", o.r[6]>>8%16)
		p.renewed = append(p.renewed, c)
	}
	return p.step(&c)
}

func (p *player) fenced(o *op) error {
	list := p.m.inPhase(held, inGrace)
	if o.r[1]%4 == 0 {
		list = p.m.requests
	}
	r, ok := pick(o.r[0], list)
	if !ok || r.fence == 0 {
		return nil
	}
	key := p.keys[int(o.r[2])%len(p.keys)]
	if o.r[3]%2 == 0 && len(r.claims) > 0 {
		key = r.claims[0].Key
	}
	head := engine.Head{Namespace: r.ns}
	switch o.kind {
	case opRevoke:
		return p.step(&engine.Revoke{Head: head, Key: key, Fence: r.fence, Reason: "test"})
	case opRequestYield:
		return p.step(&engine.RequestYield{Head: head, Key: key, Fence: r.fence, Reason: "test"})
	}
	return p.step(&engine.CheckFence{Head: head, Key: key, Fence: r.fence})
}

// isClosedPart reports whether r is a part of a closed member, and not to be asked about.
func (p *player) isClosedPart(r *request) bool {
	return lacking[closedParts] && r.member != nil && r.member.phase == closed
}

// moment chooses how far to go: a little, far, or to the next deadline, just
// before it or just after it.
func (p *player) moment(o *op) engine.Time {
	what, end := p.m.nextDue()
	switch {
	case o.r[0]%3 == 0 && what != nil && end > p.now:
		return max(p.now, end+engine.Time(int(o.r[1]%3)-1))
	case o.r[0]%3 == 1:
		return p.now.Add(time.Duration(o.r[1]%5) * time.Second)
	}
	return p.now.Add(among(
		o.r[1], time.Nanosecond, time.Millisecond, time.Second, 7*time.Second, 10*time.Second, 40*time.Second,
	))
}

// race delays a renewal or a heartbeat until after the deadline, and before the Tick that ends
// it.
func (p *player) race(o *op) error {
	r, ok := pick(o.r[0], p.m.inPhase(held))
	if !ok || r.member != nil && lacking[closedParts] {
		return nil
	}
	end := r.hardEnd().hi
	if what, first := p.m.nextDue(); what != nil && first < end {
		if err := p.advance(max(p.now, end-2), everyTimer); err != nil {
			return err
		}
		if r.phase != held || r.hardEnd().hi != end {
			return nil
		}
	}
	if err := p.advance(max(p.now, end+engine.Time(int(o.r[1]%3)-1)), noTick); err != nil {
		return err
	}
	head := engine.Head{Namespace: r.ns}
	var err error
	if r.session != nil && o.r[2]%2 == 0 {
		head.Session = r.session.id
		err = p.step(&engine.Heartbeat{Head: head})
	} else {
		err = p.step(&engine.Renew{Head: head, Lease: interlock.LeaseID(r.ask.ID)})
	}
	if err != nil {
		return err
	}
	return p.advance(p.now, atOnce)
}
