package store

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The guarded state of a namespace: a document at each key that was written, and some of its
// earlier editions (history.go). It is changed by Commit (commit.go) and read by the queries in
// reading.go.

// Documents are all of a namespace.
type Documents struct {
	Version interlock.Version // of the last commit
	Floor   interlock.Version // the highest of a deletion that is forgotten

	Known      map[interlock.Key]*Document // including remembered deletions
	Recent     collection.List[*Document]  // all known, in the order of their last write
	Present    collection.Set[*Document]   // those that are there
	Bytes      int                         // that these take
	tombstones collection.List[*Document]  // the others, in the order of their deletion

	tombBytes int // that these take

	folders map[string]*folder // what lies below a key

	Past      collection.List[*DocumentVersion] // earlier editions, in the order in which they were replaced
	pastBytes int
}

// Document is the state of a key.
type Document struct {
	Key     interlock.Key
	Now     *DocumentVersion   // as it was written last; that may have deleted it
	Earlier []*DocumentVersion // oldest first
	bytes   int                // of the bodies of the earlier ones
	// since is the version from which on the history is complete: earlier writes may be
	// forgotten.
	Since interlock.Version

	recent, tomb, shelf collection.Element[*Document]
	seat                int32 // in documents.present
}

func (d *Document) SetIndex() *int32 { return &d.seat }

// DocumentVersion is one commit's document at a key. It never changes.
type DocumentVersion struct {
	Doc     *Document
	Version interlock.Version
	At      Time
	Op      interlock.WriteOp

	ContentType string
	Body        []byte

	Agent, Session, Flow, Principal, Note string // session is a public name
	Fence                                 interlock.Fence

	past collection.Element[*DocumentVersion]
}

// Weight returns the bytes of the namespace's state that a document takes.
func (x *DocumentVersion) Weight() int { return interlock.DocumentBytes + len(x.Doc.Key) + x.size() }

// IsAbsent reports whether there is nothing.
func (d *Document) IsAbsent() bool { return d == nil || d.Now == nil || d.Now.Op == interlock.Delete }

// VersionAt returns the version of a key's state.
func (s *Documents) VersionAt(key interlock.Key) interlock.Version {
	if d := s.Known[key]; d != nil && d.Now != nil {
		return d.Now.Version
	}
	return s.Floor
}

// document returns the document of a key, and creates it if there is none.
func (s *Documents) document(key interlock.Key, since interlock.Version) *Document {
	d := s.Known[key]
	if d == nil {
		if s.Known == nil {
			s.Known = map[interlock.Key]*Document{}
		}
		d = &Document{Key: key, Since: max(s.Floor, since)}
		d.recent.Value, d.tomb.Value, d.shelf.Value = d, d, d
		s.Known[key] = d
		s.shelve(d)
	}
	return d
}

// evolveWritten folds record.Written.
func (space *Namespace) evolveWritten(ev *record.Event) error {
	op := interlock.WriteOp(ev.Op)
	if len(ev.Claims) != 1 || op < interlock.Put || op > interlock.Add {
		return errUnknown
	}
	s := &space.Documents
	d := s.document(ev.Claims[0].Key, ev.AsOf)
	if d.Now != nil && (ev.Changed || ev.Version <= d.Now.Version) || ev.Version < d.Since {
		return errUnknown
	}
	if n := len(d.Earlier); n > 0 && ev.Version <= d.Earlier[n-1].Version {
		return errUnknown
	}
	x := editionOf(ev)
	x.Doc = d
	if ev.Changed {
		s.keep(x)
		return nil
	}
	was := d.inUse()
	if s.write(x); d.inUse() != was {
		space.Spelled(d, !was)
	}
	return nil
}

// editionOf returns the edition of a document that record.Written describes.
func editionOf(ev *record.Event) *DocumentVersion {
	x := &DocumentVersion{
		Version: ev.Version, At: ev.At, Op: interlock.WriteOp(ev.Op), ContentType: ev.ContentType, Body: ev.Blob,
		Agent: ev.Agent, Session: ev.SessionName, Flow: ev.Flow, Principal: ev.Actor, Note: ev.Note, Fence: ev.Fence,
	}
	x.past.Value = x
	return x
}

// Describe returns the event that editionOf reads.
func (x *DocumentVersion) Describe(ns interlock.Namespace, key interlock.Key) record.Event {
	return record.Event{
		Kind: record.Written, Namespace: ns, Claims: []interlock.Claim{{Key: key, Mode: lockmode.X}}, Version: x.Version,
		Op: uint8(x.Op), ContentType: x.ContentType, Blob: x.Body, Agent: x.Agent, SessionName: x.Session, Flow: x.Flow,
		Actor: x.Principal, Fence: x.Fence, Note: x.Note,
	}
}

// write makes x the present edition of its key.
func (s *Documents) write(x *DocumentVersion) {
	d, old := x.Doc, x.Doc.Now
	if old != nil {
		s.Recent.Remove(&d.recent)
		if old.Op == interlock.Delete {
			s.unbury(d)
		} else {
			s.Present.Remove(d)
			s.Bytes -= old.Weight()
		}
	}
	d.Now = x
	s.Recent.PushBack(&d.recent)
	s.Version = max(s.Version, x.Version)
	s.touch(x)
	if x.Op == interlock.Delete {
		s.makeTombstone(d)
	} else {
		s.Present.Add(d)
		s.Bytes += x.Weight()
	}
	if old != nil {
		s.keep(old)
	}
	for s.tombstones.Len() > interlock.MaxTombstones || s.tombBytes > interlock.MaxTombstoneBytes {
		s.forget(s.tombstones.Front().Value)
	}
}

// makeTombstone and unbury count the remembered deletions.

func (s *Documents) makeTombstone(d *Document) {
	s.tombstones.PushBack(&d.tomb)
	s.tombBytes += len(d.Key) + d.Now.cost()
}

func (s *Documents) unbury(d *Document) {
	s.tombstones.Remove(&d.tomb)
	s.tombBytes -= len(d.Key) + d.Now.cost()
}

// forget drops a deleted document. Its version continues to count for all unknown keys, so that
// none of them ever has an older one.
func (s *Documents) forget(d *Document) {
	s.Floor = max(s.Floor, d.Now.Version)
	for len(d.Earlier) > 0 {
		s.trim(d)
	}
	s.Recent.Remove(&d.recent)
	s.unbury(d)
	delete(s.Known, d.Key)
	s.unshelve(d)
}

// MaxShelved bounds the documents below claimed keys that are looked at for one answer.
// Of a key with more below it none are handed over, but those at claimed keys.
const MaxShelved = 4096

// Shelved returns the documents below those claims that are claimed with all below, in the
// order of their keys, and whether there may be others.
func (s *Documents) Shelved(claims []interlock.Claim) (list []*Document, more bool) {
	looks := 0
	for _, c := range claims {
		f := s.folders[string(c.Key)]
		if f == nil || lockmode.Below(lockmode.Lock(c.Mode)) == 0 {
			continue
		}
		if looks+f.documents > MaxShelved {
			more = true
			continue
		}
		looks += f.documents
		list = f.appendPresent(list)
	}
	slices.SortFunc(list, func(a, b *Document) int { return cmp.Compare(a.Key, b.Key) })
	list = slices.Compact(list) // one claimed key may lie below another
	return slices.DeleteFunc(list, func(d *Document) bool { return ClaimsKey(claims, d.Key) }), more
}

// appendPresent adds the documents that are there in a folder and all folders in it.
func (f *folder) appendPresent(list []*Document) []*Document {
	for d := range f.own.All {
		if !d.IsAbsent() {
			list = append(list, d)
		}
	}
	for sub := range f.subs.All {
		list = sub.appendPresent(list)
	}
	return list
}

// AsOf returns what stood at a key with a version, if that is known: see document.AsOf.
func (s *Documents) AsOf(key interlock.Key, v interlock.Version) (x *DocumentVersion, known bool) {
	if d := s.Known[key]; d != nil {
		return d.asOf(v)
	}
	return nil, v >= s.Floor
}

func FutureWords(v, last interlock.Version) *message.Text {
	return message.New(message.FutureVersion, message.Num(v), message.Num(last))
}

// Show describes version x of a key's document at a time; a nil x is an absent document.
func (x *DocumentVersion) Show(key interlock.Key, bodies bool, now Time) interlock.Document {
	if x == nil {
		return interlock.Document{Key: key, Absent: true}
	}
	doc := interlock.Document{
		Key: key, Version: x.Version, Absent: x.Op == interlock.Delete, ContentType: x.ContentType, Size: len(x.Body),
		Op: x.Op, Agent: x.Agent, Session: x.Session, Flow: x.Flow, Principal: x.Principal, Fence: x.Fence, Note: x.Note,
		Age: now.Sub(x.At),
	}
	if bodies {
		doc.Body = x.Body
	}
	return doc
}

// Show describes the present document at a key.
func (s *Documents) Show(key interlock.Key, bodies bool, now Time) interlock.Document {
	if d := s.Known[key]; d != nil {
		return d.Now.Show(key, bodies, now)
	}
	return interlock.Document{Key: key, Version: s.Floor, Absent: true}
}
