package engine

// heap is a binary heap whose members know their places in it, so that any of them
// can leave.
type heap[M ranked[M]] []M

// ranked is what can be in a heap. Its slot is its index and one; 0 is none.
type ranked[M any] interface {
	ordered[M]
	slotOf() *int32
}

// ordered is what can be in a valueHeap.
type ordered[M any] interface{ precedes(M) bool }

func (h *heap[M]) enter(m M) {
	if *m.slotOf() != 0 {
		return
	}
	*h = append(*h, m)
	*m.slotOf() = int32(len(*h))
	h.up(len(*h) - 1)
}

func (h *heap[M]) leave(m M) {
	slot := m.slotOf()
	if *slot == 0 {
		return
	}
	var none M
	i, last := int(*slot)-1, len(*h)-1
	h.swap(i, last)
	(*h)[last], *slot = none, 0
	*h = (*h)[:last]
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// fix puts m where it belongs after its rank has changed.
func (h *heap[M]) fix(m M) {
	if i := int(*m.slotOf()) - 1; i >= 0 {
		h.up(i)
		h.down(int(*m.slotOf()) - 1)
	}
}

func (h *heap[M]) swap(i, j int) {
	l := *h
	l[i], l[j] = l[j], l[i]
	*l[i].slotOf(), *l[j].slotOf() = int32(i+1), int32(j+1)
}

func (h *heap[M]) up(i int) {
	for l := *h; i > 0; {
		parent := (i - 1) / 2
		if !l[i].precedes(l[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap[M]) down(i int) {
	for l := *h; ; {
		child := 2*i + 1
		if child >= len(l) {
			return
		}
		if r := child + 1; r < len(l) && l[r].precedes(l[child]) {
			child = r
		}
		if !l[child].precedes(l[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// valueHeap is a binary heap of values, which leave from the front alone.
type valueHeap[V ordered[V]] []V

func (h *valueHeap[V]) push(v V) {
	l := append(*h, v)
	*h = l
	for i := len(l) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l[i].precedes(l[parent]) {
			return
		}
		l[i], l[parent] = l[parent], l[i]
		i = parent
	}
}

// pop takes out the one that precedes all others.
func (h *valueHeap[V]) pop() V {
	var none V
	l := *h
	first, last := l[0], len(l)-1
	l[0], l[last] = l[last], none
	l = l[:last]
	*h = l
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(l) {
			return first
		}
		if r := child + 1; r < len(l) && l[r].precedes(l[child]) {
			child = r
		}
		if !l[child].precedes(l[i]) {
			return first
		}
		l[i], l[child] = l[child], l[i]
		i = child
	}
}
