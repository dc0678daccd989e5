package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Node is one key that is held, waited for or has a note, or an ancestor of one. refs counts
// the users that need it to exist.
type Node struct {
	next    *Node // in Namespace.Nodes
	hashed  uint32
	refs    int32
	Key     string
	NS      *Namespace
	Kin     *relatives // its relatives; nil for a top-level key without descendants
	granted lockmode.Counts
	Modes   lockmode.Set // the granted modes: those with a count in granted
	Few     uint8        // number of holders, unless feature.ByFence has them
	First   *Need        // holders that claim this very key, in the order of their fences
	hands   *FlowState   // the flow of all leases here; several if there is no single one; nil without leases
	*feature
}

// feature is the rarely used part of a node: its waiters and more. All nodes without one share
// an empty feature.
type feature struct {
	Line    *waitQueue
	Notes   *noteBook
	pooled  *Pool // see Node.Pool
	Divided *Partition
	gang    int32                     // number of leases of a barrier
	seat    int32                     // index in Namespace.Lined
	ByFence map[interlock.Fence]*Need // the holders of the list at First, if there are many; else nil
}

var noFeature = &feature{}

// own returns n's feature for writing. It replaces the shared empty one by a copy first.
func (n *Node) own() *feature {
	if n.feature == noFeature {
		n.feature = &feature{}
	}
	return n.feature
}

// relatives are a node's relatives. It is apart because most keys have none.
type relatives struct {
	parent     *Node
	Child      *Node // the first one
	prev, Next *Node // siblings
}

// Need is a mode on a key that a request must have: one for each claim, and an
// intent for each ancestor. Needs of one request on one key are merged.
type Need struct {
	Node       *Node
	Req        *Request
	prev, Next *Need // in node's holders, if claimed and held; before the first is the last
	Mode       interlock.Mode
	Counts     interlock.Mode // Permits and the like, if the claim has a count; else 0
	Claimed    bool           // the key itself is claimed, not only something below it
	listed     bool
	Claim      int16 // index of the first claim that asks for it
}

// A key with more holders in its list than mostFew has an index of them by their fences,
// until no more than halfFew are left. So a fence is found by a few looks, however many
// hold the key.
const (
	mostFew = 16
	halfFew = mostFew / 2
)

// Holder returns the need of the holder with a fence that claims this very key, nil if
// there is none, and how many holders it has looked at.
func (n *Node) Holder(fence interlock.Fence) (m *Need, looks int) {
	if n.ByFence != nil {
		return n.ByFence[fence], 1
	}
	for h := n.First; h != nil && h.Req.Fence <= fence; h = h.Next {
		if looks++; h.Req.Fence == fence {
			return h, looks
		}
	}
	return nil, looks
}

// index enters the holders in the list into an index.
func (n *Node) index() {
	n.own().ByFence = make(map[interlock.Fence]*Need, 2*mostFew)
	for h := n.First; h != nil; h = h.Next {
		n.ByFence[h.Req.Fence] = h
	}
}

// list adds a holder at the end. Its fence stays as it is until strike.
func (n *Node) list(m *Need) {
	n.append(m)
	if n.ByFence != nil {
		n.ByFence[m.Req.Fence] = m
	} else if n.Few++; n.Few > mostFew {
		n.index()
	}
}

func (n *Node) append(m *Need) {
	m.listed = true
	if n.First == nil {
		if !n.Used() {
			n.NS.Claimed++
		}
		n.First, m.prev, m.Next = m, m, nil
		return
	}
	last := n.First.prev
	last.Next, m.prev, m.Next = m, last, nil
	n.First.prev = m
}

// strike takes a holder out.
func (n *Node) strike(m *Need) {
	m.listed = false
	if n.ByFence == nil {
		n.Few--
	} else if delete(n.ByFence, m.Req.Fence); len(n.ByFence) <= halfFew {
		n.Few, n.ByFence = uint8(len(n.ByFence)), nil
	}
	if x := n.NS.Agenda.Search; x != nil && x.Held == m {
		x.Held = m.Next
	}
	if m == n.First {
		n.First = m.Next
	} else {
		m.prev.Next = m.Next
	}
	switch {
	case m.Next != nil:
		m.Next.prev = m.prev
	case n.First != nil: // it was the last
		n.First.prev = m.prev
	case !n.Used():
		n.NS.Claimed--
	}
}

// NodeAt returns the node of a key, or nil.
func (s *Namespace) NodeAt(key string) *Node { return s.nodeOf(key, s.Salt.Hash(key)) }

func (s *Namespace) nodeOf(key string, hash uint32) *Node {
	for n := s.Nodes.First(hash); n != nil; n = *n.TableNext() {
		if n.Hash() == hash && n.Key == key {
			return n
		}
	}
	return nil
}

// season chooses the salt for the hashes of keys and flows, by the id of the first object.
func (s *Namespace) season(id [16]byte) {
	if s.Salt == (collection.Salt{}) && s.Nodes.Len() == 0 && len(s.Sessions) == 0 {
		s.Salt = collection.NewSalt(id)
	}
}

func (n *Node) Hash() uint32 { return n.hashed }

func (n *Node) TableNext() **Node { return &n.next }

// node finds or makes the node of a key, and its ancestors'.
func (s *Namespace) node(key string) *Node {
	hash := s.Salt.Hash(key)
	if n := s.nodeOf(key, hash); n != nil {
		return n
	}
	if p, ok := keypath.Parent(key); ok {
		return s.newNode(key, hash, s.node(p))
	}
	return s.newNode(key, hash, nil)
}

// nodeBelow is node for a key with its parent's node, or nil for a key without a parent.
func (s *Namespace) nodeBelow(parent *Node, key string) *Node {
	hash := s.Salt.Hash(key)
	if n := s.nodeOf(key, hash); n != nil {
		return n
	}
	return s.newNode(key, hash, parent)
}

func (s *Namespace) newNode(key string, hash uint32, parent *Node) (n *Node) {
	if i := len(s.idleNodes) - 1; i >= 0 {
		n, s.idleNodes = s.idleNodes[i], s.idleNodes[:i]
	} else {
		n = &Node{feature: noFeature}
	}
	n.Key, n.NS, n.hashed = key, s, hash
	s.Nodes.Add(n)
	s.Spelled(n, true)
	if parent != nil {
		parent.refs++
		if parent.Kin == nil {
			parent.Kin = s.newKin()
		}
		n.Kin = s.newKin()
		n.Kin.parent, n.Kin.Next = parent, parent.Kin.Child
		if n.Kin.Next != nil {
			n.Kin.Next.Kin.prev = n
		}
		parent.Kin.Child = n
	}
	return n
}

func (n *Node) Parent() *Node {
	if n.Kin == nil {
		return nil
	}
	return n.Kin.parent
}

// drop takes one reference away, and the node with the last.
func (n *Node) drop() {
	n.refs--
	n.free()
}

// free forgets a node without references.
func (n *Node) free() {
	if n.refs > 0 {
		return
	}
	s, k := n.NS, n.Kin
	s.Nodes.Remove(n)
	s.Spelled(n, false)
	if n.pooled != nil {
		n.pooled.drop()
	}
	*n = Node{feature: noFeature}
	if len(s.idleNodes) < maxFree {
		s.idleNodes = append(s.idleNodes, n)
	}
	if k == nil {
		return
	}
	p := k.parent
	if p != nil {
		if k.prev != nil {
			k.prev.Kin.Next = k.Next
		} else {
			p.Kin.Child = k.Next
		}
		if k.Next != nil {
			k.Next.Kin.prev = k.prev
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

func (s *Namespace) newKin() *relatives {
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
func (r *Request) need() {
	for i, c := range r.Claims() {
		if r.Base != nil && r.Base.Has(c) && c.Mode != interlock.Barrier { // to arrive is to stand in line again
			continue
		}
		key := string(c.Key)
		var above *Node
		for at := 0; at < len(key); at++ {
			if key[at] == '/' {
				above = r.want(above, key[:at], lockmode.Intent(c.Mode), i, false)
			}
		}
		n := r.want(above, key, lockmode.Lock(c.Mode), i, true)
		if c.Mode.Counts() {
			r.needAt(n).Counts = c.Mode
			if c.Mode == interlock.Permits {
				r.NS.pool(n)
			}
		}
	}
	for i := range r.Needs() {
		r.Needs()[i].Node.refs++
	}
}

// shareKeys replaces the keys of r's claims by the strings of the nodes, so that a line stores
// the name of its key once, not once for each waiter. If r claims one key exactly as its first
// holder does, it shares that claim.
func (r *Request) shareKeys() {
	for way := range r.EachAlternative {
		for i := range way.Needs() {
			m := &way.Needs()[i]
			switch h := m.Node.First; {
			case !m.Claimed:
			case way == r && r.claim != nil && h != nil && h.Req.claim != nil && *h.Req.claim == *r.claim:
				r.claim = h.Req.claim
			default:
				way.Claims()[m.Claim].Key = interlock.Key(m.Node.Key)
			}
		}
	}
}

// want adds a need of a key below a node to r, and returns the key's node.
func (r *Request) want(above *Node, key string, mode interlock.Mode, claim int, claimed bool) *Node {
	n := r.NS.nodeBelow(above, key)
	if len(r.Claims()) > 1 {
		for i := range r.Needs() {
			if m := &r.Needs()[i]; m.Node == n {
				m.Mode = lockmode.Join(m.Mode, mode)
				if claimed && !m.Claimed {
					m.Claimed, m.Claim = true, int16(claim)
				}
				return n
			}
		}
	}
	r.addNeed(Need{Node: n, Req: r, Mode: mode, Claim: int16(claim), Claimed: claimed})
	return n
}

// kindOf returns the kind of bucket that r waits in for one of its needs.
func (r *Request) kindOf(m *Need) Kind {
	k := Kind{
		Mode: m.Mode, Counts: m.Counts, Queue: r.taskQueue(), Aside: r.Task != nil && r.Task.Eligibility.IsYielding(),
	}
	if m.Counts == interlock.Permits {
		k.Group = int32(r.GroupAt(m))
	}
	return k
}

// CountOf is the count of the claim that a need is for, 0 if it has none.
func (r *Request) CountOf(m *Need) uint32 {
	if m.Counts == 0 {
		return 0
	}
	c := r.Claims()[m.Claim]
	if r.Base != nil && m.Counts == interlock.Permits {
		return c.Count - countIn(r.Base.Claims(), c)
	}
	return c.Count
}

// ModeOf returns the mode of one of r's needs as it was claimed.
func (m *Need) ModeOf() interlock.Mode {
	if m.Counts != 0 {
		return m.Counts
	}
	return m.Mode
}

// Shown returns a need as a claim, for queries.
func (m *Need) Shown() interlock.Claim {
	return interlock.Claim{Key: interlock.Key(m.Node.Key), Mode: m.ModeOf(), Count: m.Req.CountOf(m)}
}

// unneed lets go of the nodes.
func (r *Request) unneed() {
	needs := r.Needs()
	for i := len(needs) - 1; i >= 0; i-- {
		needs[i].Node.drop()
	}
	r.forgetNeeds()
}

// needAt returns r's need on n, or nil.
func (r *Request) needAt(n *Node) *Need {
	for i := range r.Needs() {
		if r.Needs()[i].Node == n {
			return &r.Needs()[i]
		}
	}
	return nil
}

// Overtaken returns a waiter that must step aside for a task that now stands before it at m, or
// nil. Stepping aside may remove the waiter's bucket from the line, so each waiter is searched
// for anew.
func (m *Need) Overtaken() *Request {
	r := m.Req
	for c := range m.Facing {
		if c.Queue != r.Task.Queue || c.Aside || !lockmode.Conflicts[m.Mode].Has(c.Mode) {
			continue
		}
		if w := c.last().Req; Before(r, w) {
			return w
		}
	}
	return nil
}

func (n *Node) Weight() (line, holders int) { return n.Line.Length(), n.holders() }

// holders counts the leases that need n in a mode.
func (n *Node) holders() (holders int) {
	for _, count := range n.granted {
		holders += int(count)
	}
	return holders
}

// SetIndex implements collection.SetMember, for Namespace.Lined.
func (n *Node) SetIndex() *int32 { return &n.own().seat }

// Used reports whether the key itself is claimed, by a holder or a waiter.
func (n *Node) Used() bool { return n.First != nil || n.Line != nil && n.Line.claimed > 0 }
