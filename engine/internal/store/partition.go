package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
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

// Partition is a key that is shared out. It exists while there are members or parts.
type Partition struct {
	Node    *Node
	pos     int // in space.divided
	how     interlock.Division
	Members []*Request // their leases, in the order of their numbers
	Size    int        // number of parts
	Parts   []slot     // of those, and of any that are left of an earlier division
	busy    int        // leases on parts, and those in line for one
	seen    uint32     // grants below parts since loads were last halved
	Uneven  bool       // volatile: stands in agenda.uneven
}

// slot is one part.
type slot struct {
	Held *Request // the lease on it
	Next *Request // the waiter for it in a member's name
	load uint32   // grants below it, the older ones halved again and again
}

// MemberPart identifies a request that the engine made for a member.
type MemberPart struct {
	Divided *Partition
	Index   int
	Member  *Request // nil when its lease is over
}

// loadWindow is how many grants there are for each part before loads are halved
// and, in a division by load, looked at again.
const loadWindow = 64

// divided finds or makes the shared-out key at n.
func (s *Namespace) divided(n *Node) *Partition {
	if n.Divided == nil {
		n.own().Divided = &Partition{Node: n, pos: len(s.Shared)}
		s.Shared = append(s.Shared, n.Divided)
	}
	return n.Divided
}

// free forgets a shared-out key without members and parts.
func (d *Partition) free() {
	if len(d.Members) > 0 || d.busy > 0 {
		return
	}
	s := d.Node.NS
	last := s.Shared[len(s.Shared)-1]
	s.Shared[d.pos], last.pos = last, d.pos
	s.Shared[len(s.Shared)-1] = nil
	s.Shared = s.Shared[:len(s.Shared)-1]
	d.Node.own().Divided = nil
}

// Touch has the division looked at.
func (d *Partition) Touch() {
	if !d.Uneven {
		d.Uneven = true
		a := d.Node.NS.Agenda
		a.Uneven = append(a.Uneven, d)
	}
}

// Membership returns r's need as a member of a shared-out key, or nil.
func (r *Request) Membership() *Need {
	if m := r.Gathering(); m != nil && m.Counts == interlock.Member {
		return m
	}
	return nil
}

// memberChanged has the division looked at that r is a member of, if it is one.
func (r *Request) memberChanged() {
	if m := r.Membership(); m != nil && m.Node.Divided != nil {
		m.Node.Divided.Touch()
	}
}

// enroll makes r, which holds, a member. The first member determines the number of parts.
func (d *Partition) enroll(r *Request, parts uint32) {
	if len(d.Members) == 0 {
		d.how, d.Size, d.seen = r.Division, int(min(parts, interlock.MaxParts)), 0
		d.grow(d.Size)
		for i := range d.Parts {
			d.Parts[i].load = 0
		}
	}
	if r.Division != d.how {
		t := *r.Conditions
		t.Division = d.how
		r.Conditions = &t
	}
	i, _ := slices.BinarySearchFunc(d.Members, r, func(a, b *Request) int { return cmp.Compare(a.Num, b.Num) })
	d.Members = slices.Insert(d.Members, i, r)
	d.Touch()
}

// expel ends r's membership. Its parts have no member from then on.
func (d *Partition) expel(r *Request) {
	d.Members = slices.DeleteFunc(d.Members, func(m *Request) bool { return m == r })
	for i := range d.Parts {
		for _, x := range []*Request{d.Parts[i].Held, d.Parts[i].Next} {
			if x != nil && x.Share.Member == r {
				x.Share.Member = nil
			}
		}
	}
	d.Touch()
	d.free()
}

func (d *Partition) grow(n int) {
	if n > len(d.Parts) {
		d.Parts = append(d.Parts, make([]slot, n-len(d.Parts))...)
	}
}

// The lists of the holders of parts, and of the waiters for them. Each function is called for
// every request that holds, or waits, and does nothing for one that is not a part.

func (r *Request) holdPart() {
	if p := r.Share; p != nil {
		p.Divided.Parts[p.Index].Held = r
		p.Divided.busy++
	}
}

func (r *Request) losePart() {
	if p := r.Share; p != nil {
		p.Divided.Parts[p.Index].Held = nil
		p.Divided.leavePart()
	}
}

func (r *Request) awaitPart() {
	if p := r.Share; p != nil {
		p.Divided.Parts[p.Index].Next = r
		p.Divided.busy++
	}
}

func (r *Request) forgoPart() {
	if p := r.Share; p != nil {
		p.Divided.Parts[p.Index].Next = nil
		p.Divided.leavePart()
	}
}

func (d *Partition) leavePart() {
	d.busy--
	d.Touch()
	d.free()
}

// belongs makes r, which an event tells of, a part of a shared-out key.
func (r *Request) belongs(ev *record.Event) error {
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
	var member *Request
	if ev.Base != 0 {
		member = r.NS.Live(ev.BaseID)
		if member == nil || member.Num != ev.Base || member.Membership() == nil {
			return errUnknown
		}
	}
	d := r.NS.divided(r.NS.node(key))
	d.grow(index + 1)
	r.MutableExt().Share = &MemberPart{d, index, member}
	return nil
}

// observe counts a grant of r's claims at the parts that they lie in.
func (r *Request) observe() {
	if r.Share != nil || len(r.NS.Shared) == 0 {
		return
	}
	for i := range r.Needs() {
		d := r.Needs()[i].Node.Divided
		if d == nil {
			continue
		}
		for _, c := range r.Claims() {
			if index := d.partOf(string(c.Key)); index >= 0 {
				d.count(index)
			}
		}
	}
}

// partOf returns the index of the part that a key is, or lies in; -1 for none.
func (d *Partition) partOf(key string) int {
	if !keypath.IsBelow(key, d.Node.Key) {
		return -1
	}
	rest := key[len(d.Node.Key)+1:]
	for i := range len(rest) {
		if rest[i] == '/' {
			rest = rest[:i]
			break
		}
	}
	index, err := strconv.Atoi(rest)
	if err != nil || index < 0 || index >= d.Size || strconv.Itoa(index) != rest {
		return -1
	}
	return index
}

func (d *Partition) count(index int) {
	d.Parts[index].load++
	if d.seen++; d.seen < loadWindow*uint32(d.Size) {
		return
	}
	d.seen = 0
	for i := range d.Parts {
		d.Parts[i].load /= 2
	}
	if d.how == interlock.ByLoad {
		d.Touch()
	}
}

// Describe tells of d what its members' leases and those on its parts do not.
func (d *Partition) Describe() *record.Event {
	ev := &record.Event{
		Kind: record.Divided, Namespace: d.Node.NS.Name, Terms: interlock.Terms{Division: d.how}, Num: uint64(d.seen),
		Claims: []interlock.Claim{{Key: interlock.Key(d.Node.Key), Mode: interlock.Member, Count: uint32(d.Size)}},
	}
	for i := range d.Size {
		ev.Blob = binary.AppendUvarint(ev.Blob, uint64(d.Parts[i].load))
	}
	return ev
}

// readDivision restores what describe recorded.
func (s *Namespace) readDivision(ev *record.Event) error {
	if len(ev.Claims) != 1 || ev.Claims[0].Count > interlock.MaxParts {
		return errUnknown
	}
	n := s.NodeAt(string(ev.Claims[0].Key))
	if n == nil || n.Divided == nil {
		return errUnknown
	}
	d := n.Divided
	d.how, d.Size, d.seen = ev.Division, int(ev.Claims[0].Count), uint32(ev.Num)
	d.grow(d.Size)
	b := ev.Blob
	for i := range d.Size {
		load, n := binary.Uvarint(b)
		if n <= 0 {
			return record.ErrTruncated
		}
		d.Parts[i].load, b = uint32(load), b[n:]
	}
	return nil
}

// Active reports whether r, a member's lease, is to have parts.
func (r *Request) Active() bool { return r.Phase == Held && (r.Session() == nil || !r.Session().Dead) }

// Divide returns for each part the index of the member that is to have it, and what it has
// looked at.
func (d *Partition) Divide(members []*Request) (want []int, looks int) {
	s := divisionInput{now: make([]int, d.Size), load: make([]uint32, d.Size)}
	index := map[*Request]int{}
	for i, r := range members {
		s.members = append(s.members, r.Num)
		index[r] = i
	}
	for i := range d.Size {
		p := &d.Parts[i]
		s.now[i], s.load[i] = -1, p.load
		r := p.Next
		if r == nil && p.Held != nil && p.Held.Phase == Held {
			r = p.Held
		}
		if r != nil && r.Share.Member != nil {
			if m, ok := index[r.Share.Member]; ok {
				s.now[i] = m
			}
		}
	}
	return s.divide(d.how), s.looks
}

// HoldsOn reports whether r, as a part, ends with another lease: that of its member.
func (r *Request) HoldsOn() bool { return r.Share != nil && r.Share.Member != nil }
