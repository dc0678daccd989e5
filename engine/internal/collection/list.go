package collection

// List is a doubly linked list, usually from the oldest member to the newest. Its elements
// are fields of the members.
type List[T any] struct {
	first, last *Element[T]
	n           int
}

// Element is a member's place in a List. It is in one list at most.
type Element[T any] struct {
	prev, next *Element[T]
	// Value is the member. It is set before the element is inserted.
	Value T
}

// Next returns the element after e, or nil.
func (e *Element[T]) Next() *Element[T] { return e.next }

// Len returns the number of elements.
func (l *List[T]) Len() int { return l.n }

// Front returns the first element, or nil.
func (l *List[T]) Front() *Element[T] { return l.first }

// Back returns the last element, or nil.
func (l *List[T]) Back() *Element[T] { return l.last }

// PushBack inserts e, which must be in no list, at the end.
func (l *List[T]) PushBack(e *Element[T]) {
	e.prev, e.next = l.last, nil
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.n++
}

// Insert inserts e, which must be in no list, into a list sorted by before. Its place is
// behind all elements that it does not come before. The search begins at the end.
func (l *List[T]) Insert(e *Element[T], before func(a, b T) bool) {
	next := (*Element[T])(nil)
	for p := l.last; p != nil && before(e.Value, p.Value); p = p.prev {
		next = p
	}
	if next == nil {
		l.PushBack(e)
		return
	}
	e.prev, e.next = next.prev, next
	if next.prev != nil {
		next.prev.next = e
	} else {
		l.first = e
	}
	next.prev = e
	l.n++
}

// Remove removes e, which must be in l.
func (l *List[T]) Remove(e *Element[T]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
	l.n--
}

// All is an iterator over the values from the first to the last: range l.All. The loop must
// not change the list.
func (l *List[T]) All(yield func(T) bool) {
	for e := l.first; e != nil && yield(e.Value); e = e.next {
	}
}

// Backward is an iterator over the values from the last to the first.
func (l *List[T]) Backward(yield func(T) bool) {
	for e := l.last; e != nil && yield(e.Value); e = e.prev {
	}
}
