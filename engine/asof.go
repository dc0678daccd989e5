package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// What changed during a wait. A request remembers the version of the namespace's state that its
// caller has seen in reading the documents at its keys: the version that the caller names, else
// the one at the request's arrival, or at the lease's parking. The later versions, up to that
// of the grant, are its window: documents at its keys that others wrote in the window are news
// to the caller.
//
//	 read    arrival           grant    claimed, if it was an offer
//	──┼─────────┼────────────────┼────────┼──────► versions
//	  └ as of ┄┄┴────────── window ───────┘
//
// A window is two numbers, and its writes are looked up on each hand-over of the lease, so a
// holder that lost the answer gets the same report again. The window is kept only where it
// matters: a request that arrived before the namespace's first commit has read as of version 0,
// and one that waited while nothing was committed missed nothing. Commits of its own flow are
// no news to it; and once it has written a document while holding the keys, earlier writes of
// that document are none either.

// maxMoved bounds the documents that are examined for one answer, the most recently written
// ones, in search of those below a lease's claims. Documents at the claimed keys themselves are
// always found.
const maxMoved = 4096

// window is a request's, in its details.
type window struct {
	asOf interlock.Version
	upTo interlock.Version // 0: the keys were not given yet, or nothing was committed meanwhile
}

// readAsOf records the version that r's caller has read, unless r has one.
func (r *request) readAsOf(v interlock.Version) {
	if v > 0 && r.window.asOf == 0 && len(r.claims()) > 0 {
		r.setWindow(window{asOf: v})
	}
}

// movedUpTo returns the end of r's window if it is given its keys now, after it has
// waited for them; 0 if nothing was committed in it.
func (r *request) movedUpTo() interlock.Version {
	if v := r.ns.docs.version; v > r.window.asOf {
		return v
	}
	return 0
}

// seeAtOnce ends the window of a request that need not wait: it has one only if its caller
// named the version that it has read.
func (r *request) seeAtOnce() {
	w := r.window
	if w.asOf > 0 {
		w.upTo = r.movedUpTo()
	}
	if w.upTo == 0 {
		w = window{}
	}
	r.setWindow(w)
}

// handOver ends the window of a request, with which r is given its keys. An empty one
// need not be remembered, unless r is only offered, or may be put back as it was
// parked.
func (r *request) handOver(asked *request, upTo interlock.Version) {
	w := window{asked.window.asOf, upTo}
	switch {
	case r.goesBack(), r.staysPut():
		w.asOf = r.window.asOf
	case upTo == 0 && r.phase == held:
		w = window{}
	}
	r.setWindow(w)
}

func (r *request) setWindow(w window) {
	if w != r.window {
		d := *r.requestDetail
		d.window = w
		r.setDetails(d)
	}
}

// describeHanded describes r to the caller that receives its keys, or repeats its acquire, in a
// lease that is still empty. The description includes what changed meanwhile.
func (e *Engine) describeHanded(r *request, l *interlock.Lease) {
	e.describeLease(r, l)
	l.Stale, l.StaleMore = e.moved(r)
	l.Changed = l.Changed || len(l.Stale) > 0 || l.StaleMore
	if r.documents {
		e.handDocuments(r, l)
	}
}

// moved returns the documents that others wrote in r's window at its keys, and below those that
// it claims with all below, the latest first.
func (e *Engine) moved(r *request) (list []interlock.Stale, more bool) {
	w, s := r.window, &r.ns.docs
	if w.upTo <= w.asOf {
		return nil, false
	}
	more = s.floor > w.asOf // something was deleted since, and that is forgotten
	var found []*document
	for _, c := range r.claims() {
		if d := s.known[c.Key]; d != nil && r.missed(d) {
			found = append(found, d)
		}
	}
	if reach := s.reaching(r.claims(), w.asOf); len(reach) > 0 {
		looks := 0
		for d := range s.recent.Backward {
			if looks++; looks > maxMoved || len(found) > interlock.MaxClaims+interlock.MaxStale {
				more = true
				break
			}
			if d.now.version <= w.asOf {
				break
			}
			if isBelowAny(d.key, reach) && !claimsKey(r.claims(), d.key) && r.missed(d) {
				found = append(found, d)
			}
		}
	}
	slices.SortFunc(found, func(a, b *document) int {
		return cmp.Or(cmp.Compare(b.now.version, a.now.version), cmp.Compare(a.key, b.key))
	})
	for i, d := range found {
		if i == interlock.MaxStale {
			return list, true
		}
		list = append(list, e.staleSince(s, d.key, w.asOf, false))
	}
	return list, more
}

// missed reports whether others wrote the document in r's window, or may have: the history of a
// document with very many later writes may be forgotten. The author of such a later write knows
// the document.
func (r *request) missed(d *document) bool {
	w := r.window
	if d.now.version <= w.asOf || d.now.version > w.upTo && r.wrote(d.now) {
		return false
	}
	news := func(x *poolEdition) bool { return x.version > w.asOf && x.version <= w.upTo && !r.wrote(x) }
	return news(d.now) || slices.ContainsFunc(d.earlier, news) || d.since > w.asOf+1
}

// wrote reports whether x was written by r's own flow, or in the name of the lease.
func (r *request) wrote(x *poolEdition) bool {
	s := r.session()
	return s != nil && x.session == s.name && x.flow == r.flowName() || x.fence > 0 && x.fence == r.fence
}

// reaching returns the claimed keys below which something was written after a version,
// of those that are claimed with all below.
func (s *documents) reaching(claims []interlock.Claim, after interlock.Version) (keys []interlock.Key) {
	for _, c := range claims {
		if f := s.folders[string(c.Key)]; f != nil && f.version > after && lockmode.Below(lockmode.Lock(c.Mode)) != 0 {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func isBelowAny(key interlock.Key, ancestors []interlock.Key) bool {
	return slices.ContainsFunc(ancestors, func(up interlock.Key) bool { return keypath.IsBelow(string(key), string(up)) })
}

func claimsKey(claims []interlock.Claim, key interlock.Key) bool {
	return slices.ContainsFunc(claims, func(c interlock.Claim) bool { return c.Key == key })
}

// folder is the record of the documents below a key.
type folder struct {
	documents int
	version   interlock.Version // the highest that one of them got

	own   collection.List[*document] // right below it
	subs  collection.List[*folder]
	place collection.Element[*folder] // in the folder above
}

// shelve adds a document to the folders in which it lies.
func (s *documents) shelve(d *document) {
	if key, ok := keypath.Parent(string(d.key)); ok {
		s.folder(key).own.PushBack(&d.shelf)
	}
	for key, ok := keypath.Parent(string(d.key)); ok; key, ok = keypath.Parent(key) {
		s.folders[key].documents++
	}
}

// folder returns the record of the documents below a key, and creates it if there is none.
func (s *documents) folder(key string) *folder {
	f := s.folders[key]
	if f != nil {
		return f
	}
	if s.folders == nil {
		s.folders = map[string]*folder{}
	}
	f = &folder{}
	f.place.Value = f
	s.folders[key] = f
	if up, ok := keypath.Parent(key); ok {
		s.folder(up).subs.PushBack(&f.place)
	}
	return f
}

// touch notes in the folders of a document that it was written.
func (s *documents) touch(x *poolEdition) {
	for key, ok := keypath.Parent(string(x.doc.key)); ok; key, ok = keypath.Parent(key) {
		s.folders[key].version = x.version
	}
}

// unshelve takes a document out of the folders in which it lies.
func (s *documents) unshelve(d *document) {
	key, ok := keypath.Parent(string(d.key))
	if ok {
		s.folders[key].own.Remove(&d.shelf)
	}
	for ok {
		f, up := s.folders[key], ""
		f.documents--
		up, ok = keypath.Parent(key)
		if f.documents == 0 {
			delete(s.folders, key)
			if ok {
				s.folders[up].subs.Remove(&f.place)
			}
		}
		key = up
	}
}
