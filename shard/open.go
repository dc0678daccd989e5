package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	s.link, s.stages = s.other, ahead
	if err := s.begin(ctx, cfg.FenceJump); err != nil {
		s.cancel()
		s.stopClock()
		return nil, err
	}
	s.other.put(new(group))
	go s.owner.run()
	go s.committer.run()
	return s, nil
}

// newShard makes a shard that does not run yet. The settings were checked.
func newShard(cfg Config, watch func() time.Time) *Shard {
	s := &Shard{
		number: cfg.Number, epoch: cfg.Journal.Epoch(), journal: cfg.Journal, clock: cfg.Clock, watch: watch,
		log:      cfg.Logger.With("shard", cfg.Number),
		observer: cfg.Observer, snapshotBytes: cfg.SnapshotBytes, pictureEvents: cfg.PictureEvents, keepBytes: cfg.KeepBytes,
		desk: cfg.Desk, lowMemory: cfg.LowMemory, maxAhead: cfg.MaxAhead,
		other: newOtherGroup(), stages: inTurn, broken: make(chan error, 1), failed: make(chan struct{}),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}), stopClock: func() {},
	}
	if cfg.Unattributed {
		s.options = append(s.options, engine.Unattributed)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mail = newMailbox(cfg.MaxWaiting, s.clock, watch)
	s.owner = &owner{s: s, generation: 1, cur: new(group)}
	s.committer = &committer{s: s}
	return s
}

// begin replays the journal and begins the owner's term.
func (s *Shard) begin(ctx context.Context, jump uint64) error {
	o, began := s.owner, s.watch()
	r, err := o.load(ctx, &s.links)
	if err != nil {
		return err
	}
	if tail := s.journal.Tail(); r.snapshot > tail {
		return fmt.Errorf(
			"%w: the snapshot at index %d lies behind the end of the log at %d: the storage has gone back to an older state",
			journal.ErrLost, r.snapshot, tail,
		)
	}
	s.size.add(r.entries, r.bytes)
	s.snapshotAt.Store(uint64(r.snapshot))
	s.snapshotSize.Store(int64(r.size))
	if err := s.checkClock(o.eng.Now(), s.clock.Now()); err != nil {
		return err
	}
	// The clock may have gone back since the journal's last entry was written.
	s.mail.thaw(max(o.eng.Now(), s.clock.Now()))
	o.recover(o.cur, jump)
	if err := s.appendAll(o.cur); err != nil {
		return err
	}
	s.log.Info(
		"shard is open", "epoch", s.epoch, "index", s.At().Index, "head", s.links.record(0).Last().Head(), "snapshot",
		r.snapshot, "replayed", r.entries, "took", s.watch().Sub(began),
	)

	o.cur.begin(o.generation, o.cur.next())
	o.arm()
	return nil
}

// ErrClock: the clock is so far ahead of the journal that it must be wrong.
var ErrClock = errors.New("shard: the clock is far ahead of the journal")

// behindFor is by how much the clock may be behind the journal without a word: the clocks of
// two machines differ by less.
const behindFor = time.Minute

// checkClock compares the clock with the journal's newest entry.
func (s *Shard) checkClock(last, now engine.Time) error {
	ahead := now.Sub(last)
	at := func(t engine.Time) string { return time.Unix(0, int64(t)).UTC().Format(time.RFC3339) }
	switch {
	case last == 0: // there is none
	case s.maxAhead > 0 && ahead > s.maxAhead:
		return fmt.Errorf("%w: it says %s, and the journal was last written at %s", ErrClock, at(now), at(last))
	case ahead < -behindFor:
		s.behind = -ahead
		s.log.Warn("the clock is behind the journal: the server uses the journal's time until the clock has caught up; "+
			"set the clock if it is wrong",
			"clock", at(now), "journal", at(last))
	}
	return nil
}

// load makes the owner's engine from the journal, and the hash chain if links is not nil.
func (o *owner) load(ctx context.Context, links *links) (replayResult, error) {
	r, err := o.s.replay(ctx, o.s.journal.Tail(), o.s.stages, links)
	o.eng, o.sinceSnapshot = r.engine, r.bytes
	return r, err
}

// recover begins the owner's term in the engine. Its entry is in g.
func (o *owner) recover(g *group, jump uint64) {
	now := o.s.mail.time()
	g.begin(o.generation, o.s.journal.Tail()+1)
	g.step(o.eng, &engine.Recover{Head: engine.Head{At: now}, Epoch: o.s.epoch, FenceJump: jump})
	o.limit = new(engine.Limit)
}
