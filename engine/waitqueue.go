package engine

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
	first *bucket // in the order of kind.compare
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
	kind
	next *bucket
	*bucketIndex
}

// bucketIndex is the additional state of a bucket with waiters that stand before others, or
// that are unlike the others. All other buckets share an empty one.
type bucketIndex struct {
	watchedAlone collection.Set[*queueEntry] // watched places of waiters with a flow that holds something at this very key
	upto         [2]*queueEntry              // how far the walk of line.trace came: from others, and from the flow that it began with
}

var noIndex = &bucketIndex{}

// own returns c's own index, which may be written to.
func (c *bucket) own() *bucketIndex {
	if c.bucketIndex == noIndex {
		c.bucketIndex = &bucketIndex{}
	}
	return c.bucketIndex
}

// kind is the common property of the waiters of a bucket.
type kind struct {
	mode   interlock.Mode // towards others
	counts interlock.Mode // Permits and the like; 0 for a plain mode
	group  int32          // of permits: the index of the group in the key's policy
	queue  *queue         // of tasks: their queue; nil for others
	aside  bool           // of tasks: see eligibility.go
}

func (k kind) compare(o kind) int {
	switch d := cmp.Or(cmp.Compare(k.mode, o.mode), cmp.Compare(k.counts, o.counts), cmp.Compare(k.group, o.group), strings.Compare(k.queue.name(), o.queue.name())); {
	case d != 0 || k.aside == o.aside:
		return d
	case k.aside:
		return 1
	}
	return -1
}

// class returns the bucket of waiters of a kind, and creates it if there is none.
func (l *waitQueue) class(k kind) *bucket {
	at := &l.first
	for *at != nil && (*at).compare(k) < 0 {
		at = &(*at).next
	}
	if c := *at; c != nil && c.kind == k {
		return c
	}
	c := &l.only
	if c.mode != 0 { // it is in use
		c = &bucket{}
	}
	*c = bucket{kind: k, next: *at, bucketIndex: noIndex}
	*at = c
	l.modes |= 1 << k.mode
	return c
}

// isAsideFor reports whether the bucket does not block r: it is of tasks of another queue that
// stand aside.
func (c *bucket) isAsideFor(r *request) bool { return c.aside && c.queue != r.taskQueue() }

// find returns the bucket of waiters of a kind, nil if there are none.
func (l *waitQueue) find(k kind) *bucket {
	for c := l.first; c != nil; c = c.next {
		if c.kind == k {
			return c
		}
	}
	return nil
}

// drop removes an empty bucket.
func (l *waitQueue) drop(c *bucket) {
	for at := &l.first; *at != nil; at = &(*at).next {
		if *at == c {
			*at, *c = c.next, bucket{bucketIndex: noIndex}
			break
		}
	}
	l.modes = 0
	for o := l.first; o != nil; o = o.next {
		l.modes |= 1 << o.mode
	}
}

// expect keeps the line of n for a parked request, so that it is known what was
// written while that was away.
func (n *node) expect() {
	if n.line == nil {
		n.own().line = &waitQueue{}
	}
	n.line.expected++
}

func (n *node) expectNoMore() {
	n.line.expected--
	n.dropLine()
}

// dropLine drops the line of n if it is of no use any more.
func (n *node) dropLine() {
	if n.line.first == nil && n.line.expected == 0 {
		n.line = nil
	}
}

// hasAgainst reports whether there are waiters that a need may be in conflict with.
func (l *waitQueue) hasAgainst(m *need) bool {
	if l == nil {
		return false
	}
	for c := l.first; c != nil; c = c.next {
		if c.against(m.mode, m.counts) {
			return true
		}
	}
	return false
}

// length counts the waiters at the key.
func (l *waitQueue) length() (n int) {
	if l == nil {
		return 0
	}
	for c := l.first; c != nil; c = c.next {
		n += c.len()
	}
	return n
}

// waiterCount counts the waiters at the key that are no tasks.
func (l *waitQueue) waiterCount() (n int) {
	if l == nil {
		return 0
	}
	for c := l.first; c != nil; c = c.next {
		if c.queue == nil {
			n += c.len()
		}
	}
	return n
}

// queueEntry is one waiter's place in the line of one key. It is a node of a treap: a
// binary search tree by score that is a heap by a hash of the request's number,
// which keeps it shallow without randomness. size, watched and sum count the
// subtree, so positions, first watchers and what those ahead want are found in
// O(log n).
type queueEntry struct {
	req             *request
	left, right, up *queueEntry
	size            int32
	watched         int32
	top             int32  // the highest rank in the subtree
	count           uint32 // permits that it wants, in a bucket that counts
	need            int16  // index in req.needs()
	watching        bool   // a change at this key looks at this waiter
	watchedAlone    bool   // watched one by one, not by the head of its tree
	ready           bool   // stands in agenda.ready
	duplicate       bool   // another branch of its request was here before, so it does not count
	seat            int32  // in class.watchedAlone, while it is watched one by one
	sum             uint64 // of the counts of the subtree
	class           *bucket
}

// prio returns the hash that orders the tree as a heap.
func (p *queueEntry) prio() uint32 {
	prio := collection.Mix(p.req.num)
	if p.req.parent != nil {
		prio ^= collection.Mix(uint64(p.req.pos))
	}
	return prio
}

// leading is how much earlier a request that leads counts: more than any arrival.
const leading = Time(1) << 62

// setScore works out r's place in line.
func (r *request) setScore() {
	arrived := r.arrived()
	if d := r.dealings; d != nil && d.arrived != 0 {
		arrived = d.arrived
	}
	if r.wait.rank == noRank {
		r.wait.rank = r.ownRank()
	}
	r.wait.score = arrived - Time(r.wait.rank-baseRank)*Time(interlock.PriorityBoost)
	if r.lead {
		r.wait.score -= leading
	}
}

// leads reports whether r asks for more only of keys that its flow's leases claim already.
// Every waiter for those waits for that flow, so letting r wait behind them would be a
// deadlock. Permits and the like are different: others may return them.
func (r *request) leads() bool {
	if r.party == nil || len(r.party.leases) == 0 || r.any {
		return false
	}
	needs := r.needs()
	for i := range needs {
		if m := &needs[i]; m.claimed && (m.counts != 0 || !r.party.claims(m.node)) {
			return false
		}
	}
	return true
}

// before reports whether request a stands before b in every line: the order of
// their scores, then of their numbers.
func before(a, b *request) bool {
	if a.wait.score != b.wait.score {
		return a.wait.score < b.wait.score
	}
	return a.num < b.num
}

type tree struct{ root *queueEntry }

func (t *tree) len() int {
	if t.root == nil {
		return 0
	}
	return int(t.root.size)
}

func (p *queueEntry) update() {
	p.size, p.watched, p.sum, p.top = p.heads(), 0, uint64(p.count), p.req.wait.rank
	if p.watching && !p.watchedAlone {
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
func (p *queueEntry) heads() int32 {
	if p.duplicate {
		return 0
	}
	return 1
}

// fix updates the counts from p to the root.
func (p *queueEntry) fix() {
	for ; p != nil; p = p.up {
		p.update()
	}
}

// replace puts child where p hangs.
func (t *tree) replace(p, child *queueEntry) {
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
func (t *tree) rotate(p, child *queueEntry) {
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

func (t *tree) insert(p *queueEntry) {
	p.left, p.right, p.up = nil, nil, nil
	at := &t.root
	for *at != nil {
		p.up = *at
		if before(p.req, (*at).req) {
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

func (t *tree) remove(p *queueEntry) {
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

// remove takes p out of the bucket. A walk that came as far as p has come to the one before.
func (c *bucket) remove(p *queueEntry) {
	for who, at := range c.upto {
		if at == p {
			c.upto[who] = p.previous()
		}
	}
	c.tree.remove(p)
}

// has reports whether a branch of r's request has a place in the tree.
func (t *tree) has(r *request) bool {
	for p := t.root; p != nil; {
		switch {
		case before(p.req, r):
			p = p.right
		case before(r, p.req):
			p = p.left
		default:
			return true
		}
	}
	return false
}

// first returns the place at the head, or nil.
func (t *tree) first() *queueEntry {
	p := t.root
	for p != nil && p.left != nil {
		p = p.left
	}
	return p
}

// last returns the place at the end, or nil.
func (t *tree) last() *queueEntry {
	p := t.root
	for p != nil && p.right != nil {
		p = p.right
	}
	return p
}

// nth returns the place with i places before it.
func (t *tree) nth(i int) *queueEntry {
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

// next returns the place after p, or nil.
func (p *queueEntry) next() *queueEntry {
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
func (p *queueEntry) previous() *queueEntry {
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

// firstWatched returns the first place that is watched here, or nil.
func (t *tree) firstWatched() *queueEntry {
	p := t.root
	if p == nil || p.watched == 0 {
		return nil
	}
	for {
		switch {
		case p.left != nil && p.left.watched > 0:
			p = p.left
		case p.watching && !p.watchedAlone:
			return p
		default:
			p = p.right
		}
	}
}

// countBefore counts the places before request r, which need not be in the tree.
func (t *tree) countBefore(r *request) (n int) {
	for p := t.root; p != nil; {
		if before(p.req, r) {
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

// sumBefore adds up what the places before request r want.
func (t *tree) sumBefore(r *request) (sum uint64) {
	for p := t.root; p != nil; {
		if before(p.req, r) {
			sum += uint64(p.count)
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

// setWatching starts or ends the watch over p at its key.
func (p *queueEntry) setWatching(watching bool) {
	if p.watching == watching {
		return
	}
	p.watching = watching
	if !p.watchedAlone {
		p.fix()
		return
	}
	c := p.class.own()
	if watching {
		c.watchedAlone.Add(p)
	} else {
		c.watchedAlone.Remove(p)
	}
}

func (p *queueEntry) SetIndex() *int32 { return &p.seat }

// move puts p in another bucket of the same line.
func (p *queueEntry) move(to *bucket) {
	watching, from := p.watching, p.class
	p.setWatching(false)
	from.remove(p)
	if from.root == nil {
		p.req.needs()[p.need].node.line.drop(from)
	}
	p.class = to
	to.insert(p)
	p.setWatching(watching)
}

// setAside has p be among those aside, or no longer.
func (p *queueEntry) setAside(aside bool) {
	l, k := p.req.needs()[p.need].node.line, p.class.kind
	k.aside = aside
	if p.class.len() == 1 && l.find(k) == nil {
		p.class.aside = aside // it is alone, and the next in order would be those that it joins
		return
	}
	p.move(l.class(k))
}

// watchAlone has p watched one by one, and no longer by the head of its tree.
func (p *queueEntry) watchAlone() {
	if p.watchedAlone {
		return
	}
	watching := p.watching
	p.setWatching(false)
	p.watchedAlone = true
	p.setWatching(watching)
}
