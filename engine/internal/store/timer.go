package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Timers is a binary heap of deadlines. A timer may be earlier than its actual deadline,
// because renewals do not touch it: firing it checks the state and rearms it.
type Timers struct{ Heap []*Timer }

// Timer is due at a time for a request, a session, a bucket of tokens, a task, or
// all of a namespace. Ties go by ord, so the order never depends on the heap's history.
type Timer struct {
	At     Time
	Ord    uint64
	Pos    int // in the heap; -1 when not set
	Req    *Request
	Sess   *Session
	Pool   *Pool
	Task   *Task
	Agenda *PendingWork
}

func (t *Timer) less(u *Timer) bool {
	if t.At != u.At {
		return t.At < u.At
	}
	return t.Ord < u.Ord
}

// Set makes t due at a time, whether it was set before or not.
func (h *Timers) Set(t *Timer, at Time) {
	t.At = at
	if t.Pos < 0 {
		t.Pos = len(h.Heap)
		h.Heap = append(h.Heap, t)
	}
	h.up(t.Pos)
	h.down(t.Pos)
}

// Clear takes t out.
func (h *Timers) Clear(t *Timer) {
	if t == nil || t.Pos < 0 {
		return
	}
	i, last := t.Pos, len(h.Heap)-1
	h.swap(i, last)
	h.Heap[last] = nil
	h.Heap = h.Heap[:last]
	t.Pos = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// First returns the timer that is due next, or nil.
func (h *Timers) First() *Timer {
	if len(h.Heap) == 0 {
		return nil
	}
	return h.Heap[0]
}

// Until visits those that are due by a time, from the one at i in the heap down.
func (h *Timers) Until(at Time, i int, visit func(*Timer)) {
	if i < len(h.Heap) && h.Heap[i].At <= at {
		visit(h.Heap[i])
		h.Until(at, 2*i+1, visit)
		h.Until(at, 2*i+2, visit)
	}
}

func (h *Timers) swap(i, j int) {
	h.Heap[i], h.Heap[j] = h.Heap[j], h.Heap[i]
	h.Heap[i].Pos, h.Heap[j].Pos = i, j
}

func (h *Timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.Heap[i].less(h.Heap[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.Heap) {
			return
		}
		if r := child + 1; r < len(h.Heap) && h.Heap[r].less(h.Heap[child]) {
			child = r
		}
		if !h.Heap[child].less(h.Heap[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// Arm sets r's timer to the next deadline of its phase. Leases of a session that have no other
// deadline live by the session's timer.
func (st *State) Arm(r *Request) {
	at := record.Never
	switch r.Phase {
	case Waiting:
		at = r.WaitEnd()
		if r.IsBare() {
			at = min(at, r.Renewed.Add(interlock.BareTicketTTL))
		}
	case Offered, InGrace, Parked, Away, Closed:
		at = r.PhaseEnd()
	case Held:
		if !r.LivesBySession() {
			at = r.TtlEnd()
		} else if r.Share == nil {
			st.minTerm(r.Session(), r)
		}
		if r.IsTimed() {
			if s := r.Session(); s != nil {
				if soft := r.TimedSoft(); s.Timed == 1 || soft < s.TimedAt {
					s.TimedAt = soft
				}
			}
			at = min(at, r.TimedNext())
		}
	}
	if at == record.Never {
		st.Timers.Clear(r.Timer)
		return
	}
	if r.Timer == nil {
		r.MutableExt().Timer = &Timer{Pos: -1, Ord: r.Num << 1, Req: r}
	}
	st.Timers.Set(r.Timer, at)
}

// ArmTask sets the timer of a task that does not run to its next deadline.
func (st *State) ArmTask(t *Task) {
	at := record.Never
	if t.Spec.Deadline != 0 {
		at = t.Spec.Deadline
	}
	if t.State == interlock.TaskScheduled {
		at = min(at, t.Spec.Due)
	}
	if t.State == interlock.TaskAsking {
		at = min(at, t.Spec.Approval.Until())
	}
	if at == record.Never {
		st.DisarmTask(t)
		return
	}
	if t.Timer == nil {
		t.Own().Timer = &Timer{Pos: -1, Ord: t.Num << 1, Task: t} // its request has none while it does not run
	}
	st.Timers.Set(t.Timer, at)
}

// DisarmTask drops that timer.
func (st *State) DisarmTask(t *Task) {
	if t.Timer != nil {
		st.Timers.Clear(t.Timer)
		t.Own().Timer = nil
		t.Tidy()
	}
}

// minTerm notes that r lives by the session's heartbeats.
func (st *State) minTerm(s *Session, r *Request) {
	s.MinTTL, s.Least = min(s.MinTTL, r.TTL), min(s.Least, r.TTL)
	at := r.Beat().Add(SoftAt(r.TTL))
	if s.Next = min(s.Next, at); s.Timer.Pos >= 0 && at < s.Timer.At { // a sweep may have passed r already
		st.Timers.Set(&s.Timer, at)
	}
}
