package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// The requests and reports of clients about tasks.

// TaskOp holds the fields of an operation about tasks. Like Op it is a union. The ids, the flow,
// the ttl, and the group and key of a listing stand in the Op, and what an acknowledgement
// commits, with its note, in its Commit.
type TaskOp struct {
	Attach  bool
	Dead    bool
	Verdict interlock.Verdict
	Change  TaskChange
	State   interlock.TaskState
	Limit   uint32 // of a pull, a listing or a log
	From    uint64 // of a log; of a listing what it goes on after
	Delay   time.Duration

	Queue  string
	By     string
	Reason string
	Result []byte // JSON

	Specs    []interlock.TaskSpec // of a submission, the one; of an acknowledgement, what is to be done next
	Question *interlock.Question
}

// TaskChange is what is done with a task that does not run. The numbers are those of
// session.proto and of engine.TaskChange.
type TaskChange uint8

const (
	CancelTask TaskChange = 1 + iota
	RescheduleTask
	ReplayTask
	DiscardTask
)

// RunOp is which run is to be started.
type RunOp struct {
	Org, Workflow string
}

// aboutTasks reports whether operations of a kind have a TaskOp.
func (k OpKind) aboutTasks() bool {
	return k >= OpSubmitTask && k <= OpListTasks && k != OpGetTask || k == OpReadLog
}

func (o *Op) appendTask(b []byte) []byte {
	x := o.Task
	switch o.Kind {
	case OpSubmitTask:
		for i := range x.Specs {
			b = appendTaskSpec(b, 1, &x.Specs[i])
		}
		b = appendString(b, 2, o.Flow)
		b = appendBool(b, 3, x.Attach)
		b = appendString(b, 4, o.RequestID)
		return appendString(b, 5, o.Agent)
	case OpPullTasks:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, x.Queue)
		b = appendUint(b, 3, uint64(x.Limit))
		return appendDuration(b, 4, o.TTL)
	case OpAckTask:
		b = appendID(b, 1, &o.ID)
		b = appendBytes(b, 2, x.Result)
		c := o.Commit
		if c == nil {
			c = &noCommit
		}
		for i := range c.Reads {
			b = appendRead(b, 3, &c.Reads[i])
		}
		for i := range c.Writes {
			b = appendWrite(b, 5, &c.Writes[i])
		}
		b = appendUint(b, 4, uint64(c.AsOf))
		for i := range x.Specs {
			b = appendTaskSpec(b, 6, &x.Specs[i])
		}
		return appendString(b, 7, c.Note)
	case OpListTasks:
		b = appendString(b, 1, x.Queue)
		b = appendUint(b, 2, uint64(x.State))
		b = appendString(b, 3, o.Group)
		b = appendString(b, 4, o.Key)
		b = appendUint(b, 5, x.From)
		return appendUint(b, 6, uint64(x.Limit))
	case OpReadLog:
		b = appendString(b, 1, o.Key)
		b = appendUint(b, 2, x.From)
		return appendUint(b, 3, uint64(x.Limit))
	}
	b = appendID(b, 1, &o.ID)
	switch o.Kind {
	case OpNackTask:
		b = appendString(b, 2, x.Reason)
		b = appendDuration(b, 3, x.Delay)
		b = appendBool(b, 4, x.Dead)
	case OpAskHuman:
		b = appendQuestion(b, 2, x.Question)
	case OpAnswerTask:
		b = appendUint(b, 2, uint64(x.Verdict))
		b = appendString(b, 3, x.By)
		b = appendString(b, 4, x.Reason)
		b = appendUint(b, 5, uint64(o.Fence))
	case OpChangeTask:
		b = appendUint(b, 2, uint64(x.Change))
		b = appendDuration(b, 3, x.Delay)
		b = appendString(b, 4, x.Reason)
	case OpFollowTask:
		b = appendString(b, 2, o.Flow)
		b = appendBool(b, 3, x.Attach)
	}
	return b
}

func appendTaskSpec(b []byte, num byte, t *interlock.TaskSpec) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, t.Queue)
	b = appendString(b, 2, t.Kind)
	b = appendClaims(b, 3, t.Claims)
	b = appendBytes(b, 4, t.Payload)
	b = appendString(b, 5, t.Purpose)
	b = appendString(b, 6, t.Group)
	b = appendSint(b, 7, int32(t.Priority))
	b = appendDuration(b, 8, t.Delay)
	b = appendDuration(b, 9, t.Deadline)
	b = appendInt(b, 10, t.MaxAttempts)
	b = appendDuration(b, 11, t.Backoff)
	b = appendDuration(b, 12, t.MaxBackoff)
	b = appendBool(b, 13, t.Message)
	b = appendString(b, 14, t.Key)
	b = appendQuestion(b, 15, t.Ask)
	return closeMessage(b, start)
}

func appendQuestion(b []byte, num byte, q *interlock.Question) []byte {
	if q == nil {
		return b
	}
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, q.Text)
	b = appendDuration(b, 2, q.Limit)
	b = appendUint(b, 3, uint64(q.OnLimit))
	for i := range q.Reads {
		b = appendRead(b, 4, &q.Reads[i])
	}
	return closeMessage(b, start)
}

// size is an upper bound of the encoded length.
func (x *TaskOp) size() int {
	n := 64 + len(x.Queue) + len(x.By) + len(x.Reason) + len(x.Result) + questionSize(x.Question)
	for i := range x.Specs {
		t := &x.Specs[i]
		n += 160 + len(t.Queue) + len(t.Kind) + len(t.Payload) + len(t.Purpose) + len(t.Group) + len(t.Key) + claimsSize(t.Claims) + questionSize(t.Ask)
	}
	return n
}

func questionSize(q *interlock.Question) int {
	if q == nil {
		return 0
	}
	return 40 + len(q.Text) + readsSize(q.Reads)
}

// taskField reads one field of an operation about tasks. Its texts share no memory with
// the operation, which may be large.
func (o *Op) taskField(f *field[string]) error {
	switch x := o.Task; o.Kind {
	case OpSubmitTask:
		return o.submitField(f)
	case OpPullTasks:
		return o.pullField(f)
	case OpAckTask:
		return o.ackField(f)
	case OpListTasks:
		return o.listTasksField(f)
	case OpReadLog:
		return o.readLogField(f)
	case OpNackTask:
		switch f.tag {
		case 2<<3 | wireBytes:
			return text(&x.Reason, f.s)
		case 3<<3 | wireVarint:
			x.Delay = time.Duration(f.v)
		case 4<<3 | wireVarint:
			x.Dead = f.v != 0
		}
	case OpAskHuman:
		if f.tag == 2<<3|wireBytes {
			x.Question = &interlock.Question{}
			return decodeQuestion(x.Question, f.s)
		}
	case OpAnswerTask:
		switch f.tag {
		case 2<<3 | wireVarint:
			x.Verdict = enum[interlock.Verdict](f.v)
		case 3<<3 | wireBytes:
			return text(&x.By, f.s)
		case 4<<3 | wireBytes:
			return text(&x.Reason, f.s)
		case 5<<3 | wireVarint:
			o.Fence = interlock.Fence(f.v)
		}
	case OpChangeTask:
		switch f.tag {
		case 2<<3 | wireVarint:
			x.Change = enum[TaskChange](f.v)
		case 3<<3 | wireVarint:
			x.Delay = time.Duration(f.v)
		case 4<<3 | wireBytes:
			return text(&x.Reason, f.s)
		}
	case OpFollowTask:
		switch f.tag {
		case 2<<3 | wireBytes:
			return text(&o.Flow, f.s)
		case 3<<3 | wireVarint:
			x.Attach = f.v != 0
		}
	}
	return o.idField(f)
}

func (o *Op) submitField(f *field[string]) error {
	switch x := o.Task; f.tag {
	case 1<<3 | wireBytes:
		x.Specs = make([]interlock.TaskSpec, 1)
		return decodeTaskSpec(&x.Specs[0], f.s)
	case 2<<3 | wireBytes:
		return ownText(&o.Flow, f.s)
	case 3<<3 | wireVarint:
		x.Attach = f.v != 0
	case 4<<3 | wireBytes:
		return ownText(&o.RequestID, f.s)
	case 5<<3 | wireBytes:
		return ownText(&o.Agent, f.s)
	}
	return nil
}

func (o *Op) pullField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireBytes:
		return text(&o.Task.Queue, f.s)
	case 3<<3 | wireVarint:
		o.Task.Limit = count(f.v)
	case 4<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	}
	return o.idField(f)
}

func (o *Op) ackField(f *field[string]) error {
	switch x := o.Task; f.tag {
	case 2<<3 | wireBytes:
		x.Result = ownBytes(f.s)
	case 3<<3 | wireBytes:
		if c := o.commits(); len(c.Reads) <= MaxListed {
			return decodeRead(grow(&c.Reads), f.s)
		}
	case 4<<3 | wireVarint:
		o.commits().AsOf = interlock.Version(f.v)
	case 5<<3 | wireBytes:
		if c := o.commits(); len(c.Writes) <= MaxListed {
			return decodeWrite(grow(&c.Writes), f.s)
		}
	case 6<<3 | wireBytes:
		if len(x.Specs) <= MaxListed {
			return decodeTaskSpec(grow(&x.Specs), f.s)
		}
	case 7<<3 | wireBytes:
		return ownText(&o.commits().Note, f.s)
	}
	return o.idField(f)
}

var noCommit interlock.CommitRequest

// commits returns the commit of an acknowledgement. Few have one.
func (o *Op) commits() *interlock.CommitRequest {
	if o.Commit == nil {
		o.Commit = &interlock.CommitRequest{}
	}
	return o.Commit
}

func (o *Op) listTasksField(f *field[string]) error {
	switch x := o.Task; f.tag {
	case 1<<3 | wireBytes:
		return text(&x.Queue, f.s)
	case 2<<3 | wireVarint:
		x.State = enum[interlock.TaskState](f.v)
	case 3<<3 | wireBytes:
		return text(&o.Group, f.s)
	case 4<<3 | wireBytes:
		return text(&o.Key, f.s)
	case 5<<3 | wireVarint:
		x.From = f.v
	case 6<<3 | wireVarint:
		x.Limit = count(f.v)
	}
	return nil
}

func (o *Op) readLogField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.Key, f.s)
	case 2<<3 | wireVarint:
		o.Task.From = f.v
	case 3<<3 | wireVarint:
		o.Task.Limit = count(f.v)
	}
	return nil
}

func decodeTaskSpec(t *interlock.TaskSpec, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return ownText(&t.Queue, f.s)
		case 2<<3 | wireBytes:
			return ownText(&t.Kind, f.s)
		case 3<<3 | wireBytes:
			return decodeClaim(&t.Claims, []byte(f.s))
		case 4<<3 | wireBytes:
			t.Payload = ownBytes(f.s)
		case 5<<3 | wireBytes:
			return ownText(&t.Purpose, f.s)
		case 6<<3 | wireBytes:
			return ownText(&t.Group, f.s)
		case 7<<3 | wireVarint:
			t.Priority = int(unzigzag(f.v))
		case 8<<3 | wireVarint:
			t.Delay = time.Duration(f.v)
		case 9<<3 | wireVarint:
			t.Deadline = time.Duration(f.v)
		case 10<<3 | wireVarint:
			t.MaxAttempts = int(f.v)
		case 11<<3 | wireVarint:
			t.Backoff = time.Duration(f.v)
		case 12<<3 | wireVarint:
			t.MaxBackoff = time.Duration(f.v)
		case 13<<3 | wireVarint:
			t.Message = f.v != 0
		case 14<<3 | wireBytes:
			return ownText(&t.Key, f.s)
		case 15<<3 | wireBytes:
			t.Ask = &interlock.Question{}
			return decodeQuestion(t.Ask, f.s)
		}
		return nil
	})
}

func decodeQuestion(q *interlock.Question, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return ownText(&q.Text, f.s)
		case 2<<3 | wireVarint:
			q.Limit = time.Duration(f.v)
		case 3<<3 | wireVarint:
			q.OnLimit = enum[interlock.Verdict](f.v)
		case 4<<3 | wireBytes:
			if len(q.Reads) <= MaxListed {
				return decodeRead(grow(&q.Reads), f.s)
			}
		}
		return nil
	})
}

func (o *Op) startRunField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.Run.Org, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Run.Workflow, f.s)
	case 3<<3 | wireBytes:
		return text(&o.Flow, f.s)
	case 4<<3 | wireBytes:
		return text(&o.Purpose, f.s)
	case 5<<3 | wireVarint:
		o.Priority = int(unzigzag(f.v))
	case 6<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	case 7<<3 | wireVarint:
		o.MaxHold = time.Duration(f.v)
	case 8<<3 | wireVarint:
		o.MaxWait = time.Duration(f.v)
	case 9<<3 | wireBytes:
		return text(&o.RequestID, f.s)
	}
	return nil
}

func (o *Op) revertPatternField(f *field[string]) error {
	if f.tag == 2<<3|wireVarint {
		o.Revision = f.v
	}
	return o.nameField(f)
}
