package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// maxMoved bounds the documents that are examined for one answer, the most recently written
// ones, in search of those below a lease's claims. Documents at the claimed keys themselves are
// always found.
const maxMoved = 4096

// describeHanded describes r to the caller that receives its keys, or repeats its acquire, in a
// lease that is still empty. The description includes what changed meanwhile.
func (e *Engine) describeHanded(r *store.Request, l *interlock.Lease) {
	e.describeLease(r, l)
	l.Stale, l.StaleMore = e.moved(r)
	l.Changed = l.Changed || len(l.Stale) > 0 || l.StaleMore
	if r.Documents {
		e.handDocuments(r, l)
	}
}

// moved returns the documents that others wrote in r's window at its keys, and below those that
// it claims with all below, the latest first.
func (e *Engine) moved(r *store.Request) (list []interlock.Stale, more bool) {
	w, s := r.Window, &r.NS.Documents
	if w.UpTo <= w.AsOf {
		return nil, false
	}
	more = s.Floor > w.AsOf // something was deleted since, and that is forgotten
	var found []*store.Document
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
			if isBelowAny(d.Key, reach) && !store.ClaimsKey(r.Claims(), d.Key) && r.Missed(d) {
				found = append(found, d)
			}
		}
	}
	slices.SortFunc(found, func(a, b *store.Document) int {
		return cmp.Or(cmp.Compare(b.Now.Version, a.Now.Version), cmp.Compare(a.Key, b.Key))
	})
	for i, d := range found {
		if i == interlock.MaxStale {
			return list, true
		}
		list = append(list, e.staleSince(s, d.Key, w.AsOf, false))
	}
	return list, more
}

func isBelowAny(key interlock.Key, ancestors []interlock.Key) bool {
	return slices.ContainsFunc(ancestors, func(up interlock.Key) bool { return keypath.IsBelow(string(key), string(up)) })
}
