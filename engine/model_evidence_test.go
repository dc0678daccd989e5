package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// evidence returns the documents that are handed over with r: those at the claimed keys,
// then those below that are claimed with them. (The runs never reach the bounds.)
func (m *model) evidence(r *request) (list []interlock.Document) {
	add := func(doc interlock.Document) {
		var before []interlock.Document
		for _, w := range m.written {
			if w.ns == r.ns && w.doc.Key == doc.Key && w.doc.Version < doc.Version {
				x := w.doc
				x.Body, x.Age = nil, m.now.Sub(w.at)
				before = append(before, x)
			}
		}
		doc.Earlier = before[max(0, len(before)-interlock.MaxEarlier):]
		if len(doc.Earlier) == 0 {
			doc.Earlier = nil
		}
		list = append(list, doc)
	}
	for _, c := range r.claims {
		add(m.documentNow(r.ns, c.Key))
	}
	for _, doc := range m.documents(r.ns) {
		covered, claimed := false, false
		for _, c := range r.claims {
			claimed = claimed || c.Key == doc.Key
			covered = covered ||
				above(c.Key, doc.Key) &&
					(c.Mode == interlock.Shared || c.Mode == interlock.SharedIntentExclusive || c.Mode == interlock.Exclusive)
		}
		if covered && !claimed {
			add(doc)
		}
	}
	return list
}

// checkEvidence compares the documents that a holder is handed over: whenever it is
// given its lease, and not when it renews it.
func (m *model) checkEvidence(then moment, r *request, got *interlock.Lease) error {
	wanted := r.ask.Documents
	switch c := m.cmd.(type) {
	case *engine.Renew:
		wanted = wanted && c.Lease != interlock.LeaseID(r.ask.ID)
	case *engine.Acquire:
		wanted = wanted || got.Reused && c.Documents
	}
	if !wanted {
		if got.Documents != nil || got.DocumentsMore || got.AsOf != 0 {
			return fmt.Errorf("%v is handed documents for which it did not ask: %+v", r, got.Documents)
		}
		return nil
	}
	want := then.documents
	if len(got.Documents) != len(want) || got.DocumentsMore || got.AsOf != then.version {
		return fmt.Errorf(
			"%v is handed as of version %d the documents %+v, want as of %d %+v", r, got.AsOf, got.Documents, then.version,
			want,
		)
	}
	for i := range want {
		if err := sameDocument(want[i], got.Documents[i]); err != nil {
			return fmt.Errorf("%v is handed %w", r, err)
		}
	}
	return nil
}
