package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// Open replays the journal, begins this owner's term, and serves. When it returns
// an error, the journal is still the caller's to close.
func Open(ctx context.Context, cfg Config) (*Shard, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	stopClock := func() {}
	if cfg.Clock == nil {
		c := newWallClock()
		cfg.Clock, stopClock = c, c.stop
	}
	s := newShard(cfg, time.Now)
	s.stopClock = stopClock
	s.link = channels{s}
	if err := s.begin(ctx, cfg.FenceJump); err != nil {
		s.cancel()
		s.stopClock()
		return nil, err
	}
	s.free <- new(group)
	go s.owner.run()
	go (&committer{s: s}).run()
	return s, nil
}

// newShard makes a shard that nobody runs yet. The settings were checked.
func newShard(cfg Config, watch func() time.Time) *Shard {
	s := &Shard{
		number: cfg.Number, epoch: cfg.Journal.Epoch(), journal: cfg.Journal, clock: cfg.Clock, watch: watch,
		log:      cfg.Logger.With("shard", cfg.Number),
		observer: cfg.Observer, snapshotBytes: cfg.SnapshotBytes, keepBytes: cfg.KeepBytes,
		work: make(chan *group), free: make(chan *group, 2),
		broken: make(chan error, 1), failed: make(chan struct{}), stopping: make(chan struct{}),
		stopped: make(chan struct{}), stopClock: func() {},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mail = newMailbox(cfg.MaxWaiting, s.clock, watch)
	s.owner = &owner{s: s, generation: 1, cur: new(group)}
	return s
}

// begin replays the journal and begins the owner's term.
func (s *Shard) begin(ctx context.Context, jump uint64) error {
	o, began := s.owner, s.watch()
	r, err := o.load(ctx)
	if err != nil {
		return err
	}
	s.size.add(r.entries, r.bytes)
	s.sinceSnapshot = r.bytes
	s.snapshotAt.Store(uint64(r.snapshot))
	// The clock may have gone back since the journal's last entry was written.
	s.mail.thaw(max(o.eng.Now(), s.clock.Now()))
	o.recover(o.cur, jump)
	if err := s.appendAll(o.cur); err != nil {
		return err
	}
	s.log.Info("shard is open", "epoch", s.epoch, "index", s.At().Index, "snapshot", r.snapshot, "replayed", r.entries, "took", s.watch().Sub(began))

	o.cur.begin(o.generation, o.cur.next())
	o.arm()
	return nil
}

// load makes the owner's engine from the journal.
func (o *owner) load(ctx context.Context) (replayed, error) {
	r, err := o.s.replay(ctx, o.s.journal.Tail())
	o.eng = r.engine
	return r, err
}

// recover begins the owner's term in the engine. Its entry is in g.
func (o *owner) recover(g *group, jump uint64) {
	now := o.s.mail.time()
	g.begin(o.generation, o.s.journal.Tail()+1)
	g.step(o.eng, &engine.Recover{Head: engine.Head{At: now}, Epoch: o.s.epoch, FenceJump: jump})
	o.limit = new(engine.Limit)
}

// replayed is an engine made from the journal.
type replayed struct {
	engine   *engine.Engine
	snapshot interlock.Index // where it began; 0 without a snapshot
	at       interlock.Index // up to where it goes
	entries  int
	bytes    int64
}

// replay makes an engine whose state is that after index target, from the newest
// snapshot and the entries after it. Both stand where a step's entry ends, and so
// no snapshot's index is in the middle of pieces.
func (s *Shard) replay(ctx context.Context, target interlock.Index) (r replayed, err error) {
	at, snapshot, err := s.journal.Snapshot(ctx)
	if err != nil {
		return r, fmt.Errorf("shard: the snapshot cannot be opened: %w", err)
	}
	r.snapshot, r.at = at, at
	if snapshot == nil {
		r.engine = engine.New()
	} else {
		r.engine, err = engine.ReadSnapshot(snapshot)
		if err = errors.Join(err, snapshot.Close()); err != nil {
			return r, fmt.Errorf("shard: the snapshot after entry %d cannot be read: %w", at, err)
		}
	}
	if at >= target {
		return r, nil
	}
	var pieces Joiner
	err = s.journal.Read(ctx, at+1, func(e journal.Entry) error {
		if e.Index > target {
			return errReplayed
		}
		r.at = e.Index
		if len(e.Data) > 0 { // else it opens an epoch, which Recover journals in the engine's words
			r.entries++
			r.bytes += int64(len(e.Data))
		}
		entry, err := pieces.Join(e)
		if entry == nil {
			return err
		}
		if err := r.engine.Apply(entry); err != nil {
			return fmt.Errorf("shard: entry %d cannot be replayed: %w", e.Index, err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errReplayed) {
		return r, err
	}
	return r, nil
}

var errReplayed = errors.New("shard: replayed up to the target")
