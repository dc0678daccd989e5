package engine

// timers is a binary heap of deadlines. A timer may be earlier than its actual deadline,
// because renewals do not touch it: firing it checks the state and rearms it.
type timers struct{ heap []*timer }

// timer is due at a time for a request, a session, a bucket of tokens, a task, or
// all of a namespace. Ties go by ord, so the order never depends on the heap's history.
type timer struct {
	at     Time
	ord    uint64
	pos    int // in the heap; -1 when not set
	req    *request
	sess   *session
	pool   *pool
	task   *task
	agenda *pendingWork
}

func (t *timer) less(u *timer) bool {
	if t.at != u.at {
		return t.at < u.at
	}
	return t.ord < u.ord
}

// set makes t due at a time, whether it was set before or not.
func (h *timers) set(t *timer, at Time) {
	t.at = at
	if t.pos < 0 {
		t.pos = len(h.heap)
		h.heap = append(h.heap, t)
	}
	h.up(t.pos)
	h.down(t.pos)
}

// clear takes t out.
func (h *timers) clear(t *timer) {
	if t == nil || t.pos < 0 {
		return
	}
	i, last := t.pos, len(h.heap)-1
	h.swap(i, last)
	h.heap[last] = nil
	h.heap = h.heap[:last]
	t.pos = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// first returns the timer that is due next, or nil.
func (h *timers) first() *timer {
	if len(h.heap) == 0 {
		return nil
	}
	return h.heap[0]
}

// until visits those that are due by a time, from the one at i in the heap down.
func (h *timers) until(at Time, i int, visit func(*timer)) {
	if i < len(h.heap) && h.heap[i].at <= at {
		visit(h.heap[i])
		h.until(at, 2*i+1, visit)
		h.until(at, 2*i+2, visit)
	}
}

func (h *timers) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].pos, h.heap[j].pos = i, j
}

func (h *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.heap[i].less(h.heap[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.heap) {
			return
		}
		if r := child + 1; r < len(h.heap) && h.heap[r].less(h.heap[child]) {
			child = r
		}
		if !h.heap[child].less(h.heap[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
