package collection

// Heap is a binary heap of members that record their index in it, so that any of them can be
// removed. The first element is the least; the order of the others is that of a binary heap.
type Heap[M HeapMember[M]] []M

// HeapMember is a member of a Heap.
type HeapMember[M any] interface {
	Lesser[M]
	// HeapIndex returns where the member keeps its index in the heap plus one; 0 means
	// that it is in none. Only the heap changes the value.
	HeapIndex() *int32
}

// Lesser is an ordered value.
type Lesser[M any] interface {
	// Less reports whether the receiver comes before the argument.
	Less(M) bool
}

// Push adds m, unless m is in the heap already.
func (h *Heap[M]) Push(m M) {
	if *m.HeapIndex() != 0 {
		return
	}
	*h = append(*h, m)
	*m.HeapIndex() = int32(len(*h))
	h.up(len(*h) - 1)
}

// Remove removes m. It does nothing if m is not in the heap.
func (h *Heap[M]) Remove(m M) {
	index := m.HeapIndex()
	if *index == 0 {
		return
	}
	var none M
	i, last := int(*index)-1, len(*h)-1
	h.swap(i, last)
	(*h)[last], *index = none, 0
	*h = (*h)[:last]
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// Fix restores the order after the rank of m has changed. It does nothing if m is not in the
// heap.
func (h *Heap[M]) Fix(m M) {
	if i := int(*m.HeapIndex()) - 1; i >= 0 {
		h.up(i)
		h.down(int(*m.HeapIndex()) - 1)
	}
}

func (h *Heap[M]) swap(i, j int) {
	l := *h
	l[i], l[j] = l[j], l[i]
	*l[i].HeapIndex(), *l[j].HeapIndex() = int32(i+1), int32(j+1)
}

func (h *Heap[M]) up(i int) {
	for l := *h; i > 0; {
		parent := (i - 1) / 2
		if !l[i].Less(l[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[M]) down(i int) {
	for l := *h; ; {
		child := 2*i + 1
		if child >= len(l) {
			return
		}
		if r := child + 1; r < len(l) && l[r].Less(l[child]) {
			child = r
		}
		if !l[child].Less(l[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// ValueHeap is a binary heap of values. Only its first element, which is the least, can be
// removed.
type ValueHeap[V Lesser[V]] []V

// Push adds v.
func (h *ValueHeap[V]) Push(v V) {
	l := append(*h, v)
	*h = l
	for i := len(l) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l[i].Less(l[parent]) {
			return
		}
		l[i], l[parent] = l[parent], l[i]
		i = parent
	}
}

// Pop removes and returns the least value. The heap must not be empty.
func (h *ValueHeap[V]) Pop() V {
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
		if r := child + 1; r < len(l) && l[r].Less(l[child]) {
			child = r
		}
		if !l[child].Less(l[i]) {
			return first
		}
		l[i], l[child] = l[child], l[i]
		i = child
	}
}
