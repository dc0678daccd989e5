package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// EffectOp holds the fields of an operation about effects. Like Op it is a union. The flow, the ids
// of effect and lease, and the ttl stand in the Op.
type EffectOp struct {
	Tool      string
	Target    string
	Arguments []byte // JSON

	Digest [32]byte // of a listing: begin after it
	State  interlock.EffectState
	Result []byte // JSON
	Reason string
	Limit  uint32
}

func (o *Op) appendEffect(b []byte) []byte {
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

func (e *EffectOp) size() int {
	return 128 + len(e.Tool) + len(e.Target) + len(e.Arguments) + len(e.Result) + len(e.Reason)
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

func appendEffect(b []byte, num byte, e *interlock.Effect) []byte {
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

func decodeEffect(e *interlock.Effect, s string) error {
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
