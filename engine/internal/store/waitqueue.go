package store

import (
	"cmp"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// A waitQueue holds the waiters at one key: for each kind of waiters a tree of places in score
// order. It exists while there are waiters, ancestors of wanted keys included.
//
// A waiter stands in the line of every key that it needs, because that decides which waiters
// may pass which. It is *watched* at exactly one of them, one where it is blocked, so that a
// change at a key looks only at waiters that it may help: see wake.go.
type waitQueue struct {
	First *bucket // in the order of kind.compare
	only  bucket  // one of them: mostly all waiters at a key are alike
	modes lockmode.Set

	// wrote and wroteAll are the values that Engine.writes had when a lease that
	// may write this key or below it, or that had this key exclusively, last ended.
	wrote, wroteAll uint64

	claimed  int32 // places of waiters that claim this very key
	expected int32 // parked requests that will come back here

	trace *trace // what a deadlock search has looked at; nil if none came here
}

// bucket is a set of waiters at a key that cannot be granted while its first one cannot: all in
// one mode, or all for permits of one claimant group that the key's pattern lists, or of none;
// and all of them tasks of one queue, or none of them; and all of them aside, or none.
type bucket struct {
	tree
	Kind
	Next *bucket
	*bucketIndex
}

// bucketIndex is the additional state of a bucket with waiters that stand before others, or
// that are unlike the others. All other buckets share an empty one.
type bucketIndex struct {
	WatchedAlone collection.Set[*QueueEntry] // watched places of waiters with a flow that holds something at this very key
	// how far the walk of line.trace came: from others, and from the flow that it began with
	Upto [2]*QueueEntry
}

var noIndex = &bucketIndex{}

// Own returns c's own index, which may be written to.
func (c *bucket) Own() *bucketIndex {
	if c.bucketIndex == noIndex {
		c.bucketIndex = &bucketIndex{}
	}
	return c.bucketIndex
}

// Kind is the common property of the waiters of a bucket.
type Kind struct {
	Mode   interlock.Mode // towards others
	Counts interlock.Mode // Permits and the like; 0 for a plain mode
	Group  int32          // of permits: the index of the group in the key's policy
	Queue  *Queue         // of tasks: their queue; nil for others
	Aside  bool           // of tasks: see eligibility.go
}

func (k Kind) Compare(o Kind) int {
	switch d := cmp.Or(
		cmp.Compare(k.Mode, o.Mode), cmp.Compare(k.Counts, o.Counts), cmp.Compare(k.Group, o.Group),
		strings.Compare(k.Queue.name(), o.Queue.name()),
	); {
	case d != 0 || k.Aside == o.Aside:
		return d
	case k.Aside:
		return 1
	}
	return -1
}

// class returns the bucket of waiters of a kind, and creates it if there is none.
func (l *waitQueue) class(k Kind) *bucket {
	at := &l.First
	for *at != nil && (*at).Compare(k) < 0 {
		at = &(*at).Next
	}
	if c := *at; c != nil && c.Kind == k {
		return c
	}
	c := &l.only
	if c.Mode != 0 { // it is in use
		c = &bucket{}
	}
	*c = bucket{Kind: k, Next: *at, bucketIndex: noIndex}
	*at = c
	l.modes |= 1 << k.Mode
	return c
}

// IsAsideFor reports whether the bucket does not block r: it is of tasks of another queue that
// stand aside.
func (c *bucket) IsAsideFor(r *Request) bool { return c.Aside && c.Queue != r.taskQueue() }

// find returns the bucket of waiters of a kind, nil if there are none.
func (l *waitQueue) find(k Kind) *bucket {
	for c := l.First; c != nil; c = c.Next {
		if c.Kind == k {
			return c
		}
	}
	return nil
}

// drop removes an empty bucket.
func (l *waitQueue) drop(c *bucket) {
	for at := &l.First; *at != nil; at = &(*at).Next {
		if *at == c {
			*at, *c = c.Next, bucket{bucketIndex: noIndex}
			break
		}
	}
	l.modes = 0
	for o := l.First; o != nil; o = o.Next {
		l.modes |= 1 << o.Mode
	}
}

// expect keeps the line of n for a parked request, so that it is known what was
// written while that was away.
func (n *Node) expect() {
	n.openLine()
	n.Line.expected++
}

func (n *Node) expectNoMore() {
	n.Line.expected--
	n.dropLine()
}

// openLine makes a line if n has none.
func (n *Node) openLine() {
	if n.Line == nil {
		n.own().Line = &waitQueue{}
		n.NS.Lined.Add(n)
	}
}

// dropLine drops the line of n if it is of no use any more.
func (n *Node) dropLine() {
	if n.Line.First == nil && n.Line.expected == 0 {
		n.Line = nil
		n.NS.Lined.Remove(n)
	}
}

// hasAgainst reports whether there are waiters that a need may be in conflict with.
func (l *waitQueue) hasAgainst(m *Need) bool {
	if l == nil {
		return false
	}
	for c := l.First; c != nil; c = c.Next {
		if c.against(m.Mode, m.Counts) {
			return true
		}
	}
	return false
}

// Length counts the waiters at the key.
func (l *waitQueue) Length() (n int) {
	if l == nil {
		return 0
	}
	for c := l.First; c != nil; c = c.Next {
		n += c.len()
	}
	return n
}

// waiterCount counts the waiters at the key that are no tasks.
func (l *waitQueue) waiterCount() (n int) {
	if l == nil {
		return 0
	}
	for c := l.First; c != nil; c = c.Next {
		if c.Queue == nil {
			n += c.len()
		}
	}
	return n
}

// QueueEntry is one waiter's place in the line of one key. It is a node of a treap: a
// binary search tree by score that is a heap by a hash of the request's number,
// which keeps it shallow without randomness. size, watched and sum count the
// subtree, so positions, first watchers and what those ahead want are found in
// O(log n).
type QueueEntry struct {
	Req             *Request
	left, right, up *QueueEntry
	size            int32
	watched         int32
	top             int32  // the highest rank in the subtree
	Count           uint32 // permits that it wants, in a bucket that counts
	Need            int16  // index in req.needs()
	Watching        bool   // a change at this key looks at this waiter
	WatchedAlone    bool   // watched one by one, not by the head of its tree
	Ready           bool   // stands in agenda.ready
	Duplicate       bool   // another branch of its request was here before, so it does not count
	seat            int32  // in class.WatchedAlone, while it is watched one by one
	sum             uint64 // of the counts of the subtree
	Class           *bucket
}

// prio returns the hash that orders the tree as a heap.
func (p *QueueEntry) prio() uint32 {
	prio := collection.Mix(p.Req.Num)
	if p.Req.Parent != nil {
		prio ^= collection.Mix(uint64(p.Req.Pos))
	}
	return prio
}

// leading is how much earlier a request that leads counts: more than any arrival.
const leading = Time(1) << 62

// SetScore works out r's place in line.
func (r *Request) SetScore() {
	arrived := r.Arrived()
	if d := r.Rare; d != nil && d.Arrived != 0 {
		arrived = d.Arrived
	}
	if r.Wait.Rank == NoRank {
		r.Wait.Rank = r.ownRank()
	}
	r.Wait.Score = arrived - Time(r.Wait.Rank-BaseRank)*Time(interlock.PriorityBoost)
	if r.Lead {
		r.Wait.Score -= leading
	}
}

// Leads reports whether r asks for more only of keys that its flow's leases claim already.
// Every waiter for those waits for that flow, so letting r wait behind them would be a
// deadlock. Permits and the like are different: others may return them.
func (r *Request) Leads() bool {
	if r.FlowState == nil || len(r.FlowState.Leases) == 0 || r.Any {
		return false
	}
	needs := r.Needs()
	for i := range needs {
		if m := &needs[i]; m.Claimed && (m.Counts != 0 || !r.FlowState.claims(m.Node)) {
			return false
		}
	}
	return true
}

// Before reports whether request a stands before b in every line: the order of
// their scores, then of their numbers.
func Before(a, b *Request) bool {
	if a.Wait.Score != b.Wait.Score {
		return a.Wait.Score < b.Wait.Score
	}
	return a.Num < b.Num
}

type tree struct{ root *QueueEntry }

func (t *tree) len() int {
	if t.root == nil {
		return 0
	}
	return int(t.root.size)
}

func (p *QueueEntry) update() {
	p.size, p.watched, p.sum, p.top = p.heads(), 0, uint64(p.Count), p.Req.Wait.Rank
	if p.Watching && !p.WatchedAlone {
		p.watched = 1
	}
	if l := p.left; l != nil {
		p.size += l.size
		p.watched += l.watched
		p.sum += l.sum
		p.top = max(p.top, l.top)
	}
	if r := p.right; r != nil {
		p.size += r.size
		p.watched += r.watched
		p.sum += r.sum
		p.top = max(p.top, r.top)
	}
}

// heads is how much the place itself adds to the length of the line.
func (p *QueueEntry) heads() int32 {
	if p.Duplicate {
		return 0
	}
	return 1
}

// fix updates the counts from p to the root.
func (p *QueueEntry) fix() {
	for ; p != nil; p = p.up {
		p.update()
	}
}

// replace puts child where p hangs.
func (t *tree) replace(p, child *QueueEntry) {
	switch up := p.up; {
	case up == nil:
		t.root = child
	case up.left == p:
		up.left = child
	default:
		up.right = child
	}
	if child != nil {
		child.up = p.up
	}
}

// rotate lifts child above its parent p.
func (t *tree) rotate(p, child *QueueEntry) {
	t.replace(p, child)
	if p.left == child {
		p.left = child.right
		if p.left != nil {
			p.left.up = p
		}
		child.right = p
	} else {
		p.right = child.left
		if p.right != nil {
			p.right.up = p
		}
		child.left = p
	}
	p.up = child
	p.update()
	child.update()
}

func (t *tree) Insert(p *QueueEntry) {
	p.left, p.right, p.up = nil, nil, nil
	at := &t.root
	for *at != nil {
		p.up = *at
		if Before(p.Req, (*at).Req) {
			at = &(*at).left
		} else {
			at = &(*at).right
		}
	}
	*at = p
	p.fix()
	for p.up != nil && p.up.prio() < p.prio() {
		t.rotate(p.up, p)
	}
}

func (t *tree) remove(p *QueueEntry) {
	for p.left != nil || p.right != nil {
		child := p.left
		if child == nil || p.right != nil && p.right.prio() > child.prio() {
			child = p.right
		}
		t.rotate(p, child)
	}
	up := p.up
	t.replace(p, nil)
	p.up = nil
	up.fix()
}

// Remove takes p out of the bucket. A walk that came as far as p has come to the one before.
func (c *bucket) Remove(p *QueueEntry) {
	for who, at := range c.Upto {
		if at == p {
			c.Upto[who] = p.previous()
		}
	}
	c.tree.remove(p)
}

// has reports whether a branch of r's request has a place in the tree.
func (t *tree) has(r *Request) bool {
	for p := t.root; p != nil; {
		switch {
		case Before(p.Req, r):
			p = p.right
		case Before(r, p.Req):
			p = p.left
		default:
			return true
		}
	}
	return false
}

// First returns the place at the head, or nil.
func (t *tree) First() *QueueEntry {
	p := t.root
	for p != nil && p.left != nil {
		p = p.left
	}
	return p
}

// last returns the place at the end, or nil.
func (t *tree) last() *QueueEntry {
	p := t.root
	for p != nil && p.right != nil {
		p = p.right
	}
	return p
}

// nth returns the place with i places before it.
func (t *tree) nth(i int) *QueueEntry {
	p := t.root
	for {
		left := 0
		if p.left != nil {
			left = int(p.left.size)
		}
		switch {
		case i < left:
			p = p.left
		case i < left+int(p.heads()):
			return p
		default:
			i -= left + int(p.heads())
			p = p.right
		}
	}
}

// Next returns the place after p, or nil.
func (p *QueueEntry) Next() *QueueEntry {
	if p.right != nil {
		p = p.right
		for p.left != nil {
			p = p.left
		}
		return p
	}
	for p.up != nil && p.up.right == p {
		p = p.up
	}
	return p.up
}

// previous returns the place before p, or nil.
func (p *QueueEntry) previous() *QueueEntry {
	if p.left != nil {
		p = p.left
		for p.right != nil {
			p = p.right
		}
		return p
	}
	for p.up != nil && p.up.left == p {
		p = p.up
	}
	return p.up
}

// FirstWatched returns the first place that is watched here, or nil.
func (t *tree) FirstWatched() *QueueEntry {
	p := t.root
	if p == nil || p.watched == 0 {
		return nil
	}
	for {
		switch {
		case p.left != nil && p.left.watched > 0:
			p = p.left
		case p.Watching && !p.WatchedAlone:
			return p
		default:
			p = p.right
		}
	}
}

// CountBefore counts the places before request r, which need not be in the tree.
func (t *tree) CountBefore(r *Request) (n int) {
	for p := t.root; p != nil; {
		if Before(p.Req, r) {
			n += int(p.heads())
			if p.left != nil {
				n += int(p.left.size)
			}
			p = p.right
		} else {
			p = p.left
		}
	}
	return n
}

// sumBefore returns the sum of permits that the places before request r want.
func (t *tree) sumBefore(r *Request) (sum uint64) {
	for p := t.root; p != nil; {
		if Before(p.Req, r) {
			sum += uint64(p.Count)
			if p.left != nil {
				sum += p.left.sum
			}
			p = p.right
		} else {
			p = p.left
		}
	}
	return sum
}

// SetWatching starts or ends the watch over p at its key.
func (p *QueueEntry) SetWatching(watching bool) {
	if p.Watching == watching {
		return
	}
	p.Watching = watching
	if !p.WatchedAlone {
		p.fix()
		return
	}
	c := p.Class.Own()
	if watching {
		c.WatchedAlone.Add(p)
	} else {
		c.WatchedAlone.Remove(p)
	}
}

func (p *QueueEntry) SetIndex() *int32 { return &p.seat }

// move puts p in another bucket of the same line.
func (p *QueueEntry) move(to *bucket) {
	watching, from := p.Watching, p.Class
	p.SetWatching(false)
	from.Remove(p)
	if from.root == nil {
		p.Req.Needs()[p.Need].Node.Line.drop(from)
	}
	p.Class = to
	to.Insert(p)
	p.SetWatching(watching)
}

// SetAside has p be among those aside, or no longer.
func (p *QueueEntry) SetAside(aside bool) {
	l, k := p.Req.Needs()[p.Need].Node.Line, p.Class.Kind
	k.Aside = aside
	if p.Class.len() == 1 && l.find(k) == nil {
		p.Class.Aside = aside // it is alone, and the next in order would be those that it joins
		return
	}
	p.move(l.class(k))
}

// WatchAlone has p watched one by one, and no longer by the head of its tree.
func (p *QueueEntry) watchAlone() {
	if p.WatchedAlone {
		return
	}
	watching := p.Watching
	p.SetWatching(false)
	p.WatchedAlone = true
	p.SetWatching(watching)
}

// highest returns the highest rank in a subtree of places of other flows, if it is above the
// given one.
func (p *QueueEntry) highest(rank int32, except *FlowState) int32 {
	if p == nil || p.top <= rank {
		return rank
	}
	if p.Req.FlowState != except {
		rank = max(rank, p.Req.Wait.Rank)
	}
	return p.right.highest(p.left.highest(rank, except), except)
}
