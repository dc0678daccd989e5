package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// Keys that are spelled almost alike. Two agents that mean one account and write account:123
// and Account-0123 exclude each other nowhere, and neither reads what the other writes. If a
// namespace asks for it (Settings.NearMisses), the keys of its leases and documents are also
// indexed without case, separators, leading zeros and plurals.

// spelledKey is a key with what makes it live: a node or a document.
type spelledKey interface {
	spelledAs() string
	inUse() bool
}

func (n *node) spelledAs() string     { return n.key }
func (d *document) spelledAs() string { return string(d.key) }
func (n *node) inUse() bool           { return n.used() }
func (d *document) inUse() bool       { return !d.isAbsent() }

// maxAlike bounds the keys of one skeleton that are noted. Where there are more, the
// warnings are of no more use.
const maxAlike = 256

// spelled notes that a key is live, or no longer.
func (s *namespace) spelled(x spelledKey, live bool) {
	if s.alike == nil {
		return
	}
	k := keypath.Skeleton(x.spelledAs())
	if live {
		if len(s.alike[k]) < maxAlike {
			s.alike[k] = append(s.alike[k], x)
			s.kinds.note(x.spelledAs(), true)
		}
		return
	}
	i := slices.Index(s.alike[k], x)
	if i < 0 {
		return
	}
	s.kinds.note(x.spelledAs(), false)
	if list := slices.Delete(s.alike[k], i, i+1); len(list) > 0 {
		s.alike[k] = list
	} else {
		delete(s.alike, k)
	}
}

// watchSpelling begins or ends the watch, as the settings say.
func (s *namespace) watchSpelling() {
	if s.settings.NearMisses == (s.alike != nil) {
		return
	}
	s.alike, s.kinds, s.respelling = nil, kinds{}, nil
	if s.settings.NearMisses {
		s.alike, s.respelling = map[string][]spelledKey{}, &spellingScan{docs: len(s.docs.present)}
	}
}

// spellingScan is how far the keys are noted that were live when the watch began. Documents
// are gone through from the last to the first, since the seat of one that goes is taken by
// the last.
type spellingScan struct {
	part int // of namespace.nodes: the next
	docs int // that are left
}

// spellVisits is the cost, in objects, of recording one.
const spellVisits = 4

// isSpelling reports whether keys are left to be noted.
func (s *namespace) isSpelling() bool { return s != nil && s.respelling != nil }

// spellMore notes a swath of them.
func (e *Engine) spellMore(s *namespace) {
	x := s.respelling
	note := func(o spelledKey) {
		e.objects += spellVisits
		if !slices.Contains(s.alike[keypath.Skeleton(o.spelledAs())], o) { // it may have come since
			s.spelled(o, true)
		}
	}
	for begin := e.objects; e.objects < begin+e.swath; {
		if s.nodes.Part(x.part, func(n *node) { note(n) }) {
			x.part++
			e.objects++
			continue
		}
		x.docs = min(x.docs, len(s.docs.present))
		if x.docs == 0 {
			s.respelling = nil
			return
		}
		x.docs--
		note(s.docs.present[x.docs])
	}
}

// warnings returns the warnings about claims on keys that look like other live ones.
func (s *namespace) warnings(claims []interlock.Claim) (list []*message.Text) {
	if s == nil || s.alike == nil {
		return nil
	}
	for _, c := range claims {
		var other string
		for _, x := range s.alike[keypath.Skeleton(string(c.Key))] {
			if key := x.spelledAs(); key != string(c.Key) && x.inUse() && (other == "" || key < other) {
				other = key
			}
		}
		if other != "" {
			list = append(list, message.New(message.KeyAlmostSpelled, message.Str(c.Key), message.Str(other)))
		} else if text := s.slip(c.Key); text != nil {
			list = append(list, text)
		}
	}
	return list
}
