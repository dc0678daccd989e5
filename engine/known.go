package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// compareKnown compares what the client of s knows of its held leases with what there is. Without a list it only
// reports whether it needs one. With a list, each lease that the list leaves out lives from the last heartbeat before,
// and no later one renews it until a list has it again: the answer that granted it may still be under way, so its ttl
// is the time in which its client can learn of it. Such leases are added to the losses, and so are those of the list
// that have ended: the answer that reported their loss may have been lost.
func (e *Engine) compareKnown(
	s *store.Session, c *interlock.KnownLeases, losses []store.Loss,
) (wantsList bool, _ []store.Loss) {
	held := heldLeases(s)
	if !c.Listed {
		var have interlock.KnownLeases
		for _, r := range held {
			if !r.Unknown {
				have.Add(r.ID)
			}
		}
		return have.Count != c.Count || have.Digest != c.Digest, losses
	}
	known := make(map[interlock.LeaseID]bool, len(c.Leases))
	for _, id := range c.Leases {
		known[id] = true
	}
	for _, r := range held {
		switch {
		case known[r.ID] == !r.Unknown:
		case r.Unknown:
			e.know(r)
		default:
			r.Renewed, r.Unknown, s.LeftOut = r.Beat(), true, true
			e.Arm(r)
			if len(losses) < store.MaxLosses {
				losses = append(losses, store.Loss{Lease: r.Lease(), LeftOut: true})
			}
		}
	}
	return false, appendEnded(s, c.Leases, losses)
}

// appendEnded adds to losses those leases of a list that have ended, or are unknown.
func appendEnded(s *store.Session, list []interlock.LeaseID, losses []store.Loss) []store.Loss {
	reported := make(map[interlock.LeaseID]bool, len(losses))
	for i := range losses {
		reported[losses[i].Lease.ID] = true
	}
	for _, id := range list {
		if reported[id] || len(losses) >= store.MaxLosses {
			continue
		}
		reported[id] = true
		r := s.NS.Request(id)
		switch {
		case r == nil:
			losses = append(losses, store.Loss{
				Lease: interlock.Lease{ID: id, State: interlock.Ended},
				Code:  interlock.CodeUnknownLease, Message: message.New(message.UnknownLease),
			})
		case r.Phase == store.InGrace, r.Phase == store.Closed, r.IsOver():
			l := store.Loss{Lease: r.Lease(), Code: endedCode(r), Message: r.Ending(nil)}
			l.Lease.Notes = nil
			losses = append(losses, l)
		}
	}
	return losses
}

// knowAll has the heartbeats of s renew all its leases again, also those that a list has left out.
func (e *Engine) knowAll(s *store.Session) {
	if !s.LeftOut {
		return
	}
	s.LeftOut = false
	for _, r := range heldLeases(s) {
		e.know(r)
	}
}

// know has the heartbeats of its session renew r again.
func (e *Engine) know(r *store.Request) {
	if r.Unknown {
		r.Unknown = false
		e.Arm(r)
	}
}

// heldLeases returns the leases of s that heartbeats concern, in the order of their fences.
func heldLeases(s *store.Session) (list []*store.Request) {
	for _, f := range s.Flows.All() {
		for _, r := range f.Leases {
			if r.Phase == store.Held && r.Share == nil {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(a, b *store.Request) int { return cmp.Compare(a.Fence, b.Fence) })
	return list
}
