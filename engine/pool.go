package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
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
// Groups share a capacity. The unused part of a group's minimum is reserved for it, and no
// group exceeds its maximum; a group that waits at its maximum keeps nothing from others that
// it could not have itself.

// pool is the usage of a key with a capacity or a rate. It exists while permits of the key are
// held or wanted, and until its bucket is full.
type pool struct {
	node   *node
	policy *policy // of the key; nil when its pattern was dropped: then nothing is bounded
	pos    int     // in space.pools
	used   uint64
	groups []uint64          // of that, by each group that the policy lists
	named  map[string]uint64 // of that, by each group with a name, listed or not
	plain  uint64            // of that, by those of no group

	// full is when the bucket of tokens is or was full. Each token takes it further
	// by the time in which one comes back, so no count can drift.
	full    Time
	cooling bool   // stands in space.cooling, which keeps the node
	timer   *timer // volatile: when the first in line has its tokens

	edition uint64 // of the patterns that it follows: see repool.go
	stirred bool   // it follows another policy, and those in line were not looked at since
	mixed   bool   // its line has buckets that are still to be sorted by the listed groups
}

// unlisted stands for the index of a group in a policy that does not list it. Those
// groups are alike, so they are not counted apart, however many there are.
const unlisted = -1

// groupAt is the index of r's group in the policy at a need of permits.
func (r *request) groupAt(m *need) int {
	if p := m.node.pool().policy; p != nil {
		return p.groupIndex(r.Group)
	}
	return unlisted
}

// pool finds or makes the pool of a node.
func (s *namespace) pool(n *node) *pool {
	if n.pooled == nil {
		p := &pool{node: n, pos: len(s.pools), edition: s.repooling.edition}
		n.own().pooled = p
		p.follow(s.policyAt(n.key))
		s.pools = append(s.pools, p)
	}
	return n.pool()
}

// follow makes a policy that of the pool.
func (p *pool) follow(policy *policy) {
	if p.policy, p.groups = policy, nil; policy == nil || len(policy.Groups) == 0 {
		return
	}
	p.groups = make([]uint64, len(policy.Groups))
	for i := range p.groups {
		p.groups[i] = p.usedBy(policy.Groups[i].Name)
	}
}

// drop forgets the pool of a node that is not needed.
func (p *pool) drop() {
	s := p.node.ns
	last := s.pools[len(s.pools)-1]
	s.pools[p.pos], last.pos = last, p.pos
	s.pools[len(s.pools)-1] = nil
	s.pools = s.pools[:len(s.pools)-1]
	p.node = nil
}

// burst is the size of the bucket.
func (p *policy) burst() uint32 {
	if p.Burst == 0 {
		return p.Rate
	}
	return p.Burst
}

// tick is the time in which one token comes back, rounded up, so that what is
// taken never exceeds the rate.
func (p *policy) tick() time.Duration {
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
func (p *pool) tokens(now Time) uint32 {
	missing := max(0, p.full.Sub(now))
	tick := p.policy.tick()
	return p.policy.burst() - uint32(min(uint64(p.policy.burst()), uint64((missing+tick-1)/tick)))
}

// tokensAt returns when n tokens will be there if none are taken before. n is at most the
// burst.
func (p *pool) tokensAt(n uint64) Time {
	return p.full.Add(time.Duration(n)*p.policy.tick() - time.Duration(p.policy.burst())*p.policy.tick())
}

// take counts permits of a group in, or out again.
func (p *pool) take(group string, count uint64) {
	p.used += count
	if group == "" {
		p.plain += count
	} else if left := p.named[group] + count; left > 0 {
		if p.named == nil {
			p.named = map[string]uint64{}
		}
		p.named[group] = left
	} else {
		delete(p.named, group)
	}
	if p.groups != nil {
		if i := p.policy.groupIndex(group); i != unlisted {
			p.groups[i] += count
		}
	}
}

func (p *pool) give(group string, count uint64) { p.take(group, -count) }

// usedBy returns the permits that those of a group have.
func (p *pool) usedBy(group string) uint64 {
	if group == "" {
		return p.plain
	}
	return p.named[group]
}

// spend takes tokens at a time.
func (p *pool) spend(now Time, count uint64) {
	if p.catchUp(); p.policy == nil || p.policy.Rate == 0 {
		return
	}
	p.full = max(p.full, now).Add(time.Duration(count) * p.policy.tick())
	s := p.node.ns
	if !p.cooling {
		p.cooling = true
		p.node.refs++
		s.cooling.Push(p)
	}
	// Each grant of tokens also checks two other pools, so that full buckets are dropped.
	for range min(2, s.cooling.Len()) {
		c := s.cooling.Pop()
		if c.catchUp(); c.full > now {
			s.cooling.Push(c)
			continue
		}
		c.cooling = false
		c.node.drop()
	}
}

// spend takes the tokens of a request that was granted.
func (r *request) spend(now Time) {
	needs := r.needs()
	for i := range needs {
		if m := &needs[i]; m.counts == interlock.Permits {
			m.node.pooled.spend(now, uint64(r.countOf(m)))
		}
	}
}

// evolveBucket sets a bucket as a snapshot has it.
func (s *namespace) evolveBucket(ev *record.Event) error {
	if len(ev.Claims) != 1 {
		return errUnknown
	}
	p := s.pool(s.node(string(ev.Claims[0].Key)))
	p.full = ev.At.Add(ev.After)
	if !p.cooling {
		p.cooling = true
		p.node.refs++
		s.cooling.Push(p)
	}
	return nil
}

// shortage is the part of a pool that a request must wait for.
type shortage uint8

const (
	enough shortage = iota
	shortOfPermits
	shortOfTokens
)

// short reports whether r must wait for permits or tokens at one of its needs.
func (r *request) short(m *need) shortage {
	p := m.node.pool()
	if p == nil || p.policy == nil {
		return enough
	}
	if p.policy.Capacity > 0 && (p.mixed && len(p.policy.Groups) > 0 || !p.fits(r, m)) {
		return shortOfPermits
	}
	if p.policy.Rate > 0 {
		if n := uint64(r.countOf(m)) + p.ahead(r); n > uint64(p.policy.burst()) || p.tokensAt(n) > r.ns.agenda.now {
			return shortOfTokens
		}
	}
	return enough
}

// countsAgainst returns the shortage that makes r wait for others at one of its needs. Tokens
// come back by themselves, unless the waiters ahead want too many for the bucket to have enough
// for r as well.
func (r *request) countsAgainst(m *need) shortage {
	if m.counts != interlock.Permits {
		return enough
	}
	short := r.short(m)
	if p := m.node.pool(); short == shortOfTokens && p.ahead(r)+uint64(r.countOf(m)) <= uint64(p.policy.burst()) {
		return enough
	}
	return short
}

// hopeless reports whether one of r's needs can never be met: the key has fewer permits,
// because its pattern changed while r stood in line, or r's own flow has so many of them that
// the rest is too few. A request with alternatives is hopeless when each of them is.
func (r *request) hopeless(m *need) bool {
	if !r.lacksForEver(m) {
		return false
	}
	for way := range r.whole().eachAlternative {
		if way != r && way.lacking() == nil {
			return false
		}
	}
	return true
}

// lacking returns a need of r, as one alternative, that lacks permits for ever, or nil.
func (r *request) lacking() *need {
	needs := r.needs()
	for i := range needs {
		if r.lacksForEver(&needs[i]) {
			return &needs[i]
		}
	}
	return nil
}

// lacksForEver is hopeless for one alternative. A flow that waits returns nothing meanwhile, so
// permits of its leases count; but tokens come back.
func (r *request) lacksForEver(m *need) bool {
	if m.counts != interlock.Permits || m.node.pool().policy == nil {
		return false
	}
	p, n := m.node.pooled.policy, r.countOf(m)
	if p.Rate > 0 && n > p.burst() {
		return true
	}
	if p.Capacity == 0 {
		return false
	}
	own := r.keptAt(m.node)
	return !p.fits(r.groupAt(m), uint64(n), own.used(), 0, func(group int) (used, ahead uint64) { return own.of(group) })
}

// keptAt counts the permits of a key that r's own flow has and does not return while r waits.
// Runs end by themselves, whatever the flow that started them waits for: one more run treats
// them like those of others.
func (r *request) keptAt(n *node) *residue {
	x, p := &residue{}, r.party
	if n.first == nil || !p.at(n).holds() {
		return x
	}
	*n.ns.agenda.objects += len(p.leases)
	for _, l := range p.leases {
		if m := l.needAt(n); m != nil && !l.endsBeside(r) {
			x.add(l, m, false)
		}
	}
	return x
}

// endsBeside reports whether r, a lease, can come to its end while w, of the same flow, waits.
func (r *request) endsBeside(w *request) bool { return r.isRun() && w.whole().isRun() }

// refuseUnservable refuses a request that can never be granted because its own flow has the
// permits, and reports whether it did.
func (e *Engine) refuseUnservable(r *request) bool {
	var lacking *need
	for way := range r.eachAlternative {
		if lacking = way.lacking(); lacking == nil {
			return false
		}
	}
	if lacking == nil {
		return false
	}
	own, most := lacking.req.keptAt(lacking.node).used(), uint64(lacking.node.pool().policy.mostHeld(r.Group))
	left := most - min(most, own)
	advice := message.New(message.GiveBackOrAskFor, message.Num(left))
	if left == 0 {
		advice = message.New(message.GiveBackFirst)
	}
	e.refuse(interlock.CodeTooManyPermits, message.New(message.PermitsNeverFree, message.Num(own), message.Str(lacking.node.key), message.Num(most), message.Num(lacking.req.countOf(lacking)), message.Sub(advice)))
	return true
}

// ahead adds up what the waiters before r want.
func (p *pool) ahead(r *request) (sum uint64) {
	if p.node.line != nil {
		for c := p.node.line.first; c != nil; c = c.next {
			*p.node.ns.agenda.objects++
			if c.counts == interlock.Permits && !c.isAsideFor(r) {
				sum += c.sumBefore(r)
			}
		}
	}
	return sum
}

// fits reports whether the permits of a need are there for r.
func (p *pool) fits(r *request, m *need) bool {
	n := uint64(r.countOf(m))
	if p.used+n > uint64(p.policy.Capacity) {
		return false
	}
	return p.policy.fits(r.groupAt(m), n, p.used, p.ahead(r), func(group int) (used, ahead uint64) {
		return p.groups[group], p.aheadIn(group, r)
	})
}

// fits reports whether a group can have n more permits, given the used permits and those wanted
// by the waiters ahead, in all and for each group that the policy lists.
func (p *policy) fits(mine int, n, used, ahead uint64, of func(group int) (used, ahead uint64)) bool {
	capacity := uint64(p.Capacity)
	if len(p.Groups) == 0 || used+n > capacity {
		return used+ahead+n <= capacity
	}
	own, rest := n, used+ahead
	if mine != unlisted {
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

// aheadIn adds up what the waiters of one group before r want.
func (p *pool) aheadIn(group int, r *request) (sum uint64) {
	if p.node.line != nil {
		for c := p.node.line.first; c != nil; c = c.next {
			*p.node.ns.agenda.objects++
			if c.counts == interlock.Permits && int(c.group) == group && !c.isAsideFor(r) {
				sum += c.sumBefore(r)
			}
		}
	}
	return sum
}

// capacity describes how full a key is; nil when it has no bound.
func (s *namespace) capacity(key string, now Time) *interlock.Capacity {
	if s == nil {
		return nil
	}
	pol := s.policyAt(key)
	if pol == nil || pol.Capacity == 0 && pol.Rate == 0 {
		return nil
	}
	c := &interlock.Capacity{Permits: pol.Capacity}
	var p *pool
	if n := s.nodeAt(key); n != nil && n.pooled != nil {
		p = n.pool()
		c.Used = uint32(min(p.used, interlock.MaxCount))
	}
	for i, g := range pol.Groups {
		use := interlock.GroupUse{Group: g}
		if p != nil {
			use.Used = uint32(min(p.groups[i], interlock.MaxCount))
		}
		c.Groups = append(c.Groups, use)
	}
	if pol.Rate > 0 {
		c.Tokens, c.Available = pol.burst(), pol.burst()
		if p != nil {
			c.Available = p.tokens(now)
			if c.Available < c.Tokens {
				c.Refill = max(1, p.tokensAt(uint64(c.Available)+1).Sub(now))
			}
		}
	}
	return c
}

// refill carries what is missing in the bucket over to another rate.
func (p *pool) refill(old *policy, now Time) {
	if old == nil || old.Rate == 0 || p.full <= now || p.policy == nil || p.policy.Rate == 0 {
		p.full = min(p.full, now)
		return
	}
	full := time.Duration(p.policy.burst()) * p.policy.tick()
	if p.policy.tick() == old.tick() {
		p.full = min(p.full, now.Add(full))
		return
	}
	missing := (p.full.Sub(now) + old.tick() - 1) / old.tick()
	p.full = now.Add(min(missing*p.policy.tick(), full))
}

// armPool sets the timer for when the waiters for tokens get theirs: the first watched one of
// each bucket, and those that are watched one by one.
func (e *Engine) armPool(p *pool) {
	if p != nil {
		p.catchUp()
	}
	if p == nil || p.policy == nil || p.policy.Rate == 0 || p.node.line == nil {
		return
	}
	next := record.Never
	consider := func(w *queueEntry) {
		n := p.ahead(w.req) + uint64(w.count)
		if n > uint64(p.policy.burst()) {
			return // it waits for those ahead
		}
		if at := p.tokensAt(n); at > e.now {
			next = min(next, at)
		}
	}
	for c := p.node.line.first; c != nil; c = c.next {
		e.objects++
		if c.counts != interlock.Permits {
			continue
		}
		if w := c.firstWatched(); w != nil {
			consider(w)
		}
		for _, w := range c.watchedAlone {
			consider(w)
		}
	}
	if next == record.Never {
		e.timers.clear(p.timer)
		return
	}
	if p.timer == nil {
		var ord record.Fingerprint
		ord.Text(p.node.key)
		p.timer = &timer{pos: -1, ord: uint64(ord), pool: p}
	}
	e.timers.set(p.timer, next)
}

// fireRates fires the pools with a rate that a new lease has taken tokens from.
func (e *Engine) fireRates(r *request) {
	for i := range r.needs() {
		if p := r.needs()[i].node.pool(); p != nil && p.policy != nil && p.policy.Rate > 0 {
			e.firePool(p)
		}
	}
}

// firePool checks the waiters for tokens.
func (e *Engine) firePool(p *pool) {
	if p.node == nil || p.node.line == nil {
		return
	}
	for c := p.node.line.first; c != nil; c = c.next {
		e.objects++
		if c.counts == interlock.Permits {
			e.readyClass(c)
		}
	}
	e.armPool(p)
}
