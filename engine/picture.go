package engine

import (
	"bytes"
	"errors"
	"io"
)

// FrozenState is the state of an engine at one moment, from which a snapshot can be written while
// the engine continues. It has a snapshot's copy of everything that may change; immutable
// parts, such as how the last leases ended, are shared with the engine, and make up most of a
// snapshot.
type FrozenState struct {
	strips  []snapshotChunk
	encoded bytes.Buffer
}

// snapshotChunk is a stretch of a snapshot: the encoded part up to end, and the part behind it.
type snapshotChunk struct {
	end  int
	past func(*snapshotter)
}

// eventBytes is how large those events of a picture that are encoded at once may be on
// average.
const eventBytes = 256

// FrozenState takes one, or returns nil if a snapshot of the state has more than about that many
// events of changeable parts. It takes about half a microsecond for each of these.
func (e *Engine) Picture(events int) *FrozenState {
	if e.changing(events) > events {
		return nil
	}
	p := new(FrozenState)
	s := newSnapshotter(e, &limitedWriter{&p.encoded, events * eventBytes})
	s.past = func(write func(*snapshotter)) {
		if s.err == nil {
			s.err = s.w.Flush()
		}
		p.strips = append(p.strips, snapshotChunk{p.encoded.Len(), write})
	}
	if s.all() != nil {
		return nil
	}
	return p
}

// limitedWriter takes no more than so many bytes.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errors.New("engine: too much for a picture")
	}
	return l.to.Write(b)
}

// WriteSnapshot writes what Engine.WriteSnapshot would have written at that moment. Any
// goroutine may call it.
func (p *FrozenState) WriteSnapshot(w io.Writer) error {
	s := newSnapshotter(nil, w)
	from := 0
	for _, x := range p.strips {
		s.write(p.encoded.Bytes()[from:x.end])
		from = x.end
		x.past(s)
	}
	s.write(p.encoded.Bytes()[from:])
	return s.end()
}

// changing returns about how many events a snapshot has of changeable parts. It stops when that
// is more than most.
func (e *Engine) changing(most int) (n int) {
	if n = len(e.Namespaces); n > most {
		return n
	}
	for _, s := range e.Sorted() {
		n += s.Requests.Len() + len(s.Sessions) + s.Notes.Len() + len(s.Pools) + len(s.Shared) + len(s.Holds) +
			len(s.Revisions) +
			len(s.IDs.Known) + s.Documents.Recent.Len() + s.Documents.Past.Len() + len(s.SideEffects.Known) + len(
			s.Tasks.Known,
		) + s.Logs.All.Len() + len(s.Webhooks)
		if n > most {
			return n
		}
		for _, x := range s.SortedSessions() {
			n += len(x.Seqs.Ring)/4 + len(x.IDs.Known)
		}
	}
	return n
}
