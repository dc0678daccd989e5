package engine

// chain is a list from the oldest to the newest. Its links are part of what it lists,
// so that leaving it takes no search.
type chain[T any] struct {
	first, last *link[T]
	n           int
}

// link is one place in a chain.
type link[T any] struct {
	prev, next *link[T]
	of         T
}

func (c *chain[T]) push(l *link[T]) {
	l.prev, l.next = c.last, nil
	if c.last != nil {
		c.last.next = l
	} else {
		c.first = l
	}
	c.last = l
	c.n++
}

// insert puts l in its place by an order in which the others stand. It looks for it
// from the newest on.
func (c *chain[T]) insert(l *link[T], before func(a, b T) bool) {
	next := (*link[T])(nil)
	for p := c.last; p != nil && before(l.of, p.of); p = p.prev {
		next = p
	}
	if next == nil {
		c.push(l)
		return
	}
	l.prev, l.next = next.prev, next
	if next.prev != nil {
		next.prev.next = l
	} else {
		c.first = l
	}
	next.prev = l
	c.n++
}

func (c *chain[T]) remove(l *link[T]) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		c.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
	l.prev, l.next = nil, nil
	c.n--
}

// all goes from the oldest to the newest, back the other way round.
func (c *chain[T]) all(yield func(T) bool) {
	for l := c.first; l != nil && yield(l.of); l = l.next {
	}
}

func (c *chain[T]) back(yield func(T) bool) {
	for l := c.last; l != nil && yield(l.of); l = l.prev {
	}
}
