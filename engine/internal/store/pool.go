package store

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// Permits and tokens.
//
// A key with a capacity counts the permits that are taken; one with a rate has a bucket of
// tokens, which grants consume. A claim of permits can be granted when there are enough for it
// and for all waiters before it that want some: a waiter counts as if it had its own already.
// So small claims cannot starve a large one, and if the first waiter of a bucket cannot be
// granted, nor can those behind it.
//
// A lock on the whole key under a rate takes one token. It excludes all permits, so it needs none, and
// the tokens that earlier waiters want do not count: those waiters go first in any case.
//
// Groups share a capacity. The unused part of a group's minimum is reserved for it, and no
// group exceeds its maximum; a group that waits at its maximum keeps nothing from others that
// it could not have itself.

// Pool is the usage of a key with a capacity or a rate. It exists while permits of the key are
// held or wanted, and until its bucket is full.
type Pool struct {
	Node   *Node
	Policy *Policy // of the key; nil when its pattern was dropped: then nothing is bounded
	pos    int     // in space.pools
	Used   uint64
	Groups []uint64          // of that, by each group that the policy lists
	Named  map[string]uint64 // of that, by each group with a name, listed or not
	Plain  uint64            // of that, by those of no group

	// full is when the bucket of tokens is or was full. Each token takes it further
	// by the time in which one comes back, so no count can drift.
	Full    Time
	cooling bool   // stands in space.cooling, which keeps the node
	Timer   *Timer // volatile: when the first in line has its tokens

	edition uint64 // of the patterns that it follows: see repool.go
	Stirred bool   // it follows another policy, and those in line were not looked at since
	Mixed   bool   // its line has buckets that are still to be sorted by the listed groups
}

// Unlisted stands for the index of a group in a policy that does not list it. Those
// groups are alike, so they are not counted apart, however many there are.
const Unlisted = -1

// GroupAt is the index of r's group in the policy at a need of permits.
func (r *Request) GroupAt(m *Need) int {
	if p := m.Node.Pool().Policy; p != nil {
		return p.groupIndex(r.Group)
	}
	return Unlisted
}

// pool finds or makes the pool of a node.
func (s *Namespace) pool(n *Node) *Pool {
	if n.pooled == nil {
		p := &Pool{Node: n, pos: len(s.Pools), edition: s.Repooling.Edition}
		n.own().pooled = p
		p.follow(s.PolicyAt(n.Key))
		s.Pools = append(s.Pools, p)
	}
	return n.Pool()
}

// follow makes a policy that of the pool.
func (p *Pool) follow(policy *Policy) {
	if p.Policy, p.Groups = policy, nil; policy == nil || len(policy.Groups) == 0 {
		return
	}
	p.Groups = make([]uint64, len(policy.Groups))
	for i := range p.Groups {
		p.Groups[i] = p.UsedBy(policy.Groups[i].Name)
	}
}

// drop forgets the pool of a node that is not needed.
func (p *Pool) drop() {
	s := p.Node.NS
	last := s.Pools[len(s.Pools)-1]
	s.Pools[p.pos], last.pos = last, p.pos
	s.Pools[len(s.Pools)-1] = nil
	s.Pools = s.Pools[:len(s.Pools)-1]
	p.Node = nil
}

// BurstLimit is the size of the bucket. A pattern from before bursts had a default in it has the rate's.
func (p *Policy) BurstLimit() uint32 {
	if p.Burst == 0 {
		return p.Rate
	}
	return p.Burst
}

// Tick is the time in which one token comes back, rounded up, so that what is
// taken never exceeds the rate.
func (p *Policy) Tick() time.Duration {
	per := p.Per
	if per == 0 {
		per = time.Second
	}
	return (per + time.Duration(p.Rate) - 1) / time.Duration(p.Rate)
}

// minTick keeps the rounding of a tick below one part in a hundred, and maxFill
// the times in which buckets fill within what a Time can hold.
const (
	minTick = 100 * time.Nanosecond
	maxFill = 10 * 365 * 24 * time.Hour
)

// tokens is how many there are at a time.
func (p *Pool) tokens(now Time) uint32 {
	missing := max(0, p.Full.Sub(now))
	tick := p.Policy.Tick()
	return p.Policy.BurstLimit() - uint32(min(uint64(p.Policy.BurstLimit()), uint64((missing+tick-1)/tick)))
}

// TokensAt returns when n tokens will be there if none are taken before. n is at most the
// burst.
func (p *Pool) TokensAt(n uint64) Time {
	return p.Full.Add(time.Duration(n)*p.Policy.Tick() - time.Duration(p.Policy.BurstLimit())*p.Policy.Tick())
}

// take counts permits of a group in, or out again.
func (p *Pool) take(group string, count uint64) {
	p.Used += count
	if group == "" {
		p.Plain += count
	} else if left := p.Named[group] + count; left > 0 {
		if p.Named == nil {
			p.Named = map[string]uint64{}
		}
		p.Named[group] = left
	} else {
		delete(p.Named, group)
	}
	if p.Groups != nil {
		if i := p.Policy.groupIndex(group); i != Unlisted {
			p.Groups[i] += count
		}
	}
}

func (p *Pool) give(group string, count uint64) { p.take(group, -count) }

// UsedBy returns the permits that those of a group have.
func (p *Pool) UsedBy(group string) uint64 {
	if group == "" {
		return p.Plain
	}
	return p.Named[group]
}

// spend takes tokens at a time.
func (p *Pool) spend(now Time, count uint64) {
	if p.CatchUp(); p.Policy == nil || p.Policy.Rate == 0 {
		return
	}
	p.Full = max(p.Full, now).Add(time.Duration(count) * p.Policy.Tick())
	s := p.Node.NS
	if !p.cooling {
		p.cooling = true
		p.Node.refs++
		s.cooling.Push(p)
	}
	// Each grant of tokens also checks two other pools, so that full buckets are dropped.
	for range min(2, s.cooling.Len()) {
		c := s.cooling.Pop()
		if c.CatchUp(); c.Full > now {
			s.cooling.Push(c)
			continue
		}
		c.cooling = false
		c.Node.drop()
	}
}

// spend takes the tokens of a request that was granted.
func (r *Request) spend(now Time) {
	needs := r.Needs()
	for i := range needs {
		needs[i].spend(now, r.CountOf(&needs[i]))
	}
}

// spend takes the tokens of a need that was granted: count for permits, one for a lock on a rated key.
func (m *Need) spend(now Time, count uint32) {
	switch s := m.Node.NS; {
	case m.Counts == interlock.Permits:
		m.Node.pooled.spend(now, uint64(count))
	case !s.rated || !m.takesToken():
	case m.Node.pooled != nil:
		m.Node.pooled.spend(now, 1)
	default:
		if p := s.PolicyAt(m.Node.Key); p != nil && p.Rate > 0 {
			s.pool(m.Node).spend(now, 1)
		}
	}
}

// wholeKey has the modes in which a lock on a rated key takes a token. An intent announces a claim below the key.
var wholeKey = lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X)

// takesToken reports whether a need is for a lock that takes a token if its key has a rate. Parts are handed out by
// the server.
func (m *Need) takesToken() bool {
	return m.Counts == 0 && m.Claimed && wholeKey.Has(m.Mode) && m.Req.Share == nil
}

// RatedLocks yields the keys where r has a lock that takes a token.
func (r *Request) RatedLocks(yield func(key string) bool) {
	if !r.NS.rated {
		return
	}
	for i := range r.Needs() {
		m := &r.Needs()[i]
		if p := r.NS.PolicyAt(m.Node.Key); m.takesToken() && p != nil && p.Rate > 0 && !yield(m.Node.Key) {
			return
		}
	}
}

// LacksToken reports whether a need for a lock must wait for a token.
func (m *Need) LacksToken() bool {
	if m.Node.pooled == nil || !m.takesToken() {
		return false
	}
	p := m.Node.Pool()
	return p.Policy != nil && p.Policy.Rate > 0 && p.TokensAt(1) > m.Node.NS.Now()
}

// evolveBucket sets a bucket as a snapshot has it.
func (s *Namespace) evolveBucket(ev *record.Event) error {
	if len(ev.Claims) != 1 {
		return errUnknown
	}
	p := s.pool(s.node(string(ev.Claims[0].Key)))
	p.Full = ev.At.Add(ev.After)
	if !p.cooling {
		p.cooling = true
		p.Node.refs++
		s.cooling.Push(p)
	}
	return nil
}

// shortage is the part of a pool that a request must wait for.
type shortage uint8

const (
	Enough shortage = iota
	ShortOfPermits
	ShortOfTokens
)

// Short reports whether r must wait for permits or tokens at one of its needs.
func (r *Request) Short(m *Need) shortage {
	p := m.Node.Pool()
	if p == nil || p.Policy == nil {
		return Enough
	}
	if p.Policy.Capacity > 0 && (p.Mixed && len(p.Policy.Groups) > 0 || !p.fits(r, m)) {
		return ShortOfPermits
	}
	if p.Policy.Rate > 0 {
		if n := uint64(r.CountOf(m)) + p.Ahead(r); n > uint64(p.Policy.BurstLimit()) || p.TokensAt(n) > r.NS.Now() {
			return ShortOfTokens
		}
	}
	return Enough
}

// CountsAgainst returns the shortage that makes r wait for others at one of its needs. Tokens
// come back by themselves, unless the waiters ahead want too many for the bucket to have enough
// for r as well.
func (r *Request) CountsAgainst(m *Need) shortage {
	if m.Counts != interlock.Permits {
		return Enough
	}
	short := r.Short(m)
	if p := m.Node.Pool(); short == ShortOfTokens && p.Ahead(r)+uint64(r.CountOf(m)) <= uint64(p.Policy.BurstLimit()) {
		return Enough
	}
	return short
}

// Hopeless reports whether one of r's needs can never be met: the key has fewer permits,
// because its pattern changed while r stood in line, or r's own flow has so many of them that
// the rest is too few. A request with alternatives is hopeless when each of them is.
func (r *Request) Hopeless(m *Need) bool {
	if !r.lacksForEver(m) {
		return false
	}
	for way := range r.Whole().EachAlternative {
		if way != r && way.Lacking() == nil {
			return false
		}
	}
	return true
}

// Lacking returns a need of r, as one alternative, that lacks permits for ever, or nil.
func (r *Request) Lacking() *Need {
	needs := r.Needs()
	for i := range needs {
		if r.lacksForEver(&needs[i]) {
			return &needs[i]
		}
	}
	return nil
}

// lacksForEver is hopeless for one alternative. A flow that waits returns nothing meanwhile, so
// permits of its leases count; but tokens come back.
func (r *Request) lacksForEver(m *Need) bool {
	if m.Counts != interlock.Permits || m.Node.Pool().Policy == nil {
		return false
	}
	p, n := m.Node.pooled.Policy, r.CountOf(m)
	if p.Rate > 0 && n > p.BurstLimit() {
		return true
	}
	if p.Capacity == 0 {
		return false
	}
	own := r.KeptAt(m.Node)
	return !p.fits(r.GroupAt(m), uint64(n), own.Used(), 0, func(group int) (used, ahead uint64) { return own.of(group) })
}

// KeptAt counts the permits of a key that r's own flow has and does not return while r waits.
// Runs end by themselves, whatever the flow that started them waits for: one more run treats
// them like those of others.
func (r *Request) KeptAt(n *Node) *residue {
	x, p := &residue{}, r.FlowState
	if n.First == nil || !p.At(n).holds() {
		return x
	}
	*n.NS.Agenda.objects += len(p.Leases)
	for _, l := range p.Leases {
		if m := l.needAt(n); m != nil && !l.endsBeside(r) {
			x.add(l, m, false)
		}
	}
	return x
}

// endsBeside reports whether r, a lease, can come to its end while w, of the same flow, waits.
func (r *Request) endsBeside(w *Request) bool { return r.IsRun() && w.Whole().IsRun() }

// Ahead returns the sum of permits that the waiters before r want.
func (p *Pool) Ahead(r *Request) (sum uint64) {
	if p.Node.Line != nil {
		for c := p.Node.Line.First; c != nil; c = c.Next {
			*p.Node.NS.Agenda.objects++
			if c.Counts == interlock.Permits && !c.IsAsideFor(r) {
				sum += c.sumBefore(r)
			}
		}
	}
	return sum
}

// fits reports whether the permits of a need are there for r.
func (p *Pool) fits(r *Request, m *Need) bool {
	n := uint64(r.CountOf(m))
	if p.Used+n > uint64(p.Policy.Capacity) {
		return false
	}
	return p.Policy.fits(r.GroupAt(m), n, p.Used, p.Ahead(r), func(group int) (used, ahead uint64) {
		return p.Groups[group], p.AheadIn(group, r)
	})
}

// fits reports whether a group can have n more permits, given the used permits and those wanted
// by the waiters ahead, in all and for each group that the policy lists.
func (p *Policy) fits(mine int, n, used, ahead uint64, of func(group int) (used, ahead uint64)) bool {
	capacity := uint64(p.Capacity)
	if len(p.Groups) == 0 || used+n > capacity {
		return used+ahead+n <= capacity
	}
	own, rest := n, used+ahead
	if mine != Unlisted {
		taken, wanted := of(mine)
		own, rest = own+taken+wanted, rest-taken-wanted
		share := &p.Groups[mine]
		if share.Max > 0 && own > uint64(share.Max) {
			return false
		}
		if own <= uint64(share.Min) {
			return true // kept free for it
		}
	}
	total := own
	for i := range p.Groups {
		if i == mine {
			continue
		}
		g := &p.Groups[i]
		taken, wanted := of(i)
		theirs := taken + wanted
		rest -= theirs
		if g.Max > 0 {
			theirs = max(taken, min(theirs, uint64(g.Max)))
		}
		total += max(theirs, uint64(g.Min))
	}
	return total+rest <= capacity
}

// AheadIn returns the sum of permits that the waiters of one group before r want.
func (p *Pool) AheadIn(group int, r *Request) (sum uint64) {
	if p.Node.Line != nil {
		for c := p.Node.Line.First; c != nil; c = c.Next {
			*p.Node.NS.Agenda.objects++
			if c.Counts == interlock.Permits && int(c.Group) == group && !c.IsAsideFor(r) {
				sum += c.sumBefore(r)
			}
		}
	}
	return sum
}

// Capacity describes how full a key is; nil when it has no bound.
func (s *Namespace) Capacity(key string, now Time) *interlock.Capacity {
	if s == nil {
		return nil
	}
	pol := s.PolicyAt(key)
	if pol == nil || pol.Capacity == 0 && pol.Rate == 0 {
		return nil
	}
	c := &interlock.Capacity{Permits: pol.Capacity}
	var p *Pool
	if n := s.NodeAt(key); n != nil && n.pooled != nil {
		p = n.Pool()
		c.Used = uint32(min(p.Used, interlock.MaxCount))
	}
	for i, g := range pol.Groups {
		use := interlock.GroupUse{Group: g}
		if p != nil {
			use.Used = uint32(min(p.Groups[i], interlock.MaxCount))
		}
		c.Groups = append(c.Groups, use)
	}
	if pol.Rate > 0 {
		c.Tokens, c.Available = pol.BurstLimit(), pol.BurstLimit()
		if p != nil {
			c.Available = p.tokens(now)
			if c.Available < c.Tokens {
				c.Refill = max(1, p.TokensAt(uint64(c.Available)+1).Sub(now))
			}
		}
	}
	return c
}

// refill converts the missing tokens of the bucket to another rate.
func (p *Pool) refill(old *Policy, now Time) {
	if old == nil || old.Rate == 0 || p.Full <= now || p.Policy == nil || p.Policy.Rate == 0 {
		p.Full = min(p.Full, now)
		return
	}
	full := time.Duration(p.Policy.BurstLimit()) * p.Policy.Tick()
	if p.Policy.Tick() == old.Tick() {
		p.Full = min(p.Full, now.Add(full))
		return
	}
	missing := (p.Full.Sub(now) + old.Tick() - 1) / old.Tick()
	p.Full = now.Add(min(missing*p.Policy.Tick(), full))
}

// TakesTokens reports whether the waiters of a bucket may wait for tokens.
func (c *bucket) TakesTokens() bool {
	return c.Counts == interlock.Permits || c.Counts == 0 && wholeKey.Has(c.Mode)
}

// ArmPool sets the timer for when the waiters for tokens get theirs: the first watched one of
// each bucket, and those that are watched one by one.
func (st *State) ArmPool(p *Pool) {
	if p != nil {
		p.CatchUp()
	}
	if p == nil || p.Policy == nil || p.Policy.Rate == 0 || p.Node.Line == nil {
		return
	}
	next := record.Never
	consider := func(w *QueueEntry) {
		n := uint64(1)
		if w.Class.Counts == interlock.Permits {
			n = p.Ahead(w.Req) + uint64(w.Count)
		}
		if n > uint64(p.Policy.BurstLimit()) {
			return // it waits for those ahead
		}
		if at := p.TokensAt(n); at > st.Clock {
			next = min(next, at)
		}
	}
	for c := p.Node.Line.First; c != nil; c = c.Next {
		st.Visited++
		if !c.TakesTokens() {
			continue
		}
		if w := c.FirstWatched(); w != nil {
			consider(w)
		}
		for _, w := range c.WatchedAlone {
			consider(w)
		}
	}
	if next == record.Never {
		st.Timers.Clear(p.Timer)
		return
	}
	if p.Timer == nil {
		var ord record.Fingerprint
		ord.Text(p.Node.Key)
		p.Timer = &Timer{Pos: -1, Ord: uint64(ord), Pool: p}
	}
	st.Timers.Set(p.Timer, next)
}

// FireRates fires the pools with a rate that a new lease has taken tokens from.
func (st *State) FireRates(r *Request) {
	for i := range r.Needs() {
		if p := r.Needs()[i].Node.Pool(); p != nil && p.Policy != nil && p.Policy.Rate > 0 {
			st.FirePool(p)
		}
	}
}

// FirePool checks the waiters for tokens.
func (st *State) FirePool(p *Pool) {
	if p.Node == nil || p.Node.Line == nil {
		return
	}
	for c := p.Node.Line.First; c != nil; c = c.Next {
		st.Visited++
		if c.TakesTokens() {
			st.ReadyClass(c)
		}
	}
	st.ArmPool(p)
}
