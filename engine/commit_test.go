package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// commit carries out a commit and returns its answer. Without reads it overwrites the documents
// whatever their versions are.
func (s *stand) commit(writes []interlock.Write, reads ...interlock.Read) *engine.Effect {
	for _, w := range writes {
		if docs, _, err := s.e.Documents("bench", []interlock.Key{w.Key}, false); len(reads) < len(writes) && err == nil &&
			!docs[0].Absent {
			reads = append(reads, interlock.Read{Key: w.Key, Present: true})
		}
	}
	s.step(&engine.Commit{Head: s.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
		Reads: reads, Writes: writes,
	}})
	return &s.out.Effects[0]
}

func put(key string, body []byte) []interlock.Write {
	return []interlock.Write{{Key: interlock.Key(key), Op: interlock.Put, ContentType: "text/plain", Body: body}}
}

func remove(key string) []interlock.Write {
	return []interlock.Write{{Key: interlock.Key(key), Op: interlock.Delete}}
}

// snapshots continues with an engine that is read from a snapshot.
func (s *stand) snapshots(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	if err := s.e.WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
	again, err := engine.ReadSnapshot(&b)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != s.e.Hash() {
		t.Error("a snapshot reads back with another hash")
	}
	s.e = again
	s.step(&engine.Recover{Head: engine.Head{At: s.now}, Epoch: 2})
}

// TestVersionsGrow: across writes, deletions and forgotten documents, a key never gets a
// version that it, or any other, had before, and an old read is never taken for a current one.
func TestVersionsGrow(t *testing.T) {
	t.Parallel()
	s := newStand()
	const keys = interlock.MaxTombstones + 10
	key := func(i int) string { return "k" + strconv.Itoa(i) }
	last := interlock.Version(0)
	next := func(e *engine.Effect) interlock.Version {
		t.Helper()
		if e.Outcome != engine.Done || e.Version != last+1 {
			t.Fatalf("after version %d: %+v", last, e)
		}
		last = e.Version
		return last
	}
	first := next(s.commit(put(key(0), []byte("x"))))
	for i := range keys {
		next(s.commit(remove(key(i))))
	}
	s.snapshots(t)
	// The oldest deletions are forgotten: of their keys nothing is known but that no
	// version above the floor was theirs.
	floor := interlock.Version(1 + keys - interlock.MaxTombstones)
	docs, asOf, err := s.e.Documents("bench", []interlock.Key{"k0", "k9", "k10", "never"}, true)
	if err != nil || asOf != last {
		t.Fatalf("as of %d, want %d: %v", asOf, last, err)
	}
	for i, want := range []interlock.Version{floor, floor, 12, floor} {
		if docs[i].Version != want || !docs[i].Absent {
			t.Errorf("%s has version %d, want %d", docs[i].Key, docs[i].Version, want)
		}
	}
	if _, err := s.e.DocumentAt(
		"bench", "k0", first,
	); !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
		t.Errorf("what is forgotten is told as %v", err)
	}
	if doc, err := s.e.DocumentAt("bench", "k0", floor); err != nil || !doc.Absent {
		t.Errorf("since its deletion there is %+v, %v", doc, err)
	}
	if e := s.commit(put("k0", nil), interlock.Read{Key: "k0", Version: first}); e.Code != interlock.CodeStale ||
		e.Stale[0].Known {
		t.Errorf("a read of a forgotten version is answered with %+v", e)
	}
	next(s.commit(put("k0", []byte("y")), interlock.Read{Key: "k0", Version: floor}))
	if list, trimmed, err := s.e.Versions("bench", "k0"); len(list) != 1 || trimmed || err != nil {
		t.Errorf("the new k0 has the history %+v, %v, %v", list, trimmed, err)
	}
	if _, err := s.e.DocumentAt(
		"bench", "k0", floor-1,
	); !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
		t.Errorf("what was at the new k0 before the floor is told as %v", err)
	}
}

// TestHistoryBounds: of a key's earlier versions the last are kept, so many and so
// much, and of a namespace's the last that were replaced.
func TestHistoryBounds(t *testing.T) {
	t.Parallel()
	s := newStand()
	for i := range interlock.MaxVersions + 2 {
		s.commit(put("many", []byte{byte('a' + i)}))
	}
	s.snapshots(t)
	list, trimmed, err := s.e.Versions("bench", "many")
	if len(list) != interlock.MaxVersions+1 || !trimmed || err != nil || list[0].Version != interlock.MaxVersions+2 ||
		list[interlock.MaxVersions].Version != 2 {
		t.Errorf("%d versions are kept, %v, %v", len(list), trimmed, err)
	}
	if _, err := s.e.DocumentAt(
		"bench", "many", 1,
	); !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
		t.Errorf("the version that is gone is told as %v", err)
	}
	if e := s.commit(nil, interlock.Read{Key: "many", Version: 1}); e.Stale[0].Known ||
		e.Stale[0].Writes != interlock.MaxVersions+1 {
		t.Errorf("the version that is gone is known as %+v", e.Stale[0])
	}
	if e := s.commit(nil, interlock.Read{Key: "many", Version: 2}); !e.Stale[0].Known ||
		string(e.Stale[0].Then.Body) != "b" {
		t.Errorf("the oldest version is known as %+v", e.Stale[0])
	}

	half := bytes.Repeat([]byte("x"), interlock.MaxVersionBytes/2)
	for range 4 {
		s.commit(put("large", half))
	}
	if list, _, _ := s.e.Versions("bench", "large"); len(list) != 3 {
		t.Errorf("%d versions of half a bound are kept, want the present one and two", len(list))
	}
	s.commit(put("large", append(half, half...)))
	s.commit(put("large", half))
	if list, _, _ := s.e.Versions("bench", "large"); len(list) != 2 {
		t.Errorf("%d versions are kept, want the present one and the large one", len(list))
	}

	whole := append(half, half...)
	for i := range 2 * interlock.MaxSpaceVersionBytes / len(whole) {
		for range 2 {
			s.commit(put(fmt.Sprintf("of-%d", i%(interlock.MaxStateBytes/len(whole)-4)), whole))
		}
	}
	kept := 0
	for i := range 2 * interlock.MaxSpaceVersionBytes / len(whole) {
		list, trimmed, _ := s.e.Versions("bench", interlock.Key(fmt.Sprintf("of-%d", i)))
		if len(list) == 1 && (!trimmed || kept > 0) {
			t.Fatalf("of-%d: the history of the last ones is kept, not of others", i)
		}
		kept += len(list) - 1
	}
	if want := interlock.MaxSpaceVersionBytes/len(whole) - 1; kept != want {
		t.Errorf("%d large versions are kept in the namespace, want %d", kept, want)
	}
	if list, trimmed, _ := s.e.Versions("bench", "many"); len(list) != 1 || !trimmed {
		t.Errorf("what was replaced longest ago is still there: %d versions, %v", len(list), trimmed)
	}
	s.snapshots(t)
}

// TestCounterBounds: however additions come, the sum is that of those that went
// through, and within the bounds that each of them named.
func TestCounterBounds(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newStand()
		var sum int64
		for range 300 {
			w := interlock.Write{Key: "n", Op: interlock.Add, Delta: rng.Int64N(21) - 10}
			if rng.IntN(8) == 0 {
				w.Delta = rng.Int64() - rng.Int64()
			}
			least, most := -rng.Int64N(20), rng.Int64N(20)
			if rng.IntN(4) > 0 {
				w.Min = &least
			}
			if rng.IntN(4) > 0 {
				w.Max = &most
			}
			e := s.commit([]interlock.Write{w})
			switch {
			case e.Outcome == engine.Refused && e.Code == interlock.CodeOutOfBounds:
				continue
			case e.Outcome != engine.Done:
				t.Fatalf("%+v", e)
			}
			now, err := strconv.ParseInt(string(e.Documents[0].Body), 10, 64)
			if err != nil || now != sum+w.Delta || (now > sum) != (w.Delta > 0) && w.Delta != 0 ||
				w.Min != nil && now < least || w.Max != nil && now > most {
				t.Fatalf("%d and %d are %d within %v and %v: %v", sum, w.Delta, now, least, most, err)
			}
			sum = now
		}
	}
}

// TestCommitLimits goes to each limit of a commit, and one beyond.
func TestCommitLimits(t *testing.T) {
	cases := []struct {
		name  string
		limit int
		code  interlock.Code
		do    func(s *stand, n int)
	}{
		{"reads", interlock.MaxReads, interlock.CodeInvalidRequest, func(s *stand, n int) {
			reads := make([]interlock.Read, n)
			for i := range reads {
				reads[i] = interlock.Read{Key: interlock.Key(fmt.Sprintf("k%d", i)), Absent: true}
			}
			s.commit(nil, reads...)
		}},
		{"writes", interlock.MaxWrites, interlock.CodeInvalidRequest, func(s *stand, n int) {
			var writes []interlock.Write
			for i := range n {
				writes = append(writes, put(fmt.Sprintf("k%d", i), nil)...)
			}
			s.commit(writes)
		}},
		{"document", interlock.MaxDocumentBytes, interlock.CodeBodyTooLarge, func(s *stand, n int) {
			s.commit(put("k", make([]byte, n)))
		}},
		{"all bodies", interlock.MaxCommitBytes, interlock.CodeBodyTooLarge, func(s *stand, n int) {
			s.commit(append(put("a", make([]byte, n/2)), put("b", make([]byte, n-n/2))...))
		}},
		{"merged", interlock.MaxCommitBytes, interlock.CodeBodyTooLarge, func(s *stand, n int) {
			body := fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", n/2))
			s.commit([]interlock.Write{{Key: "k", Op: interlock.Put, Body: []byte(body)}})
			rest := n - len(body) - len(`,"b":""`)
			s.commit([]interlock.Write{{
				Key: "k", Op: interlock.Merge, Body: fmt.Appendf(nil, `{"b":"%s"}`, strings.Repeat("y", rest)),
			}})
		}},
		{"merged into", interlock.MaxCommitBytes, interlock.CodeBodyTooLarge, func(s *stand, n int) {
			for i, size := range []int{n / 2, n - n/2} {
				body := fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", size-len(`{"a":""}`)))
				s.commit([]interlock.Write{{Key: interlock.Key(fmt.Sprintf("k%d", i)), Op: interlock.Put, Body: []byte(body)}})
			}
			s.commit([]interlock.Write{
				{Key: "k0", Op: interlock.Merge, Body: []byte(`{"a":null}`)},
				{Key: "k1", Op: interlock.Merge, Body: []byte(`{"a":null}`)},
			})
		}},
		{"note", interlock.MaxNoteBytes, interlock.CodeTooLong, func(s *stand, n int) {
			s.step(&engine.Commit{Head: s.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
				Note: strings.Repeat("x", n),
			}})
		}},
		{"flow", interlock.MaxNameBytes, interlock.CodeTooLong, func(s *stand, n int) {
			s.step(&engine.Commit{Head: s.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
				Flow: strings.Repeat("x", n),
			}})
		}},
		{"content type", interlock.MaxContentTypeBytes, interlock.CodeInvalidRequest, func(s *stand, n int) {
			w := put("k", nil)
			w[0].ContentType = "x/" + strings.Repeat("x", n-2)
			s.commit(w)
		}},
		{"leases", interlock.MaxClaims, interlock.CodeInvalidRequest, func(s *stand, n int) {
			id := s.acquire(interlock.SessionID{}, "k")
			s.step(&engine.Commit{Head: s.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
				Leases: slicesOf(interlock.LeaseID(id), n),
			}})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStand()
			c.do(s, c.limit)
			s.want(t, engine.Done)
			s = newStand()
			c.do(s, c.limit+1)
			s.refusedWith(t, c.code)
		})
	}
}

func slicesOf[T any](v T, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// TestLongestCommit: the entry of the largest commit is within its bound, and the
// largest document is within that of a snapshot.
func TestLongestCommit(t *testing.T) {
	s := newStand()
	s.now -= engine.Time(1)
	long := func(n int) string { return strings.Repeat("x", n) }
	head := s.head(interlock.SessionID{})
	head.Namespace, head.Actor, head.RequestID = interlock.Namespace(long(interlock.MaxNamespaceBytes)), long(
		interlock.MaxNameBytes,
	), long(interlock.MaxRequestIDBytes)
	c := &engine.Commit{Head: head, Agent: long(interlock.MaxNameBytes), CommitRequest: interlock.CommitRequest{
		Flow: long(interlock.MaxNameBytes), Note: long(interlock.MaxNoteBytes),
	}}
	for i := range interlock.MaxWrites {
		c.Writes = append(c.Writes, interlock.Write{
			Key: interlock.Key(fmt.Sprintf("%0*d", interlock.MaxKeyBytes, i)), Op: interlock.Put,
			ContentType: "text/" + long(interlock.MaxContentTypeBytes-5),
			Body:        []byte(long(interlock.MaxCommitBytes / interlock.MaxWrites)),
		})
	}
	s.step(c)
	s.want(t, engine.Done)
	if n := len(s.out.Entry); n > engine.CommitEntryBytes || n < engine.CommitEntryBytes*9/10 {
		t.Errorf("the longest entry has %d bytes, and its bound is %d", n, engine.CommitEntryBytes)
	}
	c.Writes = []interlock.Write{{
		Key: "k", Op: interlock.Put, ContentType: c.Writes[0].ContentType, Body: []byte(long(interlock.MaxDocumentBytes)),
	}}
	c.RequestID = "another"
	s.step(c)
	s.want(t, engine.Done)
	s.snapshots(t)
}

// TestDeletionBytes: notes of deletions are bounded too, and forgetting one does not hide
// others' deletions from a waiter.
func TestDeletionBytes(t *testing.T) {
	t.Parallel()
	const most = 2 * interlock.MaxTombstoneBytes / interlock.MaxNoteBytes
	s := newStand()
	s.commit(put("begin", nil))
	s.commit(put("dir/file", nil))
	owner, waiter := s.session(t), s.session(t)
	lease := s.acquire(owner, "dir")
	s.acquire(waiter, "dir")
	id := counted(s.ids)
	s.want(t, engine.Queued)
	s.commit(remove("dir/file"))
	note := strings.Repeat("n", interlock.MaxNoteBytes)
	for n := 0; ; n++ {
		if n == most {
			t.Fatalf("%d deletions with notes of %d bytes are remembered", n, len(note))
		}
		c := &engine.Commit{Head: s.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
			Note: note, Writes: remove("k" + strconv.Itoa(n)),
		}}
		s.step(c)
		s.want(t, engine.Done)
		if list, _, _ := s.e.Documents("bench", []interlock.Key{"k0"}, false); n > 0 && list[0].Note == "" {
			break
		}
	}
	s.snapshots(t)
	s.step(&engine.Release{Head: s.head(owner), Lease: interlock.LeaseID(lease)})
	s.step(&engine.GetLease{Head: s.head(waiter), Lease: interlock.LeaseID(id)})
	s.want(t, engine.Granted)
	if l := s.out.Effects[0].Lease; !l.StaleMore || !l.Changed {
		t.Errorf("what is forgotten did not move: %+v", l)
	}
}
