package proto

// The hand-written codec, as the oracle of the generated one.

import (
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// The bodies of operations. Their fields have numbers of their own, so each kind
// has its own table.

func (o *Op) decodeBody(s string) error {
	switch o.Kind {
	case OpCommit:
		o.Commit = &interlock.CommitRequest{}
	case OpReadState:
		o.State = &StateQuery{}
	case OpClaimEffect, OpSettleEffect, OpGetEffect, OpListEffects:
		o.Effect = &EffectOp{}
	case OpStartRun:
		o.Run = &RunOp{}
	default:
		if o.Kind.aboutTasks() {
			o.Task = &TaskOp{}
		}
	}
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		if err := o.bodyField(&f); err != nil {
			return err
		}
	}
	return nil
}

// bodyField calls the table of o's kind. It is no map of functions, because a field costs an
// allocation when its address goes into one.
func (o *Op) bodyField(f *field[string]) error {
	switch o.Kind {
	case OpRelease:
		return o.releaseField(f)
	case OpHeartbeat:
		return o.heartbeatField(f)
	case OpOpen:
		return o.openField(f)
	case OpAttach, OpPoll, OpLeave, OpGetLease, OpGetTask:
		return o.idField(f)
	case OpRenew:
		return o.renewField(f)
	case OpCheckFence:
		return o.checkFenceField(f)
	case OpConvert:
		return o.convertField(f)
	case OpArrive:
		return o.arriveField(f)
	case OpPark:
		return o.parkField(f)
	case OpResume:
		return o.resumeField(f)
	case OpDeclare:
		return o.declareField(f)
	case OpSetPattern:
		return o.setPatternField(f)
	case OpDropPattern, OpListPatterns, OpDropQueue, OpListQueues:
		return o.nameField(f)
	case OpConfigure:
		return o.configureField(f)
	case OpCommit:
		return o.commitField(f)
	case OpReadState:
		return o.readStateField(f)
	case OpReadHistory:
		return o.readHistoryField(f)
	case OpClaimEffect, OpSettleEffect, OpGetEffect, OpListEffects:
		return o.effectField(f)
	case OpSetQueue:
		return o.setQueueField(f)
	case OpStartRun:
		return o.startRunField(f)
	case OpRevertPattern:
		return o.revertPatternField(f)
	}
	if o.Task != nil {
		return o.taskField(f)
	}
	return nil
}

func (o *Op) openField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.RequestID, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Agent, f.s)
	case 3<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	}
	return nil
}

func (o *Op) idField(f *field[string]) error {
	if f.tag == 1<<3|wireBytes {
		return id(&o.ID, f.s)
	}
	return nil
}

func (o *Op) nameField(f *field[string]) error {
	if f.tag == 1<<3|wireBytes {
		return text(&o.Name, f.s)
	}
	return nil
}

func (o *Op) heartbeatField(f *field[string]) error {
	if f.tag == 1<<3|wireBytes {
		return text(&o.Progress, f.s)
	}
	return nil
}

// decodeAcquire is decodeBody for acquires. Most of an acquire is kept for as long as it has a
// lease: each text is by itself, so that a key does not keep the whole body.
func (o *Op) decodeAcquire(b []byte) error {
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if err := o.acquireField(&f); err != nil {
			return err
		}
	}
	return nil
}

func (o *Op) acquireField(f *field[[]byte]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return oracleDecodeClaim(&o.Claims, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Flow, string(f.s))
	case 3<<3 | wireBytes:
		return text(&o.Purpose, string(f.s))
	case 4<<3 | wireBytes:
		return text(&o.Trace, string(f.s))
	case 5<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	case 6<<3 | wireVarint:
		o.Grace = time.Duration(f.v)
	case 7<<3 | wireVarint:
		o.MaxHold = time.Duration(f.v)
	case 8<<3 | wireVarint:
		o.Priority = int(unzigzag(f.v))
	case 9<<3 | wireVarint:
		o.OnConflict = enum[interlock.OnConflict](f.v)
	case 10<<3 | wireVarint:
		o.Any = f.v != 0
	case 11<<3 | wireBytes:
		return text(&o.Prefix, string(f.s))
	case 12<<3 | wireBytes:
		return text(&o.Group, string(f.s))
	case 13<<3 | wireVarint:
		o.Division = enum[interlock.Division](f.v)
	case 14<<3 | wireVarint:
		o.Stall = time.Duration(f.v)
	case 15<<3 | wireVarint:
		o.LockDelay = time.Duration(f.v)
	case 16<<3 | wireVarint:
		o.MaxWait = time.Duration(f.v)
	case 17<<3 | wireVarint:
		o.AsOf = interlock.Version(f.v)
	case 18<<3 | wireVarint:
		o.Brief = f.v != 0
	case 19<<3 | wireVarint:
		o.Documents = f.v != 0
	}
	return nil
}

func (o *Op) renewField(f *field[string]) error {
	if f.tag == 2<<3|wireBytes {
		return text(&o.Progress, f.s)
	}
	return o.idField(f)
}

func (o *Op) releaseField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireBytes:
		return text(&o.Outcome, f.s)
	case 3<<3 | wireBytes:
		return text(&o.Note, f.s)
	}
	return o.idField(f)
}

func (o *Op) checkFenceField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.Key, f.s)
	case 2<<3 | wireVarint:
		o.Fence = interlock.Fence(f.v)
	}
	return nil
}

func (o *Op) convertField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireBytes:
		return oracleDecodeClaim(&o.Claims, f.s)
	case 3<<3 | wireVarint:
		o.OnConflict = enum[interlock.OnConflict](f.v)
	case 4<<3 | wireVarint:
		o.MaxWait = time.Duration(f.v)
	}
	return o.idField(f)
}

func (o *Op) arriveField(f *field[string]) error {
	if f.tag == 2<<3|wireVarint {
		o.MaxWait = time.Duration(f.v)
	}
	return o.idField(f)
}

func (o *Op) parkField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireVarint:
		o.Free = f.v != 0
	case 3<<3 | wireVarint:
		o.Keep = f.v != 0
	case 4<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	case 5<<3 | wireBytes:
		return text(&o.Note, f.s)
	}
	return o.idField(f)
}

func (o *Op) resumeField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireBytes:
		return text(&o.Flow, f.s)
	case 3<<3 | wireVarint:
		o.OnConflict = enum[interlock.OnConflict](f.v)
	case 4<<3 | wireVarint:
		o.MaxWait = time.Duration(f.v)
	case 5<<3 | wireVarint:
		o.Unapproved = f.v != 0
	}
	return o.idField(f)
}

func (o *Op) declareField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.Flow, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Purpose, f.s)
	case 3<<3 | wireBytes:
		o.On = &Party{}
		return o.On.decode(f.s)
	case 4<<3 | wireVarint:
		o.MaxWait = time.Duration(f.v)
	}
	return nil
}

func (p *Party) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Session, f.s)
		case 2<<3 | wireBytes:
			return text(&p.Agent, f.s)
		case 3<<3 | wireBytes:
			return text(&p.Flow, f.s)
		}
		return nil
	})
}

func (o *Op) setPatternField(f *field[string]) error {
	if f.tag != 1<<3|wireBytes {
		return nil
	}
	o.Pattern = &interlock.Pattern{}
	return oracleDecodePattern(o.Pattern, f.s)
}

func (o *Op) configureField(f *field[string]) error {
	if f.tag != 1<<3|wireBytes {
		return nil
	}
	o.Settings = &interlock.Settings{}
	return oracleDecodeSettings(o.Settings, f.s)
}

// decodeClaim takes a key out of a string as a part of it, and out of bytes as a string of
// its own.
func oracleDecodeClaim[B octets](into *[]interlock.Claim, s B) error {
	if len(*into) > MaxListed {
		return nil // one too many is enough to be refused
	}
	var c interlock.Claim
	for len(s) > 0 {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireBytes:
			if err := text(&c.Key, string(f.s)); err != nil {
				return err
			}
		case 2<<3 | wireVarint:
			c.Mode = enum[interlock.Mode](f.v)
		case 3<<3 | wireVarint:
			c.Count = count(f.v)
		}
	}
	*into = append(*into, c)
	return nil
}

// AppendTo appends the frame's encoding to b.
func oracleAppendClient(f *ClientFrame, b []byte) []byte {
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
		b = oracleAppendClaims(b, 1, o.Claims)
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
		b = oracleAppendClaims(b, 2, o.Claims)
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
			b = oracleAppendPattern(b, 1, o.Pattern)
		}
	case OpDropPattern, OpListPatterns, OpDropQueue, OpListQueues:
		b = appendString(b, 1, o.Name)
	case OpConfigure:
		if o.Settings != nil {
			b = oracleAppendSettings(b, 1, o.Settings)
		}
	case OpCommit:
		b = o.appendCommit(b)
	case OpReadState:
		b = o.appendReadState(b)
	case OpReadHistory:
		b = appendString(b, 1, o.Key)
		b = appendBool(b, 2, o.Bodies)
	case OpClaimEffect, OpSettleEffect, OpGetEffect, OpListEffects:
		b = o.oracleAppendEffect(b)
	case OpSetQueue:
		if o.Queue != nil {
			b = oracleAppendQueue(b, 1, o.Queue)
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
	case OpGetSettings, OpGetContention:
	default:
		if !o.Kind.aboutTasks() {
			panic("proto: an operation without a kind")
		}
		b = o.oracleAppendTask(b)
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

func oracleAppendClaims(b []byte, num byte, claims []interlock.Claim) []byte {
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

// Decode replaces the frame's content by that of b. Nothing of b is kept. Each operation's strings
// share one piece of memory, and no two operations do, so that what outlives its frame does not
// keep all of it; those of commits, effects and tasks, which may be large, share none. An operation
// without a body, or with one that this version does not know, has Kind 0.
func oracleDecodeClient(f *ClientFrame, b []byte) error {
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

func (o *Op) oracleAppendEffect(b []byte) []byte {
	e := o.Effect
	switch o.Kind {
	case OpClaimEffect:
		b = appendString(b, 1, o.Flow)
		b = appendString(b, 2, e.Tool)
		b = appendString(b, 3, e.Target)
		b = appendBytes(b, 4, e.Arguments)
		b = appendID(b, 5, &o.ID)
		b = appendDuration(b, 6, o.TTL)
	case OpSettleEffect:
		b = appendID(b, 1, &o.ID)
		b = appendDigest(b, 2, &e.Digest)
		b = appendUint(b, 3, uint64(e.State))
		b = appendBytes(b, 4, e.Result)
		b = appendString(b, 5, e.Reason)
	case OpGetEffect:
		b = appendDigest(b, 1, &e.Digest)
	case OpListEffects:
		b = appendUint(b, 1, uint64(e.State))
		b = appendDigest(b, 2, &e.Digest)
		b = appendUint(b, 3, uint64(e.Limit))
	}
	return b
}

func (o *Op) effectField(f *field[string]) error {
	switch o.Kind {
	case OpClaimEffect:
		return o.claimEffectField(f)
	case OpSettleEffect:
		return o.settleEffectField(f)
	case OpListEffects:
		return o.Effect.listField(f)
	}
	if f.tag == 1<<3|wireBytes {
		return digest(&o.Effect.Digest, f.s)
	}
	return nil
}

func (o *Op) claimEffectField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return ownText(&o.Flow, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Effect.Tool, f.s)
	case 3<<3 | wireBytes:
		return text(&o.Effect.Target, f.s)
	case 4<<3 | wireBytes:
		o.Effect.Arguments = ownBytes(f.s)
	case 5<<3 | wireBytes:
		return id(&o.ID, f.s)
	case 6<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	}
	return nil
}

func (o *Op) settleEffectField(f *field[string]) error {
	switch f.tag {
	case 2<<3 | wireBytes:
		return digest(&o.Effect.Digest, f.s)
	case 3<<3 | wireVarint:
		o.Effect.State = enum[interlock.EffectState](f.v)
	case 4<<3 | wireBytes:
		o.Effect.Result = ownBytes(f.s)
	case 5<<3 | wireBytes:
		return ownText(&o.Effect.Reason, f.s)
	}
	return o.idField(f)
}

func (e *EffectOp) listField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireVarint:
		e.State = enum[interlock.EffectState](f.v)
	case 2<<3 | wireBytes:
		return digest(&e.Digest, f.s)
	case 3<<3 | wireVarint:
		e.Limit = count(f.v)
	}
	return nil
}

func oracleAppendEffect(b []byte, num byte, e *interlock.Effect) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendDigest(b, 1, &e.Digest)
	b = appendString(b, 2, e.Action)
	b = appendID(b, 3, (*[16]byte)(&e.ID))
	b = appendUint(b, 4, uint64(e.State))
	b = appendString(b, 5, e.Agent)
	b = appendString(b, 6, e.Session)
	b = appendString(b, 7, e.Flow)
	b = appendString(b, 8, e.Principal)
	b = appendDuration(b, 9, e.Age)
	b = appendDuration(b, 10, e.ExpiresIn)
	b = appendInt(b, 11, e.Attempt)
	b = appendString(b, 12, e.Result)
	b = appendString(b, 13, e.Reason)
	b = appendDuration(b, 14, e.Settled)
	return closeMessage(b, start)
}

func oracleDecodeEffect(e *interlock.Effect, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return digest(&e.Digest, f.s)
		case 2<<3 | wireBytes:
			return text(&e.Action, f.s)
		case 3<<3 | wireBytes:
			return id(&e.ID, f.s)
		case 4<<3 | wireVarint:
			e.State = enum[interlock.EffectState](f.v)
		case 5<<3 | wireBytes:
			return text(&e.Agent, f.s)
		case 6<<3 | wireBytes:
			return text(&e.Session, f.s)
		case 7<<3 | wireBytes:
			return text(&e.Flow, f.s)
		case 8<<3 | wireBytes:
			return text(&e.Principal, f.s)
		case 9<<3 | wireVarint:
			e.Age = time.Duration(f.v)
		case 10<<3 | wireVarint:
			e.ExpiresIn = time.Duration(f.v)
		case 11<<3 | wireVarint:
			e.Attempt = int(f.v)
		case 12<<3 | wireBytes:
			return text(&e.Result, f.s)
		case 13<<3 | wireBytes:
			return text(&e.Reason, f.s)
		case 14<<3 | wireVarint:
			e.Settled = time.Duration(f.v)
		}
		return nil
	})
}

func oracleAppendLease(b []byte, l *interlock.Lease) []byte {
	b = appendID(b, 1, (*[16]byte)(&l.ID))
	b = appendUint(b, 2, uint64(l.Fence))
	b = oracleAppendClaims(b, 3, l.Claims)
	b = appendString(b, 4, l.Agent)
	b = appendString(b, 5, l.Session)
	b = appendString(b, 6, l.Flow)
	b = appendString(b, 7, l.Purpose)
	b = appendDuration(b, 8, l.TTL)
	b = appendDuration(b, 9, l.Grace)
	b = appendDuration(b, 10, l.ExpiresIn)
	b = appendDuration(b, 11, l.MaxHoldIn)
	b = appendUint(b, 12, uint64(l.State))
	b = appendBool(b, 13, l.Reused)
	b = appendBool(b, 14, l.Changed)
	for i := range l.Notes {
		n := &l.Notes[i]
		b = openMessage(b, 15)
		start := len(b)
		b = appendString(b, 1, n.Key)
		b = appendString(b, 2, n.Agent)
		b = appendUint(b, 3, uint64(n.Fence))
		b = appendString(b, 4, n.Outcome)
		b = appendString(b, 5, n.Text)
		b = appendDuration(b, 6, n.Age)
		b = closeMessage(b, start)
	}
	b = appendDuration(b, 16, l.StallIn)
	b = appendDuration(b, 17, l.LockDelay)
	b = appendString(b, 18, l.Group)
	b = appendString(b, 19, l.EndedBy)
	b = appendTexts(b, 20, l.Moved)
	if y := l.Yield; y != nil {
		b = oracleAppendYield(b, 21, y)
	}
	if p := l.Parking; p != nil {
		b = oracleAppendParking(b, 22, p)
	}
	b = appendUint(b, 23, l.Generation)
	for i := range l.Parts {
		p := &l.Parts[i]
		b = openMessage(b, 24)
		start := len(b)
		b = appendString(b, 1, p.Key)
		b = appendID(b, 2, (*[16]byte)(&p.Lease))
		b = appendUint(b, 3, uint64(p.Fence))
		b = appendBool(b, 4, p.Stop)
		b = appendDuration(b, 5, p.Left)
		b = closeMessage(b, start)
	}
	if d := l.Decision; d != nil {
		b = openMessage(b, 25)
		start := len(b)
		b = appendUint(b, 1, uint64(d.Verdict))
		b = appendString(b, 2, d.By)
		b = appendString(b, 3, d.Principal)
		b = appendString(b, 4, d.Reason)
		b = closeMessage(b, start)
	}
	return b
}

func oracleDecodeLease(l *interlock.Lease, s string) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireBytes:
			err = id(&l.ID, f.s)
		case 2<<3 | wireVarint:
			l.Fence = interlock.Fence(f.v)
		case 3<<3 | wireBytes:
			err = oracleDecodeClaim(&l.Claims, f.s)
		case 4<<3 | wireBytes:
			err = text(&l.Agent, f.s)
		case 5<<3 | wireBytes:
			err = text(&l.Session, f.s)
		case 6<<3 | wireBytes:
			err = text(&l.Flow, f.s)
		case 7<<3 | wireBytes:
			err = text(&l.Purpose, f.s)
		case 8<<3 | wireVarint:
			l.TTL = time.Duration(f.v)
		case 9<<3 | wireVarint:
			l.Grace = time.Duration(f.v)
		case 10<<3 | wireVarint:
			l.ExpiresIn = time.Duration(f.v)
		case 11<<3 | wireVarint:
			l.MaxHoldIn = time.Duration(f.v)
		case 12<<3 | wireVarint:
			l.State = enum[interlock.LeaseState](f.v)
		case 13<<3 | wireVarint:
			l.Reused = f.v != 0
		case 14<<3 | wireVarint:
			l.Changed = f.v != 0
		case 15<<3 | wireBytes:
			err = oracleDecodeNote(grow(&l.Notes), f.s)
		case 16<<3 | wireVarint:
			l.StallIn = time.Duration(f.v)
		case 17<<3 | wireVarint:
			l.LockDelay = time.Duration(f.v)
		case 18<<3 | wireBytes:
			err = text(&l.Group, f.s)
		case 19<<3 | wireBytes:
			err = text(&l.EndedBy, f.s)
		case 20<<3 | wireBytes:
			err = text(grow(&l.Moved), f.s)
		case 21<<3 | wireBytes:
			l.Yield = &interlock.Yield{}
			err = oracleDecodeYield(l.Yield, f.s)
		case 22<<3 | wireBytes:
			l.Parking = &interlock.ParkStatus{}
			err = oracleDecodeParking(l.Parking, f.s)
		case 23<<3 | wireVarint:
			l.Generation = f.v
		case 24<<3 | wireBytes:
			err = oracleDecodePart(grow(&l.Parts), f.s)
		case 25<<3 | wireBytes:
			l.Decision = &interlock.Decision{}
			err = oracleDecodeDecision(l.Decision, f.s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func oracleDecodeNote(n *interlock.Note, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&n.Key, f.s)
		case 2<<3 | wireBytes:
			return text(&n.Agent, f.s)
		case 3<<3 | wireVarint:
			n.Fence = interlock.Fence(f.v)
		case 4<<3 | wireBytes:
			return text(&n.Outcome, f.s)
		case 5<<3 | wireBytes:
			return text(&n.Text, f.s)
		case 6<<3 | wireVarint:
			n.Age = time.Duration(f.v)
		}
		return nil
	})
}

func oracleAppendYield(b []byte, num byte, y *interlock.Yield) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, y.Agent)
	b = appendString(b, 2, y.Session)
	b = appendString(b, 3, y.Flow)
	b = appendString(b, 4, y.Purpose)
	b = appendSint(b, 5, int32(y.Priority))
	b = appendDuration(b, 6, y.Since)
	b = appendBool(b, 7, y.Revoked)
	return closeMessage(b, start)
}

func oracleDecodeYield(y *interlock.Yield, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&y.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&y.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&y.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&y.Purpose, f.s)
		case 5<<3 | wireVarint:
			y.Priority = int(unzigzag(f.v))
		case 6<<3 | wireVarint:
			y.Since = time.Duration(f.v)
		case 7<<3 | wireVarint:
			y.Revoked = f.v != 0
		}
		return nil
	})
}

func oracleAppendParking(b []byte, num byte, p *interlock.ParkStatus) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, p.Reason)
	b = appendDuration(b, 2, p.Since)
	b = appendDuration(b, 3, p.Left)
	b = appendBool(b, 4, p.Freed)
	return closeMessage(b, start)
}

func oracleDecodeParking(p *interlock.ParkStatus, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Reason, f.s)
		case 2<<3 | wireVarint:
			p.Since = time.Duration(f.v)
		case 3<<3 | wireVarint:
			p.Left = time.Duration(f.v)
		case 4<<3 | wireVarint:
			p.Freed = f.v != 0
		}
		return nil
	})
}

func oracleDecodeDecision(d *interlock.Decision, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			d.Verdict = enum[interlock.Verdict](f.v)
		case 2<<3 | wireBytes:
			return text(&d.By, f.s)
		case 3<<3 | wireBytes:
			return text(&d.Principal, f.s)
		case 4<<3 | wireBytes:
			return text(&d.Reason, f.s)
		}
		return nil
	})
}

func oracleDecodePart(p *interlock.Part, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Key, f.s)
		case 2<<3 | wireBytes:
			return id(&p.Lease, f.s)
		case 3<<3 | wireVarint:
			p.Fence = interlock.Fence(f.v)
		case 4<<3 | wireVarint:
			p.Stop = f.v != 0
		case 5<<3 | wireVarint:
			p.Left = time.Duration(f.v)
		}
		return nil
	})
}

func oracleAppendPacket(b []byte, num byte, p *interlock.Packet) []byte {
	b = openMessage(b, num)
	start := len(b)
	for i := range p.Changes {
		c := &p.Changes[i]
		b = openMessage(b, 1)
		inner := len(b)
		b = oracleAppendDocument(b, 1, &c.Then)
		b = appendBool(b, 2, c.Known)
		b = oracleAppendDocument(b, 3, &c.Now)
		b = appendUint(b, 4, uint64(uint32(c.Writes)))
		b = oracleAppendDifference(b, 5, &c.Diff)
		for k := range c.Between {
			b = oracleAppendDocument(b, 6, &c.Between[k])
		}
		b = appendUint(b, 7, uint64(uint32(c.Left)))
		b = closeMessage(b, inner)
	}
	b = appendBool(b, 2, p.More)
	b = appendString(b, 3, p.Message)
	return closeMessage(b, start)
}

func oracleAppendDifference(b []byte, num byte, d *interlock.Difference) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendUint(b, 1, uint64(d.Kind))
	b = appendString(b, 2, d.Text)
	b = appendBool(b, 3, d.Cut)
	return closeMessage(b, start)
}

func oracleDecodePacket(p *interlock.Packet, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return oracleDecodeChange(grow(&p.Changes), f.s)
		case 2<<3 | wireVarint:
			p.More = f.v != 0
		case 3<<3 | wireBytes:
			return text(&p.Message, f.s)
		}
		return nil
	})
}

func oracleDecodeChange(c *interlock.Change, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return oracleDecodeDocument(&c.Then, f.s)
		case 2<<3 | wireVarint:
			c.Known = f.v != 0
		case 3<<3 | wireBytes:
			return oracleDecodeDocument(&c.Now, f.s)
		case 4<<3 | wireVarint:
			c.Writes = int(uint32(f.v))
		case 5<<3 | wireBytes:
			return oracleDecodeDifference(&c.Diff, f.s)
		case 6<<3 | wireBytes:
			return oracleDecodeDocument(grow(&c.Between), f.s)
		case 7<<3 | wireVarint:
			c.Left = int(uint32(f.v))
		}
		return nil
	})
}

func oracleDecodeDifference(d *interlock.Difference, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			d.Kind = enum[interlock.DifferenceKind](f.v)
		case 2<<3 | wireBytes:
			return text(&d.Text, f.s)
		case 3<<3 | wireVarint:
			d.Cut = f.v != 0
		}
		return nil
	})
}

func (c *Contention) appendTo(b []byte, num byte) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, c.Pattern)
	b = appendUint(b, 2, c.Commits)
	b = appendUint(b, 3, c.Conflicts)
	b = appendUint(b, 4, c.Retries)
	b = appendUint(b, 5, c.Leased)
	b = appendUint(b, 6, c.Leases)
	b = appendUint(b, 7, c.Waited)
	if c.Advice != nil {
		b = oracleAppendAdvice(b, 8, c.Advice)
	}
	b = appendUint(b, 9, uint64(c.Write))
	return closeMessage(b, start)
}

func (c *Contention) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Pattern, f.s)
		case 2<<3 | wireVarint:
			c.Commits = f.v
		case 3<<3 | wireVarint:
			c.Conflicts = f.v
		case 4<<3 | wireVarint:
			c.Retries = f.v
		case 5<<3 | wireVarint:
			c.Leased = f.v
		case 6<<3 | wireVarint:
			c.Leases = f.v
		case 7<<3 | wireVarint:
			c.Waited = f.v
		case 8<<3 | wireBytes:
			c.Advice = &interlock.Advice{}
			return oracleDecodeAdvice(c.Advice, f.s)
		case 9<<3 | wireVarint:
			c.Write = enum[interlock.WritePolicy](f.v)
		}
		return nil
	})
}

func oracleAppendPattern(b []byte, num byte, p *interlock.Pattern) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, p.Name)
	b = appendString(b, 2, p.Shape)
	b = appendTexts(b, 3, p.Aliases)
	b = appendTexts(b, 4, p.Members)
	b = appendUint(b, 5, uint64(p.Capacity))
	b = appendUint(b, 6, uint64(p.Rate))
	b = appendDuration(b, 7, p.Per)
	b = appendUint(b, 8, uint64(p.Burst))
	for i := range p.Groups {
		g := &p.Groups[i]
		b = openMessage(b, 9)
		start := len(b)
		b = appendString(b, 1, g.Name)
		b = appendUint(b, 2, uint64(g.Min))
		b = appendUint(b, 3, uint64(g.Max))
		b = closeMessage(b, start)
	}
	b = appendDuration(b, 10, p.TTL)
	b = appendDuration(b, 11, p.MaxTTL)
	b = appendDuration(b, 12, p.Grace)
	b = appendDuration(b, 13, p.MaxGrace)
	b = appendDuration(b, 14, p.MaxHold)
	b = appendDuration(b, 15, p.Stall)
	b = appendDuration(b, 16, p.LockDelay)
	b = appendDuration(b, 17, p.MaxWait)
	b = appendInt(b, 18, p.MaxWaiters)
	for i := range p.Allow {
		r := &p.Allow[i]
		b = openMessage(b, 19)
		start := len(b)
		b = appendString(b, 1, r.Principal)
		if len(r.Modes) > 0 {
			b = openMessage(b, 2)
			packed := len(b)
			for _, mode := range r.Modes {
				b = appendVarint(b, uint64(mode))
			}
			b = closeMessage(b, packed)
		}
		b = closeMessage(b, start)
	}
	b = appendUint(b, 20, uint64(p.Preempt))
	b = appendUint(b, 21, uint64(p.Park))
	b = appendDuration(b, 22, p.MaxPark)
	b = appendUint(b, 23, uint64(p.OnDeadlock))
	b = appendUint(b, 24, uint64(p.Write))
	b = appendString(b, 25, p.Writer)
	b = appendString(b, 26, p.WriterQueue)
	b = appendBool(b, 27, p.AuditRefusals)
	return closeMessage(b, start)
}

func oracleDecodePattern(p *interlock.Pattern, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Name, f.s)
		case 2<<3 | wireBytes:
			return text(&p.Shape, f.s)
		case 3<<3 | wireBytes:
			return texts(&p.Aliases, f.s)
		case 4<<3 | wireBytes:
			return texts(&p.Members, f.s)
		case 5<<3 | wireVarint:
			p.Capacity = count(f.v)
		case 6<<3 | wireVarint:
			p.Rate = count(f.v)
		case 7<<3 | wireVarint:
			p.Per = time.Duration(f.v)
		case 8<<3 | wireVarint:
			p.Burst = count(f.v)
		case 9<<3 | wireBytes:
			if len(p.Groups) > MaxListed {
				return nil
			}
			return oracleDecodeGroup(grow(&p.Groups), f.s)
		case 10<<3 | wireVarint:
			p.TTL = time.Duration(f.v)
		case 11<<3 | wireVarint:
			p.MaxTTL = time.Duration(f.v)
		case 12<<3 | wireVarint:
			p.Grace = time.Duration(f.v)
		case 13<<3 | wireVarint:
			p.MaxGrace = time.Duration(f.v)
		case 14<<3 | wireVarint:
			p.MaxHold = time.Duration(f.v)
		case 15<<3 | wireVarint:
			p.Stall = time.Duration(f.v)
		case 16<<3 | wireVarint:
			p.LockDelay = time.Duration(f.v)
		case 17<<3 | wireVarint:
			p.MaxWait = time.Duration(f.v)
		case 18<<3 | wireVarint:
			p.MaxWaiters = int(f.v)
		case 19<<3 | wireBytes:
			if len(p.Allow) > MaxListed {
				return nil
			}
			return oracleDecodeRule(grow(&p.Allow), f.s)
		case 20<<3 | wireVarint:
			p.Preempt = enum[interlock.PreemptPolicy](f.v)
		case 21<<3 | wireVarint:
			p.Park = enum[interlock.ParkPolicy](f.v)
		case 22<<3 | wireVarint:
			p.MaxPark = time.Duration(f.v)
		case 23<<3 | wireVarint:
			p.OnDeadlock = enum[interlock.DeadlockPolicy](f.v)
		case 24<<3 | wireVarint:
			p.Write = enum[interlock.WritePolicy](f.v)
		case 25<<3 | wireBytes:
			return text(&p.Writer, f.s)
		case 26<<3 | wireBytes:
			return text(&p.WriterQueue, f.s)
		case 27<<3 | wireVarint:
			p.AuditRefusals = f.v != 0
		}
		return nil
	})
}

func oracleDecodeGroup(g *interlock.Group, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&g.Name, f.s)
		case 2<<3 | wireVarint:
			g.Min = count(f.v)
		case 3<<3 | wireVarint:
			g.Max = count(f.v)
		}
		return nil
	})
}

func oracleDecodeRule(r *interlock.Rule, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&r.Principal, f.s)
		case 2<<3 | wireBytes:
			for packed := f.s; packed != "" && len(r.Modes) <= MaxListed; {
				v, rest, err := varint(packed)
				if err != nil {
					return err
				}
				packed = rest
				r.Modes = append(r.Modes, enum[interlock.Mode](v))
			}
		case 2<<3 | wireVarint:
			if len(r.Modes) <= MaxListed {
				r.Modes = append(r.Modes, enum[interlock.Mode](f.v))
			}
		}
		return nil
	})
}

func oracleAppendSettings(b []byte, num byte, s *interlock.Settings) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendBool(b, 1, s.StrictOrder)
	b = appendBool(b, 3, s.NearMisses)
	b = oracleAppendQuota(b, 4, &s.Quota)
	b = oracleAppendQuota(b, 5, &s.PrincipalQuota)
	b = appendBool(b, 6, s.Closed)
	b = appendDuration(b, 7, s.EffectRetention)
	return closeMessage(b, start)
}

func oracleAppendQuota(b []byte, num byte, q *interlock.Quota) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendInt(b, 1, q.Keys)
	b = appendInt(b, 2, q.Leases)
	b = appendInt(b, 3, q.Waiters)
	b = appendInt(b, 4, q.Sessions)
	b = appendInt(b, 5, q.Requests)
	b = appendInt(b, 6, q.Bytes)
	b = appendInt(b, 7, q.Documents)
	b = appendInt(b, 8, q.State)
	return closeMessage(b, start)
}

func oracleDecodeSettings(x *interlock.Settings, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			x.StrictOrder = f.v != 0
		case 3<<3 | wireVarint:
			x.NearMisses = f.v != 0
		case 4<<3 | wireBytes:
			return oracleDecodeQuota(&x.Quota, f.s)
		case 5<<3 | wireBytes:
			return oracleDecodeQuota(&x.PrincipalQuota, f.s)
		case 6<<3 | wireVarint:
			x.Closed = f.v != 0
		case 7<<3 | wireVarint:
			x.EffectRetention = time.Duration(f.v)
		}
		return nil
	})
}

func oracleDecodeQuota(q *interlock.Quota, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			q.Keys = int(f.v)
		case 2<<3 | wireVarint:
			q.Leases = int(f.v)
		case 3<<3 | wireVarint:
			q.Waiters = int(f.v)
		case 4<<3 | wireVarint:
			q.Sessions = int(f.v)
		case 5<<3 | wireVarint:
			q.Requests = int(f.v)
		case 6<<3 | wireVarint:
			q.Bytes = int(f.v)
		case 7<<3 | wireVarint:
			q.Documents = int(f.v)
		case 8<<3 | wireVarint:
			q.State = int(f.v)
		}
		return nil
	})
}

func oracleAppendQueue(b []byte, num byte, q *interlock.TaskQueue) []byte {
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

func oracleDecodeQueue(q *interlock.TaskQueue, s string) error {
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
				return oracleDecodeShare(grow(&q.Groups), f.s)
			}
		case 14<<3 | wireBytes:
			return oracleEntry(&q.Pull, f.s)
		case 15<<3 | wireBytes:
			return oracleEntry(&q.Submit, f.s)
		case 16<<3 | wireBytes:
			return oracleEntry(&q.Admin, f.s)
		case 17<<3 | wireBytes:
			return oracleEntry(&q.Approvers, f.s)
		case 18<<3 | wireVarint:
			q.MinApprovals = int(f.v)
		}
		return nil
	})
}

func oracleDecodeShare(g *interlock.Share, s string) error {
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

func oracleAppendQueueStatus(b []byte, num byte, q *interlock.QueueStatus) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = oracleAppendQueue(b, 1, &q.TaskQueue)
	b = appendInt(b, 2, q.Scheduled)
	b = appendInt(b, 3, q.Waiting)
	b = appendInt(b, 4, q.Running)
	b = appendInt(b, 5, q.Asking)
	b = appendInt(b, 6, q.Dead)
	b = appendInt(b, 7, q.Idle)
	b = appendDuration(b, 8, q.Oldest)
	return closeMessage(b, start)
}

func oracleDecodeQueueStatus(q *interlock.QueueStatus, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return oracleDecodeQueue(&q.TaskQueue, f.s)
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
	return oracleDecodeQueue(o.Queue, f.s)
}

// entry adds an entry to an access list. One more than is allowed is kept, so that the list is
// refused.
func oracleEntry(list *[]string, s string) error {
	if len(*list) > interlock.MaxAccess {
		return nil
	}
	return text(grow(list), s)
}

func (r *Reply) decode(s string) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireVarint:
			r.Slot = uint32(f.v)
		case 2<<3 | wireVarint:
			r.Seq = f.v
		case 3<<3 | wireVarint:
			r.Outcome = enum[Outcome](f.v)
		case 4<<3 | wireVarint:
			r.Index = interlock.Index(f.v)
		case 5<<3 | wireBytes:
			err = oracleDecodeLease(&r.Lease, f.s)
		case 6<<3 | wireBytes:
			r.Ticket = &interlock.Ticket{}
			err = oracleDecodeTicket(r.Ticket, f.s)
		case 7<<3 | wireBytes:
			r.Session = &Session{}
			err = r.Session.decode(f.s)
		case 8<<3 | wireBytes:
			err = grow(&r.Losses).decode(f.s)
		case 9<<3 | wireBytes:
			err = text(&r.Code, f.s)
		case 10<<3 | wireBytes:
			err = text(&r.Message, f.s)
		case 11<<3 | wireBytes:
			r.Conflict = &Conflict{}
			err = r.Conflict.decode(f.s)
		case 12<<3 | wireBytes:
			r.Advice = &interlock.Advice{}
			err = oracleDecodeAdvice(r.Advice, f.s)
		case 13<<3 | wireBytes:
			err = text(grow(&r.Warnings), f.s)
		case 14<<3 | wireBytes:
			err = text(&r.EndedBy, f.s)
		case 15<<3 | wireBytes:
			err = oracleDecodePattern(grow(&r.Patterns), f.s)
		case 16<<3 | wireVarint:
			r.More = f.v != 0
		case 17<<3 | wireBytes:
			r.Settings = &interlock.Settings{}
			err = oracleDecodeSettings(r.Settings, f.s)
		case 18<<3 | wireVarint:
			r.Version = interlock.Version(f.v)
		case 19<<3 | wireBytes:
			err = oracleDecodeDocument(grow(&r.Documents), f.s)
		case 20<<3 | wireBytes:
			r.Packet = &interlock.Packet{}
			err = oracleDecodePacket(r.Packet, f.s)
		case 21<<3 | wireBytes:
			err = oracleDecodeEffect(grow(&r.Effects), f.s)
		case 22<<3 | wireBytes:
			err = grow(&r.Contention).decode(f.s)
		case 23<<3 | wireBytes:
			err = oracleDecodeTask(grow(&r.Tasks), f.s)
		case 24<<3 | wireBytes:
			if r.Handed == nil {
				r.Handed = make([]Assignment, 0, 1+countFields(s, f.tag))
			}
			err = grow(&r.Handed).decode(f.s)
		case 25<<3 | wireBytes:
			err = oracleDecodeQueueStatus(grow(&r.Queues), f.s)
		case 26<<3 | wireBytes:
			err = oracleDecodeLogEntry(grow(&r.Log), f.s)
		case 27<<3 | wireVarint:
			r.Next = f.v
		case 28<<3 | wireVarint:
			r.AsAsked = f.v != 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func oracleDecodeTicket(t *interlock.Ticket, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&t.ID, f.s)
		case 2<<3 | wireVarint:
			t.Position = int(uint32(f.v))
		case 3<<3 | wireVarint:
			t.Length = int(uint32(f.v))
		case 4<<3 | wireVarint:
			t.ETA = time.Duration(f.v)
		}
		return nil
	})
}

func (x *Session) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&x.ID, f.s)
		case 2<<3 | wireBytes:
			return text(&x.Name, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Agent, f.s)
		case 4<<3 | wireVarint:
			x.TTL = time.Duration(f.v)
		case 5<<3 | wireVarint:
			x.ExpiresIn = time.Duration(f.v)
		}
		return nil
	})
}

func (x *Loss) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return oracleDecodeLease(&x.Lease, f.s)
		case 2<<3 | wireBytes:
			return text(&x.Code, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Message, f.s)
		}
		return nil
	})
}

func (c *Conflict) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Key, f.s)
		case 2<<3 | wireBytes:
			return text(&c.Kind, f.s)
		case 3<<3 | wireBytes:
			return oracleDecodeHolder(grow(&c.Holders), f.s)
		case 4<<3 | wireVarint:
			c.More = int(uint32(f.v))
		case 5<<3 | wireVarint:
			c.Queue.Length = int(uint32(f.v))
		case 6<<3 | wireVarint:
			c.Queue.ETA = time.Duration(f.v)
		case 7<<3 | wireBytes:
			return oracleDecodeStep(grow(&c.Cycle), f.s)
		case 8<<3 | wireBytes:
			c.Capacity = &interlock.Capacity{}
			return oracleDecodeCapacity(c.Capacity, f.s)
		case 9<<3 | wireBytes:
			return text(grow(&c.Nearest), f.s)
		}
		return nil
	})
}

func oracleDecodeHolder(h *interlock.Holder, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&h.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&h.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&h.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&h.Purpose, f.s)
		case 5<<3 | wireBytes:
			return text(&h.Key, f.s)
		case 6<<3 | wireVarint:
			h.Mode = enum[interlock.Mode](f.v)
		case 7<<3 | wireVarint:
			h.Fence = interlock.Fence(f.v)
		case 8<<3 | wireVarint:
			h.Liveness = enum[interlock.Liveness](f.v)
		case 9<<3 | wireVarint:
			h.HeartbeatAge = time.Duration(f.v)
		case 10<<3 | wireVarint:
			h.Held = time.Duration(f.v)
		case 11<<3 | wireVarint:
			h.ExpiresIn = time.Duration(f.v)
		case 12<<3 | wireBytes:
			return text(&h.Progress, f.s)
		case 13<<3 | wireVarint:
			h.Count = count(f.v)
		case 14<<3 | wireBytes:
			h.Parking = &interlock.ParkStatus{}
			return oracleDecodeParking(h.Parking, f.s)
		case 15<<3 | wireBytes:
			return text(&h.EndedBy, f.s)
		case 16<<3 | wireBytes:
			h.Yield = &interlock.Yield{}
			return oracleDecodeYield(h.Yield, f.s)
		}
		return nil
	})
}

func oracleDecodeCapacity(c *interlock.Capacity, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			c.Permits = count(f.v)
		case 2<<3 | wireVarint:
			c.Used = count(f.v)
		case 3<<3 | wireVarint:
			c.Tokens = count(f.v)
		case 4<<3 | wireVarint:
			c.Available = count(f.v)
		case 5<<3 | wireVarint:
			c.Refill = time.Duration(f.v)
		case 6<<3 | wireBytes:
			return oracleDecodeGroupUse(grow(&c.Groups), f.s)
		}
		return nil
	})
}

func oracleDecodeGroupUse(g *interlock.GroupUse, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&g.Name, f.s)
		case 2<<3 | wireVarint:
			g.Min = count(f.v)
		case 3<<3 | wireVarint:
			g.Max = count(f.v)
		case 4<<3 | wireVarint:
			g.Used = count(f.v)
		}
		return nil
	})
}

func oracleDecodeStep(c *interlock.CycleStep, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&c.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&c.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&c.Key, f.s)
		case 5<<3 | wireVarint:
			c.Mode = enum[interlock.Mode](f.v)
		case 6<<3 | wireVarint:
			c.Victim = f.v != 0
		case 7<<3 | wireVarint:
			c.Next = enum[interlock.BlockerRole](f.v)
		}
		return nil
	})
}

func oracleDecodeAdvice(a *interlock.Advice, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&a.Action, f.s)
		case 2<<3 | wireVarint:
			a.RetryAfter = time.Duration(f.v)
		case 3<<3 | wireBytes:
			return text(&a.Message, f.s)
		}
		return nil
	})
}

// AppendTo appends the frame's encoding to b.
func oracleAppendServer(f *ServerFrame, b []byte) []byte {
	b = appendUint(b, 1, uint64(f.Shard))
	b = appendUint(b, 2, uint64(f.Epoch))
	for i := range f.Replies {
		b = openMessage(b, 3)
		start := len(b)
		b = f.Replies[i].appendTo(b)
		b = closeMessage(b, start)
	}
	if f.GoAway != nil {
		b = appendGoAway(b, 4, f.GoAway)
	}
	return b
}

func (r *Reply) appendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(r.Slot))
	b = appendUint(b, 2, r.Seq)
	b = appendUint(b, 3, uint64(r.Outcome))
	b = appendUint(b, 4, uint64(r.Index))
	if !r.Lease.ID.IsZero() {
		b = openMessage(b, 5)
		start := len(b)
		b = oracleAppendLease(b, &r.Lease)
		b = closeMessage(b, start)
	}
	if t := r.Ticket; t != nil {
		b = openMessage(b, 6)
		start := len(b)
		b = appendID(b, 1, (*[16]byte)(&t.ID))
		b = appendUint(b, 2, uint64(uint32(t.Position)))
		b = appendUint(b, 3, uint64(uint32(t.Length)))
		b = appendDuration(b, 4, t.ETA)
		b = closeMessage(b, start)
	}
	if s := r.Session; s != nil {
		b = openMessage(b, 7)
		start := len(b)
		b = appendID(b, 1, (*[16]byte)(&s.ID))
		b = appendString(b, 2, s.Name)
		b = appendString(b, 3, s.Agent)
		b = appendDuration(b, 4, s.TTL)
		b = appendDuration(b, 5, s.ExpiresIn)
		b = closeMessage(b, start)
	}
	for i := range r.Losses {
		b = openMessage(b, 8)
		start := len(b)
		b = openMessage(b, 1)
		inner := len(b)
		b = oracleAppendLease(b, &r.Losses[i].Lease)
		b = closeMessage(b, inner)
		b = appendString(b, 2, r.Losses[i].Code)
		b = appendString(b, 3, r.Losses[i].Message)
		b = closeMessage(b, start)
	}
	b = appendString(b, 9, r.Code)
	b = appendString(b, 10, r.Message)
	if r.Conflict != nil {
		b = openMessage(b, 11)
		start := len(b)
		b = r.Conflict.appendTo(b)
		b = closeMessage(b, start)
	}
	if r.Advice != nil {
		b = oracleAppendAdvice(b, 12, r.Advice)
	}
	b = appendTexts(b, 13, r.Warnings)
	b = appendString(b, 14, r.EndedBy)
	for i := range r.Patterns {
		b = oracleAppendPattern(b, 15, &r.Patterns[i])
	}
	b = appendBool(b, 16, r.More)
	if r.Settings != nil {
		b = oracleAppendSettings(b, 17, r.Settings)
	}
	b = appendUint(b, 18, uint64(r.Version))
	for i := range r.Documents {
		b = oracleAppendDocument(b, 19, &r.Documents[i])
	}
	if r.Packet != nil {
		b = oracleAppendPacket(b, 20, r.Packet)
	}
	for i := range r.Effects {
		b = oracleAppendEffect(b, 21, &r.Effects[i])
	}
	for i := range r.Contention {
		b = r.Contention[i].appendTo(b, 22)
	}
	for i := range r.Tasks {
		b = oracleAppendTask(b, 23, &r.Tasks[i])
	}
	for i := range r.Handed {
		b = r.Handed[i].appendTo(b, 24)
	}
	for i := range r.Queues {
		b = oracleAppendQueueStatus(b, 25, &r.Queues[i])
	}
	for i := range r.Log {
		b = oracleAppendLogEntry(b, 26, &r.Log[i])
	}
	b = appendUint(b, 27, r.Next)
	return appendBool(b, 28, r.AsAsked)
}

func oracleAppendAdvice(b []byte, num byte, a *interlock.Advice) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, a.Action)
	b = appendDuration(b, 2, a.RetryAfter)
	b = appendString(b, 3, a.Message)
	return closeMessage(b, start)
}

func (c *Conflict) appendTo(b []byte) []byte {
	b = appendString(b, 1, c.Key)
	b = appendString(b, 2, c.Kind)
	for i := range c.Holders {
		h := &c.Holders[i]
		b = openMessage(b, 3)
		start := len(b)
		b = appendString(b, 1, h.Agent)
		b = appendString(b, 2, h.Session)
		b = appendString(b, 3, h.Flow)
		b = appendString(b, 4, h.Purpose)
		b = appendString(b, 5, h.Key)
		b = appendUint(b, 6, uint64(h.Mode))
		b = appendUint(b, 7, uint64(h.Fence))
		b = appendUint(b, 8, uint64(h.Liveness))
		b = appendDuration(b, 9, h.HeartbeatAge)
		b = appendDuration(b, 10, h.Held)
		b = appendDuration(b, 11, h.ExpiresIn)
		b = appendString(b, 12, h.Progress)
		b = appendUint(b, 13, uint64(h.Count))
		if h.Parking != nil {
			b = oracleAppendParking(b, 14, h.Parking)
		}
		b = appendString(b, 15, h.EndedBy)
		if h.Yield != nil {
			b = oracleAppendYield(b, 16, h.Yield)
		}
		b = closeMessage(b, start)
	}
	b = appendUint(b, 4, uint64(uint32(c.More)))
	b = appendUint(b, 5, uint64(uint32(c.Queue.Length)))
	b = appendDuration(b, 6, c.Queue.ETA)
	for i := range c.Cycle {
		s := &c.Cycle[i]
		b = openMessage(b, 7)
		start := len(b)
		b = appendString(b, 1, s.Agent)
		b = appendString(b, 2, s.Session)
		b = appendString(b, 3, s.Flow)
		b = appendString(b, 4, s.Key)
		b = appendUint(b, 5, uint64(s.Mode))
		b = appendBool(b, 6, s.Victim)
		b = appendUint(b, 7, uint64(s.Next))
		b = closeMessage(b, start)
	}
	if x := c.Capacity; x != nil {
		b = openMessage(b, 8)
		start := len(b)
		b = appendUint(b, 1, uint64(x.Permits))
		b = appendUint(b, 2, uint64(x.Used))
		b = appendUint(b, 3, uint64(x.Tokens))
		b = appendUint(b, 4, uint64(x.Available))
		b = appendDuration(b, 5, x.Refill)
		for i := range x.Groups {
			g := &x.Groups[i]
			b = openMessage(b, 6)
			inner := len(b)
			b = appendString(b, 1, g.Name)
			b = appendUint(b, 2, uint64(g.Min))
			b = appendUint(b, 3, uint64(g.Max))
			b = appendUint(b, 4, uint64(g.Used))
			b = closeMessage(b, inner)
		}
		b = closeMessage(b, start)
	}
	return appendTexts(b, 9, c.Nearest)
}

// Decode replaces the frame's content by that of b. Nothing of b is kept.
func oracleDecodeServer(f *ServerFrame, b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		switch x.tag {
		case 1<<3 | wireVarint:
			f.Shard = uint32(x.v)
		case 2<<3 | wireVarint:
			f.Epoch = interlock.Epoch(x.v)
		case 3<<3 | wireBytes:
			err = f.Next().decode(string(x.s))
		case 4<<3 | wireBytes:
			f.GoAway = &GoAway{}
			err = decodeGoAway(f.GoAway, string(x.s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *Op) appendCommit(b []byte) []byte {
	c := o.Commit
	b = appendString(b, 1, c.Flow)
	for i := range c.Reads {
		b = oracleAppendRead(b, 2, &c.Reads[i])
	}
	b = appendUint(b, 3, uint64(c.AsOf))
	for i := range c.Writes {
		b = oracleAppendWrite(b, 4, &c.Writes[i])
	}
	for i := range c.Leases {
		b = appendText(b, 5, c.Leases[i][:])
	}
	return appendString(b, 6, c.Note)
}

func oracleAppendRead(b []byte, num byte, r *interlock.Read) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, r.Key)
	b = appendUint(b, 2, uint64(r.Version))
	b = appendBool(b, 3, r.Absent)
	b = appendBool(b, 4, r.Present)
	return closeMessage(b, start)
}

func oracleAppendWrite(b []byte, num byte, w *interlock.Write) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, w.Key)
	b = appendUint(b, 2, uint64(w.Op))
	b = appendString(b, 3, w.ContentType)
	b = appendBytes(b, 4, w.Body)
	if w.Delta != 0 {
		b = appendSint64(b, 5, w.Delta)
	}
	if w.Min != nil {
		b = appendSint64(b, 6, *w.Min)
	}
	if w.Max != nil {
		b = appendSint64(b, 7, *w.Max)
	}
	return closeMessage(b, start)
}

func (o *Op) appendReadState(b []byte) []byte {
	q := o.State
	b = appendTexts(b, 1, q.Keys)
	b = appendUint(b, 2, uint64(o.AsOf))
	b = appendString(b, 3, o.Prefix)
	b = appendString(b, 4, q.After)
	b = appendUint(b, 5, uint64(q.Limit))
	return appendBool(b, 6, o.Bodies)
}

func (o *Op) commitField(f *field[string]) error {
	switch c := o.Commit; f.tag {
	case 1<<3 | wireBytes:
		return ownText(&c.Flow, f.s)
	case 2<<3 | wireBytes:
		if len(c.Reads) <= MaxListed {
			return oracleDecodeRead(grow(&c.Reads), f.s)
		}
	case 3<<3 | wireVarint:
		c.AsOf = interlock.Version(f.v)
	case 4<<3 | wireBytes:
		if len(c.Writes) <= MaxListed {
			return oracleDecodeWrite(grow(&c.Writes), f.s)
		}
	case 5<<3 | wireBytes:
		if len(c.Leases) <= MaxListed {
			return id(grow(&c.Leases), f.s)
		}
	case 6<<3 | wireBytes:
		return ownText(&c.Note, f.s)
	}
	return nil
}

func oracleDecodeRead(r *interlock.Read, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return ownText(&r.Key, f.s)
		case 2<<3 | wireVarint:
			r.Version = interlock.Version(f.v)
		case 3<<3 | wireVarint:
			r.Absent = f.v != 0
		case 4<<3 | wireVarint:
			r.Present = f.v != 0
		}
		return nil
	})
}

func oracleDecodeWrite(w *interlock.Write, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return ownText(&w.Key, f.s)
		case 2<<3 | wireVarint:
			w.Op = enum[interlock.WriteOp](f.v)
		case 3<<3 | wireBytes:
			return ownText(&w.ContentType, f.s)
		case 4<<3 | wireBytes:
			w.Body = ownBytes(f.s)
		case 5<<3 | wireVarint:
			w.Delta = unzigzag64(f.v)
		case 6<<3 | wireVarint:
			w.Min = new(unzigzag64(f.v))
		case 7<<3 | wireVarint:
			w.Max = new(unzigzag64(f.v))
		}
		return nil
	})
}

func (o *Op) readStateField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return texts(&o.State.Keys, f.s)
	case 2<<3 | wireVarint:
		o.AsOf = interlock.Version(f.v)
	case 3<<3 | wireBytes:
		return text(&o.Prefix, f.s)
	case 4<<3 | wireBytes:
		return text(&o.State.After, f.s)
	case 5<<3 | wireVarint:
		o.State.Limit = count(f.v)
	case 6<<3 | wireVarint:
		o.Bodies = f.v != 0
	}
	return nil
}

func (o *Op) readHistoryField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		return text(&o.Key, f.s)
	case 2<<3 | wireVarint:
		o.Bodies = f.v != 0
	}
	return nil
}

func oracleAppendDocument(b []byte, num byte, d *interlock.Document) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, d.Key)
	b = appendUint(b, 2, uint64(d.Version))
	b = appendBool(b, 3, d.Absent)
	b = appendString(b, 4, d.ContentType)
	if d.Body != nil {
		b = appendText(b, 5, d.Body)
	}
	b = appendInt(b, 6, d.Size)
	b = appendUint(b, 7, uint64(d.Op))
	b = appendString(b, 8, d.Agent)
	b = appendString(b, 9, d.Session)
	b = appendString(b, 10, d.Flow)
	b = appendString(b, 11, d.Principal)
	b = appendUint(b, 12, uint64(d.Fence))
	b = appendString(b, 13, d.Note)
	b = appendDuration(b, 14, d.Age)
	for i := range d.Earlier {
		b = oracleAppendDocument(b, 15, &d.Earlier[i])
	}
	return closeMessage(b, start)
}

func oracleDecodeDocument(d *interlock.Document, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&d.Key, f.s)
		case 2<<3 | wireVarint:
			d.Version = interlock.Version(f.v)
		case 3<<3 | wireVarint:
			d.Absent = f.v != 0
		case 4<<3 | wireBytes:
			return text(&d.ContentType, f.s)
		case 5<<3 | wireBytes:
			d.Body = append([]byte{}, f.s...) // also an empty one is there
		case 6<<3 | wireVarint:
			d.Size = int(f.v)
		case 7<<3 | wireVarint:
			d.Op = enum[interlock.WriteOp](f.v)
		case 8<<3 | wireBytes:
			return text(&d.Agent, f.s)
		case 9<<3 | wireBytes:
			return text(&d.Session, f.s)
		case 10<<3 | wireBytes:
			return text(&d.Flow, f.s)
		case 11<<3 | wireBytes:
			return text(&d.Principal, f.s)
		case 12<<3 | wireVarint:
			d.Fence = interlock.Fence(f.v)
		case 13<<3 | wireBytes:
			return text(&d.Note, f.s)
		case 14<<3 | wireVarint:
			d.Age = time.Duration(f.v)
		case 15<<3 | wireBytes:
			x := grow(&d.Earlier)
			err := oracleDecodeDocument(x, f.s)
			x.Earlier = nil // one level is all there is
			return err
		}
		return nil
	})
}

func (h *Assignment) appendTo(b []byte, num byte) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = oracleAppendTask(b, 1, &h.Task)
	b = openMessage(b, 2)
	inner := len(b)
	b = oracleAppendLease(b, &h.Lease)
	b = closeMessage(b, inner)
	for i := range h.Documents {
		b = oracleAppendDocument(b, 3, &h.Documents[i])
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
			return oracleDecodeTask(&h.Task, f.s)
		case 2<<3 | wireBytes:
			return oracleDecodeLease(&h.Lease, f.s)
		case 3<<3 | wireBytes:
			return oracleDecodeDocument(grow(&h.Documents), f.s)
		case 4<<3 | wireVarint:
			h.AsOf = interlock.Version(f.v)
		}
		return nil
	})
}

func oracleAppendTask(b []byte, num byte, t *interlock.Task) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendID(b, 1, (*[16]byte)(&t.ID))
	b = appendString(b, 2, t.Queue)
	b = appendString(b, 3, t.Kind)
	b = oracleAppendClaims(b, 4, t.Claims)
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
		b = oracleAppendApproval(b, 24, t.Approval)
	}
	b = appendBytes(b, 25, t.Result)
	b = appendDuration(b, 26, t.Settled)
	b = appendString(b, 27, t.Reason)
	b = appendBool(b, 28, t.Barred)
	return closeMessage(b, start)
}

func oracleAppendApproval(b []byte, num byte, a *interlock.Approval) []byte {
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
		b = oracleAppendDocument(b, 1, &s.Then)
		b = appendBool(b, 2, s.Known)
		b = oracleAppendDocument(b, 3, &s.Now)
		b = appendInt(b, 4, s.Writes)
		for k := range s.Between {
			b = oracleAppendDocument(b, 5, &s.Between[k])
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

func oracleDecodeTask(t *interlock.Task, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&t.ID, f.s)
		case 2<<3 | wireBytes:
			return text(&t.Queue, f.s)
		case 3<<3 | wireBytes:
			return text(&t.Kind, f.s)
		case 4<<3 | wireBytes:
			return oracleDecodeClaim(&t.Claims, f.s)
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
			return oracleDecodeAttempt(grow(&t.Attempts), f.s)
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
			return oracleDecodeApproval(t.Approval, f.s)
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

func oracleDecodeAttempt(a *interlock.Attempt, s string) error {
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

func oracleDecodeApproval(a *interlock.Approval, s string) error {
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
			return oracleDecodeStale(grow(&a.Stale), f.s)
		case 9<<3 | wireVarint:
			a.StaleMore = f.v != 0
		case 10<<3 | wireBytes:
			return text(&a.Agent, f.s)
		case 11<<3 | wireBytes:
			return text(&a.Principal, f.s)
		case 12<<3 | wireBytes:
			return oracleDecodeEndorsement(grow(&a.Approvals), f.s)
		case 13<<3 | wireVarint:
			a.Needed = int(f.v)
		}
		return nil
	})
}

func oracleDecodeEndorsement(x *interlock.Endorsement, s string) error {
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

func oracleDecodeStale(x *interlock.Stale, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return oracleDecodeDocument(&x.Then, f.s)
		case 2<<3 | wireVarint:
			x.Known = f.v != 0
		case 3<<3 | wireBytes:
			return oracleDecodeDocument(&x.Now, f.s)
		case 4<<3 | wireVarint:
			x.Writes = int(f.v)
		case 5<<3 | wireBytes:
			return oracleDecodeDocument(grow(&x.Between), f.s)
		}
		return nil
	})
}

func oracleAppendLogEntry(b []byte, num byte, x *interlock.LogEntry) []byte {
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
	b = oracleAppendDocument(b, 14, &x.Document)
	b = appendBool(b, 15, x.Changed)
	b = appendDuration(b, 16, x.Age)
	return closeMessage(b, start)
}

func oracleDecodeLogEntry(x *interlock.LogEntry, s string) error {
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
			return oracleDecodeDocument(&x.Document, f.s)
		case 15<<3 | wireVarint:
			x.Changed = f.v != 0
		case 16<<3 | wireVarint:
			x.Age = time.Duration(f.v)
		}
		return nil
	})
}

// aboutTasks reports whether operations of a kind have a TaskOp.
func (k OpKind) aboutTasks() bool {
	return k >= OpSubmitTask && k <= OpListTasks && k != OpGetTask || k == OpReadLog
}

func (o *Op) oracleAppendTask(b []byte) []byte {
	x := o.Task
	switch o.Kind {
	case OpSubmitTask:
		for i := range x.Specs {
			b = oracleAppendTaskSpec(b, 1, &x.Specs[i])
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
			b = oracleAppendRead(b, 3, &c.Reads[i])
		}
		for i := range c.Writes {
			b = oracleAppendWrite(b, 5, &c.Writes[i])
		}
		b = appendUint(b, 4, uint64(c.AsOf))
		for i := range x.Specs {
			b = oracleAppendTaskSpec(b, 6, &x.Specs[i])
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
		b = oracleAppendQuestion(b, 2, x.Question)
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

func oracleAppendTaskSpec(b []byte, num byte, t *interlock.TaskSpec) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, t.Queue)
	b = appendString(b, 2, t.Kind)
	b = oracleAppendClaims(b, 3, t.Claims)
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
	b = oracleAppendQuestion(b, 15, t.Ask)
	return closeMessage(b, start)
}

func oracleAppendQuestion(b []byte, num byte, q *interlock.Question) []byte {
	if q == nil {
		return b
	}
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, q.Text)
	b = appendDuration(b, 2, q.Limit)
	b = appendUint(b, 3, uint64(q.OnLimit))
	for i := range q.Reads {
		b = oracleAppendRead(b, 4, &q.Reads[i])
	}
	return closeMessage(b, start)
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
			return oracleDecodeQuestion(x.Question, f.s)
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
		return oracleDecodeTaskSpec(&x.Specs[0], f.s)
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
			return oracleDecodeRead(grow(&c.Reads), f.s)
		}
	case 4<<3 | wireVarint:
		o.commits().AsOf = interlock.Version(f.v)
	case 5<<3 | wireBytes:
		if c := o.commits(); len(c.Writes) <= MaxListed {
			return oracleDecodeWrite(grow(&c.Writes), f.s)
		}
	case 6<<3 | wireBytes:
		if len(x.Specs) <= MaxListed {
			return oracleDecodeTaskSpec(grow(&x.Specs), f.s)
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

func oracleDecodeTaskSpec(t *interlock.TaskSpec, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return ownText(&t.Queue, f.s)
		case 2<<3 | wireBytes:
			return ownText(&t.Kind, f.s)
		case 3<<3 | wireBytes:
			return oracleDecodeClaim(&t.Claims, []byte(f.s))
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
			return oracleDecodeQuestion(t.Ask, f.s)
		}
		return nil
	})
}

func oracleDecodeQuestion(q *interlock.Question, s string) error {
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
				return oracleDecodeRead(grow(&q.Reads), f.s)
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

func ownText[S ~string](into *S, s string) error { return text(into, strings.Clone(s)) }

func texts[S ~string](into *[]S, s string) error {
	if len(*into) > MaxListed {
		return nil
	}
	return text(grow(into), s)
}
