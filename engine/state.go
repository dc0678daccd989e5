package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// space is one namespace. Nothing in it points to another.
type space struct {
	name     interlock.Namespace
	nodes    map[string]*node
	requests map[[16]byte]*request // waiting, holding, and remembered ones
	sessions map[interlock.SessionID]*session
	tombs    ring[*request]            // requests that are over, oldest first
	gone     ring[interlock.SessionID] // sessions that are over, oldest first
	goneWhy  map[interlock.SessionID]Reason
	notes    noteList
	ids      idWindow // of those who have no session
	holds    map[string]time.Duration
	torn     []*flow // flows that hold and wait, in the order of their sessions and names
	leases   int
	waiters  int

	idleNodes []*node // for reuse
	idleKin   []*kin
	lingering int // sessions that are over and still have leases or waits
}

// node is one key that somebody holds, waits for or left a note at, or an
// ancestor of one. refs counts who needs it to exist.
type node struct {
	key     string
	space   *space
	kin     *kin // its relatives; nil for a top-level key without descendants
	granted [modeCount]uint32
	modes   modeSet // those with granted > 0
	refs    int32
	first   *need // holders that claim this very key, in the order of their fences
	last    *need
	line    *line
	notes   *noteBook
}

// kin are a node's relatives. It is apart because most keys have none.
type kin struct {
	parent     *node
	child      *node // the first one
	prev, next *node // siblings
}

// need is a mode on a key that a request must have: one for each claim, and an
// intent for each ancestor. Needs of one request on one key are merged.
type need struct {
	node       *node
	req        *request
	prev, next *need // in node's holders, if claimed and held
	mode       interlock.Mode
	claimed    bool // the key itself is claimed, not only something below it
	listed     bool
	claim      int16 // index of the first claim that asks for it
}

// ending is what is told of an end beyond its reason.
type ending struct {
	cycle []interlock.CycleStep // of a deadlock
	actor string                // who revoked it
	words string                // and why, in that one's words
}

type phase uint8

const (
	waiting phase = 1 + iota
	offered
	held
	inGrace
	over // remembered for a while, holds nothing
)

// request is what was asked for together, from its arrival to the end of its
// lease, and a while beyond so that its end can be told.
type request struct {
	id       [16]byte
	num      uint64
	fence    interlock.Fence
	space    *space
	flow     *flow // nil for an anonymous holder
	agent    string
	purpose  string
	trace    string
	claims   []interlock.Claim
	needs    []need
	wait     *wait   // while waiting
	timer    *timer  // what the session's timer does not cover
	ending   *ending // more about how it ended, where there is more to say
	progress *string // volatile: what the holder of an anonymous lease last said of it

	ttl, grace, maxHold time.Duration

	granted Time // when it was granted (an offer: taken up), or when it arrived while it waits
	renewed Time // volatile: last renewal of an anonymous lease, offer or start of grace
	told    Time // volatile: the beat since which it was warned of its ttl, plus one
	waited  time.Duration

	priority int32
	pos      int32 // in flow.leases
	phase    phase
	reason   Reason // why it is over, or in grace
	warned   bool   // volatile: told of max_hold
	spared   bool   // volatile: not heard of since Recover, so it gets a little longer
	listed   bool   // volatile: stands in its session's losses
	changed  bool   // somebody who could write held one of its keys while it waited
}

// wait is what only a waiter has.
type wait struct {
	arrived Time
	score   Time
	writes  uint64 // Engine.writes when it arrived
	places  []place
	mark    uint64 // the deadlock search that has seen it
	req     *request

	// How that search came here, and the need by which it goes on.
	from     *wait
	fromNeed int
	via      int

	// Volatile.
	caller Caller
	link   uint64
	asked  Time // when a ticket without a session was last asked about
}

// session is one live process or conversation.
type session struct {
	num    uint64
	id     interlock.SessionID
	space  *space
	agent  string
	name   string // public
	ttl    time.Duration
	opened Time
	flows  map[string]*flow
	work   int  // leases and waits
	dead   bool // over; it stays until its last lease and wait have ended
	why    Reason
	seqs   seqWindow
	ids    idWindow

	// Volatile.
	renewed  Time
	progress string
	minTTL   time.Duration // at most the smallest ttl of its leases
	timer    timer
	caller   Caller
	link     uint64
	losses   []Loss
	capped   int  // leases with a max_hold
	capSoft  Time // not after the first of them is in its soft tier
	busy     int  // flows that were left when the idle ones were last dropped
	spared   bool // not heard of since Recover
	dying    bool // stands in Engine.dying
}

// flow is one thread of control inside a session. It is the unit that holds and
// waits, so what one flow holds is never in its own way.
type flow struct {
	sess   *session
	name   string
	leases []*request      // in no order
	waits  []*request      // in the order of their numbers
	torn   bool            // stands in space.torn
	index  map[*node]tally // what it has where; nil while it has few requests
}

// publicName derives what others may see of a session from its secret id.
func publicName(id interlock.SessionID) string {
	sum := sha256.Sum256(id[:])
	return "s-" + hex.EncodeToString(sum[:6])
}

func (r *request) session() *session {
	if r.flow == nil {
		return nil
	}
	return r.flow.sess
}

func (r *request) agentName() string {
	if r.flow == nil {
		return r.agent
	}
	return r.flow.sess.agent
}

func (r *request) flowName() string {
	if r.flow == nil {
		return ""
	}
	return r.flow.name
}

// prune forgets a namespace of which nothing is left, such as one whose only
// request was refused.
func (e *Engine) prune(name interlock.Namespace) {
	s := e.spaces[name]
	if s != nil && len(s.nodes)+len(s.requests)+len(s.sessions)+s.gone.n+s.ids.order.n+len(s.holds) == 0 {
		delete(e.spaces, name)
	}
}

// noRoomFor says why a namespace cannot be made, or "".
func (e *Engine) noRoomFor(name interlock.Namespace) string {
	if e.spaces[name] != nil || len(e.spaces) < interlock.MaxNamespaces {
		return ""
	}
	return fmt.Sprintf("the server has %d namespaces, which is its limit: use one of those", interlock.MaxNamespaces)
}

func (e *Engine) space(name interlock.Namespace) *space {
	s := e.spaces[name]
	if s == nil {
		s = &space{
			name:     name,
			nodes:    map[string]*node{},
			requests: map[[16]byte]*request{},
			sessions: map[interlock.SessionID]*session{},
			goneWhy:  map[interlock.SessionID]Reason{},
			holds:    map[string]time.Duration{},
		}
		e.spaces[name] = s
	}
	return s
}

// node finds or makes the node of a key, and its ancestors'.
func (s *space) node(key string) *node {
	n := s.nodes[key]
	if n != nil {
		return n
	}
	if i := len(s.idleNodes) - 1; i >= 0 {
		n, s.idleNodes = s.idleNodes[i], s.idleNodes[:i]
	} else {
		n = &node{}
	}
	n.key, n.space = key, s
	s.nodes[key] = n
	if p, ok := parentOf(key); ok {
		parent := s.node(p)
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

// free forgets a node that nobody needs.
func (n *node) free() {
	if n.refs > 0 {
		return
	}
	s, k := n.space, n.kin
	delete(s.nodes, n.key)
	*n = node{}
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
	*k = kin{}
	if len(s.idleKin) < maxFree {
		s.idleKin = append(s.idleKin, k)
	}
	if p != nil {
		p.drop()
	}
}

func (s *space) newKin() *kin {
	i := len(s.idleKin) - 1
	if i < 0 {
		return &kin{}
	}
	k := s.idleKin[i]
	s.idleKin = s.idleKin[:i]
	return k
}

// need resolves r.claims into r.needs: for each claim the intents on its
// ancestors, from the top down, and the key itself.
func (r *request) need() {
	r.needs = r.needs[:0]
	for i, c := range r.claims {
		key := string(c.Key)
		for at := 0; at < len(key); at++ {
			if key[at] == '/' {
				r.addNeed(key[:at], intent(c.Mode), i, false)
			}
		}
		r.addNeed(key, c.Mode, i, true)
	}
	for i := range r.needs {
		r.needs[i].node.refs++
	}
}

func (r *request) addNeed(key string, mode interlock.Mode, claim int, claimed bool) {
	n := r.space.node(key)
	if len(r.claims) > 1 {
		for i := range r.needs {
			if m := &r.needs[i]; m.node == n {
				m.mode = lub(m.mode, mode)
				if claimed && !m.claimed {
					m.claimed, m.claim = true, int16(claim)
				}
				return
			}
		}
	}
	r.needs = append(r.needs, need{node: n, req: r, mode: mode, claim: int16(claim), claimed: claimed})
}

// unneed lets go of the nodes.
func (r *request) unneed() {
	for i := len(r.needs) - 1; i >= 0; i-- {
		r.needs[i].node.drop()
	}
	clear(r.needs)
	r.needs = r.needs[:0]
}

// hold gives r all its needs.
func (r *request) hold() {
	for i := range r.needs {
		m := &r.needs[i]
		n := m.node
		n.granted[m.mode]++
		n.modes |= 1 << m.mode
		if m.claimed {
			m.prev, m.next, m.listed = n.last, nil, true
			if n.last != nil {
				n.last.next = m
			} else {
				n.first = m
			}
			n.last = m
		}
	}
	r.space.leases++
	if f := r.flow; f != nil {
		r.pos = int32(len(f.leases))
		f.leases = append(f.leases, r)
		if r.maxHold > 0 {
			f.sess.capped++
		}
		f.joined(r, false)
	}
}

// unhold takes all of r's needs back. The nodes stay until unneed.
func (r *request) unhold() {
	for i := range r.needs {
		m := &r.needs[i]
		n := m.node
		if n.granted[m.mode]--; n.granted[m.mode] == 0 {
			n.modes &^= 1 << m.mode
		}
		if m.listed {
			if m.prev != nil {
				m.prev.next = m.next
			} else {
				n.first = m.next
			}
			if m.next != nil {
				m.next.prev = m.prev
			} else {
				n.last = m.prev
			}
			m.listed = false
		}
	}
	r.space.leases--
	if f := r.flow; f != nil {
		last := int32(len(f.leases) - 1)
		f.leases[r.pos] = f.leases[last]
		f.leases[r.pos].pos = r.pos
		f.leases[last] = nil
		f.leases = f.leases[:last]
		if r.maxHold > 0 {
			f.sess.capped--
		}
		f.parted(r, false)
	}
}

// enline puts r in the line of every key it needs.
func (r *request) enline() {
	if cap(r.wait.places) < len(r.needs) {
		r.wait.places = make([]place, len(r.needs))
	}
	r.wait.places = r.wait.places[:len(r.needs)]
	r.wait.req = r
	for i := range r.needs {
		m, p := &r.needs[i], &r.wait.places[i]
		*p = place{req: r, need: int32(i), mode: m.mode}
		if m.node.line == nil {
			m.node.line = &line{}
		}
		m.node.line.trees[m.mode].insert(p)
		m.node.line.modes |= 1 << m.mode
	}
	r.space.waiters++
	if f := r.flow; f != nil {
		f.waits = append(f.waits, r)
		f.joined(r, true)
	}
}

// unline takes r out of every line.
func (r *request) unline() {
	for i := range r.wait.places {
		p := &r.wait.places[i]
		n := r.needs[i].node
		n.line.setWatching(p, false)
		t := &n.line.trees[p.mode]
		t.remove(p)
		if t.root == nil {
			n.line.modes &^= 1 << p.mode
			if n.line.modes == 0 {
				n.line = nil
			}
		}
	}
	r.space.waiters--
	if f := r.flow; f != nil {
		i := slices.Index(f.waits, r)
		f.waits = slices.Delete(f.waits, i, i+1)
		f.parted(r, true)
	}
}

// tear keeps the namespace's list of flows that hold and wait.
func (f *flow) tear() {
	torn := len(f.leases) > 0 && len(f.waits) > 0
	if torn == f.torn {
		return
	}
	f.torn = torn
	s := f.sess.space
	i, _ := slices.BinarySearchFunc(s.torn, f, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.sess.num, b.sess.num), strings.Compare(a.name, b.name))
	})
	if torn {
		s.torn = slices.Insert(s.torn, i, f)
	} else {
		s.torn = slices.Delete(s.torn, i, i+1)
	}
}

// tally is what a flow has at one key: holdings by mode, and places in line.
type tally struct {
	granted [modeCount]uint32
	waits   uint32
}

// A flow has an index of its tallies from manyRequests on, and none below
// fewRequests: most flows have one request at a time, and looking through few
// costs less than keeping an index.
const (
	manyRequests = 16
	fewRequests  = 8
)

// at gives what the flow has at n.
func (f *flow) at(n *node) (t tally) {
	if f == nil {
		return t
	}
	if f.index != nil {
		return f.index[n]
	}
	for _, r := range f.leases {
		if m := r.needAt(n); m != nil {
			t.granted[m.mode]++
		}
	}
	for _, r := range f.waits {
		if r.needAt(n) != nil {
			t.waits++
		}
	}
	return t
}

// holds reports whether t has any holding.
func (t tally) holds() bool { return t.granted != [modeCount]uint32{} }

// add counts r's needs, held or waited for, in the index.
func (f *flow) add(r *request, waits bool, by uint32) {
	for i := range r.needs {
		m := &r.needs[i]
		t := f.index[m.node]
		if waits {
			t.waits += by
		} else {
			t.granted[m.mode] += by
		}
		if t == (tally{}) {
			delete(f.index, m.node)
		} else {
			f.index[m.node] = t
		}
	}
}

// joined and parted keep what depends on a flow's requests. They are called after
// r was put in f.leases or f.waits, or taken out.
func (f *flow) joined(r *request, waits bool) {
	f.sess.work++
	f.tear()
	if f.index != nil {
		f.add(r, waits, 1)
	} else if len(f.leases)+len(f.waits) >= manyRequests {
		f.index = map[*node]tally{}
		for _, l := range f.leases {
			f.add(l, false, 1)
		}
		for _, w := range f.waits {
			f.add(w, true, 1)
		}
	}
}

func (f *flow) parted(r *request, waits bool) {
	f.sess.work--
	f.tear()
	if len(f.leases)+len(f.waits) < fewRequests {
		f.index = nil
	} else if f.index != nil {
		f.add(r, waits, ^uint32(0))
	}
}

// needAt gives r's need on n, or nil.
func (r *request) needAt(n *node) *need {
	for i := range r.needs {
		if r.needs[i].node == n {
			return &r.needs[i]
		}
	}
	return nil
}

// ring is a first-in, first-out list on a growing array.
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

func (q *ring[T]) push(v T) {
	if q.n == len(q.buf) {
		grown := make([]T, max(8, 2*len(q.buf)))
		for i := range q.n {
			grown[i] = q.at(i)
		}
		q.buf, q.head = grown, 0
	}
	q.buf[(q.head+q.n)%len(q.buf)] = v
	q.n++
}

func (q *ring[T]) pop() (v T) {
	var zero T
	v, q.buf[q.head] = q.buf[q.head], zero
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	return v
}

func (q *ring[T]) at(i int) T { return q.buf[(q.head+i)%len(q.buf)] }
