package collection

// Queue is a first-in, first-out queue in one growing array. It keeps its array when it
// becomes empty.
type Queue[T any] struct {
	buf  []T // a ring
	head int // index of the oldest value
	n    int
}

// Len returns the number of values.
func (q *Queue[T]) Len() int { return q.n }

// Push adds v as the newest value.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.buf) {
		grown := make([]T, max(8, 2*len(q.buf)))
		for i := range q.n {
			grown[i] = q.At(i)
		}
		q.buf, q.head = grown, 0
	}
	q.buf[(q.head+q.n)%len(q.buf)] = v
	q.n++
}

// Pop removes and returns the oldest value. The queue must not be empty.
func (q *Queue[T]) Pop() (v T) {
	var zero T
	v, q.buf[q.head] = q.buf[q.head], zero
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	return v
}

// At returns the value that i others are older than.
func (q *Queue[T]) At(i int) T { return q.buf[(q.head+i)%len(q.buf)] }
