package record

import (
	"time"

	"github.com/interlockdev/interlock"
)

// A queue in an event is a list of fields, as a pattern is.

// Queue returns what an QueueSet registered.
func (ev *Event) Queue() (interlock.TaskQueue, error) { return DecodeQueue(ev.Blob) }

// AppendQueue appends a queue to b.
func AppendQueue(b []byte, q *interlock.TaskQueue) []byte {
	f := Fields{b}
	f.Text(1, q.Name)
	f.Flag(2, q.Paused)
	f.Flag(3, q.Drain)
	f.Number(4, uint64(q.MaxAttempts))
	f.Number(5, uint64(q.Backoff))
	f.Number(6, uint64(q.MaxBackoff))
	f.Number(7, uint64(q.TTL))
	f.Number(8, uint64(q.Grace))
	f.Number(9, uint64(q.MaxHold))
	f.Number(10, uint64(q.Stall))
	f.Number(11, uint64(q.MaxRunning))
	f.Number(12, uint64(q.MaxTasks))
	for _, g := range q.Groups { // a name, then the numbers that belong to it
		f.Text(13, g.Group)
		f.Number(14, uint64(g.Weight))
		f.Number(15, uint64(g.Max))
	}
	for i, list := range [][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			f.Text(uint64(16+i), entry)
		}
	}
	for _, entry := range q.Approvers {
		f.Text(19, entry)
	}
	f.Number(20, uint64(q.MinApprovals))
	return f.Bytes
}

// DecodeQueue reads what AppendQueue wrote.
func DecodeQueue(b []byte) (q interlock.TaskQueue, err error) {
	failed := false
	err = EachField(b, func(id, n uint64, s string) bool {
		switch id {
		case 1:
			q.Name = s
		case 2:
			q.Paused = true
		case 3:
			q.Drain = true
		case 4:
			q.MaxAttempts = int(n)
		case 5:
			q.Backoff = time.Duration(n)
		case 6:
			q.MaxBackoff = time.Duration(n)
		case 7:
			q.TTL = time.Duration(n)
		case 8:
			q.Grace = time.Duration(n)
		case 9:
			q.MaxHold = time.Duration(n)
		case 10:
			q.Stall = time.Duration(n)
		case 11:
			q.MaxRunning = int(n)
		case 12:
			q.MaxTasks = int(n)
		case 13:
			q.Groups = append(q.Groups, interlock.Share{Group: s})
		case 14, 15:
			if len(q.Groups) == 0 {
				failed = true
			} else if g := &q.Groups[len(q.Groups)-1]; id == 14 {
				g.Weight = int(n)
			} else {
				g.Max = int(n)
			}
		case 16:
			q.Pull = append(q.Pull, s)
		case 17:
			q.Submit = append(q.Submit, s)
		case 18:
			q.Admin = append(q.Admin, s)
		case 19:
			q.Approvers = append(q.Approvers, s)
		case 20:
			q.MinApprovals = int(n)
		default:
			return false
		}
		return true
	})
	if err == nil && (failed || q.Name == "") {
		err = ErrMalformed
	}
	return q, err
}
