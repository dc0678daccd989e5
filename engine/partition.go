package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// A key that is shared out among members.
//
// A member has a lease like any other, and for each part that a division assigns to it
// (division.go) an exclusive lease on that part, which the engine requests in its name, in its
// session and flow. So the exclusive lock itself guarantees that no two members ever have one
// part. When members come or go, the division is made anew. A part that must change hands is
// requested as with Preempt: its holder is notified, and loses it after its grace.
//
//	Acquire jobs parts=4 ──► lease on jobs (member), and on jobs/0, jobs/1, jobs/2, jobs/3
//	another one          ──► lease on jobs (member), and in line for jobs/1, jobs/3
//	                         jobs/1, jobs/3: asked for, in grace, over ──► the other's
//
// A part's lease lives and dies with its member's: it has no deadline of its own
// but the grace in which it passes on.
//
// Only completed changes are in the journal. The pending ones follow from them: the members,
// the holders of the parts, and the waiters for them. So a step may stop anywhere, and a
// restart continues.

// partition is a key that is shared out. It exists while there are members or parts.
type partition struct {
	node    *node
	pos     int // in space.divided
	how     interlock.Division
	members []*request // their leases, in the order of their numbers
	size    int        // number of parts
	parts   []slot     // of those, and of any that are left of an earlier division
	busy    int        // leases on parts, and those in line for one
	seen    uint32     // grants below parts since loads were last halved
	uneven  bool       // volatile: stands in agenda.uneven
}

// slot is one part.
type slot struct {
	held *request // the lease on it
	next *request // the waiter for it in a member's name
	load uint32   // grants below it, the older ones halved again and again
}

// memberPart identifies a request that the engine made for a member.
type memberPart struct {
	divided *partition
	index   int
	member  *request // nil when its lease is over
}

// loadWindow is how many grants there are for each part before loads are halved
// and, in a division by load, looked at again.
const loadWindow = 64

// divided finds or makes the shared-out key at n.
func (s *namespace) divided(n *node) *partition {
	if n.divided == nil {
		n.own().divided = &partition{node: n, pos: len(s.shared)}
		s.shared = append(s.shared, n.divided)
	}
	return n.divided
}

// free forgets a shared-out key without members and parts.
func (d *partition) free() {
	if len(d.members) > 0 || d.busy > 0 {
		return
	}
	s := d.node.ns
	last := s.shared[len(s.shared)-1]
	s.shared[d.pos], last.pos = last, d.pos
	s.shared[len(s.shared)-1] = nil
	s.shared = s.shared[:len(s.shared)-1]
	d.node.own().divided = nil
}

// touch has the division looked at.
func (d *partition) touch() {
	if !d.uneven {
		d.uneven = true
		a := d.node.ns.agenda
		a.uneven = append(a.uneven, d)
	}
}

// membership returns r's need as a member of a shared-out key, or nil.
func (r *request) membership() *need {
	if m := r.gathering(); m != nil && m.counts == interlock.Member {
		return m
	}
	return nil
}

// memberChanged has the division looked at that r is a member of, if it is one.
func (r *request) memberChanged() {
	if m := r.membership(); m != nil && m.node.divided != nil {
		m.node.divided.touch()
	}
}

// enroll makes r, which holds, a member. The first member determines the number of parts.
func (d *partition) enroll(r *request, parts uint32) {
	if len(d.members) == 0 {
		d.how, d.size, d.seen = r.Division, int(min(parts, interlock.MaxParts)), 0
		d.grow(d.size)
		for i := range d.parts {
			d.parts[i].load = 0
		}
	}
	if r.Division != d.how {
		t := *r.terms
		t.Division = d.how
		r.terms = &t
	}
	i, _ := slices.BinarySearchFunc(d.members, r, func(a, b *request) int { return cmp.Compare(a.num, b.num) })
	d.members = slices.Insert(d.members, i, r)
	d.touch()
}

// expel ends r's membership. Its parts have no member from then on.
func (d *partition) expel(r *request) {
	d.members = slices.DeleteFunc(d.members, func(m *request) bool { return m == r })
	for i := range d.parts {
		for _, x := range []*request{d.parts[i].held, d.parts[i].next} {
			if x != nil && x.share.member == r {
				x.share.member = nil
			}
		}
	}
	d.touch()
	d.free()
}

func (d *partition) grow(n int) {
	if n > len(d.parts) {
		d.parts = append(d.parts, make([]slot, n-len(d.parts))...)
	}
}

// The lists of the holders of parts, and of the waiters for them. Each function is called for
// every request that holds, or waits, and does nothing for one that is not a part.

func (r *request) holdPart() {
	if p := r.share; p != nil {
		p.divided.parts[p.index].held = r
		p.divided.busy++
	}
}

func (r *request) losePart() {
	if p := r.share; p != nil {
		p.divided.parts[p.index].held = nil
		p.divided.leavePart()
	}
}

func (r *request) awaitPart() {
	if p := r.share; p != nil {
		p.divided.parts[p.index].next = r
		p.divided.busy++
	}
}

func (r *request) forgoPart() {
	if p := r.share; p != nil {
		p.divided.parts[p.index].next = nil
		p.divided.leavePart()
	}
}

func (d *partition) leavePart() {
	d.busy--
	d.touch()
	d.free()
}

// belongs makes r, which an event tells of, a part of a shared-out key.
func (r *request) belongs(ev *record.Event) error {
	if len(ev.Claims) != 1 {
		return errUnknown
	}
	key, ok := keypath.Parent(string(ev.Claims[0].Key))
	if !ok {
		return errUnknown
	}
	index, err := strconv.Atoi(string(ev.Claims[0].Key[len(key)+1:]))
	if err != nil || index < 0 || index >= interlock.MaxParts {
		return errUnknown
	}
	var member *request
	if ev.Base != 0 {
		member = r.ns.live(ev.BaseID)
		if member == nil || member.num != ev.Base || member.membership() == nil {
			return errUnknown
		}
	}
	d := r.ns.divided(r.ns.node(key))
	d.grow(index + 1)
	r.mutableExt().share = &memberPart{d, index, member}
	return nil
}

// observe counts a grant of r's claims at the parts that they lie in.
func (r *request) observe() {
	if r.share != nil || len(r.ns.shared) == 0 {
		return
	}
	for i := range r.needs() {
		d := r.needs()[i].node.divided
		if d == nil {
			continue
		}
		for _, c := range r.claims() {
			if index := d.partOf(string(c.Key)); index >= 0 {
				d.count(index)
			}
		}
	}
}

// partOf returns the index of the part that a key is, or lies in; -1 for none.
func (d *partition) partOf(key string) int {
	if !keypath.IsBelow(key, d.node.key) {
		return -1
	}
	rest := key[len(d.node.key)+1:]
	for i := range len(rest) {
		if rest[i] == '/' {
			rest = rest[:i]
			break
		}
	}
	index, err := strconv.Atoi(rest)
	if err != nil || index < 0 || index >= d.size || strconv.Itoa(index) != rest {
		return -1
	}
	return index
}

func (d *partition) count(index int) {
	d.parts[index].load++
	if d.seen++; d.seen < loadWindow*uint32(d.size) {
		return
	}
	d.seen = 0
	for i := range d.parts {
		d.parts[i].load /= 2
	}
	if d.how == interlock.ByLoad {
		d.touch()
	}
}

// describe tells of d what its members' leases and those on its parts do not.
func (d *partition) describe() *record.Event {
	ev := &record.Event{
		Kind: record.Divided, Namespace: d.node.ns.name, Terms: interlock.Terms{Division: d.how}, Num: uint64(d.seen),
		Claims: []interlock.Claim{{Key: interlock.Key(d.node.key), Mode: interlock.Member, Count: uint32(d.size)}},
	}
	for i := range d.size {
		ev.Blob = binary.AppendUvarint(ev.Blob, uint64(d.parts[i].load))
	}
	return ev
}

// readDivision restores what describe recorded.
func (s *namespace) readDivision(ev *record.Event) error {
	if len(ev.Claims) != 1 || ev.Claims[0].Count > interlock.MaxParts {
		return errUnknown
	}
	n := s.nodeAt(string(ev.Claims[0].Key))
	if n == nil || n.divided == nil {
		return errUnknown
	}
	d := n.divided
	d.how, d.size, d.seen = ev.Division, int(ev.Claims[0].Count), uint32(ev.Num)
	d.grow(d.size)
	b := ev.Blob
	for i := range d.size {
		load, n := binary.Uvarint(b)
		if n <= 0 {
			return record.ErrTruncated
		}
		d.parts[i].load, b = uint32(load), b[n:]
	}
	return nil
}

// active reports whether r, a member's lease, is to have parts.
func (r *request) active() bool { return r.phase == held && (r.session() == nil || !r.session().dead) }

// shareOut checks the first division that may be uneven. Work that does not fit in the step is
// left for the next.
func (e *Engine) shareOut() {
	d := e.uneven[0]
	e.uneven = slices.Delete(e.uneven, 0, 1)
	d.uneven = false
	if !e.dismissParts(d) || !e.assignParts(d) {
		d.touch()
	}
	e.objects += len(d.parts) / partLooks
}

// partLooks is how many looks at a part, or at a member for one, count as an object.
const partLooks = 16

// dismissParts ends what members that are over have left. It reports whether it
// came to the end.
func (e *Engine) dismissParts(d *partition) bool {
	for i := range d.parts {
		if e.full() {
			return false
		}
		s := &d.parts[i]
		if w := s.next; w != nil && (w.share.member == nil || !w.share.member.active()) {
			e.leaveLine(w, record.ByBase)
		}
		if l := s.held; l != nil && l.share.member == nil {
			e.emit(e.endCause(l, record.ByBase))
		}
	}
	return true
}

// assignParts has each part asked for in the name of the member that is to have it.
// It reports whether it came to the end.
func (e *Engine) assignParts(d *partition) bool {
	members := slices.DeleteFunc(slices.Clone(d.members), func(r *request) bool { return !r.active() })
	if len(members) == 0 {
		return true
	}
	want, looks := d.divide(members)
	defer func() { e.objects += looks / partLooks }() // after it, so that each step gets on
	for i, m := range want {
		if e.full() {
			return false
		}
		s, owner := &d.parts[i], members[m]
		if s.next != nil {
			if s.next.share.member == owner {
				continue
			}
			e.leaveLine(s.next, record.ByLeaving)
		}
		switch l := s.held; {
		case l == nil:
		case l.phase == held && l.share.member == owner:
			continue
		case l.share.member != nil && l.share.member.phase == closed:
			continue // its keys stay closed with its member's
		case l.party != nil && l.party == owner.party:
			continue // its own former lease: it gets the part again when that is over
		}
		e.assign(d, i, owner)
	}
	return true
}

// divide returns for each part the index of the member that is to have it, and what it has
// looked at.
func (d *partition) divide(members []*request) (want []int, looks int) {
	s := divisionInput{now: make([]int, d.size), load: make([]uint32, d.size)}
	index := map[*request]int{}
	for i, r := range members {
		s.members = append(s.members, r.num)
		index[r] = i
	}
	for i := range d.size {
		p := &d.parts[i]
		s.now[i], s.load[i] = -1, p.load
		r := p.next
		if r == nil && p.held != nil && p.held.phase == held {
			r = p.held
		}
		if r != nil && r.share.member != nil {
			if m, ok := index[r.share.member]; ok {
				s.now[i] = m
			}
		}
	}
	return s.divide(d.how), s.looks
}

// assign requests a part in the name of a member, and makes its holder give it up.
func (e *Engine) assign(d *partition, index int, owner *request) {
	r := e.newRequest()
	r.num = e.num + 1
	r.id = partID(owner, r.num)
	if f := owner.flow(); f != nil {
		r.join(f)
	} else {
		r.mutableExt().guest = &anonymousCaller{agent: owner.agentName()}
	}
	r.terms = d.node.ns.agree(interlock.Terms{TTL: owner.TTL, Grace: owner.Grace})
	r.setDetails(requestDetail{purpose: owner.purpose})
	r.setClaims([]interlock.Claim{{Key: interlock.Key(d.node.key + "/" + strconv.Itoa(index)), Mode: lockmode.X}})
	r.mutableExt().share = &memberPart{d, index, owner}
	e.try(r)
	if r.blocker() < 0 {
		r.wait = nil
		ev := e.describe(record.Granted, r)
		ev.Fence = e.fence + 1
		e.emit(ev)
		e.arm(r)
		if s := r.session(); s != nil && s.caller != nil {
			e.effect(s.caller, Granted).Lease = e.lease(r)
		}
		e.heldMore(r)
		return
	}
	r.readAsOf(r.ns.docs.version)
	e.emit(e.describe(record.Queued, r))
	r.refile()
	e.watchAnywhere(r)
	if r.party != nil {
		e.suspect(r.party, nil) // those behind it wait for its flow now
	}
	if l := d.parts[index].held; l != nil && l.phase == held {
		e.ask(r, l, interlock.PreemptRevoke)
	}
}

// holdsOn reports whether r, as a part, ends with another lease: that of its member.
func (r *request) holdsOn() bool { return r.share != nil && r.share.member != nil }

// partID makes an id for a part's lease. It is as secret as its member's.
func partID(member *request, num uint64) (id [16]byte) {
	var b [24]byte
	copy(b[:], member.id[:])
	binary.BigEndian.PutUint64(b[16:], num)
	sum := sha256.Sum256(b[:])
	copy(id[:], sum[:])
	return id
}

// partsOf lists what a member has of its shared-out key.
func (e *Engine) partsOf(r *request) (list []interlock.Part) {
	m := r.membership()
	if m == nil || m.node.divided == nil || r.isOver() {
		return nil
	}
	for i := range m.node.divided.parts {
		s := &m.node.divided.parts[i]
		l := s.held
		if l == nil || l.share.member != r {
			continue
		}
		p := interlock.Part{Key: l.claims()[0].Key, Lease: l.id, Fence: l.fence, Stop: l.phase == inGrace || s.next != nil}
		if l.phase == inGrace {
			p.Left = max(0, e.endOf(l).Sub(e.now))
		}
		list = append(list, p)
	}
	return list
}
