package store

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

// SpelledKey is a key with what makes it live: a node or a document.
type SpelledKey interface {
	SpelledAs() string
	inUse() bool
}

func (n *Node) SpelledAs() string { return n.Key }

func (d *Document) SpelledAs() string { return string(d.Key) }

func (n *Node) inUse() bool { return n.Used() }

func (d *Document) inUse() bool { return !d.IsAbsent() }

// maxAlike bounds the keys of one skeleton that are noted. Where there are more, the
// warnings are of no more use.
const maxAlike = 256

// Spelled notes that a key is live, or no longer.
func (s *Namespace) Spelled(x SpelledKey, live bool) {
	if s.Alike == nil {
		return
	}
	k := keypath.Skeleton(x.SpelledAs())
	if live {
		if len(s.Alike[k]) < maxAlike {
			s.Alike[k] = append(s.Alike[k], x)
			s.kinds.note(x.SpelledAs(), true)
		}
		return
	}
	i := slices.Index(s.Alike[k], x)
	if i < 0 {
		return
	}
	s.kinds.note(x.SpelledAs(), false)
	if list := slices.Delete(s.Alike[k], i, i+1); len(list) > 0 {
		s.Alike[k] = list
	} else {
		delete(s.Alike, k)
	}
}

// watchSpelling begins or ends the watch, as the settings say.
func (s *Namespace) watchSpelling() {
	if s.Settings.NearMisses == (s.Alike != nil) {
		return
	}
	s.Alike, s.kinds, s.Respelling = nil, kinds{}, nil
	if s.Settings.NearMisses {
		s.Alike, s.Respelling = map[string][]SpelledKey{}, &spellingScan{Docs: len(s.Documents.Present)}
	}
}

// spellingScan is how far the keys are noted that were live when the watch began. Documents
// are gone through from the last to the first, since the seat of one that goes is taken by
// the last.
type spellingScan struct {
	Part int // of namespace.nodes: the next
	Docs int // that are left
}

// IsSpelling reports whether keys are left to be noted.
func (s *Namespace) IsSpelling() bool { return s != nil && s.Respelling != nil }

// Warnings returns the warnings about claims on keys that look like other live ones.
func (s *Namespace) Warnings(claims []interlock.Claim) (list []*message.Text) {
	if s == nil || s.Alike == nil {
		return nil
	}
	for _, c := range claims {
		var other string
		for _, x := range s.Alike[keypath.Skeleton(string(c.Key))] {
			if key := x.SpelledAs(); key != string(c.Key) && x.inUse() && (other == "" || key < other) {
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
