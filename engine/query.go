package engine

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Key describes one key. The error is ParseKey's.
func (e *Engine) Key(ns interlock.Namespace, key interlock.Key) (KeyView, error) {
	v := KeyView{Key: key, FenceFloor: e.Fence + 1}
	if _, err := keypath.Parse(string(key)); err != nil {
		return v, err
	}
	s := e.turnTo(ns)
	if s == nil {
		return v, nil
	}
	if p, canonical := s.Fit(key); p != nil {
		key, v.Key, v.Pattern = canonical, canonical, p.Name
		v.Capacity = s.Capacity(string(key), e.Clock)
	}
	v.HoldTime = s.Holds[record.Class(string(key))]
	view := e.View(MaxShownHolders, nil)
	n := s.NodeAt(string(key))
	if n != nil {
		view.At(n, ^lockmode.Set(0))
		view.Below(n, ^lockmode.Set(0))
		view.Above(n)
		v.Notes = n.AppendNotes(nil)
		v.Waiters, v.Length = waitersAt(n), n.Line.Length()
	} else if up := s.Nearest(string(key)); up != nil {
		view.At(up, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X))
		view.Above(up)
	}
	v.Holders, v.More = view.Holders(), view.More
	v.Generation, v.Broken = n.Generation(), n.Broken()
	if floor := s.FenceFloor(string(key)); floor > 0 {
		v.FenceFloor = floor
	}
	return v, nil
}

// Part returns the part of a partitioned key that a resource belongs to, and its holder. The
// error has CodeInvalidRequest if the key has no members, or is ParseKey's.
func (e *Engine) Part(ns interlock.Namespace, key interlock.Key, resource string) (v PartView, err error) {
	if key, err = keypath.Parse(string(key)); err != nil {
		return v, err
	}
	var d *store.Partition
	s := e.turnTo(ns)
	if s != nil {
		_, key = s.Fit(key)
		if n := s.NodeAt(string(key)); n != nil {
			d = n.Divided
		}
	}
	if d == nil || len(d.Members) == 0 {
		return v, &message.Error{
			Code: interlock.CodeInvalidRequest, Key: key, Text: message.New(message.NotSharedOut, message.Str(key)),
		}
	}
	v.Number, v.Parts = interlock.PartOf(resource, d.Size), d.Size
	v.Key = interlock.Key(fmt.Sprintf("%s/%d", key, v.Number))
	if r := d.Parts[v.Number].Held; r != nil {
		h := r.Holder(r.Claims()[0])
		v.Holder = &h
	}
	return v, nil
}

// waitersAt lists the waiters at n, offers first, then the line in its order.
func waitersAt(n *store.Node) (list []WaiterView) {
	for h := n.First; h != nil && len(list) < MaxShownWaiters; h = h.Next {
		if h.Req.Phase == store.Offered {
			w := waiterView(h.Req, h.ModeOf())
			w.Count = h.Req.CountOf(h)
			list = append(list, w)
		}
	}
	if n.Line == nil || len(list) == MaxShownWaiters {
		return list
	}
	walkLine(n, func(p *store.QueueEntry) bool {
		m := &p.Req.Needs()[p.Need]
		w := waiterView(p.Req, m.ModeOf())
		w.Count = p.Count
		ahead := p.Req.CountEarlier(m)
		w.Position, w.ETA = ahead+1, p.Req.ETA(m, ahead)
		list = append(list, w)
		return len(list) < MaxShownWaiters
	})
	return list
}

// walkLine visits the waiters in the line of a node in their order, each once, until visit returns false.
func walkLine(n *store.Node, visit func(*store.QueueEntry) bool) {
	var heads []*store.QueueEntry
	for c := n.Line.First; c != nil; c = c.Next {
		heads = append(heads, c.First())
	}
	for {
		best := -1
		for i, p := range heads {
			if p != nil && (best < 0 || store.Before(p.Req, heads[best].Req)) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		p := heads[best]
		heads[best] = p.Next()
		if !p.Duplicate && !visit(p) {
			return
		}
	}
}

// waiterView describes a waiter at a key that it wants in a mode.
func waiterView(r *store.Request, mode interlock.Mode) WaiterView {
	w := WaiterView{
		Agent: r.AgentName(), Owner: r.Owner(), Flow: r.FlowName(), Purpose: r.Purpose, Mode: mode, Priority: int(r.Priority),
		Offered: r.Phase == store.Offered, Waited: r.Waited,
	}
	if r.Wait != nil {
		w.Waited, w.Priority = r.NS.Now().Sub(r.Arrived()), int(r.Wait.Rank-store.BaseRank)
	}
	if s := r.Session(); s != nil {
		w.Session = s.Name
	}
	if t := r.Task; t != nil && r.Phase == store.Waiting {
		w.Session, w.Flow, w.Owner = t.Spec.Session, t.Spec.Flow, t.Spec.Principal
		w.Task, w.Queue, w.Dormant = t.ID, t.Queue.Name, t.Eligibility == store.Idle && r.Blocker() < 0
	}
	return w
}

// LeaseAt returns the running lease that claims this very key exclusively, as its holder sees it, and the
// credential that took it, "" without credentials; ok is false if there is none. Its id is a secret: the
// caller shows it to the holder alone. The error is ParseKey's.
func (e *Engine) LeaseAt(
	ns interlock.Namespace, key interlock.Key,
) (l interlock.Lease, credential string, ok bool, err error) {
	if _, err := keypath.Parse(string(key)); err != nil {
		return l, "", false, err
	}
	s := e.turnTo(ns)
	if s == nil {
		return l, "", false, nil
	}
	if p, canonical := s.Fit(key); p != nil {
		key = canonical
	}
	n := s.NodeAt(string(key))
	if n == nil {
		return l, "", false, nil
	}
	for h := n.First; h != nil; h = h.Next {
		if h.Claimed && h.ModeOf() == interlock.Exclusive && h.Req.IsRunning() {
			return h.Req.Lease(), h.Req.Owner(), true, nil
		}
	}
	return l, "", false, nil
}
