package store

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
