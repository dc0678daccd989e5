package message

import (
	"encoding/binary"
	"errors"
)

// A message in a journal:
//
//	id      uvarint
//	args    uvarint, how many
//	each:   kind (1 byte), then by kind
//	        String    length (uvarint), bytes
//	        Integer, Duration   varint
//	        Unsigned  uvarint
//	        Nested    0, or 1 and a message
//
// A kind that is not known makes the message unreadable: a newer version wrote it.

const (
	maxDepth = 8  // of messages inside one another
	maxArgs  = 64 // of one message
)

var errMalformed = errors.New("message: cannot be read")

// Append adds t to b as journals have it. It must not be nil.
func Append(b []byte, t *Text) []byte {
	b = binary.AppendUvarint(b, uint64(t.ID))
	b = binary.AppendUvarint(b, uint64(len(t.Args)))
	for i := range t.Args {
		a := &t.Args[i]
		b = append(b, byte(a.Kind))
		switch a.Kind {
		case String:
			b = binary.AppendUvarint(b, uint64(len(a.Text)))
			b = append(b, a.Text...)
		case Integer, Duration:
			b = binary.AppendVarint(b, a.Number)
		case Unsigned:
			b = binary.AppendUvarint(b, uint64(a.Number))
		case Nested:
			if a.Part == nil {
				b = append(b, 0)
			} else {
				b = Append(append(b, 1), a.Part)
			}
		}
	}
	return b
}

// Read returns the message that b is, and nothing but that.
func Read(b []byte) (*Text, error) {
	r := reader{b: b}
	t := r.text(maxDepth)
	if r.bad || len(r.b) > 0 {
		return nil, errMalformed
	}
	return t, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) text(depth int) *Text {
	id, n := r.number(), r.number()
	if r.bad || depth == 0 || id > 1<<16-1 || n > maxArgs {
		r.bad = true
		return nil
	}
	t := &Text{ID: ID(id)}
	if n > 0 {
		t.Args = make([]Arg, n)
	}
	for i := range t.Args {
		if r.arg(&t.Args[i], depth); r.bad {
			return nil
		}
	}
	return t
}

func (r *reader) arg(a *Arg, depth int) {
	a.Kind = Kind(r.byte())
	switch a.Kind {
	case String:
		n := r.number()
		if n > uint64(len(r.b)) {
			r.bad = true
			return
		}
		a.Text, r.b = string(r.b[:n]), r.b[n:]
	case Integer, Duration:
		v, n := binary.Varint(r.b)
		if n <= 0 {
			r.bad = true
			return
		}
		a.Number, r.b = v, r.b[n:]
	case Unsigned:
		a.Number = int64(r.number())
	case Nested:
		switch r.byte() {
		case 0:
		case 1:
			a.Part = r.text(depth - 1)
		default:
			r.bad = true
		}
	default:
		r.bad = true
	}
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}
