package engine_test

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// queueEntry is a key in its namespace.
type queueEntry struct {
	ns  interlock.Namespace
	key interlock.Key
}

// permits returns how many permits of a key the claims ask for.
func permits(claims []interlock.Claim, key interlock.Key) (n int) {
	for _, c := range claims {
		if c.Key == key && c.Mode == interlock.Permits {
			n += int(c.Count)
		}
	}
	return n
}

// tokens returns how many tokens a claim takes under a rate: one for a lock on the whole key.
func tokens(c interlock.Claim) int {
	switch c.Mode {
	case interlock.Permits:
		return int(c.Count)
	case interlock.Shared, interlock.SharedIntentExclusive, interlock.Exclusive:
		return 1
	}
	return 0
}

// needs is how many permits of a key r would take besides those it has.
func (r *request) needs(key interlock.Key) int {
	n := permits(r.claims, key)
	if r.base != nil {
		n = max(0, n-permits(r.base.claims, key))
	}
	return n
}

// groupOf returns the share of a claimant group; of one that is not listed, none.
func groupOf(p *interlock.Pattern, name string) interlock.Group {
	for _, g := range p.Groups {
		if g.Name == name {
			return g
		}
	}
	return interlock.Group{Name: name}
}

// mostPermits is as many as a group could ever have of a key.
func mostPermits(p *interlock.Pattern, group string) uint32 {
	most := uint32(interlock.MaxCount)
	if p.Capacity > 0 {
		most = p.Capacity
		for _, g := range p.Groups {
			if g.Name != group {
				most -= g.Min
			}
		}
		if g := groupOf(p, group); g.Max > 0 {
			most = min(most, g.Max)
		}
	}
	if p.Rate > 0 {
		most = min(most, burst(p))
	}
	return most
}

// neverServed reports whether r wants more of a key than it can ever have, besides what its own
// flow has already; or, if it wants any one of several, of each of them.
func (m *model) neverServed(r *request) bool {
	never := func(c interlock.Claim) bool {
		p := m.pattern(r.ns, c.Key)
		if p == nil || c.Mode != interlock.Permits || r.needs(c.Key) == 0 {
			return false
		}
		own := &memberPart{held: map[string]int{}, used: map[string]int{}}
		for _, q := range m.requests {
			if q != r && q.ns == r.ns && q.holds() && q.party() == r.party() && !(q.isRun() && r.isRun()) {
				own.held[q.ask.Group] += permits(q.claims, c.Key)
				own.used[q.ask.Group] += permits(q.claims, c.Key)
			}
		}
		return p.Rate > 0 && r.needs(c.Key) > int(burst(p)) || !own.permitsLeft(p, r.ask.Group, r.needs(c.Key))
	}
	if r.ask.Any {
		return !slices.ContainsFunc(r.claims, func(c interlock.Claim) bool { return !never(c) })
	}
	return slices.ContainsFunc(r.claims, never)
}

func burst(p *interlock.Pattern) uint32 { return max(p.Burst, 1) }

// memberPart is the part of a key's permits and tokens that is taken, from r's point of view: by the
// holders, and by the waiters ahead, which count as if they had theirs. A group that waits at
// its maximum keeps nothing from the others.
type memberPart struct {
	held   map[string]int // by holders, of each group
	used   map[string]int // with the waiters ahead
	tokens int            // that waiters ahead will take
	ahead  []*request
}

func (m *model) shareBefore(r *request, key interlock.Key, p *interlock.Pattern) *memberPart {
	x := &memberPart{held: map[string]int{}, used: map[string]int{}}
	for _, q := range m.requests {
		// a run ends by itself
		if q.ns == r.ns && q.holds() && !(m.hopeful && q.isRun() && r.isRun() && q.party() == r.party()) {
			x.held[q.ask.Group] += permits(q.claims, key)
			x.used[q.ask.Group] += permits(q.claims, key)
		}
	}
	for _, q := range m.inPhase(waiting) {
		if q.ns == r.ns && q != r && q.needs(key) > 0 && m.aheadOf(q, r) && !m.aside(q, r) &&
			!(m.hopeful && q.party() == r.party()) {
			x.ahead = append(x.ahead, q)
		}
	}
	slices.SortFunc(x.ahead, func(a, b *request) int {
		if m.aheadOf(a, b) {
			return -1
		}
		return 1
	})
	x.ahead = slices.DeleteFunc(x.ahead, func(q *request) bool {
		g := groupOf(p, q.ask.Group)
		if most := int(g.Max); p.Capacity > 0 && g.Name != r.ask.Group && most > 0 && x.used[g.Name]+q.needs(key) > most {
			none := x.used[g.Name] >= most
			x.used[g.Name] = max(x.used[g.Name], most) // what it lacks is kept for its group
			return none
		}
		x.used[g.Name] += q.needs(key)
		x.tokens += q.needs(key)
		return false
	})
	return x
}

// permitsLeft reports whether n more permits would fit for a group. No waiter of another group
// can take its reserve.
func (x *memberPart) permitsLeft(p *interlock.Pattern, group string, n int) bool {
	if p.Capacity == 0 {
		return true
	}
	g, others := groupOf(p, group), x.used
	if x.used[group]+n <= int(g.Min) {
		others = x.held
	}
	total := x.used[group] + n
	for name, used := range others {
		if name != group {
			total += max(used, int(groupOf(p, name).Min))
		}
	}
	for _, h := range p.Groups {
		if _, seen := others[h.Name]; !seen && h.Name != group {
			total += int(h.Min)
		}
	}
	return total <= int(p.Capacity) && (g.Max == 0 || x.used[group]+n <= int(g.Max))
}

// bucket is the number of tokens that are missing in a key's bucket.
type bucket struct {
	missing *big.Rat
	rate    *big.Rat // with which it filled until the rules changed
	at      time.Duration
}

// missing returns how many tokens of a key are missing now.
func (m *model) missing(ns interlock.Namespace, key interlock.Key, p *interlock.Pattern) *big.Rat {
	b := m.buckets[queueEntry{ns, key}]
	if b == nil || m.hopeful {
		return new(big.Rat)
	}
	back := new(big.Rat).SetFrac64(int64(m.now.Sub(begin)-b.at), int64(max(p.Per, 1)))
	back.Mul(back, new(big.Rat).SetInt64(int64(p.Rate)))
	left := new(big.Rat).Sub(b.missing, back)
	if left.Sign() < 0 {
		return new(big.Rat)
	}
	return left
}

// refill brings all buckets up to date.
func (m *model) refill() {
	for pl, b := range m.buckets {
		if p := m.pattern(pl.ns, pl.key); p != nil {
			b.missing, b.at = m.missing(pl.ns, pl.key, p), m.now.Sub(begin)
			b.rate = rate(p)
		}
	}
}

// carry takes over what is missing from one rate to another: a token that has come
// back in part is missing still.
func (m *model) carry() {
	for pl, b := range m.buckets {
		if p := m.pattern(pl.ns, pl.key); p != nil && b.rate != nil && b.rate.Cmp(rate(p)) != 0 && !b.missing.IsInt() {
			whole := new(big.Int).Quo(b.missing.Num(), b.missing.Denom())
			b.missing = new(big.Rat).SetInt(whole.Add(whole, big.NewInt(1)))
		}
	}
}

// rate is how many tokens come back in a nanosecond.
func rate(p *interlock.Pattern) *big.Rat { return big.NewRat(int64(p.Rate), int64(max(p.Per, 1))) }

// spend takes the tokens that a grant takes.
func (m *model) spend(ns interlock.Namespace, key interlock.Key, n int) {
	p := m.pattern(ns, key)
	if p == nil || p.Rate == 0 || n == 0 {
		return
	}
	if m.buckets == nil {
		m.buckets = map[queueEntry]*bucket{}
	}
	left := m.missing(ns, key, p)
	m.buckets[queueEntry{ns, key}] = &bucket{
		missing: left.Add(left, new(big.Rat).SetInt64(int64(n))), at: m.now.Sub(begin),
	}
}

// tokensLeft reports whether n tokens are there besides those that waiters ahead
// will take.
func (m *model) tokensLeft(x *memberPart, r *request, key interlock.Key, p *interlock.Pattern) bool {
	if p.Rate == 0 {
		return true
	}
	have := new(big.Rat).SetInt64(int64(burst(p)) - int64(x.tokens) - int64(r.needs(key)))
	return have.Cmp(m.missing(r.ns, key, p)) >= 0
}

// short returns the codes for r's lack of permits or tokens, and the holders of the permits and
// waiters for them.
func (m *model) short(r *request, claims []interlock.Claim) (codes []interlock.Code, by []*request) {
	for _, c := range claims {
		p := m.pattern(r.ns, c.Key)
		if p == nil {
			continue
		}
		if c.Mode != interlock.Permits {
			one := new(big.Rat).SetInt64(int64(burst(p)) - int64(tokens(c)))
			if p.Rate > 0 && tokens(c) > 0 && r.member == nil && one.Cmp(m.missing(r.ns, c.Key, p)) < 0 {
				codes = append(codes, interlock.CodeRateLimited)
			}
			continue
		}
		if m.hopeful && uint32(r.needs(c.Key)) > mostPermits(p, r.ask.Group) {
			continue // there may be more of them one day
		}
		x := m.shareBefore(r, c.Key, p)
		if !x.permitsLeft(p, r.ask.Group, r.needs(c.Key)) {
			codes = append(codes, interlock.CodeAtCapacity)
			for _, q := range m.requests {
				if q.ns == r.ns && q.holds() && permits(q.claims, c.Key) > 0 {
					by = append(by, q)
				}
			}
			by = append(by, x.ahead...)
		}
		if !m.tokensLeft(x, r, c.Key, p) {
			codes = append(codes, interlock.CodeRateLimited)
			by = append(by, x.ahead...)
		}
	}
	by = slices.DeleteFunc(by, func(q *request) bool { return q.party() == r.party() })
	return codes, by
}

// checkPermits: as many permits are in use as the key has, unless they were made
// fewer since (I9, I13).
func (m *model) checkPermits() error {
	used := map[queueEntry]int{}
	for _, r := range m.requests {
		if !r.holds() {
			continue
		}
		for _, c := range r.claims {
			if c.Mode == interlock.Permits {
				used[queueEntry{r.ns, c.Key}] += int(c.Count)
			}
		}
	}
	for pl, n := range used {
		p := m.pattern(pl.ns, pl.key)
		if p != nil && p.Capacity > 0 && n > int(p.Capacity) && n > m.inUse[pl] {
			return fmt.Errorf("%d of the %d permits of %s are in use (I9)", n, p.Capacity, pl.key)
		}
	}
	m.inUse = used
	return nil
}
