package store

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

// Window is a request's, in its details.
type Window struct {
	AsOf interlock.Version
	UpTo interlock.Version // 0: the keys were not given yet, or nothing was committed meanwhile
}

// ReadAsOf records the version that r's caller has read, unless r has one.
func (r *Request) ReadAsOf(v interlock.Version) {
	if v > 0 && r.Window.AsOf == 0 && len(r.Claims()) > 0 {
		r.setWindow(Window{AsOf: v})
	}
}

// MovedUpTo returns the end of r's window if it is given its keys now, after it has
// waited for them; 0 if nothing was committed in it.
func (r *Request) MovedUpTo() interlock.Version {
	if v := r.NS.Documents.Version; v > r.Window.AsOf {
		return v
	}
	return 0
}

// SeeAtOnce ends the window of a request that need not wait: it has one only if its caller
// named the version that it has read.
func (r *Request) SeeAtOnce() {
	w := r.Window
	if w.AsOf > 0 {
		w.UpTo = r.MovedUpTo()
	}
	if w.UpTo == 0 {
		w = Window{}
	}
	r.setWindow(w)
}

// handOver ends the window of a request, with which r is given its keys. An empty one
// need not be remembered, unless r is only offered, or may be put back as it was
// parked.
func (r *Request) handOver(asked *Request, upTo interlock.Version) {
	w := Window{asked.Window.AsOf, upTo}
	switch {
	case r.GoesBack(), r.StaysPut():
		w.AsOf = r.Window.AsOf
	case upTo == 0 && r.Phase == Held:
		w = Window{}
	}
	r.setWindow(w)
}

func (r *Request) setWindow(w Window) {
	if w != r.Window {
		d := *r.RequestDetail
		d.Window = w
		r.SetDetails(d)
	}
}

// Missed reports whether others wrote the document in r's window, or may have: the history of a
// document with very many later writes may be forgotten. The author of such a later write knows
// the document.
func (r *Request) Missed(d *Document) bool {
	w := r.Window
	if d.Now.Version <= w.AsOf || d.Now.Version > w.UpTo && r.wrote(d.Now) {
		return false
	}
	news := func(x *DocumentVersion) bool { return x.Version > w.AsOf && x.Version <= w.UpTo && !r.wrote(x) }
	return news(d.Now) || slices.ContainsFunc(d.Earlier, news) || d.Since > w.AsOf+1
}

// wrote reports whether x was written by r's own flow, or in the name of the lease.
func (r *Request) wrote(x *DocumentVersion) bool {
	s := r.Session()
	return s != nil && x.Session == s.Name && x.Flow == r.FlowName() || x.Fence > 0 && x.Fence == r.Fence
}

// Reaching returns the claimed keys below which something was written after a version,
// of those that are claimed with all below.
func (s *Documents) Reaching(claims []interlock.Claim, after interlock.Version) (keys []interlock.Key) {
	for _, c := range claims {
		if f := s.folders[string(c.Key)]; f != nil && f.version > after && lockmode.Below(lockmode.Lock(c.Mode)) != 0 {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func ClaimsKey(claims []interlock.Claim, key interlock.Key) bool {
	return slices.ContainsFunc(claims, func(c interlock.Claim) bool { return c.Key == key })
}

// folder is the record of the documents below a key.
type folder struct {
	documents int
	version   interlock.Version // the highest that one of them got

	own   collection.List[*Document] // right below it
	subs  collection.List[*folder]
	place collection.Element[*folder] // in the folder above
}

// shelve adds a document to the folders in which it lies.
func (s *Documents) shelve(d *Document) {
	if key, ok := keypath.Parent(string(d.Key)); ok {
		s.folder(key).own.PushBack(&d.shelf)
	}
	for key, ok := keypath.Parent(string(d.Key)); ok; key, ok = keypath.Parent(key) {
		s.folders[key].documents++
	}
}

// folder returns the record of the documents below a key, and creates it if there is none.
func (s *Documents) folder(key string) *folder {
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
func (s *Documents) touch(x *DocumentVersion) {
	for key, ok := keypath.Parent(string(x.Doc.Key)); ok; key, ok = keypath.Parent(key) {
		s.folders[key].version = x.Version
	}
}

// unshelve takes a document out of the folders in which it lies.
func (s *Documents) unshelve(d *Document) {
	key, ok := keypath.Parent(string(d.Key))
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

// DescribeHanded describes r to the caller that receives its keys, or repeats its acquire, in a
// lease that is still empty. The description includes what changed meanwhile.
func (r *Request) DescribeHanded(l *interlock.Lease) {
	r.DescribeLease(l)
	l.Stale, l.StaleMore = r.staleDocuments()
	l.Changed = l.Changed || len(l.Stale) > 0 || l.StaleMore
	if r.Documents {
		r.AddDocuments(l)
	}
}

// staleDocuments returns the documents that others wrote in r's window at its keys, and below those that
// it claims with all below, the latest first.
func (r *Request) staleDocuments() (list []interlock.Stale, more bool) {
	w, s := r.Window, &r.NS.Documents
	if w.UpTo <= w.AsOf {
		return nil, false
	}
	more = s.Floor > w.AsOf // something was deleted since, and that is forgotten
	var found []*Document
	for _, c := range r.Claims() {
		if d := s.Known[c.Key]; d != nil && r.Missed(d) {
			found = append(found, d)
		}
	}
	if reach := s.Reaching(r.Claims(), w.AsOf); len(reach) > 0 {
		looks := 0
		for d := range s.Recent.Backward {
			if looks++; looks > maxMoved || len(found) > interlock.MaxClaims+interlock.MaxStale {
				more = true
				break
			}
			if d.Now.Version <= w.AsOf {
				break
			}
			if isBelowAny(d.Key, reach) && !ClaimsKey(r.Claims(), d.Key) && r.Missed(d) {
				found = append(found, d)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(b.Now.Version, a.Now.Version), cmp.Compare(a.Key, b.Key))
	})
	for i, d := range found {
		if i == interlock.MaxStale {
			return list, true
		}
		list = append(list, s.since(d.Key, w.AsOf, false, r.NS.Now()))
	}
	return list, more
}

// maxMoved bounds the documents that are examined for one answer, the most recently written
// ones, in search of those below a lease's claims. Documents at the claimed keys themselves are
// always found.
const maxMoved = 4096

func isBelowAny(key interlock.Key, ancestors []interlock.Key) bool {
	return slices.ContainsFunc(ancestors, func(up interlock.Key) bool { return keypath.IsBelow(string(key), string(up)) })
}
