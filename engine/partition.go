package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// shareOut checks the first division that may be uneven. Work that does not fit in the step is
// left for the next.
func (e *Engine) shareOut() {
	d := e.Uneven[0]
	e.Uneven = slices.Delete(e.Uneven, 0, 1)
	d.Uneven = false
	if !e.dismissParts(d) || !e.assignParts(d) {
		d.Touch()
	}
	e.Visited += len(d.Parts) / partLooks
}

// partLooks is how many looks at a part, or at a member for one, count as an object.
const partLooks = 16

// dismissParts ends what members that are over have left. It reports whether it
// came to the end.
func (e *Engine) dismissParts(d *store.Partition) bool {
	for i := range d.Parts {
		if e.full() {
			return false
		}
		s := &d.Parts[i]
		if w := s.Next; w != nil && (w.Share.Member == nil || !w.Share.Member.Active()) {
			e.leaveLine(w, record.ByBase)
		}
		if l := s.Held; l != nil && l.Share.Member == nil {
			e.emit(e.endCause(l, record.ByBase))
		}
	}
	return true
}

// assignParts has each part asked for in the name of the member that is to have it.
// It reports whether it came to the end.
func (e *Engine) assignParts(d *store.Partition) bool {
	members := slices.DeleteFunc(slices.Clone(d.Members), func(r *store.Request) bool { return !r.Active() })
	if len(members) == 0 {
		return true
	}
	want, looks := d.Divide(members)
	defer func() { e.Visited += looks / partLooks }() // after it, so that each step gets on
	for i, m := range want {
		if e.full() {
			return false
		}
		s, owner := &d.Parts[i], members[m]
		if s.Next != nil {
			if s.Next.Share.Member == owner {
				continue
			}
			e.leaveLine(s.Next, record.ByLeaving)
		}
		switch l := s.Held; {
		case l == nil:
		case l.Phase == store.Held && l.Share.Member == owner:
			continue
		case l.Share.Member != nil && l.Share.Member.Phase == store.Closed:
			continue // its keys stay closed with its member's
		case l.FlowState != nil && l.FlowState == owner.FlowState:
			continue // its own former lease: it gets the part again when that is over
		}
		e.assign(d, i, owner)
	}
	return true
}

// assign requests a part in the name of a member, and makes its holder give it up.
func (e *Engine) assign(d *store.Partition, index int, owner *store.Request) {
	r := e.NewRequest()
	r.Num = e.Num + 1
	r.ID = partID(owner, r.Num)
	if f := owner.Flow(); f != nil {
		r.Join(f)
	} else {
		r.MutableExt().Guest = &store.AnonymousCaller{Agent: owner.AgentName()}
	}
	r.Conditions = d.Node.NS.Agree(interlock.Terms{TTL: owner.TTL, Grace: owner.Grace})
	r.SetDetails(store.RequestDetail{Purpose: owner.Purpose})
	r.SetClaims([]interlock.Claim{{Key: interlock.Key(d.Node.Key + "/" + strconv.Itoa(index)), Mode: lockmode.X}})
	r.MutableExt().Share = &store.MemberPart{Divided: d, Index: index, Member: owner}
	e.Try(r)
	if r.Blocker() < 0 {
		r.Wait = nil
		ev := e.describe(record.Granted, r)
		ev.Fence = e.Fence + 1
		e.emit(ev)
		e.Arm(r)
		if s := r.Session(); s != nil && s.Caller != nil {
			e.effect(s.Caller, Granted).Lease = r.Lease()
		}
		e.HeldMore(r)
		return
	}
	r.ReadAsOf(r.NS.Documents.Version)
	e.emit(e.describe(record.Queued, r))
	r.Refile()
	e.WatchAnywhere(r)
	if r.FlowState != nil {
		e.Suspect(r.FlowState, nil) // those behind it wait for its flow now
	}
	if l := d.Parts[index].Held; l != nil && l.Phase == store.Held {
		e.ask(r, l, interlock.PreemptRevoke)
	}
}

// partID makes an id for a part's lease. It is as secret as its member's.
func partID(member *store.Request, num uint64) (id [16]byte) {
	var b [24]byte
	copy(b[:], member.ID[:])
	binary.BigEndian.PutUint64(b[16:], num)
	sum := sha256.Sum256(b[:])
	copy(id[:], sum[:])
	return id
}
