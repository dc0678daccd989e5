package engine

import (
	"cmp"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// The bounds of an overview.
const (
	maxOverviewKeys  = 200
	maxOverviewEdges = 500
	maxLostWaiters   = 1000 // of a key that its lost time is summed over; the others count as their mean

	// maxIdleLooks bounds the search for keys without waiters, in parts of the table of keys. A part has a key or two.
	maxIdleLooks = 10_000
)

// Overview is the first look at a namespace: the sizes of a namespace, its keys by the time that is lost at them,
// and its waits. It looks at everything that waits, and at no more than some 10,000 keys besides, so it costs the same
// beside a thousand leases and beside a million.
type Overview struct {
	Namespace interlock.Namespace

	Counts NamespaceCounts
	// Keys are by Lost, then by holders, at most 200. In a namespace with more than 10,000 keys those without waiters
	// are the ones with the most holders of the first 10,000 that the engine comes to.
	Keys     []OverviewKey
	MoreKeys int       // keys that are in use besides
	Graph    WaitGraph // at most 500 edges

	counted, ranked, filled, shown bool

	next  int
	found first[rankedKey]
}

// OverviewKey is a key with the time that is lost at it.
type OverviewKey struct {
	KeyRow
	// Lost is the sum of how long the waiters in its line have waited.
	Lost time.Duration
}

type rankedKey struct {
	node    *store.Node
	lost    time.Duration
	holders int
}

// Look is Scan.Look.
func (o *Overview) Look(e *Engine) (done bool) {
	s := e.turnTo(o.Namespace)
	if s == nil {
		return true
	}
	switch {
	case !o.counted:
		o.Counts.Namespace, o.Graph.Namespace, o.Graph.Limit = o.Namespace, o.Namespace, maxOverviewEdges
		o.found.limit = maxOverviewKeys
		o.counted = o.Counts.Look(e)
	case !o.ranked:
		if o.ranked = o.rank(s); o.ranked {
			o.next = 0
		}
	case !o.filled:
		o.filled = o.fill(s)
	case !o.shown:
		_, o.shown = o.found.show(maxOverviewKeys, MaxShownHolders, func(k rankedKey) {
			v := e.View(MaxShownHolders, nil)
			v.At(k.node, ^lockmode.Set(0))
			o.Keys = append(o.Keys, OverviewKey{
				KeyRow: KeyRow{
					Key: interlock.Key(k.node.Key), Holders: v.Holders(), More: v.More, Length: k.node.Line.Length(),
				},
				Lost: k.lost,
			})
		})
		o.MoreKeys = s.Claimed - len(o.found.list)
	default:
		return o.Graph.Look(e)
	}
	return false
}

// rank looks at the next keys with a line. It reports whether that was all.
func (o *Overview) rank(s *store.Namespace) (all bool) {
	for budget := glances; budget > 0; o.next++ {
		if !s.Lined.Part(o.next, func(n *store.Node) {
			if n.Used() {
				lost, seen := lostAt(n)
				budget -= seen
				o.add(n, lost)
			}
		}) {
			return true
		}
		budget--
	}
	return false
}

// fill looks at the next keys without a line, if those with one leave room. It reports whether that was all.
func (o *Overview) fill(s *store.Namespace) (all bool) {
	if n := len(o.found.list); n == maxOverviewKeys && o.found.list[n-1].lost > 0 {
		return true
	}
	for range glances {
		if o.next == maxIdleLooks || !s.Nodes.Part(o.next, func(n *store.Node) {
			if n.Line == nil && n.Used() {
				o.add(n, 0)
			}
		}) {
			return true
		}
		o.next++
	}
	return false
}

func (o *Overview) add(n *store.Node, lost time.Duration) {
	_, holders := n.Weight()
	o.found.add(rankedKey{n, lost, holders}, moreLost)
}

func moreLost(a, b rankedKey) int {
	return cmp.Or(
		cmp.Compare(b.lost, a.lost), cmp.Compare(b.holders, a.holders), strings.Compare(a.node.Key, b.node.Key),
	)
}

// lostAt sums how long the waiters for a key itself have waited, and counts those that it looked at.
func lostAt(n *store.Node) (lost time.Duration, seen int) {
	length, summed := n.Line.Length(), 0
	for c := n.Line.First; c != nil && seen < maxLostWaiters; c = c.Next {
		for p := c.First(); p != nil && seen < maxLostWaiters; p = p.Next() {
			if seen++; !p.Duplicate && p.Req.Needs()[p.Need].Claimed {
				lost += p.Req.NS.Now().Sub(p.Req.Arrived())
				summed++
			}
		}
	}
	if summed > 0 && seen == maxLostWaiters && length > summed {
		lost = lost / time.Duration(summed) * time.Duration(length)
	}
	return lost, seen
}
