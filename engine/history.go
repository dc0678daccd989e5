package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
)

// Earlier editions of a document are kept as far as there is room: for each key up to
// interlock.MaxVersions editions with interlock.MaxVersionBytes of bodies, and in a namespace
// interlock.MaxSpaceVersionBytes of all editions. The edition that was replaced longest ago
// goes first, so the kept editions of a key are always its last ones.

// editionBytes is the cost of an edition besides its texts and its body.
const editionBytes = 256

// cost returns the bytes of the namespace's history that an edition takes.
func (x *poolEdition) cost() int { return editionBytes + x.size() }

// size returns the bytes of an edition's body and texts.
func (x *poolEdition) size() int {
	return len(x.body) + len(x.note) + len(x.contentType) + len(x.agent) + len(x.flow) + len(x.principal)
}

// keep makes x one of the earlier editions of its document.
func (s *documents) keep(x *poolEdition) {
	d := x.doc
	d.earlier = append(d.earlier, x)
	d.bytes += len(x.body)
	s.past.PushBack(&x.past)
	s.pastBytes += x.cost()
	for len(d.earlier) > interlock.MaxVersions || d.bytes > interlock.MaxVersionBytes {
		s.trim(d)
	}
	for s.pastBytes > interlock.MaxSpaceVersionBytes {
		s.trim(s.past.Front().Value.doc)
	}
}

// trim drops the oldest edition that is kept of a document.
func (s *documents) trim(d *document) {
	x := d.earlier[0]
	d.earlier = slices.Delete(d.earlier, 0, 1)
	d.bytes -= len(x.body)
	s.past.Remove(&x.past)
	s.pastBytes -= x.cost()
	if next := d.oldest(); next != nil {
		d.since = next.version
	}
}

// asOf returns the edition as of a version of the namespace, nil if there was none. It is known
// only if no later edition was dropped.
func (d *document) asOf(v interlock.Version) (x *poolEdition, known bool) {
	if v < d.since {
		return nil, false
	}
	if d.now != nil && d.now.version <= v {
		return d.now, true
	}
	i, found := slices.BinarySearchFunc(d.earlier, v, func(x *poolEdition, v interlock.Version) int { return cmp.Compare(x.version, v) })
	if found {
		return d.earlier[i], true
	}
	if i == 0 {
		return nil, true
	}
	return d.earlier[i-1], true
}

// written returns the edition with exactly that version, or nil.
func (d *document) written(v interlock.Version) *poolEdition {
	if x, _ := d.asOf(v); x != nil && x.version == v {
		return x
	}
	return nil
}

// written returns the edition of a key with exactly that version, if it is kept.
func (s *documents) written(key interlock.Key, v interlock.Version) *poolEdition {
	if d := s.known[key]; d != nil {
		return d.written(v)
	}
	return nil
}

// earlierSince returns the earlier editions after a version, as far as they are kept.
func (d *document) earlierSince(v interlock.Version) []*poolEdition {
	i, _ := slices.BinarySearchFunc(d.earlier, v+1, func(x *poolEdition, v interlock.Version) int { return cmp.Compare(x.version, v) })
	return d.earlier[i:]
}

// isTrimmed reports whether editions of the document were dropped. The history is then complete
// only from the edition after the last dropped one.
func (d *document) isTrimmed() bool {
	x := d.oldest()
	return x != nil && x.version == d.since
}

// oldest returns the first edition that is kept of a document.
func (d *document) oldest() *poolEdition {
	if len(d.earlier) > 0 {
		return d.earlier[0]
	}
	return d.now
}
