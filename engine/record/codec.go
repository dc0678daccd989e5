package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
)

// An entry of the journal is the events of one step:
//
//	┌─────────┬────────────┬───────┬───────┬─
//	│ version │ time       │ event │ event │ ...
//	│ 1 byte  │ 8 bytes LE │       │       │
//	└─────────┴────────────┴───────┴───────┴─
//
// and an event is its kind, a mask of the fields that follow, and those fields in the order of
// the mask's bits:
//
//	┌────────┬─────────┬─────────┬─────────┬─
//	│ kind   │ mask    │ field   │ field   │ ...
//	│ 1 byte │ uvarint │         │         │
//	└────────┴─────────┴─────────┴─────────┴─
//
// Numbers and durations are uvarints, signed numbers zigzag varints, text is its length as a
// uvarint and its bytes, an id its 16 bytes, a fingerprint 8 bytes LE; a flag is its mask bit
// alone. Zero fields are left out. New versions may add kinds and bits at the end; an older
// binary that meets one reports that the journal is newer than itself.

const entryVersion = 1

const entryHead = 9

// The mask's bits. Their order is the order of the fields; it never changes.
const (
	hasNamespace = 1 << iota
	hasSession
	hasAgent
	hasFlow
	hasClaims
	hasActor
	hasNum
	hasID
	hasPurpose
	hasTrace
	hasTTL
	hasGrace
	hasMaxHold
	hasPriority
	hasFence
	hasOffer
	hasReason
	hasOutcome
	hasNote
	hasWaited
	hasHeld
	hasCycle
	hasEpoch
	hasRequestID
	hasSeq
	hasAcked
	hasFingerprint
	hasAnswer
	hasCode
	hasMessage
	hasScope
	hasChanged
	hasWrites
	hasAny
	hasGroup
	hasStall
	hasLockDelay
	hasMaxWait
	hasDivision
	hasLead
	hasBase
	hasPart
	hasTarget
	hasTargetFlow
	hasBy
	hasGeneration
	hasFreed
	hasQueued
	hasArrived
	hasBlob
	hasByID
	hasBaseID
	hasVersion
	hasAsOf
	hasContentType
	hasOp
	hasAsker
	hasMade

	KnownFields = 1<<iota - 1
)

var (
	ErrTruncated = errors.New("engine: entry is cut short")
	// ErrNewer reports an entry that a newer version of Interlock wrote.
	ErrNewer = errors.New("engine: entry was written by a newer version of Interlock; start that version or a later one")
)

// AppendHead begins an entry of the given time.
func AppendHead(b []byte, at Time) []byte {
	b = append(b, entryVersion)
	return binary.LittleEndian.AppendUint64(b, uint64(at))
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendEvent writes the fields first, and then inserts the mask of the fields that are there
// before them.
func AppendEvent(b []byte, ev *Event) []byte {
	b = append(b, byte(ev.Kind))
	w := fieldWriter{b: append(b, noMask[:]...)}
	w.fields(ev)
	fields := w.b[len(b)+len(noMask):]
	b = binary.AppendUvarint(b, w.mask)
	return append(b, fields...)
}

// noMask holds the place of a mask. It is as long as any.
var noMask [binary.MaxVarintLen64]byte

// fieldWriter appends the fields that are not zero, and notes which.
type fieldWriter struct {
	b    []byte
	mask uint64
}

func (w *fieldWriter) fields(ev *Event) {
	w.text(hasNamespace, string(ev.Namespace))
	w.number(hasSession, ev.Session)
	w.text(hasAgent, ev.Agent)
	w.text(hasFlow, ev.Flow)
	if len(ev.Claims) > 0 {
		w.claims(ev.Claims)
	}
	w.text(hasActor, ev.Actor)
	w.number(hasNum, ev.Num)
	w.id(hasID, ev.ID)
	w.text(hasPurpose, ev.Purpose)
	w.text(hasTrace, ev.Trace)
	w.number(hasTTL, uint64(ev.TTL))
	w.number(hasGrace, uint64(ev.Grace))
	w.number(hasMaxHold, uint64(ev.MaxHold))
	if ev.Priority != 0 {
		w.mask |= hasPriority
		w.b = binary.AppendVarint(w.b, int64(ev.Priority))
	}
	w.number(hasFence, uint64(ev.Fence))
	w.flag(hasOffer, ev.Offer)
	w.number(hasReason, uint64(ev.Reason))
	w.text(hasOutcome, ev.Outcome)
	w.text(hasNote, ev.Note)
	w.number(hasWaited, uint64(ev.Waited))
	w.number(hasHeld, uint64(ev.Held))
	if len(ev.Cycle) > 0 {
		w.cycle(ev.Cycle)
	}
	w.number(hasEpoch, uint64(ev.Epoch))
	w.text(hasRequestID, ev.RequestID)
	w.number(hasSeq, ev.Seq)
	w.number(hasAcked, ev.Acked)
	if ev.Fingerprint != 0 {
		w.mask |= hasFingerprint
		w.b = binary.LittleEndian.AppendUint64(w.b, ev.Fingerprint)
	}
	w.number(hasAnswer, uint64(ev.Answer))
	w.text(hasCode, string(ev.Code))
	w.text(hasMessage, ev.Message)
	w.number(hasScope, ev.Scope)
	w.flag(hasChanged, ev.Changed)
	w.number(hasWrites, ev.Writes)
	w.flag(hasAny, ev.Any)
	w.text(hasGroup, ev.Group)
	w.number(hasStall, uint64(ev.Stall))
	w.number(hasLockDelay, uint64(ev.LockDelay))
	w.number(hasMaxWait, uint64(ev.MaxWait))
	w.number(hasDivision, uint64(ev.Division))
	w.flag(hasLead, ev.Lead)
	w.number(hasBase, ev.Base)
	w.flag(hasPart, ev.Part)
	w.number(hasTarget, ev.Target)
	w.text(hasTargetFlow, ev.TargetFlow)
	w.number(hasBy, ev.By)
	w.number(hasGeneration, ev.Generation)
	w.flag(hasFreed, ev.Freed)
	w.flag(hasQueued, ev.Queued)
	w.number(hasArrived, uint64(ev.Arrived))
	if len(ev.Blob) > 0 {
		w.mask |= hasBlob
		w.b = append(binary.AppendUvarint(w.b, uint64(len(ev.Blob))), ev.Blob...)
	}
	w.id(hasByID, ev.ByID)
	w.id(hasBaseID, ev.BaseID)
	w.number(hasVersion, uint64(ev.Version))
	w.number(hasAsOf, uint64(ev.AsOf))
	w.text(hasContentType, ev.ContentType)
	w.number(hasOp, uint64(ev.Op))
	w.text(hasAsker, ev.Asker)
	w.number(hasMade, uint64(ev.Made))
}

func (w *fieldWriter) number(bit, v uint64) {
	if v != 0 {
		w.putNumber(bit, v)
	}
}

func (w *fieldWriter) putNumber(bit, v uint64) {
	w.mask |= bit
	w.b = binary.AppendUvarint(w.b, v)
}

func (w *fieldWriter) text(bit uint64, s string) {
	if s != "" {
		w.putText(bit, s)
	}
}

func (w *fieldWriter) putText(bit uint64, s string) {
	w.mask |= bit
	w.b = appendText(w.b, s)
}

func (w *fieldWriter) id(bit uint64, id [16]byte) {
	if id != [16]byte{} {
		w.mask |= bit
		w.b = append(w.b, id[:]...)
	}
}

func (w *fieldWriter) flag(bit uint64, set bool) {
	if set {
		w.mask |= bit
	}
}

func (w *fieldWriter) claims(claims []interlock.Claim) {
	w.mask |= hasClaims
	w.b = binary.AppendUvarint(w.b, uint64(len(claims)))
	for _, c := range claims {
		w.b = append(w.b, byte(c.Mode))
		w.b = appendText(w.b, string(c.Key))
		if c.Mode.Counts() {
			w.b = binary.AppendUvarint(w.b, uint64(c.Count))
		}
	}
}

func (w *fieldWriter) cycle(cycle []interlock.CycleStep) {
	w.mask |= hasCycle
	w.b = binary.AppendUvarint(w.b, uint64(len(cycle)))
	for _, c := range cycle {
		w.b = appendText(appendText(appendText(w.b, c.Agent), c.Session), c.Flow)
		w.b = appendText(w.b, string(c.Key))
		victim := byte(0)
		if c.Victim {
			victim = 1
		}
		w.b = append(w.b, byte(c.Mode), victim|byte(c.Next)<<1)
	}
}

// decoder reads fields from b and remembers the first failure.
type decoder struct {
	b      []byte
	failed bool
	dry    bool   // it only looks whether all can be read: texts and lists come out empty
	names  *names // nil: each text is a string of its own
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.failed, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string {
	b := d.bytes(d.number())
	if d.dry {
		return ""
	}
	return string(b)
}

// name reads a text that is likely to come again.
func (d *decoder) name() string {
	if d.names == nil || d.dry {
		return d.text()
	}
	return d.names.of(d.bytes(d.number()))
}

func (d *decoder) blob() []byte {
	b := d.bytes(d.number())
	if d.dry {
		return nil
	}
	return bytes.Clone(b)
}

func (d *decoder) byte() byte {
	if v := d.bytes(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

// count reads the length of a list with elements of at least size bytes, so that a damaged
// length cannot demand more memory than the entry has bytes.
func (d *decoder) count(size int) int {
	n := d.number()
	if n > uint64(len(d.b)/size) {
		d.failed, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) event(ev *Event) error {
	*ev = Event{Kind: Kind(d.byte()), At: ev.At}
	mask := d.number()
	if d.failed {
		return ErrTruncated
	}
	if _, known := kindNames[ev.Kind]; !known || mask&^KnownFields != 0 {
		return ErrNewer
	}
	for ; mask != 0 && !d.failed; mask &= mask - 1 {
		d.field(mask&-mask, ev)
	}
	if d.failed {
		return ErrTruncated
	}
	return nil
}

func (d *decoder) field(bit uint64, ev *Event) {
	switch bit {
	case hasNamespace:
		ev.Namespace = interlock.Namespace(d.name())
	case hasSession:
		ev.Session = d.number()
	case hasAgent:
		ev.Agent = d.name()
	case hasFlow:
		ev.Flow = d.name()
	case hasClaims:
		n := d.count(2)
		if n > interlock.MaxAlternatives {
			n, d.failed, d.b = 0, true, nil
		}
		if !d.dry {
			ev.Claims = make([]interlock.Claim, 0, n)
		}
		for range n {
			c := d.claim()
			if !d.dry {
				ev.Claims = append(ev.Claims, c)
			}
		}
	case hasActor:
		ev.Actor = d.name()
	case hasNum:
		ev.Num = d.number()
	case hasID:
		copy(ev.ID[:], d.bytes(16))
	case hasPurpose:
		ev.Purpose = d.name()
	case hasTrace:
		ev.Trace = d.text()
	case hasTTL:
		ev.TTL = time.Duration(d.number())
	case hasGrace:
		ev.Grace = time.Duration(d.number())
	case hasMaxHold:
		ev.MaxHold = time.Duration(d.number())
	case hasPriority:
		ev.Priority = int(d.signed())
	case hasFence:
		ev.Fence = interlock.Fence(d.number())
	case hasOffer:
		ev.Offer = true
	case hasReason:
		ev.Reason = Reason(d.number())
	case hasOutcome:
		ev.Outcome = d.text()
	case hasNote:
		ev.Note = d.text()
	case hasWaited:
		ev.Waited = time.Duration(d.number())
	case hasHeld:
		ev.Held = time.Duration(d.number())
	case hasCycle:
		for range d.count(6) {
			c := interlock.CycleStep{Agent: d.text(), Session: d.text(), Flow: d.text(), Key: interlock.Key(d.text())}
			c.Mode = interlock.Mode(d.byte())
			flags := d.byte()
			c.Victim, c.Next = flags&1 != 0, interlock.BlockerRole(flags>>1)
			if !d.dry {
				ev.Cycle = append(ev.Cycle, c)
			}
		}
	case hasEpoch:
		ev.Epoch = interlock.Epoch(d.number())
	case hasRequestID:
		ev.RequestID = d.text()
	case hasSeq:
		ev.Seq = d.number()
	case hasAcked:
		ev.Acked = d.number()
	case hasFingerprint:
		if b := d.bytes(8); len(b) == 8 {
			ev.Fingerprint = binary.LittleEndian.Uint64(b)
		}
	case hasAnswer:
		ev.Answer = Outcome(d.number())
	case hasCode:
		ev.Code = interlock.Code(d.text())
	case hasMessage:
		ev.Message = d.text()
	case hasScope:
		ev.Scope = d.number()
	case hasChanged:
		ev.Changed = true
	case hasWrites:
		ev.Writes = d.number()
	case hasAny:
		ev.Any = true
	case hasGroup:
		ev.Group = d.name()
	case hasStall:
		ev.Stall = time.Duration(d.number())
	case hasLockDelay:
		ev.LockDelay = time.Duration(d.number())
	case hasMaxWait:
		ev.MaxWait = time.Duration(d.number())
	case hasDivision:
		ev.Division = interlock.Division(d.number())
	case hasLead:
		ev.Lead = true
	case hasBase:
		ev.Base = d.number()
	case hasPart:
		ev.Part = true
	case hasTarget:
		ev.Target = d.number()
	case hasTargetFlow:
		ev.TargetFlow = d.text()
	case hasBy:
		ev.By = d.number()
	case hasGeneration:
		ev.Generation = d.number()
	case hasFreed:
		ev.Freed = true
	case hasQueued:
		ev.Queued = true
	case hasArrived:
		ev.Arrived = time.Duration(d.number())
	case hasBlob:
		ev.Blob = d.blob()
	case hasByID:
		copy(ev.ByID[:], d.bytes(16))
	case hasBaseID:
		copy(ev.BaseID[:], d.bytes(16))
	case hasVersion:
		ev.Version = interlock.Version(d.number())
	case hasAsOf:
		ev.AsOf = interlock.Version(d.number())
	case hasContentType:
		ev.ContentType = d.text()
	case hasOp:
		ev.Op = uint8(d.number())
	case hasMade:
		ev.Made = uint8(d.number())
	case hasAsker:
		ev.Asker = d.name()
	}
}

func (d *decoder) claim() interlock.Claim {
	c := interlock.Claim{Mode: interlock.Mode(d.byte()), Key: interlock.Key(d.text())}
	if c.Mode == 0 || c.Mode > interlock.Member {
		d.failed, d.b = true, nil
	}
	if c.Mode.Counts() {
		c.Count = uint32(min(d.number(), interlock.MaxCount))
	}
	return c
}

// open begins to read an entry, and returns its time.
func (d *decoder) open(entry []byte) (Time, error) {
	if len(entry) < entryHead {
		return 0, ErrTruncated
	}
	if entry[0] > entryVersion {
		return 0, ErrNewer
	}
	if entry[0] != entryVersion {
		return 0, fmt.Errorf("engine: entry has version %d, which never existed", entry[0])
	}
	d.b = entry[entryHead:]
	return Time(binary.LittleEndian.Uint64(entry[1:])), nil
}

// KindOf returns the kind of an entry's first event, 0 for an entry without one.
func KindOf(entry []byte) Kind {
	if len(entry) <= entryHead {
		return 0
	}
	return Kind(entry[entryHead])
}

// MaskOf returns the bits of the fields that an event has.
func MaskOf(ev *Event) uint64 {
	var w fieldWriter
	w.fields(ev)
	return w.mask
}

// DecodeEntry calls visit for each event of an entry, in order. The event is
// valid during the call; what it points to may be kept.
func DecodeEntry(entry []byte, visit func(*Event) error) error {
	var d decoder
	at, err := d.open(entry)
	if err != nil {
		return err
	}
	ev := Event{At: at}
	for len(d.b) > 0 {
		if err := d.event(&ev); err != nil {
			return err
		}
		if err := visit(&ev); err != nil {
			return err
		}
	}
	return nil
}

// CheckEntry returns what DecodeEntry would say of an entry, and makes nothing of it.
func CheckEntry(entry []byte) error {
	d := decoder{dry: true}
	at, err := d.open(entry)
	ev := Event{At: at}
	for err == nil && len(d.b) > 0 {
		err = d.event(&ev)
	}
	return err
}
