package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// The guarded state of a namespace: a document at each key that was written, and some of its
// earlier editions (history.go). It is changed by Commit (commit.go) and read by the queries in
// reading.go.

// documents are all of a namespace.
type documents struct {
	version interlock.Version // of the last commit
	floor   interlock.Version // the highest of a deletion that is forgotten

	known      map[interlock.Key]*document // including remembered deletions
	recent     collection.List[*document]  // all known, in the order of their last write
	present    collection.Set[*document]   // those that are there
	bytes      int                         // that these take
	tombstones collection.List[*document]  // the others, in the order of their deletion

	tombBytes int // that these take

	folders map[string]*folder // what lies below a key

	past      collection.List[*poolEdition] // earlier editions, in the order in which they were replaced
	pastBytes int
}

// document is the state of a key.
type document struct {
	key     interlock.Key
	now     *poolEdition   // as it was written last; that may have deleted it
	earlier []*poolEdition // oldest first
	bytes   int            // of the bodies of the earlier ones
	// since is the version from which on the history is complete: earlier writes may be
	// forgotten.
	since interlock.Version

	recent, tomb, shelf collection.Element[*document]
	seat                int32 // in documents.present
}

func (d *document) SetIndex() *int32 { return &d.seat }

// poolEdition is one commit's document at a key. It never changes.
type poolEdition struct {
	doc     *document
	version interlock.Version
	at      Time
	op      interlock.WriteOp

	contentType string
	body        []byte

	agent, session, flow, principal, note string // session is a public name
	fence                                 interlock.Fence

	past collection.Element[*poolEdition]
}

// weight returns the bytes of the namespace's state that a document takes.
func (x *poolEdition) weight() int { return interlock.DocumentBytes + len(x.doc.key) + x.size() }

// isAbsent reports whether there is nothing.
func (d *document) isAbsent() bool { return d == nil || d.now == nil || d.now.op == interlock.Delete }

// versionAt returns the version of a key's state.
func (s *documents) versionAt(key interlock.Key) interlock.Version {
	if d := s.known[key]; d != nil && d.now != nil {
		return d.now.version
	}
	return s.floor
}

// document returns the document of a key, and creates it if there is none.
func (s *documents) document(key interlock.Key, since interlock.Version) *document {
	d := s.known[key]
	if d == nil {
		if s.known == nil {
			s.known = map[interlock.Key]*document{}
		}
		d = &document{key: key, since: max(s.floor, since)}
		d.recent.Value, d.tomb.Value, d.shelf.Value = d, d, d
		s.known[key] = d
		s.shelve(d)
	}
	return d
}

// evolveWritten folds record.Written.
func (space *namespace) evolveWritten(ev *record.Event) error {
	op := interlock.WriteOp(ev.Op)
	if len(ev.Claims) != 1 || op < interlock.Put || op > interlock.Add {
		return errUnknown
	}
	s := &space.docs
	d := s.document(ev.Claims[0].Key, ev.AsOf)
	if d.now != nil && (ev.Changed || ev.Version <= d.now.version) || ev.Version < d.since {
		return errUnknown
	}
	if n := len(d.earlier); n > 0 && ev.Version <= d.earlier[n-1].version {
		return errUnknown
	}
	x := editionOf(ev)
	x.doc = d
	if ev.Changed {
		s.keep(x)
		return nil
	}
	was := d.inUse()
	if s.write(x); d.inUse() != was {
		space.spelled(d, !was)
	}
	return nil
}

// editionOf returns the edition of a document that record.Written describes.
func editionOf(ev *record.Event) *poolEdition {
	x := &poolEdition{
		version: ev.Version, at: ev.At, op: interlock.WriteOp(ev.Op), contentType: ev.ContentType, body: ev.Blob,
		agent: ev.Agent, session: ev.SessionName, flow: ev.Flow, principal: ev.Actor, note: ev.Note, fence: ev.Fence,
	}
	x.past.Value = x
	return x
}

// describe returns the event that editionOf reads.
func (x *poolEdition) describe(ns interlock.Namespace, key interlock.Key) record.Event {
	return record.Event{
		Kind: record.Written, Namespace: ns, Claims: []interlock.Claim{{Key: key, Mode: lockmode.X}}, Version: x.version,
		Op: uint8(x.op), ContentType: x.contentType, Blob: x.body, Agent: x.agent, SessionName: x.session, Flow: x.flow,
		Actor: x.principal, Fence: x.fence, Note: x.note,
	}
}

// write makes x the present edition of its key.
func (s *documents) write(x *poolEdition) {
	d, old := x.doc, x.doc.now
	if old != nil {
		s.recent.Remove(&d.recent)
		if old.op == interlock.Delete {
			s.unbury(d)
		} else {
			s.present.Remove(d)
			s.bytes -= old.weight()
		}
	}
	d.now = x
	s.recent.PushBack(&d.recent)
	s.version = max(s.version, x.version)
	s.touch(x)
	if x.op == interlock.Delete {
		s.makeTombstone(d)
	} else {
		s.present.Add(d)
		s.bytes += x.weight()
	}
	if old != nil {
		s.keep(old)
	}
	for s.tombstones.Len() > interlock.MaxTombstones || s.tombBytes > interlock.MaxTombstoneBytes {
		s.forget(s.tombstones.Front().Value)
	}
}

// makeTombstone and unbury count the remembered deletions.

func (s *documents) makeTombstone(d *document) {
	s.tombstones.PushBack(&d.tomb)
	s.tombBytes += len(d.key) + d.now.cost()
}

func (s *documents) unbury(d *document) {
	s.tombstones.Remove(&d.tomb)
	s.tombBytes -= len(d.key) + d.now.cost()
}

// forget drops a deleted document. Its version continues to count for all unknown keys, so that
// none of them ever has an older one.
func (s *documents) forget(d *document) {
	s.floor = max(s.floor, d.now.version)
	for len(d.earlier) > 0 {
		s.trim(d)
	}
	s.recent.Remove(&d.recent)
	s.unbury(d)
	delete(s.known, d.key)
	s.unshelve(d)
}

// showDocument returns edition x of a key's document, as of the present moment; nil is an empty
// one.
func (e *Engine) showDocument(key interlock.Key, x *poolEdition, bodies bool) interlock.Document {
	if x == nil {
		return interlock.Document{Key: key, Absent: true}
	}
	doc := interlock.Document{
		Key: key, Version: x.version, Absent: x.op == interlock.Delete, ContentType: x.contentType, Size: len(x.body),
		Op: x.op, Agent: x.agent, Session: x.session, Flow: x.flow, Principal: x.principal, Fence: x.fence, Note: x.note,
		Age: e.now.Sub(x.at),
	}
	if bodies {
		doc.Body = x.body
	}
	return doc
}
