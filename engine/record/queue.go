package record

import "github.com/interlockdev/interlock"

// Queue returns the queue that a QueueSet registered.
func (ev *Event) Queue() (interlock.TaskQueue, error) { return DecodeQueue(ev.Blob) }

// AppendQueue appends a queue to b.
func AppendQueue(b []byte, q *interlock.TaskQueue) []byte { return appendTaskQueue(b, q) }

// DecodeQueue reads what AppendQueue wrote.
func DecodeQueue(b []byte) (q interlock.TaskQueue, err error) {
	err = readTaskQueue(b, &q)
	return q, err
}
