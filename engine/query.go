package engine

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
)

// Key describes one key. The error is ParseKey's.
func (e *Engine) Key(ns interlock.Namespace, key interlock.Key) (KeyView, error) {
	v := KeyView{Key: key, FenceFloor: e.fence + 1}
	if _, err := keypath.Parse(string(key)); err != nil {
		return v, err
	}
	s := e.turnTo(ns)
	if s == nil {
		return v, nil
	}
	if p, canonical := s.fit(key); p != nil {
		key, v.Key, v.Pattern = canonical, canonical, p.Name
		v.Capacity = s.capacity(string(key), e.now)
	}
	v.HoldTime = s.holds[keypath.Class(string(key))]
	view := viewer{e: e, limit: MaxShownHolders}
	n := s.nodeAt(string(key))
	if n != nil {
		view.at(n, ^lockmode.Set(0))
		view.below(n, ^lockmode.Set(0))
		view.above(n)
		v.Notes = e.appendNotes(nil, n)
		v.Waiters, v.Length = e.waitersAt(n), n.line.length()
	} else if up := s.nearest(string(key)); up != nil {
		view.at(up, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X))
		view.above(up)
	}
	v.Holders, v.More = view.holders(), view.more
	v.Generation, v.Broken = n.generation(), n.broken()
	if floor := s.fenceFloor(string(key)); floor > 0 {
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
	var d *partition
	s := e.turnTo(ns)
	if s != nil {
		_, key = s.fit(key)
		if n := s.nodeAt(string(key)); n != nil {
			d = n.divided
		}
	}
	if d == nil || len(d.members) == 0 {
		return v, &message.Error{Code: interlock.CodeInvalidRequest, Key: key, Text: message.New(message.NotSharedOut, message.Str(key))}
	}
	v.Number, v.Parts = interlock.PartOf(resource, d.size), d.size
	v.Key = interlock.Key(fmt.Sprintf("%s/%d", key, v.Number))
	if r := d.parts[v.Number].held; r != nil {
		h := e.holder(r, r.claims()[0])
		v.Holder = &h
	}
	return v, nil
}

// fenceFloor returns the lowest fence among the holders of a key, or of an ancestor in a mode
// that extends to descendants; 0 if there are none.
func (s *namespace) fenceFloor(key string) (floor interlock.Fence) {
	modes := ^lockmode.Set(0)
	for {
		if n := s.nodeAt(key); n != nil {
			for h := n.first; h != nil; h = h.next {
				if modes.Has(h.mode) {
					if floor == 0 || h.req.fence < floor {
						floor = h.req.fence
					}
					break // they are in the order of their fences
				}
			}
		}
		parent, ok := keypath.Parent(key)
		if !ok {
			return floor
		}
		key, modes = parent, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X)
	}
}

// nearest returns the closest ancestor of key that has a node, or nil.
func (s *namespace) nearest(key string) *node {
	for {
		parent, ok := keypath.Parent(key)
		if !ok {
			return nil
		}
		if n := s.nodeAt(parent); n != nil {
			return n
		}
		key = parent
	}
}

// waitersAt lists the waiters at n, offers first, then the line in its order.
func (e *Engine) waitersAt(n *node) (list []WaiterView) {
	for h := n.first; h != nil && len(list) < MaxShownWaiters; h = h.next {
		if h.req.phase == offered {
			w := e.waiter(h.req, h.modeOf())
			w.Count = h.req.countOf(h)
			list = append(list, w)
		}
	}
	if n.line == nil {
		return list
	}
	var heads []*queueEntry
	for c := n.line.first; c != nil; c = c.next {
		heads = append(heads, c.first())
	}
	for len(list) < MaxShownWaiters {
		best := -1
		for i, p := range heads {
			if p != nil && (best < 0 || before(p.req, heads[best].req)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		p := heads[best]
		heads[best] = p.next()
		if p.duplicate {
			continue
		}
		m := &p.req.needs()[p.need]
		w := e.waiter(p.req, m.modeOf())
		w.Count = p.count
		ahead := p.req.countEarlier(m)
		w.Position, w.ETA = ahead+1, e.eta(p.req, m, ahead)
		list = append(list, w)
	}
	return list
}

func (e *Engine) waiter(r *request, mode interlock.Mode) WaiterView {
	w := WaiterView{
		Agent: r.agentName(), Owner: r.owner(), Flow: r.flowName(), Purpose: r.purpose, Mode: mode, Priority: int(r.priority),
		Offered: r.phase == offered, Waited: r.waited,
	}
	if r.wait != nil {
		w.Waited, w.Priority = e.now.Sub(r.arrived()), int(r.wait.rank-baseRank)
	}
	if s := r.session(); s != nil {
		w.Session = s.name
	}
	if t := r.task; t != nil && r.phase == waiting {
		w.Session, w.Flow, w.Task, w.Queue, w.Dormant = t.spec.Session, t.spec.Flow, t.id, t.queue.Name, t.eligibility == idle && r.blocker() < 0
		w.Owner = t.spec.Principal
	}
	return w
}
