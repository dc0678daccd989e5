package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Queues of tasks go both ways, as patterns do.

// QueueSize is an upper bound of a queue's encoded length, without its counts.
func QueueSize(q *interlock.TaskQueue) int {
	n := 160 + len(q.Name)
	for i := range q.Groups {
		n += 32 + len(q.Groups[i].Group)
	}
	for _, list := range [...][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			n += 8 + len(entry)
		}
	}
	for _, entry := range q.Approvers {
		n += 4 + len(entry)
	}
	return n
}

func appendQueue(b []byte, num byte, q *interlock.TaskQueue) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, q.Name)
	b = appendBool(b, 2, q.Paused)
	b = appendBool(b, 3, q.Drain)
	b = appendInt(b, 4, q.MaxAttempts)
	b = appendDuration(b, 5, q.Backoff)
	b = appendDuration(b, 6, q.MaxBackoff)
	b = appendDuration(b, 7, q.TTL)
	b = appendDuration(b, 8, q.Grace)
	b = appendDuration(b, 9, q.MaxHold)
	b = appendDuration(b, 10, q.Stall)
	b = appendInt(b, 11, q.MaxRunning)
	b = appendInt(b, 12, q.MaxTasks)
	for i := range q.Groups {
		g := &q.Groups[i]
		b = openMessage(b, 13)
		inner := len(b)
		b = appendString(b, 1, g.Group)
		b = appendInt(b, 2, g.Weight)
		b = appendInt(b, 3, g.Max)
		b = closeMessage(b, inner)
	}
	for i, list := range [...][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			b = appendText(b, byte(14+i), entry)
		}
	}
	for _, entry := range q.Approvers {
		b = appendText(b, 17, entry)
	}
	b = appendInt(b, 18, q.MinApprovals)
	return closeMessage(b, start)
}

func decodeQueue(q *interlock.TaskQueue, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&q.Name, f.s)
		case 2<<3 | wireVarint:
			q.Paused = f.v != 0
		case 3<<3 | wireVarint:
			q.Drain = f.v != 0
		case 4<<3 | wireVarint:
			q.MaxAttempts = int(f.v)
		case 5<<3 | wireVarint:
			q.Backoff = time.Duration(f.v)
		case 6<<3 | wireVarint:
			q.MaxBackoff = time.Duration(f.v)
		case 7<<3 | wireVarint:
			q.TTL = time.Duration(f.v)
		case 8<<3 | wireVarint:
			q.Grace = time.Duration(f.v)
		case 9<<3 | wireVarint:
			q.MaxHold = time.Duration(f.v)
		case 10<<3 | wireVarint:
			q.Stall = time.Duration(f.v)
		case 11<<3 | wireVarint:
			q.MaxRunning = int(f.v)
		case 12<<3 | wireVarint:
			q.MaxTasks = int(f.v)
		case 13<<3 | wireBytes:
			if len(q.Groups) <= MaxListed {
				return decodeShare(grow(&q.Groups), f.s)
			}
		case 14<<3 | wireBytes:
			return entry(&q.Pull, f.s)
		case 15<<3 | wireBytes:
			return entry(&q.Submit, f.s)
		case 16<<3 | wireBytes:
			return entry(&q.Admin, f.s)
		case 17<<3 | wireBytes:
			return entry(&q.Approvers, f.s)
		case 18<<3 | wireVarint:
			q.MinApprovals = int(f.v)
		}
		return nil
	})
}

func decodeShare(g *interlock.Share, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&g.Group, f.s)
		case 2<<3 | wireVarint:
			g.Weight = int(f.v)
		case 3<<3 | wireVarint:
			g.Max = int(f.v)
		}
		return nil
	})
}

func appendQueueStatus(b []byte, num byte, q *interlock.QueueStatus) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendQueue(b, 1, &q.TaskQueue)
	b = appendInt(b, 2, q.Scheduled)
	b = appendInt(b, 3, q.Waiting)
	b = appendInt(b, 4, q.Running)
	b = appendInt(b, 5, q.Asking)
	b = appendInt(b, 6, q.Dead)
	b = appendInt(b, 7, q.Idle)
	b = appendDuration(b, 8, q.Oldest)
	return closeMessage(b, start)
}

func decodeQueueStatus(q *interlock.QueueStatus, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeQueue(&q.TaskQueue, f.s)
		case 2<<3 | wireVarint:
			q.Scheduled = int(f.v)
		case 3<<3 | wireVarint:
			q.Waiting = int(f.v)
		case 4<<3 | wireVarint:
			q.Running = int(f.v)
		case 5<<3 | wireVarint:
			q.Asking = int(f.v)
		case 6<<3 | wireVarint:
			q.Dead = int(f.v)
		case 7<<3 | wireVarint:
			q.Idle = int(f.v)
		case 8<<3 | wireVarint:
			q.Oldest = time.Duration(f.v)
		}
		return nil
	})
}

func (o *Op) setQueueField(f *field[string]) error {
	if f.tag != 1<<3|wireBytes {
		return nil
	}
	o.Queue = &interlock.TaskQueue{}
	return decodeQueue(o.Queue, f.s)
}

// entry adds an entry to an access list. One more than is allowed is kept, so that the list is
// refused.
func entry(list *[]string, s string) error {
	if len(*list) > interlock.MaxAccess {
		return nil
	}
	return text(grow(list), s)
}
