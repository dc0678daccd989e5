package shard

import (
	"bytes"
	"reflect"
	"slices"
	"sort"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// followers wakes the followers, and keeps the newest entries for them.
//
//	append ─► publish ─► feed of acme   ─► records 41, 44 ─► 2 followers
//	                     feed of globex    (nothing new)     64 followers, asleep
//	                     (initech: without followers, so nothing is done)
//
// Each namespace with a follower has a feed. After an append the committer looks which
// namespaces the durable events are of, and touches the feeds of those alone. A
// follower looks at its feed and gets what to sleep on under one lock, so that no entry
// can become durable between both unseen.
type followers struct {
	mu     sync.Mutex
	feeds  map[interlock.Namespace]*eventFeed
	count  int
	closed bool
	idle   chan struct{} // closed when count is 0 after closed; nil before wait

	oldest, newest *feedRecord // of all feeds, in the order in which they came
	bytes          int
	spare          []*eventFeed // reused
}

// newestBytes bounds the entries that are kept in memory for followers, decoded.
const newestBytes = 16 << 20

// lookBytes bounds the bytes that a follower takes of them at once: those are not forgotten.
const lookBytes = 64 << 10

// recordBytes is about the size of a record without its entry and its events.
const recordBytes = 256

var eventBytes = int(reflect.TypeFor[record.Event]().Size())

// eventFeed holds the new entries of one namespace with followers.
type eventFeed struct {
	namespace interlock.Namespace
	count     int // followers

	// records has every entry with events of the namespace from index floor on, oldest
	// first.
	floor   interlock.Index
	records []*feedRecord

	news *news // of the next record; nil without a waiter
}

// news wakes the followers that have seen everything.
type news struct {
	came  chan struct{}   // closed when there is a record
	first interlock.Index // of that record, which is set before; nothing between is for them
}

// feedRecord is an entry in memory. The first reader of its events decodes it for all.
type feedRecord struct {
	feed         *eventFeed
	first, index interlock.Index // of its first piece and its last
	bytes        int
	older, newer *feedRecord // of any feed

	once   sync.Once
	entry  []byte // nil when it is decoded
	events []record.Event
	err    error
}

// decode returns the events of the feed's namespace. They are never changed.
func (r *feedRecord) decode() ([]record.Event, error) {
	r.once.Do(func() {
		r.err = record.DecodeEntryOf(r.entry, r.feed.namespace, func(ev *record.Event) error {
			r.events = append(r.events, *ev)
			return nil
		})
		r.entry = nil
	})
	return r.events, r.err
}

// enter counts a follower. It returns false when following has ended.
func (f *followers) enter(namespace interlock.Namespace, s *Shard) (*eventFeed, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false
	}
	f.count++
	fd := f.feeds[namespace]
	if fd == nil {
		if f.feeds == nil {
			f.feeds = map[interlock.Namespace]*eventFeed{}
		}
		fd = &eventFeed{namespace: namespace, floor: s.At().Index + 1}
		f.feeds[namespace] = fd
	}
	fd.count++
	return fd, true
}

func (f *followers) leave(fd *eventFeed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fd.count--; fd.count == 0 {
		delete(f.feeds, fd.namespace)
		for _, r := range fd.records {
			f.drop(r)
		}
		fd.records = nil
	}
	if f.count--; f.count == 0 && f.closed {
		close(f.idle)
	}
}

// wait returns when no follower is left, and none can begin. It is called once.
func (f *followers) wait() {
	f.mu.Lock()
	f.closed, f.idle = true, make(chan struct{})
	if f.count == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	<-f.idle
}

// look returns the entries of a feed from index next on, as many as fit into list. When
// there is nothing, and nothing is durable that the follower must read of the journal,
// it returns the channel to wait on, and the index up to which everything was seen.
func (f *followers) look(
	fd *eventFeed, s *Shard, next interlock.Index, list []*feedRecord,
) ([]*feedRecord, *news, interlock.Index) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next < fd.floor {
		return nil, nil, 0
	}
	i := sort.Search(len(fd.records), func(i int) bool { return fd.records[i].index >= next })
	if i < len(fd.records) {
		for bytes := 0; i < len(fd.records) && len(list) < cap(list) && bytes < lookBytes; i++ {
			list = append(list, fd.records[i])
			bytes += fd.records[i].bytes
		}
		return list, nil, 0
	}
	if fd.news == nil {
		fd.news = &news{came: make(chan struct{})}
	}
	return nil, fd.news, s.At().Index
}

// grow publishes the durable entries of the group, before any answer of that state leaves:
// the steps that are whole. The first ones, as many as whole, were durable before. A follower that
// sees the new index also finds the entries in memory.
func (s *Shard) grow(g *group, whole int) {
	f := &s.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.whole > 0 {
		s.durable.Store(uint64(g.index(g.whole - 1)))
	}
	if len(f.feeds) == 0 {
		return
	}
	for ; whole < g.whole; whole++ {
		f.publish(g, whole)
	}
}

// publish adds a step's entry to the feeds of the namespaces that it has events of.
func (f *followers) publish(g *group, step int) {
	from, to := g.through(step), g.marks[step]
	if from.entries == to.entries {
		return
	}
	touched := f.spare[:0]
	var last interlock.Namespace
	for i := range g.out.Events[from.events:to.events] {
		namespace := g.out.Events[from.events+i].Namespace
		switch {
		case namespace == "":
			for _, fd := range f.feeds {
				touched = append(touched, fd)
			}
		case namespace == last && i > 0:
			continue
		default:
			if fd := f.feeds[namespace]; fd != nil {
				touched = append(touched, fd)
			}
		}
		last = namespace
	}
	var entry []byte
	for i, fd := range touched {
		touched[i] = nil
		if n := len(fd.records); n > 0 && fd.records[n-1].index == g.index(step) {
			continue // it has it already
		}
		if entry == nil {
			entry = g.entry(step)
		}
		f.add(&feedRecord{
			feed: fd, entry: entry, first: g.first + interlock.Index(from.entries), index: g.index(step),
			bytes: recordBytes + 2*len(entry) + (to.events-from.events)*eventBytes,
		})
	}
	f.spare = touched[:0]
}

// add puts a record into its feed, and wakes its waiters.
func (f *followers) add(r *feedRecord) {
	fd := r.feed
	fd.records = append(fd.records, r)
	if f.newest == nil {
		f.oldest = r
	} else {
		r.older, f.newest.newer = f.newest, r
	}
	f.newest = r
	f.bytes += r.bytes
	if fd.news != nil {
		fd.news.first = r.first
		close(fd.news.came)
		fd.news = nil
	}
	for f.bytes > newestBytes {
		old := f.oldest
		old.feed.floor = old.index + 1
		old.feed.records[0] = nil
		old.feed.records = old.feed.records[1:]
		f.drop(old)
	}
}

// drop takes a record out of the list of all.
func (f *followers) drop(r *feedRecord) {
	if r.older == nil {
		f.oldest = r.newer
	} else {
		r.older.newer = r.newer
	}
	if r.newer == nil {
		f.newest = r.older
	} else {
		r.newer.older = r.older
	}
	r.older, r.newer = nil, nil
	f.bytes -= r.bytes
}

// entry returns a copy of the entry that a step has written, made whole from its pieces.
func (g *group) entry(step int) []byte {
	from, to := g.through(step).entries, g.marks[step].entries
	if to == from+1 {
		return bytes.Clone(g.out.Entry[g.at(from):g.at(to)])
	}
	whole := make([]byte, 0, g.at(to)-g.at(from))
	for i := from; i < to; i++ {
		whole = append(whole, g.out.Entry[g.at(i)+pieceHead:g.at(i+1)]...)
	}
	return slices.Clip(whole)
}
