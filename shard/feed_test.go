package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal"
)

// acquireIn is acquire in another namespace.
func acquireIn(namespace, key string) *engine.Acquire {
	c := acquire(nil, key)
	c.Namespace = interlock.Namespace(namespace)
	return c
}

// tenant is a follower of one namespace that notes what it sees.
type tenant struct {
	keys    []string
	wrong   []string
	reached []interlock.Index
	visited interlock.Index
}

func (n *tenant) follower(namespace string) Follower {
	return Follower{
		Namespace: interlock.Namespace(namespace),
		Visit: func(index interlock.Index, _ interlock.Epoch, events []record.Event) error {
			if index <= n.visited {
				n.wrong = append(n.wrong, fmt.Sprintf("entry %d after %d", index, n.visited))
			}
			n.visited = index
			for i := range events {
				ev := &events[i]
				if ev.Namespace != "" && ev.Namespace != interlock.Namespace(namespace) {
					n.wrong = append(n.wrong, fmt.Sprintf("%s of %s", ev.Kind, ev.Namespace))
				}
				if ev.Kind == record.Granted {
					n.keys = append(n.keys, string(ev.Claims[0].Key))
				}
			}
			return nil
		},
		Reached: func(index interlock.Index) error {
			n.reached = append(n.reached, index)
			return nil
		},
	}
}

// A follower of a namespace without events sleeps while others are busy: it is not woken,
// nothing is kept in memory for it, and the journal is not read.
func TestIdleFollowersSleep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var reads atomic.Int32
		r := newRig(t, func(c *Config) { c.Journal = countedReads{c.Journal, &reads} })
		var idle [10]tenant
		for i := range idle {
			f := idle[i].follower("tes") // a beginning of the busy one's name
			f.From = r.shard.At().Index + 1
			go r.shard.Follow(r.Context(), f)
		}
		synctest.Wait()
		before := reads.Load()
		for i := range 200 {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
			synctest.Wait()
		}
		for i := range idle {
			if n := len(idle[i].reached); n != 1 {
				t.Fatalf("a follower was woken %d times by what happened in another namespace", n-1)
			}
		}
		if n := reads.Load() - before; n != 0 || r.shard.followers.oldest != nil || r.shard.followers.bytes != 0 {
			t.Errorf("the journal was read %d times, and %d bytes are kept, for nobody", n, r.shard.followers.bytes)
		}
		r.expect(engine.Granted, acquireIn("tes", "mine"))
		synctest.Wait()
		for i := range idle {
			if got := strings.Join(idle[i].keys, " "); got != "mine" || len(idle[i].wrong) > 0 {
				t.Errorf("follower %d saw %q %v", i, got, idle[i].wrong)
			}
		}
		if n := reads.Load() - before; n != 0 {
			t.Errorf("the journal was read %d times for what is in memory", n)
		}
	})
}

// All followers of a namespace get the same events: they are decoded once.
func TestFollowersShareOneDecoding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var mu sync.Mutex
		var seen []*record.Event
		for range 3 {
			go r.follow(
				r.Context(), r.shard.At().Index+1, func(_ interlock.Index, _ interlock.Epoch, events []record.Event) error {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, &events[0])
					return nil
				},
			)
			synctest.Wait()
		}
		r.expect(engine.Granted, acquire(nil, "k"))
		synctest.Wait()
		if len(seen) != 3 || seen[0] != seen[1] || seen[0] != seen[2] {
			t.Errorf("the events of one entry are at %p", seen)
		}
	})
}

// Namespaces with names that begin alike, or end alike, see nothing of each other, neither from
// memory nor from the journal.
func TestFollowOneNamespaceOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		names := []string{"acme", "acme2", "acme-2", "acm", "2", "acme22"}
		r := newRig(t)
		live, late := make([]tenant, len(names)), make([]tenant, len(names))
		ctx, cancel := context.WithCancel(r.Context())
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() { r.shard.Follow(ctx, live[i].follower(name)) })
		}
		synctest.Wait()
		for i := range 50 {
			for _, name := range names {
				r.expect(engine.Granted, acquireIn(name, fmt.Sprintf("%s:%d", name, i)))
			}
		}
		synctest.Wait()
		for i, name := range names {
			all.Go(func() { r.shard.Follow(ctx, late[i].follower(name)) })
		}
		synctest.Wait()
		cancel()
		all.Wait()
		for i, name := range names {
			for from, n := range map[string]*tenant{"memory": &live[i], "the journal": &late[i]} {
				if len(n.wrong) > 0 {
					t.Errorf("%s, from %s: %v", name, from, n.wrong)
				}
				if len(n.keys) != 50 {
					t.Errorf("%s, from %s: %d grants of 50", name, from, len(n.keys))
				}
				for _, key := range n.keys {
					if !strings.HasPrefix(key, name+":") {
						t.Errorf("%s, from %s, sees %s", name, from, key)
					}
				}
			}
		}
		if len(r.shard.followers.feeds) != 0 || r.shard.followers.bytes != 0 || r.shard.followers.oldest != nil {
			t.Error("something is kept although nobody follows")
		}
	})
}

// A follower that has seen everything misses nothing while the journal is truncated far beyond
// where it was when it fell asleep: neither when it wakes at once, nor when the entry that wakes it
// has left the memory before it runs.
func TestIdleFollowerIsNotLeftBehind(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 1000, -1 })
			var idle tenant
			asleep, let := make(chan struct{}), make(chan struct{})
			f := idle.follower("idle")
			var once sync.Once
			f.Reached = func(interlock.Index) error {
				once.Do(func() { close(asleep) })
				<-let
				return nil
			}
			done := make(chan error, 1)
			go func() { done <- r.shard.Follow(r.Context(), f) }()
			<-asleep
			if !forgotten {
				close(let)
			}
			began := r.shard.At().Index
			for i := 0; r.shard.First() <= began+100; i++ {
				r.expect(engine.Granted, acquire(nil, keyNumber(i)))
				synctest.Wait()
			}
			r.expect(engine.Granted, acquireIn("idle", "mine"))
			if forgotten {
				all := &r.shard.followers
				other, _ := all.enter("other", r.shard)
				all.mu.Lock()
				all.add(&feedRecord{feed: other, bytes: newestBytes + 1})
				all.mu.Unlock()
				all.leave(other)
				close(let)
			}
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatal("Follow:", err)
			default:
			}
			if got := strings.Join(idle.keys, " "); got != "mine" {
				t.Errorf("it saw %q", got)
			}
		})
	}
}

// A follower that sleeps reads on at the first entry that is for it, also when that has left the
// memory before the follower ran.
func TestNewsOutliveTheirRecord(t *testing.T) {
	s := &Shard{}
	f := &s.followers
	s.durable.Store(10)
	fd, _ := f.enter("a", s)
	_, sleeping, at := f.look(fd, s, 11, nil)
	if sleeping == nil || at != 10 {
		t.Fatalf("nothing to sleep on, at %d", at)
	}
	f.add(&feedRecord{feed: fd, first: 5000, index: 5001, bytes: 1})
	f.add(&feedRecord{feed: fd, first: 6000, index: 6000, bytes: newestBytes})
	<-sleeping.came
	if sleeping.first != 5000 {
		t.Errorf("it reads on at %d, want 5000", sleeping.first)
	}
	if list, n, _ := f.look(fd, s, 5000, make([]*feedRecord, 0, 4)); n != nil || len(list) != 0 {
		t.Errorf("it does not go to the journal for what was forgotten: %v", list)
	}
	if list, _, _ := f.look(fd, s, 5002, make([]*feedRecord, 0, 4)); len(list) != 1 || list[0].index != 6000 {
		t.Errorf("what is kept from 5002 on is %v", list)
	}
	f.add(&feedRecord{feed: fd, first: 7000, index: 7000, bytes: 2 * newestBytes})
	if f.bytes != 0 || f.oldest != nil || f.newest != nil || fd.floor != 7001 {
		t.Errorf("%d bytes are kept, the feed begins at %d", f.bytes, fd.floor)
	}
	f.leave(fd)
}

// The memory for followers is bounded over all namespaces, and a quiet one's records
// make room for a busy one's.
func TestFollowersMemoryIsBounded(t *testing.T) {
	s := &Shard{}
	f := &s.followers
	var feeds []*eventFeed
	for i := range 20 {
		fd, _ := f.enter(interlock.Namespace(fmt.Sprint("n", i)), s)
		feeds = append(feeds, fd)
	}
	for i := range 10_000 {
		f.add(&feedRecord{
			feed: feeds[i%len(feeds)], first: interlock.Index(i + 1), index: interlock.Index(i + 1), bytes: 64 << 10,
		})
		if f.bytes > newestBytes {
			t.Fatalf("%d bytes are kept", f.bytes)
		}
	}
	for _, fd := range feeds {
		for i, r := range fd.records {
			if r.index < fd.floor || i > 0 && r.index <= fd.records[i-1].index {
				t.Fatalf("records of %s are out of order", fd.namespace)
			}
		}
		f.leave(fd)
	}
	if f.bytes != 0 || f.oldest != nil || f.newest != nil || len(f.feeds) != 0 {
		t.Errorf("%d bytes are kept for nobody", f.bytes)
	}
}

// No entry becomes durable between a follower's look and its sleep: each of many single
// ones, after which nothing else comes, is seen by all.
func TestFollowersHearOfEachEntry(t *testing.T) {
	r := newRig(t)
	const followers = 4
	seen := make(chan interlock.Index, followers)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	for range followers {
		go r.follow(ctx, r.shard.At().Index+1, func(i interlock.Index, _ interlock.Epoch, _ []record.Event) error {
			seen <- i
			return nil
		})
	}
	for i := range 2000 {
		_, at := r.do(acquire(nil, keyNumber(i)))
		for range followers {
			select {
			case got := <-seen:
				if got != at.Index {
					t.Fatalf("entry %d was visited, want %d", got, at.Index)
				}
			case <-time.After(busy.Patience()):
				t.Fatalf("a follower sleeps although entry %d is there", at.Index)
			}
		}
	}
}

// An idle follower reports with each pulse how far everything was seen, and so does one that reads
// through entries of others.
func TestFollowReached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var idle tenant
		f := idle.follower("idle")
		f.Pulse = time.Second
		go r.shard.Follow(r.Context(), f)
		synctest.Wait()
		for i := range 3 {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
			at := r.shard.At().Index
			<-time.After(f.Pulse)
			synctest.Wait()
			if got := idle.reached[len(idle.reached)-1]; got != at {
				t.Errorf("after a pulse it is at %d, want %d", got, at)
			}
		}
		if n := len(idle.reached); n != 4 {
			t.Errorf("Reached was called %d times, want once and for each of 3 pulses", n)
		}
	})
}

// holedJournal is a journal with an entry that cannot be read.
type holedJournal struct {
	journal.Journal
	at  interlock.Index
	err error
}

func (j holedJournal) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	if from > j.at {
		return j.Journal.Read(ctx, from, visit)
	}
	err := j.Journal.Read(ctx, from, func(e journal.Entry) error {
		if e.Index >= j.at {
			return j.err
		}
		return visit(e)
	})
	return err
}

// A follower learns that the journal cannot be read, after the readable part; one that need not
// read it continues.
func TestFollowUnreadable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var bad holedJournal
		r := newRig(t, func(c *Config) { bad.Journal = c.Journal; c.Journal = &bad })
		bad.at = ^interlock.Index(0)
		for i := range 10 {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		for _, cause := range []error{syscall.EIO, syscall.EMFILE, &journal.DamageError{Reason: "its checksum is wrong"}} {
			bad.at, bad.err = 5, cause
			var f follower
			err := r.follow(r.Context(), 0, f.visit)
			var why *UnreadableError
			if !errors.As(err, &why) || why.Index != 5 || !errors.Is(err, cause) {
				t.Errorf("Follow: %v", err)
			}
			if f.last != 4 || f.wrong != "" {
				t.Errorf("it was led up to %d %s", f.last, f.wrong)
			}
		}
		var f follower
		go r.follow(r.Context(), r.shard.At().Index+1, f.visit)
		synctest.Wait()
		r.expect(engine.Granted, acquire(nil, "new"))
		synctest.Wait()
		if f.last != r.shard.At().Index {
			t.Errorf("a follower of what is new has seen up to %d", f.last)
		}
	})
}
