package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// The documents at the keys of a lease, for a holder that asked for them:
// Acquire.Documents. The lease keeps the setting, so each answer that hands it over, a
// push, a poll of the ticket and a question for the lease among them, has its documents,
// too. They are read when the lease is handed over, as of Lease.AsOf: the documents of a
// grant are what a commit under its fence replaces.

// wantsDocuments in Op of record.Queued or record.Granted marks a request that asked for documents.
const wantsDocuments = 1

// maxShelved bounds the documents below claimed keys that are looked at for one answer.
// Of a key with more below it none are handed over, but those at claimed keys.
const maxShelved = 4096

// handDocuments adds to a lease that is handed over the documents at its keys.
func (e *Engine) handDocuments(r *request, l *interlock.Lease) {
	s := &r.ns.docs
	l.AsOf = s.version
	below, more := s.shelved(r.claims())
	l.DocumentsMore = more
	room := interlock.MaxGrantBytes
	l.Documents = make([]interlock.Document, 0, min(len(r.claims())+len(below), interlock.MaxGrantDocuments))
	for _, c := range r.claims() {
		if !e.handDocument(l, e.present(s, c.Key, true), s.known[c.Key], &room) {
			return
		}
	}
	for _, d := range below {
		if !e.handDocument(l, e.showDocument(d.key, d.now, true), d, &room) {
			return
		}
	}
}

// handReused adds them to the answer to a request that found a lease, which itself may not
// have been asked for with them.
func (e *Engine) handReused(c *Acquire, eff *Effect) {
	if l := &eff.Lease; c.Documents && eff.Outcome == Granted && l.Reused && l.Documents == nil {
		if r := e.pendingWork.ns.request(l.ID); r != nil {
			e.handDocuments(r, l)
		}
	}
}

// handDocument adds a document and its previous author, as far as there is room; it returns
// false if there is no room for the document at all.
func (e *Engine) handDocument(l *interlock.Lease, doc interlock.Document, d *document, room *int) bool {
	left := *room - len(doc.Key) - textsOf(&doc)
	if len(l.Documents) == interlock.MaxGrantDocuments || left < 0 {
		l.DocumentsMore = true
		return false
	}
	if left < len(doc.Body) {
		doc.Body = nil
	}
	left -= len(doc.Body)
	if d != nil {
		earlier := d.earlier[max(0, len(d.earlier)-interlock.MaxEarlier):]
		for i := len(earlier) - 1; i >= 0; i-- {
			x := e.showDocument(d.key, earlier[i], false)
			if left -= textsOf(&x); left < 0 {
				left += textsOf(&x)
				break
			}
			doc.Earlier = append(doc.Earlier, x)
		}
		slices.Reverse(doc.Earlier)
	}
	*room = left
	l.Documents = append(l.Documents, doc)
	return true
}

// textsOf returns the bytes of a document's texts, besides its body.
func textsOf(d *interlock.Document) int {
	return len(d.Note) + len(d.ContentType) + len(d.Agent) + len(d.Flow) + len(d.Principal)
}

// shelved returns the documents below those claims that are claimed with all below, in the
// order of their keys, and whether there may be others.
func (s *documents) shelved(claims []interlock.Claim) (list []*document, more bool) {
	looks := 0
	for _, c := range claims {
		f := s.folders[string(c.Key)]
		if f == nil || lockmode.Below(lockmode.Lock(c.Mode)) == 0 {
			continue
		}
		if looks+f.documents > maxShelved {
			more = true
			continue
		}
		looks += f.documents
		list = f.appendPresent(list)
	}
	slices.SortFunc(list, func(a, b *document) int { return cmp.Compare(a.key, b.key) })
	list = slices.Compact(list) // one claimed key may lie below another
	return slices.DeleteFunc(list, func(d *document) bool { return claimsKey(claims, d.key) }), more
}

// appendPresent adds the documents that are there in a folder and all folders in it.
func (f *folder) appendPresent(list []*document) []*document {
	for d := range f.own.All {
		if !d.isAbsent() {
			list = append(list, d)
		}
	}
	for sub := range f.subs.All {
		list = sub.appendPresent(list)
	}
	return list
}
