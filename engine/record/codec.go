package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

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

// Format numbers what entries may contain. It rises by one whenever this version writes something that the
// version before it refuses with ErrNewer: an event, a field, a value of one. Servers of several versions
// compare it before one takes over a journal that another has written.
const Format = 4

// UsualFormat is the format of the entries that are written as long as no namespace moves, no approval is asked for,
// and no webhook is set.
const UsualFormat = 1

const entryHead = 9

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

// signed appends a number that may be negative.
func (w *fieldWriter) signed(bit uint64, v int64) {
	if v != 0 {
		w.mask |= bit
		w.b = binary.AppendVarint(w.b, v)
	}
}

// fixed appends a number of 8 bytes.
func (w *fieldWriter) fixed(bit, v uint64) {
	if v != 0 {
		w.mask |= bit
		w.b = binary.LittleEndian.AppendUint64(w.b, v)
	}
}

func (w *fieldWriter) blob(bit uint64, v []byte) {
	if len(v) > 0 {
		w.mask |= bit
		w.b = append(binary.AppendUvarint(w.b, uint64(len(v))), v...)
	}
}

func (w *fieldWriter) claims(bit uint64, claims []interlock.Claim) {
	if len(claims) > 0 {
		w.putClaims(bit, claims)
	}
}

func (w *fieldWriter) putClaims(bit uint64, claims []interlock.Claim) {
	w.mask |= bit
	w.b = binary.AppendUvarint(w.b, uint64(len(claims)))
	for _, c := range claims {
		w.b = append(w.b, byte(c.Mode))
		w.b = appendText(w.b, string(c.Key))
		if c.Mode.Counts() {
			w.b = binary.AppendUvarint(w.b, uint64(c.Count))
		}
	}
}

func (w *fieldWriter) cycle(bit uint64, cycle []interlock.CycleStep) {
	if len(cycle) == 0 {
		return
	}
	w.mask |= bit
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

// fixed reads a number of 8 bytes.
func (d *decoder) fixed() uint64 {
	b := d.bytes(8)
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (d *decoder) claims() []interlock.Claim {
	n := d.count(2)
	if n > interlock.MaxAlternatives {
		n, d.failed, d.b = 0, true, nil
	}
	var claims []interlock.Claim
	if !d.dry {
		claims = make([]interlock.Claim, 0, n)
	}
	for range n {
		c := d.claim()
		if !d.dry {
			claims = append(claims, c)
		}
	}
	return claims
}

func (d *decoder) cycle() (cycle []interlock.CycleStep) {
	for range d.count(6) {
		c := interlock.CycleStep{Agent: d.text(), Session: d.text(), Flow: d.text(), Key: interlock.Key(d.text())}
		c.Mode = interlock.Mode(d.byte())
		flags := d.byte()
		c.Victim, c.Next = flags&1 != 0, interlock.BlockerRole(flags>>1)
		if !d.dry {
			cycle = append(cycle, c)
		}
	}
	return cycle
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
