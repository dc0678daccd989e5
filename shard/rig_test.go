package shard

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// rig is a shard over a store in memory, which outlives it.
type rig struct {
	*testing.T
	store *memjournal.Store
	shard *Shard
}

// newRig opens a shard over an empty store. Without a clock of its own it belongs
// into a synctest bubble.
func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{T: t, store: new(memjournal.Store)}
	r.open(change...)
	return r
}

// open opens the store again. Without changes the shard makes no snapshots, so
// that the journal can be replayed from its beginning.
func (r *rig) open(change ...func(*Config)) {
	r.Helper()
	j, err := r.store.Open(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	cfg := Config{Journal: j, Number: 7, SnapshotBytes: -1}
	for _, c := range change {
		c(&cfg)
	}
	if r.shard, err = Open(r.Context(), cfg); err != nil {
		r.Fatal(err)
	}
	s := r.shard
	r.Cleanup(func() { s.Close(context.Background()) })
}

func (r *rig) close() {
	r.Helper()
	if err := r.shard.Close(r.Context()); err != nil {
		r.Fatal("Close:", err)
	}
}

// do carries out one command.
func (r *rig) do(cmd engine.Command) (engine.Effect, interlock.At) {
	r.Helper()
	eff, at, err := r.shard.Do(r.Context(), cmd)
	if err != nil {
		r.Fatalf("%T: %v", cmd, err)
	}
	return eff, at
}

// expect carries out one command that must have this outcome.
func (r *rig) expect(want interlock.Outcome, cmd engine.Command) engine.Effect {
	r.Helper()
	eff, _ := r.do(cmd)
	if eff.Outcome != want {
		r.Fatalf("%T: %v %s %q, want %v", cmd, eff.Outcome, eff.Code, prose.Sentence(eff.Message), want)
	}
	return eff
}

// refused carries out one command that must be refused with this code.
func (r *rig) refused(want interlock.Code, cmd engine.Command) {
	r.Helper()
	if eff := r.expect(engine.Refused, cmd); eff.Code != want {
		r.Fatalf("%T: refused with %s %q, want %s", cmd, eff.Code, prose.Sentence(eff.Message), want)
	}
}

func (r *rig) submit(cmds ...engine.Command) {
	r.Helper()
	if err := r.shard.Submit(cmds...); err != nil {
		r.Fatal("Submit:", err)
	}
}

// hash asks the live engine.
func (r *rig) hash() (h [32]byte) {
	r.Helper()
	if _, err := r.shard.Read(r.Context(), "test", func(e *engine.Engine, _ engine.Time) { h = e.Hash() }); err != nil {
		r.Fatal("Read:", err)
	}
	return h
}

// replayedHash returns the hash of a fresh engine that the whole journal was applied to.
func replayedHash(t *testing.T, j journal.Journal) [32]byte {
	t.Helper()
	e := engine.New()
	var pieces Joiner
	if err := j.Read(context.Background(), 1, func(en journal.Entry) error {
		entry, err := pieces.Join(en)
		if entry == nil {
			return err
		}
		return e.Apply(entry)
	}); err != nil {
		t.Fatal("replay:", err)
	}
	return e.Hash()
}

// inbox receives effects.
type inbox struct {
	mu  sync.Mutex
	got []answer
	c   chan answer // has everything too
}

type answer struct {
	engine.Effect
	At interlock.At
}

func newInbox() *inbox { return &inbox{c: make(chan answer, 100_000)} }

func (in *inbox) Deliver(eff *engine.Effect, at interlock.At) {
	in.mu.Lock()
	defer in.mu.Unlock()
	a := answer{*eff, at}
	in.got = append(in.got, a)
	in.c <- a
}

func (in *inbox) all() []answer {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]answer(nil), in.got...)
}

var ids atomic.Uint64

func newID() (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], ids.Add(1))
	return id
}

func head(from Receiver) engine.Head {
	h := engine.Head{Namespace: "test"}
	if from != nil {
		h.From = from
	}
	return h
}

// acquire asks for one key without a session.
func acquire(from Receiver, key string) *engine.Acquire {
	return &engine.Acquire{
		Head: head(from), ID: newID(), Agent: "tester", LeaseRequest: interlock.LeaseRequest{
			OnConflict: interlock.Fail,
			Claims:     []interlock.Claim{{Key: interlock.Key(key), Mode: interlock.Exclusive}},
		},
	}
}

// queue is acquire that waits.
func queue(from Receiver, key string) *engine.Acquire {
	c := acquire(from, key)
	c.OnConflict, c.Attach = interlock.Wait, true
	return c
}

func release(from Receiver, id interlock.LeaseID) *engine.Release {
	return &engine.Release{Head: head(from), Lease: id}
}

// openSession opens a session and returns the head of its commands.
func (r *rig) openSession(ttl time.Duration) (h engine.Head) {
	r.Helper()
	cmd := &engine.OpenSession{Head: head(nil), ID: newID(), Agent: "tester", TTL: ttl}
	h = cmd.Head
	h.Session = cmd.ID
	r.expect(engine.Done, cmd)
	return h
}

// in puts a command into a session.
func in(h engine.Head, c *engine.Acquire) *engine.Acquire {
	h.From = c.From
	c.Head, c.Agent = h, ""
	return c
}

// appends counts what the observer receives.
type appends struct {
	mu     sync.Mutex
	sizes  []int // entries of each append
	events int
	named  int // events that say patterns
	lags   []time.Duration
	saves  []time.Duration // of snapshots
}

func (a *appends) Committed(events []record.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events += len(events)
	for i := range events {
		if len(events[i].Patterns()) > 0 {
			a.named++
		}
	}
}

func (a *appends) Appended(_ time.Duration, entries, _ int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sizes = append(a.sizes, entries)
}

func (a *appends) Lag(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lags = append(a.lags, d)
}

func (a *appends) Saved(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.saves = append(a.saves, d)
}

func (a *appends) list() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]int(nil), a.sizes...)
}

// fakeClock advances only when the test moves it.
type fakeClock struct {
	mu    sync.Mutex
	now   engine.Time
	due   engine.Time
	alarm chan struct{}
}

func newFakeClock(now engine.Time) *fakeClock {
	return &fakeClock{now: now, alarm: make(chan struct{}, 1)}
}

func (c *fakeClock) Now() engine.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) SetAlarm(at engine.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = at
	c.ring()
}

func (c *fakeClock) Alarm() <-chan struct{} { return c.alarm }

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.ring()
}

func (c *fakeClock) ring() {
	if c.due == 0 || c.now < c.due {
		return
	}
	c.due = 0
	select {
	case c.alarm <- struct{}{}:
	default:
	}
}

// bubble runs a test in synctest, where time is fake and goroutines left behind
// fail the test.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func keyNumber(i int) string { return fmt.Sprintf("key:%d", i) }

var background = context.Background()
