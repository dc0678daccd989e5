package sim

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// agent decides by chance what to do next, from the answers that it received. It is careless:
// it forgets leases, falls silent, asks for keys that others hold and abandons waits.
type agent struct {
	*client
	number  int
	ttl     time.Duration // of its session; 0: it works without one
	opening bool
	silent  bool // it sends no heartbeats any more
	lists   bool // its next heartbeat lists its leases
	steps   int  // since it began to release
	home    bool // it has released all that it had

	leases []*heldLease
	waits  []interlock.TicketID
	docs   map[interlock.Key]interlock.Version
	deeds  []interlock.EffectID
	tasks  []interlock.TaskID
}

// heldLease is a lease as its holder knows it.
type heldLease struct {
	id     interlock.LeaseID
	fence  interlock.Fence
	claims []interlock.Claim
	parked bool
	task   bool
}

func newAgent(w *world, number int) *agent {
	rng := w.rng
	a := &agent{number: number, docs: map[interlock.Key]interlock.Version{}}
	a.client = &client{
		w: w, name: fmt.Sprintf("agent-%d", number), namespace: tenant(rng.IntN(w.plan.namespaces)),
		rng: rng.IntN, numbers: rng.IntN(2) == 0,
	}
	a.principal = w.credential(a.name)
	if rng.IntN(4) > 0 {
		a.ttl = pick[time.Duration](rng, 2, 5, 15, 40) * time.Second
	}
	var attached *op
	a.attach = func() {
		if !a.session.IsZero() && (attached == nil || attached.over || attached.answered) {
			attached = a.send("attach", func() engine.Command { return &engine.Attach{} }, a.told)
		}
	}
	return a
}

// live has the agent act again and again.
func (a *agent) live() {
	w := a.w
	w.after(w.about(w.plan.pace), func() {
		if a.home && len(a.open) == 0 {
			return
		}
		a.act()
		a.live()
	})
}

func (a *agent) act() {
	w := a.w
	if len(a.open) > 6 {
		return
	}
	if a.ttl > 0 && a.session.IsZero() {
		if !w.ending {
			a.openSession()
		} else {
			a.home = true
		}
		return
	}
	if w.ending {
		a.goHome()
		return
	}
	deeds := kernelDeeds
	if w.plan.tasks && a.rng(2) == 0 {
		deeds = taskDeeds
	}
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	at := a.rng(total)
	for _, d := range deeds {
		if at -= d.weight; at < 0 {
			d.do(a)
			return
		}
	}
}

// agentAction is something that an agent may do.
type agentAction struct {
	weight int
	do     func(*agent)
}

var kernelDeeds = []agentAction{
	{30, (*agent).acquire},
	{28, (*agent).release},
	{8, (*agent).poll},
	{3, (*agent).leave},
	{4, (*agent).convert},
	{3, (*agent).park},
	{4, (*agent).resume},
	{3, (*agent).arrive},
	{2, (*agent).declare},
	{4, (*agent).getLease},
	{4, (*agent).renew},
	{4, (*agent).checkFence},
	{1, (*agent).revoke},
	{10, (*agent).commit},
	{4, (*agent).claimEffect},
	{4, (*agent).settleEffect},
	{3, (*agent).startRun},
	{1, (*agent).fallSilent},
	{1, (*agent).closeSession},
	{2, (*agent).forget},
	{1, (*agent).pattern},
	{4, (*agent).meddle},
}

// goHome releases what the agent has, one thing after the other.
func (a *agent) goHome() {
	a.steps++
	switch {
	case a.steps > 60: // what it forgot ends with its session
		a.home = true
	case len(a.leases) > 0:
		a.release()
	case len(a.waits) > 0:
		a.leave()
	default:
		a.home = true
	}
}

func (a *agent) openSession() {
	if a.opening {
		return
	}
	a.opening = true
	ttl := a.ttl
	o := a.send(
		"open session", func() engine.Command { return &engine.OpenSession{ID: a.w.id(), Agent: a.name, TTL: ttl} },
		func(eff *engine.Effect, _ interlock.At) {
			a.opening = false
			if eff.Outcome == engine.Done && a.session.IsZero() {
				a.session, a.seq, a.acked, a.unseen, a.silent = eff.Session.ID, 0, 0, 0, false
				a.beat(a.session)
			}
		},
	)
	a.w.after(20*time.Second, func() {
		if o.over && !o.answered {
			a.opening = false
		}
	})
}

// beat sends heartbeats for as long as the session is the agent's.
func (a *agent) beat(id interlock.SessionID) {
	a.w.after(a.w.about(a.ttl/3), func() {
		if a.session != id || a.silent || a.home {
			return
		}
		if len(a.open) < 12 {
			progress := fmt.Sprint(a.rng(1000))
			a.send(
				"heartbeat", func() engine.Command { return &engine.Heartbeat{Progress: progress, Known: a.known()} },
				func(eff *engine.Effect, _ interlock.At) {
					a.ended(eff)
					a.lists = eff.WantsList
					for i := range eff.Losses {
						if l := &eff.Losses[i]; l.Lease.State == interlock.Ended {
							a.lose(l.Lease.ID)
						}
					}
				},
			)
		}
		a.beat(id)
	})
}

// known tells the server of the leases that the agent knows of. Some agents never do.
func (a *agent) known() *interlock.KnownLeases {
	if a.number%3 == 0 {
		return nil
	}
	known := &interlock.KnownLeases{Listed: a.lists}
	for _, l := range a.leases {
		if l.parked {
			continue
		}
		if known.Add(l.id); known.Listed {
			known.Leases = append(known.Leases, l.id)
		}
	}
	return known
}

// ended notices that the session is over.
func (a *agent) ended(eff *engine.Effect) {
	if eff.Outcome == engine.Refused &&
		(eff.Code == interlock.CodeSessionEnded || eff.Code == interlock.CodeUnknownSession) {
		a.leave0()
	}
}

func (a *agent) leave0() {
	for _, o := range append([]*op(nil), a.open...) {
		o.drop()
	}
	a.session, a.leases, a.waits = interlock.SessionID{}, nil, nil
	a.unseen = 0
}

func (a *agent) fallSilent() {
	if a.rng(3) > 0 || a.session.IsZero() {
		return
	}
	a.w.totals.fault("agent falls silent")
	id := a.session
	a.silent = true
	a.w.after(a.w.about(2*a.ttl), func() {
		if a.session == id && a.silent {
			a.leave0()
		}
	})
}

func (a *agent) closeSession() {
	if a.rng(4) > 0 || a.session.IsZero() {
		return
	}
	a.send("close session", func() engine.Command { return &engine.CloseSession{} }, nil)
	a.leave0()
}

func (a *agent) forget() {
	if n := len(a.leases); n > 0 {
		a.w.totals.fault("lease forgotten")
		a.leases = append(a.leases[:0], a.leases[1:]...)
	}
}

// flow is one of the agent's threads.
func (a *agent) flow() string {
	if a.session.IsZero() {
		return ""
	}
	return []string{"", "", "other"}[a.rng(3)]
}

var modes = []interlock.Mode{
	interlock.Exclusive, interlock.Exclusive, interlock.Exclusive, 0, interlock.Shared, interlock.Shared,
	interlock.SharedIntentExclusive, interlock.IntentExclusive, interlock.IntentShared,
}

// key draws a key: of a small tree, so that agents meet.
func (a *agent) key() interlock.Key {
	k := fmt.Sprintf("k%d", a.rng(a.w.plan.keys))
	for range a.rng(3) {
		k += fmt.Sprintf("/%c", 'a'+a.rng(2))
	}
	return interlock.Key(k)
}

func (a *agent) claims(most int) (list []interlock.Claim) {
	seen := map[interlock.Key]bool{}
	for range 1 + a.rng(most) {
		c := interlock.Claim{Key: a.key(), Mode: modes[a.rng(len(modes))]}
		switch a.rng(10) {
		case 2:
			c = interlock.Claim{Key: "team:0", Mode: interlock.Permits, Count: uint32(1 + a.rng(2))}
		case 0:
			c = interlock.Claim{
				Key: interlock.Key(fmt.Sprintf("pool:%d", a.rng(2))), Mode: interlock.Permits, Count: uint32(1 + a.rng(poolSize)),
			}
		case 1:
			c = interlock.Claim{Key: "rate:0", Mode: interlock.Permits, Count: uint32(1 + a.rng(3))}
		case 3:
			if a.w.plan.credentials {
				c.Key = interlock.Key(fmt.Sprintf([]string{"vault:%d", "vault:%d/doc"}[a.rng(2)], a.rng(2)))
			}
		}
		if !seen[c.Key] {
			seen[c.Key] = true
			list = append(list, c)
		}
	}
	return list
}

func (a *agent) acquire() {
	// The seeds count on the order of these draws.
	flow, group := a.flow(), []string{"", cappedGroup, ownGroup}[a.rng(3)]
	priority, onConflict, attach := []int{0, 0, 0, 1, -1, 5}[a.rng(6)], interlock.OnConflict(a.rng(4)), a.rng(3) > 0
	c := engine.Acquire{
		LeaseRequest: interlock.LeaseRequest{
			Flow: flow, Purpose: "work", Priority: priority, OnConflict: onConflict, Claims: a.claims(3),
			Terms: interlock.Terms{
				Group: group, TTL: []time.Duration{0, 0, 3 * time.Second, 20 * time.Second}[a.rng(4)],
				Grace:     []time.Duration{0, engine.NoGrace, time.Second}[a.rng(3)],
				MaxWait:   []time.Duration{0, 0, 5 * time.Second}[a.rng(3)],
				LockDelay: []time.Duration{0, 0, 0, 2 * time.Second}[a.rng(4)],
				MaxHold:   []time.Duration{0, 0, 0, 8 * time.Second}[a.rng(4)],
				Stall:     []time.Duration{0, 0, 0, 0, 6 * time.Second}[a.rng(5)],
			},
		},
		Attach: attach,
	}
	if a.rng(2) == 0 {
		c.OnConflict = interlock.Wait
	}
	switch a.rng(16) {
	case 0:
		c.Any = true
		for i := range c.Claims {
			c.Claims[i].Mode, c.Claims[i].Count = interlock.Exclusive, 0
		}
	case 1:
		c.Claims, c.OnConflict, c.MaxWait = []interlock.Claim{{
			Key: interlock.Key(fmt.Sprintf("gate:%d", a.rng(2))), Mode: interlock.Barrier, Count: 2,
		}}, interlock.Wait, 10*time.Second
	case 2:
		if !a.session.IsZero() {
			c.Claims, c.OnConflict = []interlock.Claim{{Key: "shards:0", Mode: interlock.Member, Count: 4}}, interlock.Wait
		}
	}
	if a.w.plan.tangled && a.rng(4) > 0 {
		a.tangle(&c)
	}
	if a.session.IsZero() {
		c.Agent, c.Flow = a.name, ""
	}
	claims := c.Claims
	a.send("acquire "+shownClaims(claims), func() engine.Command {
		again := c
		again.ID = a.w.id()
		again.Claims = append([]interlock.Claim(nil), claims...)
		return &again
	}, a.got())
}

// tangle makes a request one for a single key of few, of a flow that may wait for others
// already, and patient: so circles close, and not only where a flow begins to wait.
func (a *agent) tangle(c *engine.Acquire) {
	*c = engine.Acquire{LeaseRequest: interlock.LeaseRequest{
		Purpose: c.Purpose, Priority: c.Priority, Terms: interlock.Terms{TTL: 3 * time.Second, Grace: engine.NoGrace},
		OnConflict: interlock.Wait, Claims: []interlock.Claim{
			{
				Key:  interlock.Key(fmt.Sprintf("k%d", a.rng(4))),
				Mode: []interlock.Mode{interlock.Exclusive, interlock.Shared}[a.rng(2)],
			},
		},
	}, Attach: true}
	if a.rng(5) == 0 {
		c.Claims[0] = interlock.Claim{Key: "pool:0", Mode: interlock.Permits, Count: uint32(1 + a.rng(2))}
	}
}

func shownClaims(claims []interlock.Claim) (s string) {
	for i, c := range claims {
		if i > 0 {
			s += " "
		}
		s += string(c.Key) + ":" + c.Mode.String()
		if c.Count > 0 {
			s += fmt.Sprint(":", c.Count)
		}
	}
	return s
}

// got returns the function that takes the answers to a request.
func (a *agent) got() func(*engine.Effect, interlock.At) {
	session := a.session
	var ticket interlock.TicketID
	return func(eff *engine.Effect, _ interlock.At) {
		if a.session != session {
			return // they are for an earlier life
		}
		a.ended(eff)
		switch eff.Outcome {
		case engine.Queued:
			ticket = eff.Ticket.ID
			a.await(ticket)
		case engine.Granted:
			a.unawait(ticket)
			a.unawait(interlock.TicketID(eff.Lease.ID))
			a.hold(&eff.Lease)
		case engine.Refused:
			a.unawait(ticket)
		}
	}
}

func (a *agent) await(t interlock.TicketID) {
	for _, other := range a.waits {
		if other == t {
			return
		}
	}
	a.waits = append(a.waits, t)
}

func (a *agent) unawait(t interlock.TicketID) {
	for i, other := range a.waits {
		if other == t {
			a.waits = append(a.waits[:i], a.waits[i+1:]...)
			return
		}
	}
}

func (a *agent) hold(l *interlock.Lease) *heldLease {
	if l.State == interlock.Ended {
		return nil
	}
	for _, h := range a.leases {
		if h.id == l.ID {
			h.fence, h.claims = l.Fence, l.Claims
			return h
		}
	}
	h := &heldLease{id: l.ID, fence: l.Fence, claims: l.Claims}
	a.leases = append(a.leases, h)
	return h
}

func (a *agent) lose(id interlock.LeaseID) {
	for i, h := range a.leases {
		if h.id == id {
			a.leases = append(a.leases[:i], a.leases[i+1:]...)
			return
		}
	}
}

// one draws one of the agent's leases, or nil.
func (a *agent) one() *heldLease {
	if len(a.leases) == 0 {
		return nil
	}
	return a.leases[a.rng(len(a.leases))]
}

// told receives the servers' pushes.
func (a *agent) told(eff *engine.Effect, _ interlock.At) {
	switch {
	case eff.Outcome == engine.Lost && eff.Lease.State == interlock.Ended:
		a.lose(eff.Lease.ID)
	case eff.Outcome == engine.Granted && eff.Lease.Fence > 0:
		a.unawait(interlock.TicketID(eff.Lease.ID))
		a.hold(&eff.Lease)
	}
}

// gone takes the answer to a command about a lease: it may be over.
func (a *agent) gone(h *heldLease) func(*engine.Effect, interlock.At) {
	return func(eff *engine.Effect, _ interlock.At) {
		a.ended(eff)
		if eff.Outcome == engine.Refused && eff.Code != interlock.CodeInGrace && eff.Code != interlock.CodeParked &&
			eff.Code != interlock.CodeInvalidRequest {
			a.lose(h.id)
		}
	}
}

func (a *agent) release() {
	h := a.one()
	if h == nil {
		return
	}
	id := h.id
	a.lose(id)
	note := []string{"", "", "done"}[a.rng(3)]
	a.send(
		fmt.Sprintf("release fence %d", h.fence), func() engine.Command { return &engine.Release{Lease: id, Note: note} },
		func(eff *engine.Effect, _ interlock.At) { a.ended(eff) },
	)
}

func (a *agent) poll() {
	if len(a.waits) == 0 {
		return
	}
	t := a.waits[a.rng(len(a.waits))]
	attach := a.rng(2) == 0
	a.send(
		fmt.Sprintf("poll %x", t[12:]), func() engine.Command { return &engine.Poll{Ticket: t, Attach: attach} }, a.got(),
	)
}

func (a *agent) leave() {
	if len(a.waits) == 0 {
		return
	}
	t := a.waits[a.rng(len(a.waits))]
	a.unawait(t)
	a.send(
		fmt.Sprintf("leave %x", t[12:]), func() engine.Command { return &engine.Leave{Ticket: t} },
		func(eff *engine.Effect, _ interlock.At) { a.ended(eff) },
	)
}

func (a *agent) convert() {
	h := a.one()
	if h == nil || h.task {
		return
	}
	c := engine.Convert{
		Lease: h.id, OnConflict: []interlock.OnConflict{interlock.Fail, interlock.Wait, interlock.Preempt}[a.rng(3)],
		Attach: a.rng(2) == 0,
	}
	claims := append([]interlock.Claim(nil), h.claims...)
	for i := range claims {
		if !claims[i].Mode.Counts() {
			claims[i].Mode = modes[a.rng(len(modes))]
		}
	}
	if a.rng(3) == 0 {
		claims = a.claims(2)
	}
	a.send(fmt.Sprintf("convert fence %d to %v", h.fence, shownClaims(claims)), func() engine.Command {
		again := c
		again.ID, again.Claims = a.w.id(), append([]interlock.Claim(nil), claims...)
		return &again
	}, a.got())
}

func (a *agent) park() {
	h := a.one()
	if h == nil || h.task {
		return
	}
	c := engine.Park{
		Lease: h.id, Free: a.rng(2) == 0, For: []time.Duration{0, 10 * time.Second, 30 * time.Second}[1+a.rng(2)],
		Reason: []string{"", "a question"}[a.rng(2)],
	}
	c.Keep = !c.Free
	a.send(
		fmt.Sprintf("park fence %d", h.fence), func() engine.Command { again := c; return &again },
		func(eff *engine.Effect, at interlock.At) {
			if eff.Outcome == engine.Done {
				h.parked = true
			}
			a.gone(h)(eff, at)
		},
	)
}

func (a *agent) resume() {
	for _, h := range a.leases {
		if h.parked {
			c := engine.Resume{
				Lease: h.id, Flow: a.flow(), OnConflict: interlock.OnConflict(a.rng(2)), Attach: a.rng(2) == 0,
				MaxWait: 10 * time.Second, Unapproved: a.rng(4) > 0,
			}
			h.parked = false
			a.send(fmt.Sprintf("resume fence %d", h.fence), func() engine.Command { again := c; return &again }, a.got())
			return
		}
	}
}

func (a *agent) arrive() {
	for _, h := range a.leases {
		if len(h.claims) > 0 && h.claims[0].Mode == interlock.Barrier {
			c := engine.Arrive{Lease: h.id, MaxWait: 5 * time.Second, Attach: true}
			a.send(
				fmt.Sprintf("arrive fence %d", h.fence), func() engine.Command { again := c; again.ID = a.w.id(); return &again },
				a.got(),
			)
			return
		}
	}
}

func (a *agent) declare() {
	if a.session.IsZero() {
		return
	}
	other := a.w.agents[a.rng(len(a.w.agents))]
	c := engine.Declare{Flow: a.flow(), On: engine.FlowRef{Agent: other.name}, MaxWait: 8 * time.Second, Attach: true}
	a.send(
		"declare a wait for "+other.name, func() engine.Command { again := c; again.ID = a.w.id(); return &again }, a.got(),
	)
}

func (a *agent) getLease() {
	if h := a.one(); h != nil {
		a.send(
			fmt.Sprintf("get fence %d", h.fence), func() engine.Command { return &engine.GetLease{Lease: h.id} }, a.gone(h),
		)
	}
}

func (a *agent) renew() {
	h := a.one()
	if h == nil {
		return
	}
	ttl := []time.Duration{0, 0, 1, 3, 20, 60}[a.rng(6)] * time.Second
	a.send(
		fmt.Sprintf("renew fence %d with ttl %v", h.fence, ttl),
		func() engine.Command { return &engine.Renew{Lease: h.id, TTL: ttl} }, a.gone(h),
	)
}

func (a *agent) checkFence() {
	if h := a.one(); h != nil && len(h.claims) > 0 {
		key, fence := h.claims[0].Key, h.fence
		if a.rng(3) == 0 && fence > 3 { // not its own
			fence += interlock.Fence(a.rng(6)) - 3
		}
		a.send(
			fmt.Sprintf("check fence %d at %s", fence, key),
			func() engine.Command { return &engine.CheckFence{Key: key, Fence: fence} }, nil,
		)
	}
}

func (a *agent) revoke() {
	other := a.w.agents[a.rng(len(a.w.agents))]
	h := other.one()
	if h == nil || len(h.claims) == 0 || other.namespace != a.namespace {
		return
	}
	key, fence := h.claims[0].Key, h.fence
	a.send(
		fmt.Sprintf("revoke fence %d at %s", fence, key),
		func() engine.Command { return &engine.Revoke{Key: key, Fence: fence, Reason: "by the operator"} }, nil,
	)
}

func (a *agent) commit() {
	key := interlock.Key(fmt.Sprintf("k%d/doc%d", a.rng(a.w.plan.keys), a.rng(2)))
	w := interlock.Write{Key: key, Op: interlock.Put, Body: []byte(fmt.Sprintf(`{"n":%d}`, a.rng(1000)))}
	var reads []interlock.Read
	switch a.rng(6) {
	case 0:
		w = interlock.Write{Key: key, Op: interlock.Delete}
	case 1:
		w = interlock.Write{Key: "counter", Op: interlock.Add, Delta: 1}
	case 2:
		if a.w.plan.credentials {
			w = a.write()
			key = w.Key
		}
	}
	if v, ok := a.docs[key]; ok || a.rng(3) == 0 {
		reads = []interlock.Read{{Key: key, Version: v}}
	}
	name := a.bareName()
	a.send(fmt.Sprintf("commit %s, read %v", w.Key, reads), func() engine.Command {
		return &engine.Commit{Agent: name, CommitRequest: interlock.CommitRequest{
			Reads: append([]interlock.Read(nil), reads...), Writes: []interlock.Write{w},
		}}
	}, func(eff *engine.Effect, _ interlock.At) {
		a.ended(eff)
		if eff.Outcome == engine.Done {
			a.docs[w.Key] = eff.Version
		}
		for i := range eff.Stale {
			a.docs[eff.Stale[i].Now.Key] = eff.Stale[i].Now.Version
		}
	})
}

// bareName is the name of an agent without a session; with one it has a name already.
func (a *agent) bareName() string {
	if a.session.IsZero() {
		return a.name
	}
	return ""
}

func (a *agent) claimEffect() {
	c := engine.ClaimEffect{Agent: a.bareName(), Action: fmt.Sprintf(`{"charge":%d}`, a.rng(12)), TTL: 4 * time.Second}
	if h := a.one(); h != nil && a.rng(3) == 0 {
		c.Lease = h.id
	}
	a.send(
		"claim effect "+c.Action, func() engine.Command { again := c; again.ID = a.w.id(); return &again },
		func(eff *engine.Effect, _ interlock.At) {
			a.ended(eff)
			if eff.Outcome == engine.Done && eff.Effect != nil && eff.Effect.State == interlock.EffectClaimed {
				a.deeds = append(a.deeds, eff.Effect.ID)
			}
		},
	)
}

func (a *agent) settleEffect() {
	if len(a.deeds) == 0 {
		return
	}
	c := engine.SettleEffect{
		ID: a.deeds[0], State: []interlock.EffectState{interlock.EffectDone, interlock.EffectUnknown, 0}[a.rng(3)],
		Result: `"ok"`,
	}
	switch c.State {
	case interlock.EffectUnknown:
		c.Result, c.Reason = "", "cannot tell"
	case 0:
		c.Result = ""
	}
	a.deeds = a.deeds[1:]
	a.send("settle an effect as "+c.State.String(), func() engine.Command { again := c; return &again }, nil)
}

func (a *agent) startRun() {
	c := engine.StartRun{
		Org: "acme", Workflow: []string{"", "triage"}[a.rng(2)], Agent: a.bareName(), TTL: 5 * time.Second,
	}
	if a.rng(2) == 0 {
		c.MaxWait, c.Attach = 3*time.Second, true
	}
	a.send("start a run", func() engine.Command { again := c; again.ID = a.w.id(); return &again }, a.got())
}

func (a *agent) pattern() {
	switch a.rng(4) {
	case 0:
		a.send("set a pattern", func() engine.Command {
			return &engine.SetPattern{Pattern: interlock.Pattern{Name: "spare", Shape: "spare:{id}", Capacity: 2}}
		}, nil)
	case 1:
		a.send("drop a pattern", func() engine.Command { return &engine.DropPattern{Name: "spare"} }, nil)
	case 2:
		a.send("revert a pattern", func() engine.Command { return &engine.RevertPattern{Name: "spare"} }, nil)
	}
}
