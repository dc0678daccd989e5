package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Commits, and what is asked about documents.

// StateQuery selects documents: those of Keys, or a list.
type StateQuery struct {
	Keys  []interlock.Key
	After interlock.Key
	Limit uint32
}

func (o *Op) appendCommit(b []byte) []byte {
	c := o.Commit
	b = appendString(b, 1, c.Flow)
	for i := range c.Reads {
		b = appendRead(b, 2, &c.Reads[i])
	}
	b = appendUint(b, 3, uint64(c.AsOf))
	for i := range c.Writes {
		b = appendWrite(b, 4, &c.Writes[i])
	}
	for i := range c.Leases {
		b = appendText(b, 5, c.Leases[i][:])
	}
	return appendString(b, 6, c.Note)
}

func appendRead(b []byte, num byte, r *interlock.Read) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, r.Key)
	b = appendUint(b, 2, uint64(r.Version))
	b = appendBool(b, 3, r.Absent)
	b = appendBool(b, 4, r.Present)
	return closeMessage(b, start)
}

func appendWrite(b []byte, num byte, w *interlock.Write) []byte {
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

// commitSize is an upper bound of the encoded length.
func commitSize(c *interlock.CommitRequest) int {
	n := 16 + len(c.Flow) + len(c.Note) + readsSize(c.Reads)
	for i := range c.Writes {
		w := &c.Writes[i]
		n += 80 + len(w.Key) + len(w.ContentType) + len(w.Body)
	}
	return n + 18*len(c.Leases)
}

func readsSize(list []interlock.Read) (n int) {
	for i := range list {
		n += 32 + len(list[i].Key)
	}
	return n
}

func (q *StateQuery) size() int {
	n := 16 + len(q.After)
	for _, key := range q.Keys {
		n += 8 + len(key)
	}
	return n
}

func (o *Op) commitField(f *field[string]) error {
	switch c := o.Commit; f.tag {
	case 1<<3 | wireBytes:
		return ownText(&c.Flow, f.s)
	case 2<<3 | wireBytes:
		if len(c.Reads) <= MaxListed {
			return decodeRead(grow(&c.Reads), f.s)
		}
	case 3<<3 | wireVarint:
		c.AsOf = interlock.Version(f.v)
	case 4<<3 | wireBytes:
		if len(c.Writes) <= MaxListed {
			return decodeWrite(grow(&c.Writes), f.s)
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

func decodeRead(r *interlock.Read, s string) error {
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

func decodeWrite(w *interlock.Write, s string) error {
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

func appendDocument(b []byte, num byte, d *interlock.Document) []byte {
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
		b = appendDocument(b, 15, &d.Earlier[i])
	}
	return closeMessage(b, start)
}

func decodeDocument(d *interlock.Document, s string) error {
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
			err := decodeDocument(x, f.s)
			x.Earlier = nil // one level is all there is
			return err
		}
		return nil
	})
}
