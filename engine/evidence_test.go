package engine_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// handed returns the lease on a key with all below, with its documents.
func (s *stand) handed(key interlock.Key) *interlock.Lease {
	s.step(&engine.Acquire{
		Head: s.head(interlock.SessionID{}), ID: s.id(), Agent: "agent", LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: key, Mode: interlock.Shared}}, Documents: true,
		},
	})
	return &s.out.Effects[0].Lease
}

// TestEvidenceBounds: a grant comes with so many documents and so many bytes; missing ones are
// reported.
func TestEvidenceBounds(t *testing.T) {
	s := newStand()
	for i := range interlock.MaxGrantDocuments + 10 {
		s.commit(put(fmt.Sprintf("many/%03d", i), []byte("x")))
	}
	l := s.handed("many")
	if n := len(l.Documents); n != interlock.MaxGrantDocuments || !l.DocumentsMore || !l.Documents[0].Absent ||
		l.Documents[1].Key != "many/000" {
		t.Errorf("%d of many documents, more is %t: %+v", n, l.DocumentsMore, l.Documents[:2])
	}
	exact := s.handed("many/000").Documents
	if len(exact) != 1 || string(exact[0].Body) != "x" {
		t.Errorf("the very key comes as %+v", exact)
	}

	// A body that has no room leaves its room to others.
	large := bytes.Repeat([]byte("x"), interlock.MaxGrantBytes)
	s.commit(put("size/a", large))
	s.commit(put("size/b", large[:len(large)/2]))
	s.commit(put("size/c", large[:len(large)/2]))
	s.commit(put("size/d", []byte("small")))
	l = s.handed("size")
	total, bodies := 0, ""
	for i := range l.Documents {
		if d := &l.Documents[i]; d.Body != nil {
			total += len(d.Body)
			bodies += string(d.Key[len("size/"):])
		}
	}
	if bodies != "bd" || total > interlock.MaxGrantBytes || len(l.Documents) != 5 || l.DocumentsMore ||
		l.Documents[1].Size != len(large) {
		t.Errorf("bodies of %q with %d bytes in %d documents", bodies, total, len(l.Documents))
	}

	// Notes count, too, and the previous author is dropped first.
	note := string(bytes.Repeat([]byte("n"), interlock.MaxNoteBytes))
	for range 3 {
		for i := range interlock.MaxGrantDocuments {
			s.step(&engine.Commit{Head: s.head(interlock.SessionID{}), Agent: "agent", CommitRequest: interlock.CommitRequest{
				Note: note, Writes: put(fmt.Sprintf("noted/%03d", i), nil),
			}})
		}
	}
	l = s.handed("noted")
	texts := 0
	for i := range l.Documents {
		texts += len(l.Documents[i].Note)
		for k := range l.Documents[i].Earlier {
			texts += len(l.Documents[i].Earlier[k].Note)
		}
	}
	if texts > interlock.MaxGrantBytes || !l.DocumentsMore {
		t.Errorf("notes of %d bytes, more is %t", texts, l.DocumentsMore)
	}

	// Below a key with very many, none are looked at.
	for i := range engine.MaxShelved + 1 {
		s.commit(put(fmt.Sprintf("crowd/%d", i), []byte("x")))
	}
	if l = s.handed("crowd"); len(l.Documents) != 1 || !l.DocumentsMore {
		t.Errorf("%d documents of a crowd, more is %t", len(l.Documents), l.DocumentsMore)
	}
	s.snapshots(t)
	if l = s.handed("many"); len(l.Documents) != interlock.MaxGrantDocuments {
		t.Errorf("%d documents after a restart", len(l.Documents))
	}
}
