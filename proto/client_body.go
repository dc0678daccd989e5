package proto

import (
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
		return decodeClaim(&o.Claims, f.s)
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
		return decodeClaim(&o.Claims, f.s)
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
	return decodePattern(o.Pattern, f.s)
}

func (o *Op) configureField(f *field[string]) error {
	if f.tag != 1<<3|wireBytes {
		return nil
	}
	o.Settings = &interlock.Settings{}
	return decodeSettings(o.Settings, f.s)
}

// decodeClaim takes a key out of a string as a part of it, and out of bytes as a string of
// its own.
func decodeClaim[B octets](into *[]interlock.Claim, s B) error {
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
