package proto

import (
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// What a server tells of tasks.

// Assignment is a task in a worker's hands.
type Assignment struct {
	Task      interlock.Task
	Lease     interlock.Lease
	Documents []interlock.Document
	AsOf      interlock.Version
}

func (h *Assignment) appendTo(b []byte, num byte) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendTask(b, 1, &h.Task)
	b = openMessage(b, 2)
	inner := len(b)
	b = appendLease(b, &h.Lease)
	b = closeMessage(b, inner)
	for i := range h.Documents {
		b = appendDocument(b, 3, &h.Documents[i])
	}
	b = appendUint(b, 4, uint64(h.AsOf))
	return closeMessage(b, start)
}

// decode reads a task that shares no memory with the others of its answer: it may be
// held for much longer than they.
func (h *Assignment) decode(s string) error {
	return eachField(strings.Clone(s), func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeTask(&h.Task, f.s)
		case 2<<3 | wireBytes:
			return decodeLease(&h.Lease, f.s)
		case 3<<3 | wireBytes:
			return decodeDocument(grow(&h.Documents), f.s)
		case 4<<3 | wireVarint:
			h.AsOf = interlock.Version(f.v)
		}
		return nil
	})
}

func appendTask(b []byte, num byte, t *interlock.Task) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendID(b, 1, (*[16]byte)(&t.ID))
	b = appendString(b, 2, t.Queue)
	b = appendString(b, 3, t.Kind)
	b = appendClaims(b, 4, t.Claims)
	b = appendBytes(b, 5, t.Payload)
	b = appendString(b, 6, t.Purpose)
	b = appendString(b, 7, t.Group)
	b = appendSint(b, 8, int32(t.Priority))
	b = appendUint(b, 9, uint64(t.State))
	b = appendString(b, 10, t.Agent)
	b = appendString(b, 11, t.Session)
	b = appendString(b, 12, t.Flow)
	b = appendString(b, 13, t.Principal)
	b = appendDuration(b, 14, t.Age)
	b = appendString(b, 15, t.Sender)
	b = appendDuration(b, 16, t.Due)
	b = appendDuration(b, 17, t.Deadline)
	b = appendInt(b, 18, t.Attempt)
	b = appendInt(b, 19, t.MaxAttempts)
	for i := range t.Attempts {
		a := &t.Attempts[i]
		b = openMessage(b, 20)
		inner := len(b)
		b = appendInt(b, 1, a.Number)
		b = appendString(b, 2, a.Agent)
		b = appendString(b, 3, a.Session)
		b = appendUint(b, 4, uint64(a.Fence))
		b = appendString(b, 5, a.EndedBy)
		b = appendString(b, 6, a.Reason)
		b = appendDuration(b, 7, a.Held)
		b = appendDuration(b, 8, a.Age)
		b = closeMessage(b, inner)
	}
	b = appendInt(b, 21, t.Position)
	b = appendDuration(b, 22, t.ETA)
	b = appendString(b, 23, t.Blocker)
	if t.Approval != nil {
		b = appendApproval(b, 24, t.Approval)
	}
	b = appendBytes(b, 25, t.Result)
	b = appendDuration(b, 26, t.Settled)
	b = appendString(b, 27, t.Reason)
	b = appendBool(b, 28, t.Barred)
	return closeMessage(b, start)
}

func appendApproval(b []byte, num byte, a *interlock.Approval) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, a.Question)
	b = appendDuration(b, 2, a.Asked)
	b = appendDuration(b, 3, a.Left)
	b = appendUint(b, 4, uint64(a.OnLimit))
	b = appendUint(b, 5, uint64(a.Verdict))
	b = appendString(b, 6, a.By)
	b = appendString(b, 7, a.Reason)
	for i := range a.Stale {
		s := &a.Stale[i]
		b = openMessage(b, 8)
		inner := len(b)
		b = appendDocument(b, 1, &s.Then)
		b = appendBool(b, 2, s.Known)
		b = appendDocument(b, 3, &s.Now)
		b = appendInt(b, 4, s.Writes)
		for k := range s.Between {
			b = appendDocument(b, 5, &s.Between[k])
		}
		b = closeMessage(b, inner)
	}
	b = appendBool(b, 9, a.StaleMore)
	b = appendString(b, 10, a.Agent)
	b = appendString(b, 11, a.Principal)
	for i := range a.Approvals {
		x := &a.Approvals[i]
		b = openMessage(b, 12)
		inner := len(b)
		b = appendString(b, 1, x.Principal)
		b = appendString(b, 2, x.By)
		b = appendString(b, 3, x.Reason)
		b = closeMessage(b, inner)
	}
	b = appendInt(b, 13, a.Needed)
	return closeMessage(b, start)
}

func decodeTask(t *interlock.Task, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&t.ID, f.s)
		case 2<<3 | wireBytes:
			return text(&t.Queue, f.s)
		case 3<<3 | wireBytes:
			return text(&t.Kind, f.s)
		case 4<<3 | wireBytes:
			return decodeClaim(&t.Claims, f.s)
		case 5<<3 | wireBytes:
			t.Payload = ownBytes(f.s)
		case 6<<3 | wireBytes:
			return text(&t.Purpose, f.s)
		case 7<<3 | wireBytes:
			return text(&t.Group, f.s)
		case 8<<3 | wireVarint:
			t.Priority = int(unzigzag(f.v))
		case 9<<3 | wireVarint:
			t.State = enum[interlock.TaskState](f.v)
		case 10<<3 | wireBytes:
			return text(&t.Agent, f.s)
		case 11<<3 | wireBytes:
			return text(&t.Session, f.s)
		case 12<<3 | wireBytes:
			return text(&t.Flow, f.s)
		case 13<<3 | wireBytes:
			return text(&t.Principal, f.s)
		case 14<<3 | wireVarint:
			t.Age = time.Duration(f.v)
		case 15<<3 | wireBytes:
			return text(&t.Sender, f.s)
		case 16<<3 | wireVarint:
			t.Due = time.Duration(f.v)
		case 17<<3 | wireVarint:
			t.Deadline = time.Duration(f.v)
		case 18<<3 | wireVarint:
			t.Attempt = int(f.v)
		case 19<<3 | wireVarint:
			t.MaxAttempts = int(f.v)
		case 20<<3 | wireBytes:
			return decodeAttempt(grow(&t.Attempts), f.s)
		case 21<<3 | wireVarint:
			t.Position = int(f.v)
		case 22<<3 | wireVarint:
			t.ETA = time.Duration(f.v)
		case 23<<3 | wireBytes:
			return text(&t.Blocker, f.s)
		case 28<<3 | wireVarint:
			t.Barred = f.v != 0
		case 24<<3 | wireBytes:
			t.Approval = &interlock.Approval{}
			return decodeApproval(t.Approval, f.s)
		case 25<<3 | wireBytes:
			t.Result = ownBytes(f.s)
		case 26<<3 | wireVarint:
			t.Settled = time.Duration(f.v)
		case 27<<3 | wireBytes:
			return text(&t.Reason, f.s)
		}
		return nil
	})
}

func decodeAttempt(a *interlock.Attempt, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			a.Number = int(f.v)
		case 2<<3 | wireBytes:
			return text(&a.Agent, f.s)
		case 3<<3 | wireBytes:
			return text(&a.Session, f.s)
		case 4<<3 | wireVarint:
			a.Fence = interlock.Fence(f.v)
		case 5<<3 | wireBytes:
			return text(&a.EndedBy, f.s)
		case 6<<3 | wireBytes:
			return text(&a.Reason, f.s)
		case 7<<3 | wireVarint:
			a.Held = time.Duration(f.v)
		case 8<<3 | wireVarint:
			a.Age = time.Duration(f.v)
		}
		return nil
	})
}

func decodeApproval(a *interlock.Approval, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&a.Question, f.s)
		case 2<<3 | wireVarint:
			a.Asked = time.Duration(f.v)
		case 3<<3 | wireVarint:
			a.Left = time.Duration(f.v)
		case 4<<3 | wireVarint:
			a.OnLimit = enum[interlock.Verdict](f.v)
		case 5<<3 | wireVarint:
			a.Verdict = enum[interlock.Verdict](f.v)
		case 6<<3 | wireBytes:
			return text(&a.By, f.s)
		case 7<<3 | wireBytes:
			return text(&a.Reason, f.s)
		case 8<<3 | wireBytes:
			return decodeStale(grow(&a.Stale), f.s)
		case 9<<3 | wireVarint:
			a.StaleMore = f.v != 0
		case 10<<3 | wireBytes:
			return text(&a.Agent, f.s)
		case 11<<3 | wireBytes:
			return text(&a.Principal, f.s)
		case 12<<3 | wireBytes:
			return decodeEndorsement(grow(&a.Approvals), f.s)
		case 13<<3 | wireVarint:
			a.Needed = int(f.v)
		}
		return nil
	})
}

func decodeEndorsement(x *interlock.Endorsement, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&x.Principal, f.s)
		case 2<<3 | wireBytes:
			return text(&x.By, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Reason, f.s)
		}
		return nil
	})
}

func decodeStale(x *interlock.Stale, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeDocument(&x.Then, f.s)
		case 2<<3 | wireVarint:
			x.Known = f.v != 0
		case 3<<3 | wireBytes:
			return decodeDocument(&x.Now, f.s)
		case 4<<3 | wireVarint:
			x.Writes = int(f.v)
		case 5<<3 | wireBytes:
			return decodeDocument(grow(&x.Between), f.s)
		}
		return nil
	})
}

// TaskBulk is about how many bytes of a task can be large.
func TaskBulk(t *interlock.Task) int {
	n := 512 + len(t.Payload) + len(t.Result) + 128*len(t.Attempts)
	for i := range t.Attempts {
		n += len(t.Attempts[i].Reason)
	}
	if t.Approval == nil {
		return n
	}
	for i := range t.Approval.Stale {
		s := &t.Approval.Stale[i]
		n += 512*(1+len(s.Between)) + len(s.Then.Body) + len(s.Now.Body)
		for k := range s.Between {
			n += len(s.Between[k].Note)
		}
	}
	return n
}

// Bulk is about how many bytes of it can be large.
func (h *Assignment) Bulk() int {
	n := TaskBulk(&h.Task)
	for i := range h.Documents {
		n += 256 + len(h.Documents[i].Body)
	}
	return n
}

// EntryBulk is about how many bytes of an entry of a log can be large.
func EntryBulk(x *interlock.LogEntry) int {
	return 512 + len(x.Body) + len(x.Reply) + len(x.Document.Body)
}

func appendLogEntry(b []byte, num byte, x *interlock.LogEntry) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendUint(b, 1, x.Seq)
	b = appendID(b, 2, (*[16]byte)(&x.Message))
	b = appendString(b, 3, x.Kind)
	b = appendBytes(b, 4, x.Body)
	b = appendString(b, 5, x.Sender)
	b = appendString(b, 6, x.Agent)
	b = appendUint(b, 7, uint64(x.State))
	b = appendBytes(b, 8, x.Reply)
	b = appendString(b, 9, x.Reason)
	b = appendString(b, 10, x.Worker)
	b = appendString(b, 11, x.Session)
	b = appendInt(b, 12, x.Attempt)
	b = appendUint(b, 13, uint64(x.Fence))
	b = appendDocument(b, 14, &x.Document)
	b = appendBool(b, 15, x.Changed)
	b = appendDuration(b, 16, x.Age)
	return closeMessage(b, start)
}

func decodeLogEntry(x *interlock.LogEntry, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			x.Seq = f.v
		case 2<<3 | wireBytes:
			return id(&x.Message, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Kind, f.s)
		case 4<<3 | wireBytes:
			x.Body = ownBytes(f.s)
		case 5<<3 | wireBytes:
			return text(&x.Sender, f.s)
		case 6<<3 | wireBytes:
			return text(&x.Agent, f.s)
		case 7<<3 | wireVarint:
			x.State = enum[interlock.TaskState](f.v)
		case 8<<3 | wireBytes:
			x.Reply = ownBytes(f.s)
		case 9<<3 | wireBytes:
			return text(&x.Reason, f.s)
		case 10<<3 | wireBytes:
			return text(&x.Worker, f.s)
		case 11<<3 | wireBytes:
			return text(&x.Session, f.s)
		case 12<<3 | wireVarint:
			x.Attempt = int(f.v)
		case 13<<3 | wireVarint:
			x.Fence = interlock.Fence(f.v)
		case 14<<3 | wireBytes:
			return decodeDocument(&x.Document, f.s)
		case 15<<3 | wireVarint:
			x.Changed = f.v != 0
		case 16<<3 | wireVarint:
			x.Age = time.Duration(f.v)
		}
		return nil
	})
}
