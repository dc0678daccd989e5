package store

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// rememberedEnds is how many leases and tickets that are over a namespace remembers,
// to tell their holders how they ended. It is a power of two.
const rememberedEnds = 65_536

// tombstone is the record of a request that is over.
type tombstone struct {
	ID         [16]byte
	Num        uint64
	Fence      interlock.Fence
	Claims     []interlock.Claim
	ttl, grace time.Duration
	EndCause   *endCause
	Reason     record.Reason
	changed    bool
	older      uint32 // the one before with the same hash, by its number
}

// tombstones are the last requests of a namespace that came to their ends, numbered as they come.
// Forgetting the oldest only takes it off the list: in a hash's list, a number that leads to no
// tomb older than the one before it marks the end of what is remembered.
//
// Nearly all ids that are looked up are new. So a few marks tell which ids the list of a hash
// may contain, and the marks are small enough to stay in a cache.
type tombstones struct {
	collection.PagedQueue[tombstone]
	lists []tombstoneList // of each hash
	next  uint32          // the number of the next
}

// tombstoneList is those with one hash: the number of the newest, and the marks of all. It may
// have marks and numbers of some that are forgotten.
//
//	┌─────────┬─────────┐
//	│ number  │ marks   │
//	│ 17 bits │ 15 bits │
//	└─────────┴─────────┘
type tombstoneList uint32

const (
	tombMarks   = 15
	tombNumbers = 2*rememberedEnds - 1 // they wrap around
)

// markOf is the mark of one in its list, by bits of its hash that choose no list.
func markOf(hash uint32) tombstoneList { return 1 << (hash >> 16 * tombMarks >> 16) }

func (l tombstoneList) newest() uint32 { return uint32(l >> tombMarks) }

// push remembers one more.
func (t *tombstones) push(hash uint32, x tombstone) {
	switch {
	case t.Len() == rememberedEnds:
		t.Pop()
	case t.Len() == len(t.lists):
		t.grow()
	}
	t.put(hash, x)
}

func (t *tombstones) put(hash uint32, x tombstone) {
	list := t.ofHash(hash)
	if x.older = list.newest(); t.age(x.older) > t.Len() {
		*list = 0
	}
	*list = tombstoneList(t.next)<<tombMarks | *list&(1<<tombMarks-1) | markOf(hash)
	t.PagedQueue.Push(x)
	t.next = (t.next + 1) & tombNumbers
}

// age returns how many have come since the one with a number, and that one.
func (t *tombstones) age(number uint32) int { return int((t.next - number) & tombNumbers) }

func (t *tombstones) ofHash(hash uint32) *tombstoneList { return &t.lists[int(hash)&(len(t.lists)-1)] }

func (t *tombstones) grow() {
	all := t.PagedQueue
	t.PagedQueue, t.next = collection.PagedQueue[tombstone]{}, 0
	t.lists = make([]tombstoneList, max(32, 2*all.Len()))
	for i := range all.Len() {
		x := all.At(i)
		t.put(collection.HashID(x.ID), *x)
	}
}

// find returns the tomb of the request with an id, or nil.
func (t *tombstones) find(hash uint32, id *[16]byte) *tombstone {
	if t.Len() == 0 {
		return nil
	}
	list := *t.ofHash(hash)
	if list&markOf(hash) == 0 {
		return nil
	}
	next := list.newest()
	for age := 0; ; {
		was := age
		if age = t.age(next); age <= was || age > t.Len() {
			return nil
		}
		x := t.At(t.Len() - age)
		if x.ID == *id {
			return x
		}
		next = x.older
	}
}

// Live returns the request with an id that is not over, or nil.
func (s *Namespace) Live(id [16]byte) *Request { return s.liveOf(collection.HashID(id), &id) }

func (s *Namespace) liveOf(hash uint32, id *[16]byte) *Request {
	for r := s.Requests.First(hash); r != nil; r = *r.TableNext() {
		if r.ID == *id {
			return r
		}
	}
	return nil
}

func (r *Request) Hash() uint32 { return collection.HashID(r.ID) }

func (r *Request) TableNext() **Request { return &r.next }

func (r *Request) SetIndex() *int32 { return &r.seat }

// Request returns the request with an id, as it is or, when it is over, as it is
// remembered; nil if it is not, or never was.
func (s *Namespace) Request(id [16]byte) *Request {
	hash := collection.HashID(id)
	if r := s.liveOf(hash, &id); r != nil {
		return r
	}
	x := s.Tombstones.find(hash, &id)
	if x == nil {
		return nil
	}
	r := &Request{
		ID: x.ID, Num: x.Num, Fence: x.Fence, Reason: x.Reason, Changed: x.changed, Phase: Over,
		Conditions: &Conditions{s, interlock.Terms{TTL: x.ttl, Grace: x.grace}}, RequestDetail: NoDetails, RequestExt: noExt,
	}
	r.SetClaims(x.Claims)
	r.setEndCause(x.EndCause)
	return r
}

// Knows reports whether there is a request with an id, or was one that is remembered.
func (s *Namespace) Knows(id [16]byte) bool {
	hash := collection.HashID(id)
	return s.liveOf(hash, &id) != nil || s.Tombstones.find(hash, &id) != nil
}

// archive turns r into the record of its end. The rest of it stays valid until the end of the
// step, because the step's answers may be about it.
func (st *State) archive(r *Request, why record.Reason) {
	if r.Timer != nil {
		st.Timers.Clear(r.Timer)
		r.Timer = nil
	}
	st.dropAlternatives(r)
	r.unneed()
	r.unask()
	sess := r.Session()
	st.dropWait(r)
	r.FlowState, r.Phase, r.Reason, r.Conditions, r.RequestDetail = nil, Over, why, r.plain(), NoDetails
	if r.RequestExt != noExt {
		r.Guest, r.Run, r.Progress, r.Rare, r.Base, r.Target = nil, nil, nil, nil, nil, nil
	}
	s := r.NS
	s.Requests.Remove(r)
	s.kept.drop(createdObject{MadeRequest, r.ID})
	s.Tombstones.push(r.Hash(), tombstone{
		ID: r.ID, Num: r.Num, Fence: r.Fence, Claims: r.Claims(), ttl: r.TTL, grace: r.Grace, EndCause: r.EndCause,
		Reason: why, changed: r.Changed,
	})
	st.Ended = append(st.Ended, r)
	if sess != nil {
		st.forgetSession(sess)
	}
}
