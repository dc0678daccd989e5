package store

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
func (x *DocumentVersion) cost() int { return editionBytes + x.size() }

// size returns the bytes of an edition's body and texts.
func (x *DocumentVersion) size() int {
	return len(x.Body) + len(x.Note) + len(x.ContentType) + len(x.Agent) + len(x.Flow) + len(x.Principal)
}

// keep makes x one of the earlier editions of its document.
func (s *Documents) keep(x *DocumentVersion) {
	d := x.Doc
	d.Earlier = append(d.Earlier, x)
	d.bytes += len(x.Body)
	s.Past.PushBack(&x.past)
	s.pastBytes += x.cost()
	for len(d.Earlier) > interlock.MaxVersions || d.bytes > interlock.MaxVersionBytes {
		s.trim(d)
	}
	for s.pastBytes > interlock.MaxSpaceVersionBytes {
		s.trim(s.Past.Front().Value.Doc)
	}
}

// trim drops the oldest edition that is kept of a document.
func (s *Documents) trim(d *Document) {
	x := d.Earlier[0]
	d.Earlier = slices.Delete(d.Earlier, 0, 1)
	d.bytes -= len(x.Body)
	s.Past.Remove(&x.past)
	s.pastBytes -= x.cost()
	if next := d.Oldest(); next != nil {
		d.Since = next.Version
	}
}

// AsOf returns the edition as of a version of the namespace, nil if there was none. It is known
// only if no later edition was dropped.
func (d *Document) asOf(v interlock.Version) (x *DocumentVersion, known bool) {
	if v < d.Since {
		return nil, false
	}
	if d.Now != nil && d.Now.Version <= v {
		return d.Now, true
	}
	i, found := slices.BinarySearchFunc(
		d.Earlier, v, func(x *DocumentVersion, v interlock.Version) int { return cmp.Compare(x.Version, v) },
	)
	if found {
		return d.Earlier[i], true
	}
	if i == 0 {
		return nil, true
	}
	return d.Earlier[i-1], true
}

// Written returns the edition with exactly that version, or nil.
func (d *Document) Written(v interlock.Version) *DocumentVersion {
	if x, _ := d.asOf(v); x != nil && x.Version == v {
		return x
	}
	return nil
}

// Written returns the edition of a key with exactly that version, if it is kept.
func (s *Documents) Written(key interlock.Key, v interlock.Version) *DocumentVersion {
	if d := s.Known[key]; d != nil {
		return d.Written(v)
	}
	return nil
}

// EarlierSince returns the earlier editions after a version, as far as they are kept.
func (d *Document) EarlierSince(v interlock.Version) []*DocumentVersion {
	i, _ := slices.BinarySearchFunc(d.Earlier, v+1, func(x *DocumentVersion, v interlock.Version) int { return cmp.Compare(x.Version, v) })
	return d.Earlier[i:]
}

// IsTrimmed reports whether editions of the document were dropped. The history is then complete
// only from the edition after the last dropped one.
func (d *Document) IsTrimmed() bool {
	x := d.Oldest()
	return x != nil && x.Version == d.Since
}

// Oldest returns the first edition that is kept of a document.
func (d *Document) Oldest() *DocumentVersion {
	if len(d.Earlier) > 0 {
		return d.Earlier[0]
	}
	return d.Now
}
