package shard

import (
	"context"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Condition is the state of a shard, for operators.
type Condition struct {
	Counts        engine.Counts   // of all namespaces
	First         interlock.Index // the oldest entry of the journal
	Snapshot      interlock.Index // up to which the newest snapshot goes; 0: there is none of this term
	SnapshotBytes int64
	SnapshotError error         // why the last snapshot failed; nil if it did not
	LowSpace      bool          // only commands that free something are admitted, for want of space
	LowMemory     bool          // likewise, for want of memory
	Draining      bool          // nothing new is granted
	ClockBehind   time.Duration // by how much the clock was behind the journal at the start; 0: not far
}

// Condition returns how the shard is, as of an index.
func (s *Shard) Condition(ctx context.Context) (c Condition, at interlock.At, err error) {
	at, err = s.visit(ctx, "", func(o *owner, _ engine.Time) (done bool) {
		c = Condition{
			Counts: o.eng.Counts(), LowSpace: o.limit.LowSpace, LowMemory: o.limit.LowMemory, Draining: o.draining,
		}
		return true
	})
	if err != nil {
		return Condition{}, at, err
	}
	c.First, c.Snapshot, c.SnapshotBytes = s.First(), interlock.Index(s.snapshotAt.Load()), s.snapshotSize.Load()
	c.ClockBehind = s.behind
	if why := s.unsaved.Load(); why != nil {
		c.SnapshotError = *why
	}
	return c, at, nil
}
