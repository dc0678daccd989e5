package collection

import "slices"

// PagedQueue is a first-in, first-out queue of immutable values, on pages of equal length. A
// snapshot copies only the list of pages.
//
// Invariant: a page in a snapshot is never overwritten. Values are only appended behind what
// the page had when the snapshot was taken.
type PagedQueue[T any] struct {
	list   [][]T // all pages are full but the last one
	popped int   // from the first page
	n      int
	shared int // how many of the first pages are in a snapshot
	spare  []T // an empty page that is in no snapshot, or nil
}

// pageLength is the number of values on a page.
const pageLength = 256

// Len returns the number of values.
func (q *PagedQueue[T]) Len() int { return q.n }

// Push adds v as the newest value.
func (q *PagedQueue[T]) Push(v T) {
	last := len(q.list) - 1
	if last < 0 || len(q.list[last]) == pageLength {
		if q.spare == nil && last >= 0 { // the first page of all grows with its values
			q.spare = make([]T, 0, pageLength)
		}
		q.list, q.spare = append(q.list, q.spare), nil
		last++
	}
	q.list[last] = append(q.list[last], v)
	q.n++
}

// Pop removes the oldest value. The queue must not be empty.
func (q *PagedQueue[T]) Pop() {
	q.n--
	if q.popped++; q.popped < pageLength {
		return
	}
	if q.shared > 0 {
		q.shared--
	} else {
		q.spare = q.list[0][:0]
	}
	q.list, q.popped = slices.Delete(q.list, 0, 1), 0
}

// At returns the value that i others are older than. The caller must not change it.
func (q *PagedQueue[T]) At(i int) *T {
	i += q.popped
	return &q.list[i/pageLength][i%pageLength]
}

// Snapshot returns the queue as it is now. Any goroutine may read the result while q changes.
// Nothing may be pushed to it or popped from it.
func (q *PagedQueue[T]) Snapshot() PagedQueue[T] {
	q.shared = len(q.list)
	return PagedQueue[T]{list: slices.Clone(q.list), popped: q.popped, n: q.n}
}
