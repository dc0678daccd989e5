package engine_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// readAsOf records the version that the caller of r has read of the documents at its keys: the
// present one unless it names another.
func (m *model) readAsOf(r *request) {
	if r.asOf = r.ask.AsOf; r.asOf == 0 && len(r.claims) > 0 {
		r.asOf = m.version(r.ns)
	}
}

// handOver records that r gets its keys, with a report of the writes until now.
func (m *model) handOver(r *request) { r.upTo = m.version(r.ns) }

// moved returns the documents at r's keys that others wrote before it was given the
// keys, and after it had read; what was written last comes first.
func (m *model) moved(r *request) (list []interlock.Stale) {
	if !r.active() {
		return nil
	}
	seen := map[interlock.Key]bool{}
	for _, w := range m.written {
		key := w.doc.Key
		if w.ns != r.ns || w.doc.Version <= r.asOf || w.doc.Version > r.upTo || seen[key] {
			continue
		}
		own := func(doc interlock.Document) bool {
			return r.session != nil && doc.Session == r.session.name && doc.Flow == r.ask.Flow ||
				doc.Fence > 0 && doc.Fence == r.fence
		}
		if now := m.documentNow(r.ns, key); own(w.doc) || own(now) && now.Version > r.upTo {
			continue
		}
		for _, c := range r.claims {
			seen[key] = seen[key] || c.Key == key ||
				above(c.Key, key) &&
					(c.Mode == interlock.Shared || c.Mode == interlock.SharedIntentExclusive || c.Mode == interlock.Exclusive)
		}
		if !seen[key] {
			continue
		}
		stale := interlock.Stale{Then: m.document(r.ns, key, r.asOf), Known: true, Now: m.documentNow(r.ns, key)}
		m.tellWrites(&stale, r.ns, r.asOf)
		list = append(list, stale)
	}
	slices.SortFunc(list, func(a, b interlock.Stale) int {
		return cmp.Or(cmp.Compare(b.Now.Version, a.Now.Version), cmp.Compare(a.Now.Key, b.Now.Key))
	})
	return list
}

// checkMoved compares the changes that a holder learns of: on each hand-over of its lease, but
// not when it renews it.
func (m *model) checkMoved(then moment, r *request, got *interlock.Lease) error {
	var want []interlock.Stale
	if c, ok := m.cmd.(*engine.Renew); !ok || c.Lease != interlock.LeaseID(r.ask.ID) {
		want = then.moved
	}
	// what a parked lease missed counts when it is resumed
	if got.Changed != (r.changed || len(want) > 0) && !r.unsure && r.phase != parked {
		return fmt.Errorf("%v: changed %v, want %v, moved %+v", r, got.Changed, r.changed, want)
	}
	more := len(want) > interlock.MaxStale
	if want = want[:min(len(want), interlock.MaxStale)]; len(got.Stale) != len(want) || got.StaleMore != more {
		return fmt.Errorf("%v is told of %+v, want %+v", r, got.Stale, want)
	}
	for i, s := range got.Stale {
		if err := sameDocument(want[i].Then, s.Then); err != nil {
			return fmt.Errorf("%v: %s as it was: %w", r, s.Then.Key, err)
		}
		if err := sameDocument(want[i].Now, s.Now); err != nil {
			return fmt.Errorf("%v: %s as it is: %w", r, s.Now.Key, err)
		}
		if !s.Known {
			return fmt.Errorf("%v: %s is not known as it was", r, s.Now.Key)
		}
		if err := sameWrites(&want[i], &s); err != nil {
			return fmt.Errorf("%v: %w", r, err)
		}
	}
	return m.checkEvidence(then, r, got)
}
