package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// node is one key that is held, waited for or has a note, or an ancestor of one. refs counts
// the users that need it to exist.
type node struct {
	next    *node // in namespace.nodes
	hashed  uint32
	refs    int32
	key     string
	ns      *namespace
	kin     *relatives // its relatives; nil for a top-level key without descendants
	granted lockmode.Counts
	modes   lockmode.Set // those that are granted
	few     uint8        // holders in the list while there is no index of them: see feature.byFence
	first   *need        // holders that claim this very key, in the order of their fences
	hands   *flowState   // in which all is that is held here; several, or nil for none
	*feature
}

// feature is the rarely used part of a node: its waiters and more. All nodes without one share
// an empty feature.
type feature struct {
	line    *waitQueue
	notes   *noteBook
	pooled  *pool // see node.pool
	divided *partition
	gang    int32                     // leases of a barrier
	byFence map[interlock.Fence]*need // the holders in the list, if they are many; else nil
}

var noFeature = &feature{}

// own returns n a feature of its own, to write to.
func (n *node) own() *feature {
	if n.feature == noFeature {
		n.feature = &feature{}
	}
	return n.feature
}

// relatives are a node's relatives. It is apart because most keys have none.
type relatives struct {
	parent     *node
	child      *node // the first one
	prev, next *node // siblings
}

// need is a mode on a key that a request must have: one for each claim, and an
// intent for each ancestor. Needs of one request on one key are merged.
type need struct {
	node       *node
	req        *request
	prev, next *need // in node's holders, if claimed and held; before the first is the last
	mode       interlock.Mode
	counts     interlock.Mode // Permits and the like, if the claim has a count; else 0
	claimed    bool           // the key itself is claimed, not only something below it
	listed     bool
	claim      int16 // index of the first claim that asks for it
}

// A key with more holders in its list than mostFew has an index of them by their fences,
// until no more than halfFew are left. So a fence is found by a few looks, however many
// hold the key.
const (
	mostFew = 16
	halfFew = mostFew / 2
)

// holder returns the need of the holder with a fence that claims this very key, nil if
// there is none, and how many holders it has looked at.
func (n *node) holder(fence interlock.Fence) (m *need, looks int) {
	if n.byFence != nil {
		return n.byFence[fence], 1
	}
	for h := n.first; h != nil && h.req.fence <= fence; h = h.next {
		if looks++; h.req.fence == fence {
			return h, looks
		}
	}
	return nil, looks
}

// index enters the holders in the list into an index.
func (n *node) index() {
	n.own().byFence = make(map[interlock.Fence]*need, 2*mostFew)
	for h := n.first; h != nil; h = h.next {
		n.byFence[h.req.fence] = h
	}
}

// list adds a holder at the end. Its fence stays as it is until strike.
func (n *node) list(m *need) {
	n.append(m)
	if n.byFence != nil {
		n.byFence[m.req.fence] = m
	} else if n.few++; n.few > mostFew {
		n.index()
	}
}

func (n *node) append(m *need) {
	m.listed = true
	if n.first == nil {
		n.first, m.prev, m.next = m, m, nil
		return
	}
	last := n.first.prev
	last.next, m.prev, m.next = m, last, nil
	n.first.prev = m
}

// strike takes a holder out.
func (n *node) strike(m *need) {
	m.listed = false
	if n.byFence == nil {
		n.few--
	} else if delete(n.byFence, m.req.fence); len(n.byFence) <= halfFew {
		n.few, n.byFence = uint8(len(n.byFence)), nil
	}
	if x := n.ns.agenda.search; x != nil && x.held == m {
		x.held = m.next
	}
	if m == n.first {
		n.first = m.next
	} else {
		m.prev.next = m.next
	}
	switch {
	case m.next != nil:
		m.next.prev = m.prev
	case n.first != nil: // it was the last
		n.first.prev = m.prev
	}
}

// nodeAt returns the node of a key, or nil.
func (s *namespace) nodeAt(key string) *node { return s.nodeOf(key, s.salt.Hash(key)) }

func (s *namespace) nodeOf(key string, hash uint32) *node {
	for n := s.nodes.First(hash); n != nil; n = *n.TableNext() {
		if n.Hash() == hash && n.key == key {
			return n
		}
	}
	return nil
}

// season chooses the salt for the hashes of keys and flows, by the id of the first object.
func (s *namespace) season(id [16]byte) {
	if s.salt == (collection.Salt{}) && s.nodes.Len() == 0 && len(s.sessions) == 0 {
		s.salt = collection.NewSalt(id)
	}
}

func (n *node) Hash() uint32      { return n.hashed }
func (n *node) TableNext() **node { return &n.next }

// node finds or makes the node of a key, and its ancestors'.
func (s *namespace) node(key string) *node {
	hash := s.salt.Hash(key)
	if n := s.nodeOf(key, hash); n != nil {
		return n
	}
	if p, ok := keypath.Parent(key); ok {
		return s.newNode(key, hash, s.node(p))
	}
	return s.newNode(key, hash, nil)
}

// nodeBelow is node for a key with its parent's node, or nil for a key without a parent.
func (s *namespace) nodeBelow(parent *node, key string) *node {
	hash := s.salt.Hash(key)
	if n := s.nodeOf(key, hash); n != nil {
		return n
	}
	return s.newNode(key, hash, parent)
}

func (s *namespace) newNode(key string, hash uint32, parent *node) (n *node) {
	if i := len(s.idleNodes) - 1; i >= 0 {
		n, s.idleNodes = s.idleNodes[i], s.idleNodes[:i]
	} else {
		n = &node{feature: noFeature}
	}
	n.key, n.ns, n.hashed = key, s, hash
	s.nodes.Add(n)
	s.spelled(n, true)
	if parent != nil {
		parent.refs++
		if parent.kin == nil {
			parent.kin = s.newKin()
		}
		n.kin = s.newKin()
		n.kin.parent, n.kin.next = parent, parent.kin.child
		if n.kin.next != nil {
			n.kin.next.kin.prev = n
		}
		parent.kin.child = n
	}
	return n
}

func (n *node) parent() *node {
	if n.kin == nil {
		return nil
	}
	return n.kin.parent
}

// drop takes one reference away, and the node with the last.
func (n *node) drop() {
	n.refs--
	n.free()
}

// free forgets a node without references.
func (n *node) free() {
	if n.refs > 0 {
		return
	}
	s, k := n.ns, n.kin
	s.nodes.Remove(n)
	s.spelled(n, false)
	if n.pooled != nil {
		n.pooled.drop()
	}
	*n = node{feature: noFeature}
	if len(s.idleNodes) < maxFree {
		s.idleNodes = append(s.idleNodes, n)
	}
	if k == nil {
		return
	}
	p := k.parent
	if p != nil {
		if k.prev != nil {
			k.prev.kin.next = k.next
		} else {
			p.kin.child = k.next
		}
		if k.next != nil {
			k.next.kin.prev = k.prev
		}
	}
	*k = relatives{}
	if len(s.idleKin) < maxFree {
		s.idleKin = append(s.idleKin, k)
	}
	if p != nil {
		p.drop()
	}
}

func (s *namespace) newKin() *relatives {
	i := len(s.idleKin) - 1
	if i < 0 {
		return &relatives{}
	}
	k := s.idleKin[i]
	s.idleKin = s.idleKin[:i]
	return k
}

// need resolves r.claims() into r.needs(): for each claim the intents on its ancestors, from
// the top down, and the key itself. A conversion needs nothing for the claims that its lease
// covers already.
func (r *request) need() {
	for i, c := range r.claims() {
		if r.base != nil && r.base.has(c) && c.Mode != interlock.Barrier { // to arrive is to stand in line again
			continue
		}
		key := string(c.Key)
		var above *node
		for at := 0; at < len(key); at++ {
			if key[at] == '/' {
				above = r.want(above, key[:at], lockmode.Intent(c.Mode), i, false)
			}
		}
		n := r.want(above, key, lockmode.Lock(c.Mode), i, true)
		if c.Mode.Counts() {
			r.needAt(n).counts = c.Mode
			if c.Mode == interlock.Permits {
				r.ns.pool(n)
			}
		}
	}
	for i := range r.needs() {
		r.needs()[i].node.refs++
	}
}

// shareKeys replaces the keys of r's claims by the strings of the nodes, so that a line stores
// the name of its key once, not once for each waiter. If r claims one key exactly as its first
// holder does, it shares that claim.
func (r *request) shareKeys() {
	for way := range r.eachAlternative {
		for i := range way.needs() {
			m := &way.needs()[i]
			switch h := m.node.first; {
			case !m.claimed:
			case way == r && r.claim != nil && h != nil && h.req.claim != nil && *h.req.claim == *r.claim:
				r.claim = h.req.claim
			default:
				way.claims()[m.claim].Key = interlock.Key(m.node.key)
			}
		}
	}
}

// want adds a need of a key below a node to r, and returns the key's node.
func (r *request) want(above *node, key string, mode interlock.Mode, claim int, claimed bool) *node {
	n := r.ns.nodeBelow(above, key)
	if len(r.claims()) > 1 {
		for i := range r.needs() {
			if m := &r.needs()[i]; m.node == n {
				m.mode = lockmode.Join(m.mode, mode)
				if claimed && !m.claimed {
					m.claimed, m.claim = true, int16(claim)
				}
				return n
			}
		}
	}
	r.addNeed(need{node: n, req: r, mode: mode, claim: int16(claim), claimed: claimed})
	return n
}

// kindOf returns the kind of bucket that r waits in for one of its needs.
func (r *request) kindOf(m *need) kind {
	k := kind{mode: m.mode, counts: m.counts, queue: r.taskQueue(), aside: r.task != nil && r.task.eligibility.isYielding()}
	if m.counts == interlock.Permits {
		k.group = int32(r.groupAt(m))
	}
	return k
}

// countOf is the count of the claim that a need is for, 0 if it has none.
func (r *request) countOf(m *need) uint32 {
	if m.counts == 0 {
		return 0
	}
	c := r.claims()[m.claim]
	if r.base != nil && m.counts == interlock.Permits {
		return c.Count - countIn(r.base.claims(), c)
	}
	return c.Count
}

// modeOf returns the mode of one of r's needs as it was claimed.
func (m *need) modeOf() interlock.Mode {
	if m.counts != 0 {
		return m.counts
	}
	return m.mode
}

// shown returns a need as a claim, for queries.
func (m *need) shown() interlock.Claim {
	return interlock.Claim{Key: interlock.Key(m.node.key), Mode: m.modeOf(), Count: m.req.countOf(m)}
}

// unneed lets go of the nodes.
func (r *request) unneed() {
	needs := r.needs()
	for i := len(needs) - 1; i >= 0; i-- {
		needs[i].node.drop()
	}
	r.forgetNeeds()
}

// needAt returns r's need on n, or nil.
func (r *request) needAt(n *node) *need {
	for i := range r.needs() {
		if r.needs()[i].node == n {
			return &r.needs()[i]
		}
	}
	return nil
}
