package store

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// WantsDocuments in Op of record.Queued or record.Granted marks a request that asked for documents.
const WantsDocuments = 1

// Encloses in Op of record.Queued marks a declared wait for work under a lease of the flow.
const Encloses = 2

// The documents at the keys of a lease, for a holder that asked for them:
// Acquire.Documents. The lease keeps the setting, so each answer that hands it over, a
// push, a poll of the ticket and a question for the lease among them, has its documents,
// too. They are read when the lease is handed over, as of Lease.AsOf: the documents of a
// grant are what a commit under its fence replaces.

// AddDocuments adds to a lease that is handed over the documents at its keys.
func (r *Request) AddDocuments(l *interlock.Lease) {
	s := &r.NS.Documents
	l.AsOf = s.Version
	below, more := s.Shelved(r.Claims())
	l.DocumentsMore = more
	room := interlock.MaxGrantBytes
	l.Documents = make([]interlock.Document, 0, min(len(r.Claims())+len(below), interlock.MaxGrantDocuments))
	for _, c := range r.Claims() {
		if !addDocument(l, s.Show(c.Key, true, r.NS.Now()), s.Known[c.Key], &room, r.NS.Now()) {
			return
		}
	}
	for _, d := range below {
		if !addDocument(l, d.Now.Show(d.Key, true, r.NS.Now()), d, &room, r.NS.Now()) {
			return
		}
	}
}

// addDocument adds a document and its previous author, as far as there is room; it returns
// false if there is no room for the document at all.
func addDocument(l *interlock.Lease, doc interlock.Document, d *Document, room *int, now Time) bool {
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
		earlier := d.Earlier[max(0, len(d.Earlier)-interlock.MaxEarlier):]
		for i := len(earlier) - 1; i >= 0; i-- {
			x := earlier[i].Show(d.Key, false, now)
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
