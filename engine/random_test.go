package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

var (
	runs  = flag.Int("runs", 300, "random runs of the engine against the model (also INTERLOCK_RUNS)")
	seed  = flag.Uint64("seed", 0, "first seed of the random runs, 0 for the fixed ones; with -runs 1 it repeats one")
	steps = flag.Int("steps", 200, "commands in a random run")
)

// op is one step of a random run before it is known to what it applies: the
// numbers choose among what exists then. So a run with some ops left out is
// still a run, and a failing one can be shrunk.
type op struct {
	kind opKind
	r    [8]uint32
}

type opKind int

const (
	opAcquire opKind = iota
	opRepeat
	opOpen
	opClose
	opHeartbeat
	opAttach
	opDetach
	opPoll
	opLeave
	opGetLease
	opRenew
	opRelease
	opRevoke
	opCheck
	opAdvance
	opRace
	opSnapshot
	opRestart
)

var weights = map[opKind]int{
	opAcquire: 40, opRepeat: 4, opOpen: 5, opClose: 1, opHeartbeat: 10, opAttach: 3, opDetach: 3, opPoll: 5, opLeave: 3,
	opGetLease: 2, opRenew: 5, opRelease: 22, opRevoke: 1, opCheck: 3, opAdvance: 22, opRace: 4, opSnapshot: 1, opRestart: 1,
}

func program(seed uint64, n int) []op {
	rng := rand.New(rand.NewPCG(seed, 0x1e7e1))
	var deck []opKind
	for kind := opAcquire; kind <= opRestart; kind++ {
		for range weights[kind] {
			deck = append(deck, kind)
		}
	}
	ops := make([]op, n)
	for i := range ops {
		ops[i].kind = deck[rng.IntN(len(deck))]
		for k := range ops[i].r {
			ops[i].r[k] = rng.Uint32()
		}
	}
	return ops
}

// run carries out a program from an empty engine on.
func run(ops []op) (*rig, error) {
	g := newRig()
	g.namespaces = []interlock.Namespace{"one", "two"}
	g.keys = []interlock.Key{"a", "a/x", "a/x/1", "a/y", "b", "c"}
	p := &player{rig: g}
	err := g.start()
	for i := 0; i < len(ops) && err == nil; i++ {
		err = p.play(&ops[i])
		if err == nil && i%4 == 0 && ops[i].kind != opRace {
			err = g.m.checkViews(g.e, g.namespaces, g.keys)
		}
	}
	return g, err
}

// player turns ops into commands.
type player struct {
	*rig
	asked []engine.Acquire // those with a request id
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
	switch o.kind {
	case opAcquire:
		return p.acquire(o)
	case opRepeat:
		return p.repeat(o)
	case opOpen:
		return p.step(&engine.OpenSession{
			Head: engine.Head{Namespace: among(o.r[0], interlock.Namespace("one"), "one", "one", "two")},
			ID:   p.id(), Agent: fmt.Sprintf("agent-%d", p.ids), TTL: among(o.r[1], 0, 9*time.Second, 30*time.Second, 5*time.Minute, time.Hour),
		})
	case opClose:
		if s := p.session(o.r[0], o.r[1]); s != nil {
			return p.step(&engine.CloseSession{Head: p.in(s)})
		}
	case opHeartbeat:
		if s := p.session(o.r[0], o.r[1]); s != nil {
			return p.step(&engine.Heartbeat{Head: p.in(s)})
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
	case opRevoke, opCheck:
		return p.fenced(o)
	case opAdvance:
		return p.advance(p.moment(o), among(o.r[2], everyTimer, everyTimer, atOnce))
	case opRace:
		return p.race(o)
	case opSnapshot:
		return p.snap()
	case opRestart:
		p.now = p.now.Add(among(o.r[0], 0, time.Second, time.Minute))
		if err := p.restart(uint64(among(o.r[1], 0, 0, 1000))); err != nil {
			return err
		}
		return p.advance(p.now, atOnce)
	}
	return nil
}

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
		ID:         id,
		Flow:       among(o.r[1]>>4, "main", "main", "sub"),
		TTL:        among(o.r[2], 0, 0, 3*time.Second, 9*time.Second, 30*time.Second, 90*time.Second),
		Grace:      among(o.r[2]>>8, 0, engine.NoGrace, 2*time.Second),
		MaxHold:    among(o.r[2]>>16, 0, 0, 0, 12*time.Second),
		Priority:   among(o.r[3], 0, 0, 0, 0, 1, -1, 5),
		OnConflict: among(o.r[3]>>8, interlock.Wait, interlock.Wait, interlock.Wait, interlock.Wait, interlock.Fail, interlock.Skip),
		Attach:     o.r[3]>>16%5 < 3,
	}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]%7 > 0 {
		c.Head = p.in(s)
	} else {
		c.Namespace, c.Agent = among(o.r[0], interlock.Namespace("one"), "one", "two"), fmt.Sprintf("bare-%d", p.ids)
	}
	c.Link = uint64(1 + o.r[1]>>12%3)
	n := 1 + int(among(o.r[4], 0, 0, 0, 1, 1, 2))
	for i := range n {
		key := p.keys[int(o.r[5]>>(4*i))%len(p.keys)]
		c.Claims = append(c.Claims, interlock.Claim{Key: key, Mode: among(o.r[6]>>(6*i)%64,
			interlock.Exclusive, interlock.Exclusive, interlock.Exclusive, 0, interlock.Shared, interlock.Shared, interlock.Shared,
			interlock.IntentExclusive, interlock.IntentShared, interlock.SharedIntentExclusive)})
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
	c.Claims = dedupe(c.Claims)
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
	c.ID, c.From = p.id(), nil
	c.Attach = o.r[2]%2 == 0
	if o.r[1]%4 == 0 {
		c.Purpose = "something else"
	}
	return p.step(&c)
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

// head makes a head for who asks about r: its session, nobody, or, seldom,
// somebody who should not.
func (p *player) head(r *request, odd uint32) engine.Head {
	head := engine.Head{Namespace: r.ns}
	if r.session != nil && odd%4 > 0 {
		head.Session = r.session.id
	}
	switch odd % 24 {
	case 0:
		head.Namespace = among(odd>>8, interlock.Namespace("one"), "two")
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
	list := p.m.inPhase(held, inGrace)
	if o.r[1]%8 == 0 && o.kind == opRelease {
		list = p.m.inPhase(held, inGrace, offered)
	}
	if o.r[1]%8 == 1 {
		list = p.m.inPhase(held, inGrace, over)
	}
	r, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	head := p.head(r, o.r[2])
	id := interlock.LeaseID(r.ask.ID)
	switch o.kind {
	case opGetLease:
		return p.step(&engine.GetLease{Head: head, Lease: id})
	case opRenew:
		return p.step(&engine.Renew{Head: head, Lease: id})
	}
	return p.step(&engine.Release{Head: head, Lease: id, Outcome: "done", Note: among(o.r[3], "", "a note")})
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
	if o.r[3]%2 == 0 {
		key = r.claims[0].Key
	}
	head := engine.Head{Namespace: r.ns}
	if o.kind == opRevoke {
		return p.step(&engine.Revoke{Head: head, Key: key, Fence: r.fence, Reason: "test"})
	}
	return p.step(&engine.CheckFence{Head: head, Key: key, Fence: r.fence})
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
	return p.now.Add(among(o.r[1], time.Nanosecond, time.Millisecond, time.Second, 7*time.Second, 10*time.Second, 40*time.Second))
}

// race lets a renewal or a heartbeat arrive after the deadline passed and before
// the Tick that says so.
func (p *player) race(o *op) error {
	r, ok := pick(o.r[0], p.m.inPhase(held))
	if !ok {
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

// TestModelMeets makes sure that the random runs come across everything that the
// model has a rule for: a check that never happens finds nothing.
func TestModelMeets(t *testing.T) {
	met := map[string]int{}
	for seed := uint64(1); seed <= 60; seed++ {
		g, err := run(program(seed, *steps))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, entry := range g.journal {
			err := engine.DecodeEntry(entry, func(ev *engine.Event) error {
				met[ev.Kind.String()]++
				met[ev.Kind.String()+" "+ev.Reason.String()]++
				if ev.Offer {
					met["offer"]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, what := range []string{
		"opened", "session_opened", "session_ended session_closed", "session_ended session_expired", "queued", "granted", "admitted", "offer", "claimed",
		"grace ttl", "grace max_hold", "grace session_expired", "ended released", "ended ttl", "ended max_hold", "ended session_closed",
		"ended session_expired", "ended lapsed", "ended left", "ended revoked", "left left", "left deadlock", "left session_closed",
		"left session_expired", "left lapsed", "answered",
	} {
		if met[what] == 0 {
			t.Errorf("no run met %q", what)
		}
	}
	t.Logf("%v", met)
}

// TestModel runs random programs and compares the engine with the model after
// every command.
func TestModel(t *testing.T) {
	n, first := *runs, *seed
	if s := os.Getenv("INTERLOCK_RUNS"); s != "" {
		more, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("INTERLOCK_RUNS: %v", err)
		}
		n = more
	}
	if testing.Short() {
		n = min(n, 50)
	}
	if first == 0 {
		first = 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		ops := program(seed, *steps)
		g, err := run(ops)
		if err == nil {
			err = replaysEqual(g, ops)
		}
		if err != nil {
			ops, g, err = shrink(ops, g, err)
			t.Fatalf("seed %d (repeat with -run TestModel -seed %d -runs 1), shrunk to %d ops:\n%s\n%v",
				seed, seed, len(ops), strings.Join(g.trace, "\n"), err)
		}
	}
	t.Logf("%d runs of %d commands each", n, *steps)
}

// fails runs a program for shrinking.
func fails(ops []op) (*rig, error) {
	g, err := run(ops)
	if err == nil {
		err = replaysEqual(g, ops)
	}
	return g, err
}

// shrink leaves out of a failing program what it fails without, in ever smaller
// pieces.
func shrink(ops []op, g *rig, err error) ([]op, *rig, error) {
	tries, until := 0, time.Now().Add(20*time.Second)
	for size := len(ops) / 2; size > 0; {
		removed := false
		for i := 0; i+size <= len(ops) && tries < 3000 && time.Now().Before(until); {
			tries++
			less := append(append([]op{}, ops[:i]...), ops[i+size:]...)
			if g2, err2 := fails(less); err2 != nil {
				ops, g, err, removed = less, g2, err2, true
				continue
			}
			i += size
		}
		if size > 1 {
			size /= 2
		} else if !removed {
			break
		}
		if tries >= 3000 || !time.Now().Before(until) {
			break
		}
	}
	return ops, g, err
}

// replaysEqual: the journal gives the same state as the run, whole and from the
// snapshot on; and the same commands give the same journal again.
func replaysEqual(g *rig, ops []op) error {
	replayed, err := g.replay()
	if err != nil {
		return err
	}
	if err := g.sameState(replayed); err != nil {
		return err
	}
	again, err := run(ops)
	if err != nil {
		return fmt.Errorf("the second run of the same commands: %w", err)
	}
	if again.e.Hash() != g.e.Hash() || len(again.journal) != len(g.journal) {
		return fmt.Errorf("the second run of the same commands has another hash or journal (I17)")
	}
	for i := range g.journal {
		if string(again.journal[i]) != string(g.journal[i]) {
			return fmt.Errorf("the second run of the same commands has another entry %d (I17)", i)
		}
	}
	return nil
}
