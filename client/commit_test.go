package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

func (s *stage) commit(c *client.Client, req client.Commit) *client.CommitResult {
	s.t.Helper()
	done, err := c.Commit(s.ctx, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return done
}

func (s *stage) document(c *client.Client, key interlock.Key) interlock.Document {
	s.t.Helper()
	doc, err := c.Document(s.ctx, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return doc
}

func writing(list ...interlock.Write) client.Commit { return client.Commit{Writes: list} }

var stateScenarios = []scenario{
	{"what was written is read", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		if doc := s.document(b, "k"); !doc.Absent || doc.Version != 0 {
			t.Errorf("before: %+v", doc)
		}
		done := s.commit(a, client.Commit{Note: "the first", Flow: "f", Writes: []interlock.Write{
			client.Put("k", []byte(`{"a": 1}`)), client.PutBytes("t", "text/plain", []byte("hello")), client.Add("n", 7),
		}})
		if done.Version != 1 || len(done.Documents) != 3 || string(done.Documents[2].Body) != "7" ||
			done.Documents[0].Body != nil || done.At.Index == 0 {
			t.Errorf("committed %+v", done)
		}
		doc := s.document(b, "k")
		if string(doc.Body) != `{"a": 1}` || doc.Version != 1 || doc.ContentType != interlock.JSONType || doc.Agent != "a" ||
			doc.Flow != "f" || doc.Note != "the first" || doc.Session != a.SessionName() || doc.Op != interlock.Put {
			t.Errorf("read %+v", doc)
		}
		doc.Body[0] = 'x' // it is the caller's
		s.commit(b, client.Commit{AsOf: 1, Writes: []interlock.Write{
			client.Merge("k", []byte(`{"b":2}`)), client.Delete("t"), client.AddWithin("n", -7, 0, math.MaxInt64),
		}})
		snapshot, err := a.Documents(s.ctx, "n", "t", "k")
		if err != nil || snapshot.Version != 2 || len(snapshot.Documents) != 3 {
			t.Fatalf("snapshot %+v, %v", snapshot, err)
		}
		n, text, k := snapshot.Documents[0], snapshot.Documents[1], snapshot.Documents[2]
		if string(n.Body) != "0" || !text.Absent || text.Version != 2 || string(k.Body) != `{"a":1,"b":2}` {
			t.Errorf("snapshot %q %+v %q", n.Body, text, k.Body)
		}
		if then, err := a.DocumentsAt(s.ctx, 1, "t", "n"); err != nil || then.Version != 1 ||
			string(then.Documents[0].Body) != "hello" || string(then.Documents[1].Body) != "7" {
			t.Errorf("as of 1: %+v, %v", then, err)
		}
		versions, trimmed, err := a.History(s.ctx, "t")
		if err != nil || trimmed || len(versions) != 2 || !versions[0].Absent || string(versions[1].Body) != "hello" {
			t.Errorf("history %+v, %v, %v", versions, trimmed, err)
		}
	}},
	{"a commit wants some version", func(t *testing.T, s *stage) {
		c := s.client("a")
		req := client.Commit{Reads: client.SomeVersion("k"), Writes: []interlock.Write{client.Merge("k", []byte(`{"b":2}`))}}
		if _, err := c.Commit(s.ctx, req); !isCode(err, interlock.CodeStale) {
			t.Errorf("what is not there is merged: %v", err)
		}
		s.commit(c, writing(client.Put("k", []byte(`{"a":1}`))))
		put := writing(client.Put("k", []byte(`{"a":2}`)))
		if _, err := c.Commit(s.ctx, put); !isCode(err, interlock.CodeVersionRequired) {
			t.Errorf("what is there is overwritten unseen: %v", err)
		}
		put.Reads = client.SomeVersion("k")
		s.commit(c, put)
		s.commit(c, req)
		if doc := s.document(c, "k"); string(doc.Body) != `{"a":2,"b":2}` {
			t.Errorf("%s", doc.Body)
		}
	}},
	{"a stale commit tells what changed", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		s.commit(a, writing(client.Put("account:1", []byte(`{"balance":10,"owner":"x"}`))))
		old := s.document(b, "account:1")
		s.commit(
			a,
			client.Commit{
				Note: "late fee", Reads: client.Seen(old),
				Writes: []interlock.Write{client.Put("account:1", []byte(`{"balance":7,"owner":"x"}`))},
			},
		)
		_, err := b.Commit(
			s.ctx,
			client.Commit{
				Reads: client.Seen(old), Writes: []interlock.Write{client.Put("account:1", []byte(`{"balance":20,"owner":"x"}`))},
			},
		)
		stale, ok := errors.AsType[*client.StaleError](err)
		if !ok || !isCode(err, interlock.CodeStale) || len(stale.Changes) != 1 {
			t.Fatalf("got %+v", err)
		}
		change := stale.Changes[0]
		if change.Now.Agent != "a" || change.Now.Note != "late fee" || change.Diff.Kind != interlock.JSONPatch ||
			!strings.Contains(change.Diff.Text, "7") {
			t.Errorf("the change %+v", change)
		}
		for _, word := range []string{"account:1", "late fee"} {
			if !strings.Contains(stale.Message, word) {
				t.Errorf("%q is not in the message: %s", word, stale.Message)
			}
		}
		if stale.Refusal.Key != "account:1" || stale.Refusal.ConflictKind != interlock.VersionMoved ||
			stale.Refusal.Advice.Action != interlock.ActReRead {
			t.Errorf("the refusal %+v", stale.Refusal)
		}
		if doc := s.document(b, "account:1"); string(doc.Body) != `{"balance":7,"owner":"x"}` {
			t.Errorf("written nevertheless: %s", doc.Body)
		}
	}},
	{"a commit in the name of a lease carries its fence", func(t *testing.T, s *stage) {
		c := s.client("a")
		lease := s.acquire(c, exclusively("k"))
		if _, err := lease.Commit(s.ctx, writing(client.Put("k/part", []byte("1")))); err != nil {
			t.Fatal(err)
		}
		if doc := s.document(c, "k/part"); doc.Fence != lease.Fence() || doc.Flow != lease.Flow() {
			t.Errorf("by the lease with fence %d: %+v", lease.Fence(), doc)
		}
		s.release(lease, "")
		_, err := c.Commit(
			s.ctx,
			client.Commit{Leases: []interlock.LeaseID{lease.ID()}, Writes: []interlock.Write{client.Put("k/part", []byte("2"))}},
		)
		if !isCode(err, interlock.CodeReleased) {
			t.Errorf("after the release: %v", err)
		}
	}},
	{"a lease tells what has moved before it was granted", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		s.commit(a, writing(client.Put("k", []byte("1"))))
		snapshot, err := b.Documents(s.ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		req := exclusively("k")
		req.AsOf = snapshot.Version
		if lease := s.acquire(b, req); lease.Packet() != nil || lease.Changed() {
			t.Errorf("nothing had moved: %+v", lease.Packet())
		} else {
			s.release(lease, "")
		}
		s.commit(a, client.Commit{Note: "one more", Writes: []interlock.Write{client.Add("k", 1)}})
		lease := s.acquire(b, req)
		p := lease.Packet()
		if p == nil || len(p.Changes) != 1 || p.Changes[0].Now.Note != "one more" ||
			!strings.Contains(p.Message, "one more") || !lease.Changed() {
			t.Errorf("the packet %+v", p)
		}
		// So it is when it moves while the request waits.
		late := s.wait(a, exclusively("k"))
		late.queued()
		s.commit(b, client.Commit{Leases: []interlock.LeaseID{lease.ID()}, Writes: []interlock.Write{client.Add("k", 5)}})
		s.release(lease, "")
		if p := late.granted().Packet(); p == nil || p.Changes[0].Now.Fence != lease.Fence() {
			t.Errorf("the packet of who waited %+v", p)
		}
	}},
	{"documents come with a lease that asks for them", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		s.commit(a, client.Commit{Note: "first", Writes: []interlock.Write{client.Put("k", []byte("1"))}})
		req := exclusively("k", "new")
		req.Documents = true
		lease := s.acquire(a, req)
		if got, more := lease.Documents(); more || got.Version != 1 || len(got.Documents) != 2 ||
			string(got.Documents[0].Body) != "1" ||
			got.Documents[0].Note != "first" || !got.Documents[1].Absent || got.Documents[1].Key != "new" {
			t.Errorf("the documents %+v", got)
		}
		if got, _ := s.acquire(b, exclusively("other")).Documents(); got.Documents != nil {
			t.Errorf("documents for which nobody asked: %+v", got)
		}
		// So it is with a lease that was waited for, as of its grant.
		late := s.wait(b, req)
		late.queued()
		s.commit(
			a, client.Commit{Leases: []interlock.LeaseID{lease.ID()}, Writes: []interlock.Write{client.Put("k", []byte("2"))}},
		)
		s.release(lease, "")
		got, _ := late.granted().Documents()
		if got.Version != 2 || string(got.Documents[0].Body) != "2" || len(got.Documents[0].Earlier) != 1 ||
			got.Documents[0].Earlier[0].Note != "first" {
			t.Errorf("the documents of who waited %+v", got)
		}
	}},
	{"commits are refused with their codes", func(t *testing.T, s *stage) {
		c := s.client("a")
		large := bytes.Repeat([]byte("x"), interlock.MaxDocumentBytes+1)
		for _, bad := range []struct {
			code interlock.Code
			req  client.Commit
		}{
			{interlock.CodeInvalidKey, writing(client.Delete("a//b"))},
			{interlock.CodeInvalidRequest, writing(client.Put("k", []byte("{")))},
			{interlock.CodeInvalidRequest, writing(client.Delete("\xff"))},
			{interlock.CodeInvalidRequest, writing(interlock.Write{Key: "k"})},
			{interlock.CodeDuplicateClaim, writing(client.Delete("k"), client.Delete("k"))},
			{interlock.CodeBodyTooLarge, writing(client.PutBytes("k", "text/plain", large))},
			{
				interlock.CodeBodyTooLarge,
				writing(client.PutBytes("k", "text/plain", large), client.PutBytes("l", "text/plain", large)),
			},
			{interlock.CodeBadPatch, writing(client.Merge("k", []byte("{")))},
			{interlock.CodeOutOfBounds, writing(client.AddWithin("k", 5, math.MinInt64, 4))},
			{interlock.CodeFutureVersion, client.Commit{AsOf: 99}},
			{interlock.CodeUnknownLease, client.Commit{Leases: []interlock.LeaseID{{1}}}},
			{interlock.CodeTooLong, client.Commit{Note: strings.Repeat("x", interlock.MaxNoteBytes+1)}},
		} {
			if _, err := c.Commit(s.ctx, bad.req); !isCode(err, bad.code) {
				t.Errorf("%s: got %v", bad.code, err)
			}
		}
		if _, err := c.Documents(s.ctx); !isCode(err, interlock.CodeInvalidRequest) {
			t.Errorf("no keys: %v", err)
		}
		if _, err := c.DocumentsAt(s.ctx, 5, "k"); !isCode(err, interlock.CodeFutureVersion) {
			t.Errorf("the future: %v", err)
		}
	}},
	{"lists of documents go on to the end", func(t *testing.T, s *stage) {
		c := s.client("a")
		const many = 250
		var want []interlock.Key
		for i := range many {
			key := interlock.Key(fmt.Sprintf("p:%03d", i))
			want = append(want, key)
			s.commit(c, writing(client.Add(key, int64(i)), client.Add("other", 1)))
		}
		var got []interlock.Key
		for doc, err := range c.List(s.ctx, client.ListRequest{Prefix: "p:", Bodies: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if string(doc.Body) != fmt.Sprint(len(got)) {
				t.Errorf("%s is %q", doc.Key, doc.Body)
			}
			got = append(got, doc.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v", got)
		}
		for doc, err := range c.List(s.ctx, client.ListRequest{After: "p:100"}) {
			if err != nil || doc.Key != "p:101" || doc.Body != nil || doc.Size != 3 {
				t.Errorf("after p:100: %+v, %v", doc, err)
			}
			break
		}
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		for _, err := range c.List(ctx, client.ListRequest{}) {
			if err == nil {
				t.Error("a list without a context")
			}
		}
	}},
	{"many large documents, and a small call among them", func(t *testing.T, s *stage) {
		c := s.client("a")
		const many = 24
		done := make(chan error, many)
		for i := range many {
			go func() {
				body := bytes.Repeat([]byte{byte('a' + i)}, interlock.MaxDocumentBytes)
				_, err := c.Commit(s.ctx, writing(client.PutBytes(interlock.Key(fmt.Sprint("k", i)), "text/plain", body)))
				done <- err
			}()
		}
		s.release(s.acquire(c, exclusively("small")), "")
		for range many {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for range many {
			go func() {
				snapshot, err := c.Documents(s.ctx, "k0", "k1", "k2", "k3")
				for _, doc := range snapshot.Documents {
					if len(doc.Body) != interlock.MaxDocumentBytes || len(bytes.Trim(doc.Body, string(doc.Body[:1]))) > 0 {
						err = errors.New("a document is not as it was written")
					}
				}
				done <- err
			}()
		}
		s.release(s.acquire(c, exclusively("small")), "")
		for range many {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}},
}

// A server that goes away while it is asked is asked again when it is back.
func TestCommitsOverARestart(t *testing.T) {
	crowd(t, func(s *stage) {
		c := s.client("a")
		s.commit(c, writing(client.Add("n", 1)))
		s.w.srv.Drain()
		if err := s.w.shard.Drain(s.ctx); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		go func() {
			_, err := c.Commit(s.ctx, writing(client.Add("n", 1)))
			done <- err
		}()
		go func() {
			_, err := c.Do(s.ctx, charge(1), doing("ch_1", nil))
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Errorf("it was done while the server shut down: %v", <-done)
		}
		s.w.restart()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if doc := s.document(c, "n"); string(doc.Body) != "2" {
			t.Errorf("n is %s", doc.Body)
		}
	})
}

// A caller with frequent conflicts learns the better strategy, and the figures show why.
func TestAdviceOnStrategy(t *testing.T) {
	crowd(t, func(s *stage) {
		a, b := s.client("a"), s.client("b")
		s.pattern(interlock.Pattern{Name: "accounts", Shape: "account:{id}"})
		var advised *client.CommitResult
		for i := range 30 {
			old := s.document(a, "account:1")
			advised = s.commit(
				a,
				client.Commit{Reads: client.Seen(old), Writes: []interlock.Write{client.Put("account:1", []byte(fmt.Sprint(i)))}},
			)
			if _, err := b.Commit(
				s.ctx, client.Commit{Reads: client.Seen(old), Writes: []interlock.Write{client.Delete("account:1")}},
			); !isCode(err, interlock.CodeStale) {
				t.Fatalf("got %v", err)
			}
		}
		if !strings.Contains(advised.Advice.Message, "acquire") {
			t.Errorf("advised %+v", advised.Advice)
		}
		list, err := a.Contention(s.ctx)
		if err != nil || len(list) != 1 || list[0].Pattern != "accounts" || list[0].Conflicts != 30 ||
			list[0].Commits != 30 || list[0].Advice == nil {
			t.Errorf("figures %+v, %v", list, err)
		}
	})
}

// A commit with a lost answer happens once, and its client learns the result.
func TestCommitsOverBrokenLinks(t *testing.T) {
	crowd(t, func(s *stage) {
		b := &breaker{dial: s.w.inside}
		c := s.w.connect(b.Dial, client.Config{Agent: "a"})
		isAnswer := func(f *proto.ServerFrame) bool {
			return slices.ContainsFunc(
				f.Replies, func(r proto.Reply) bool { return r.Version > 0 || r.Code == interlock.CodeStale },
			)
		}
		for i := range uint64(5) {
			b.setLose(isAnswer)
			if done := s.commit(c, writing(client.Add("n", 1))); done.Version != interlock.Version(i+1) ||
				string(done.Documents[0].Body) != fmt.Sprint(i+1) {
				t.Errorf("committed %+v", done)
			}
		}
		b.setLose(isAnswer)
		_, err := c.Commit(s.ctx, client.Commit{Reads: []interlock.Read{{Key: "n", Version: 1}}})
		if stale, ok := errors.AsType[*client.StaleError](err); !ok || len(stale.Changes) != 1 {
			t.Errorf("got %+v", err)
		}
	})
}

// A commit that loses its answer, and its session before its client is back, happens once, and
// no caller gets the error that it did not.
func TestCommitOverTheEndOfItsSession(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	var unblock func()
	lost := make(chan struct{})
	b.setLose(func(f *proto.ServerFrame) bool {
		is := slices.ContainsFunc(f.Replies, func(r proto.Reply) bool { return r.Version > 0 })
		if is {
			unblock = b.blockLocked()
			close(lost)
		}
		return is
	})
	told := make(chan error, 1)
	go func() {
		_, err := c.Commit(busy.Context(t), writing(client.Add("n", 1)))
		told <- err
	}()
	await(t, lost, "the answer that is lost")
	endSession(t, s.w, "a")
	unblock()
	if err := await(t, told, "the outcome of the commit"); !isCode(err, interlock.CodeOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	if doc := s.document(s.client("b"), "n"); string(doc.Body) != "1" {
		t.Errorf("n is %s", doc.Body)
	}
}

// A small call does not wait for more than one large commit.
func TestSmallCallsPassLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, links: make(chan proto.ServerLink, 1)}
		ready := make(chan struct{})
		go func() {
			s.answer(s.next(proto.OpOpen))
			s.answer(s.next(proto.OpAttach))
			close(ready)
		}()
		c, err := client.New(t.Context(), s.Dial, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		<-ready
		large := writing(client.PutBytes("k", "text/plain", make([]byte, 1<<20)))
		for range 4 { // one in the box of the link, one that does not get in, two behind it
			go func() { _, _ = c.Commit(t.Context(), large) }()
			synctest.Wait()
		}
		go func() { _ = c.CheckFence(t.Context(), "k", 1) }()
		synctest.Wait()
		var frames [][]proto.OpKind
		var frame proto.ClientFrame
		for range 4 {
			if err := s.link.Recv(&frame); err != nil {
				t.Fatal(err)
			}
			var kinds []proto.OpKind
			for i := range frame.Ops {
				kinds = append(kinds, frame.Ops[i].Kind)
				s.answer(frame.Ops[i])
			}
			frames = append(frames, kinds)
		}
		want := [][]proto.OpKind{{proto.OpCommit}, {proto.OpCommit}, {proto.OpCheckFence, proto.OpCommit}, {proto.OpCommit}}
		if !reflect.DeepEqual(frames, want) {
			t.Errorf("the frames had %v", frames)
		}
		go func() { s.answer(s.next(proto.OpClose)) }()
		closeClient(t, c)
	})
}
