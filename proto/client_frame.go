package proto

import (
	"github.com/interlockdev/interlock"
)

// MaxFrameOps bounds the operations of one frame, because an empty operation is
// much smaller on the wire than in memory.
const MaxFrameOps = 8192

// AppendTo appends the frame's encoding to b.
func (f *ClientFrame) AppendTo(b []byte) []byte {
	for i := range f.Ops {
		b = openMessage(b, 1)
		start := len(b)
		b = f.Ops[i].appendTo(b)
		b = closeMessage(b, start)
	}
	return b
}

func (o *Op) appendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(o.Slot))
	b = appendUint(b, 2, o.Seq)
	b = appendUint(b, 3, o.Acked)
	b = openMessage(b, byte(o.Kind))
	start := len(b)
	switch o.Kind {
	case OpOpen:
		b = appendString(b, 1, o.RequestID)
		b = appendString(b, 2, o.Agent)
		b = appendDuration(b, 3, o.TTL)
	case OpAttach, OpPoll, OpLeave, OpGetLease, OpGetTask:
		b = appendID(b, 1, &o.ID)
	case OpHeartbeat:
		b = appendString(b, 1, o.Progress)
	case OpClose:
	case OpAcquire:
		b = appendClaims(b, 1, o.Claims)
		b = appendString(b, 2, o.Flow)
		b = appendString(b, 3, o.Purpose)
		b = appendString(b, 4, o.Trace)
		b = appendDuration(b, 5, o.TTL)
		b = appendDuration(b, 6, o.Grace)
		b = appendDuration(b, 7, o.MaxHold)
		b = appendSint(b, 8, int32(o.Priority))
		b = appendUint(b, 9, uint64(o.OnConflict))
		b = appendBool(b, 10, o.Any)
		b = appendString(b, 11, o.Prefix)
		b = appendString(b, 12, o.Group)
		b = appendUint(b, 13, uint64(o.Division))
		b = appendDuration(b, 14, o.Stall)
		b = appendDuration(b, 15, o.LockDelay)
		b = appendDuration(b, 16, o.MaxWait)
		b = appendUint(b, 17, uint64(o.AsOf))
		b = appendBool(b, 18, o.Brief)
		b = appendBool(b, 19, o.Documents)
	case OpRenew:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, o.Progress)
	case OpRelease:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, o.Outcome)
		b = appendString(b, 3, o.Note)
	case OpCheckFence:
		b = appendString(b, 1, o.Key)
		b = appendUint(b, 2, uint64(o.Fence))
	case OpConvert:
		b = appendID(b, 1, &o.ID)
		b = appendClaims(b, 2, o.Claims)
		b = appendUint(b, 3, uint64(o.OnConflict))
		b = appendDuration(b, 4, o.MaxWait)
	case OpArrive:
		b = appendID(b, 1, &o.ID)
		b = appendDuration(b, 2, o.MaxWait)
	case OpPark:
		b = appendID(b, 1, &o.ID)
		b = appendBool(b, 2, o.Free)
		b = appendBool(b, 3, o.Keep)
		b = appendDuration(b, 4, o.TTL)
		b = appendString(b, 5, o.Note)
	case OpResume:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, o.Flow)
		b = appendUint(b, 3, uint64(o.OnConflict))
		b = appendDuration(b, 4, o.MaxWait)
		b = appendBool(b, 5, o.Unapproved)
	case OpDeclare:
		b = appendString(b, 1, o.Flow)
		b = appendString(b, 2, o.Purpose)
		b = o.On.appendTo(b, 3)
		b = appendDuration(b, 4, o.MaxWait)
	case OpSetPattern:
		if o.Pattern != nil {
			b = appendPattern(b, 1, o.Pattern)
		}
	case OpDropPattern, OpListPatterns, OpDropQueue, OpListQueues:
		b = appendString(b, 1, o.Name)
	case OpConfigure:
		if o.Settings != nil {
			b = appendSettings(b, 1, o.Settings)
		}
	case OpCommit:
		b = o.appendCommit(b)
	case OpReadState:
		b = o.appendReadState(b)
	case OpReadHistory:
		b = appendString(b, 1, o.Key)
		b = appendBool(b, 2, o.Bodies)
	case OpClaimEffect, OpSettleEffect, OpGetEffect, OpListEffects:
		b = o.appendEffect(b)
	case OpSetQueue:
		if o.Queue != nil {
			b = appendQueue(b, 1, o.Queue)
		}
	case OpStartRun:
		b = appendString(b, 1, o.Run.Org)
		b = appendString(b, 2, o.Run.Workflow)
		b = appendString(b, 3, o.Flow)
		b = appendString(b, 4, o.Purpose)
		b = appendSint(b, 5, int32(o.Priority))
		b = appendDuration(b, 6, o.TTL)
		b = appendDuration(b, 7, o.MaxHold)
		b = appendDuration(b, 8, o.MaxWait)
		b = appendString(b, 9, o.RequestID)
	case OpRevertPattern:
		b = appendString(b, 1, o.Name)
		b = appendUint(b, 2, o.Revision)
	case OpGetSettings, OpContention:
	default:
		if !o.Kind.aboutTasks() {
			panic("proto: an operation without a kind")
		}
		b = o.appendTask(b)
	}
	return closeMessage(b, start)
}

func (p *Party) appendTo(b []byte, num byte) []byte {
	if p == nil {
		return b
	}
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, p.Session)
	b = appendString(b, 2, p.Agent)
	b = appendString(b, 3, p.Flow)
	return closeMessage(b, start)
}

func appendClaims(b []byte, num byte, claims []interlock.Claim) []byte {
	for i := range claims {
		b = openMessage(b, num)
		start := len(b)
		b = appendString(b, 1, claims[i].Key)
		b = appendUint(b, 2, uint64(claims[i].Mode))
		b = appendUint(b, 3, uint64(claims[i].Count))
		b = closeMessage(b, start)
	}
	return b
}

// Size is an upper bound of the operation's encoded length.
func (o *Op) Size() int {
	n := 176 + len(o.RequestID) + len(o.Agent) + len(o.Flow) + len(o.Purpose) + len(o.Trace) + len(o.Prefix) + len(o.Group) +
		len(o.Key) + len(o.Outcome) + len(o.Note) + len(o.Progress) + len(o.Name)
	n += claimsSize(o.Claims)
	if o.On != nil {
		n += 32 + len(o.On.Session) + len(o.On.Agent) + len(o.On.Flow)
	}
	if o.Pattern != nil {
		n += PatternSize(o.Pattern)
	}
	if o.Settings != nil {
		n += 320
	}
	if o.Commit != nil {
		n += commitSize(o.Commit)
	}
	if o.State != nil {
		n += o.State.size()
	}
	if o.Effect != nil {
		n += o.Effect.size()
	}
	if o.Task != nil {
		n += o.Task.size()
	}
	if o.Queue != nil {
		n += QueueSize(o.Queue)
	}
	if o.Run != nil {
		n += len(o.Run.Org) + len(o.Run.Workflow)
	}
	return n
}

func claimsSize(claims []interlock.Claim) (n int) {
	for i := range claims {
		n += 24 + len(claims[i].Key)
	}
	return n
}

// Decode replaces the frame's content by that of b. Nothing of b is kept. Each operation's strings
// share one piece of memory, and no two operations do, so that what outlives its frame does not
// keep all of it; those of commits, effects and tasks, which may be large, share none. An operation
// without a body, or with one that this version does not know, has Kind 0.
func (f *ClientFrame) Decode(b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if x.tag != 1<<3|wireBytes {
			continue
		}
		if len(f.Ops) == MaxFrameOps {
			return badFrame("it has more than %d operations", MaxFrameOps)
		}
		if err := f.next().decode(x.s); err != nil {
			return err
		}
	}
	return nil
}

func (o *Op) decode(b []byte) error {
	var body []byte
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		switch f.tag {
		case 1<<3 | wireVarint:
			o.Slot = uint32(f.v)
		case 2<<3 | wireVarint:
			o.Seq = f.v
		case 3<<3 | wireVarint:
			o.Acked = f.v
		default:
			if num := f.tag >> 3; f.tag&7 == wireBytes && num >= uint64(OpOpen) && num <= uint64(lastOp) {
				if o.Kind != 0 {
					return badFrame("an operation has two bodies")
				}
				o.Kind, body = OpKind(num), f.s
			}
		}
	}
	if o.Kind == OpAcquire {
		return o.decodeAcquire(body)
	}
	return o.decodeBody(string(body)) // all texts are there, and may be kept for long
}
