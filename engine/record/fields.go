package record

import (
	"encoding/binary"
	"errors"
	"time"
)

// A value of an event, such as a pattern or a task, is a list of fields, each its number and its
// value as a uvarint or as text. Zero fields are left out, unless the tag of the field differs. Numbers
// are never changed or reused; an older binary that meets an unknown one reports that the journal
// is newer than itself. The codecs are generated: see internal/gen/journal.

// ErrMalformed is the error of a value of an event, such as a pattern, that cannot be read.
var ErrMalformed = errors.New("engine: a pattern or settings in the journal cannot be read")

// fieldList writes a list of fields.
type fieldList struct{ bytes []byte }

// value appends a number, unless it is zero.
func (f *fieldList) value(number, v uint64) {
	if v != 0 {
		f.bytes = binary.AppendUvarint(binary.AppendUvarint(f.bytes, number<<1), v)
	}
}

// flag appends a flag that is set.
func (f *fieldList) flag(number uint64, set bool) {
	if set {
		f.value(number, 1)
	}
}

// text appends a text, unless it is empty.
func (f *fieldList) text(number uint64, s string) {
	if s != "" {
		f.putText(number, s)
	}
}

// putText appends a text, also an empty one.
func (f *fieldList) putText(number uint64, s string) {
	f.bytes = appendText(binary.AppendUvarint(f.bytes, number<<1|1), s)
}

// blob appends bytes as a text, unless there are none.
func (f *fieldList) blob(number uint64, b []byte) {
	if len(b) > 0 {
		f.bytes = binary.AppendUvarint(binary.AppendUvarint(f.bytes, number<<1|1), uint64(len(b)))
		f.bytes = append(f.bytes, b...)
	}
}

// since appends a time as the duration since base, unless it is zero.
func (f *fieldList) since(number uint64, t, base Time) {
	if t != 0 {
		f.value(number, uint64(t.Sub(base)))
	}
}

// fieldReader reads a list of fields, one after the other.
type fieldReader struct {
	rest      []byte
	number    uint64
	value     uint64 // of a field that is a number
	bytes     []byte // of one that is a text; they belong to the list
	err       error  // of the list itself
	malformed bool   // a field is missing that the list must have
	innerErr  error  // of a value in the list
}

// next reads a field, and reports whether there was one.
func (r *fieldReader) next() bool {
	if len(r.rest) == 0 || r.err != nil {
		return false
	}
	head, n := binary.Uvarint(r.rest)
	v, m := binary.Uvarint(r.rest[max(n, 0):])
	if n <= 0 || m <= 0 {
		r.err = ErrMalformed
		return false
	}
	r.number, r.value, r.bytes, r.rest = head>>1, v, nil, r.rest[n+m:]
	if head&1 == 0 {
		return true
	}
	if v > uint64(len(r.rest)) {
		r.err = ErrMalformed
		return false
	}
	r.value, r.bytes, r.rest = 0, r.rest[:v], r.rest[v:]
	return true
}

func (r *fieldReader) text() string { return string(r.bytes) }

func (r *fieldReader) blob() []byte { return append([]byte{}, r.bytes...) }

func (r *fieldReader) since(base Time) Time { return base.Add(time.Duration(r.value)) }

// last returns the element that a field belongs to: its list must have begun with another field.
func last[T any](r *fieldReader, list []T) *T {
	if len(list) == 0 {
		r.malformed = true
		return nil
	}
	return &list[len(list)-1]
}

// inner notes the error of a value in the list.
func (r *fieldReader) inner(err error) {
	if err != nil {
		r.innerErr = err
	}
}

// fail ends the list with an error.
func (r *fieldReader) fail(err error) { r.err = err }

// end returns the error of the list, or else of a value in it.
func (r *fieldReader) end() error {
	switch {
	case r.err != nil:
		return r.err
	case r.malformed:
		return ErrMalformed
	}
	return r.innerErr
}
