package record

import (
	"encoding/binary"
	"errors"
)

// A pattern and a namespace's settings are kept in events as a list of fields, each its number
// and its value as a uvarint or as text. Zero fields are left out. Numbers are never changed or
// reused; an older binary that meets an unknown one reports that the journal is newer than
// itself.

// ErrMalformed is the error of a value of an event, such as a pattern, that cannot be read.
var ErrMalformed = errors.New("engine: a pattern or settings in the journal cannot be read")

// Fields writes a list of fields. The zero value is an empty list.
type Fields struct{ Bytes []byte }

// Number appends a number, unless it is zero.
func (f *Fields) Number(id, v uint64) {
	if v != 0 {
		f.Bytes = binary.AppendUvarint(binary.AppendUvarint(f.Bytes, id<<1), v)
	}
}

// Text appends a text, also an empty one.
func (f *Fields) Text(id uint64, s string) {
	f.Bytes = appendText(binary.AppendUvarint(f.Bytes, id<<1|1), s)
}

// Flag appends a flag that is set.
func (f *Fields) Flag(id uint64, v bool) {
	if v {
		f.Number(id, 1)
	}
}

// EachField calls visit with the number of each field and its value, which is a
// number or a text. visit returns false for a field that it does not know.
func EachField(b []byte, visit func(id, number uint64, text string) bool) error {
	d := decoder{b: b}
	for len(d.b) > 0 {
		var number uint64
		var text string
		id := d.number()
		if id&1 == 0 {
			number = d.number()
		} else {
			text = d.text()
		}
		if d.failed {
			return ErrMalformed
		}
		if !visit(id>>1, number, text) {
			return ErrNewer
		}
	}
	return nil
}
