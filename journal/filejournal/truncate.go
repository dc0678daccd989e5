package filejournal

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Truncate implements journal.Journal. It removes whole segments, never the one
// being written, and none that the older of the newest two snapshots needs. While space is low the
// newest snapshot counts alone, once it was read back whole. A snapshot goes with the entries behind it.
func (j *Journal) Truncate(ctx context.Context, before interlock.Index) error {
	j.upkeep.Lock()
	defer j.upkeep.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if newest := j.newestSnapshot(); before > newest+1 {
		return fmt.Errorf("%w: truncate before %d, the snapshot is at %d", journal.ErrMisuse, before, newest)
	}
	if j.pool.low.Load() {
		if err := j.keepNewest(ctx); err != nil {
			return err
		}
	}
	for dropped := false; ctx.Err() == nil; dropped = true {
		name := j.dropSegment(before)
		if name == "" {
			if dropped {
				return j.removeSnapshots()
			}
			return nil
		}
		// Each removal is durable before the next, so that a crash leaves no gap.
		if err := j.dir.Remove(name); err != nil {
			return j.fail("removing a segment", err)
		}
		if err := j.dir.Sync(); err != nil {
			return j.fail("syncing the directory", err)
		}
		j.pool.refill()
	}
	return ctx.Err()
}

// keepNewest drops all snapshots but the newest, if that one checks. An unreadable one changes
// nothing: the older one may be needed.
func (j *Journal) keepNewest(ctx context.Context) error {
	newest := j.newestSnapshot()
	if newest == 0 {
		return ctx.Err()
	}
	size, err := checkSnapshot(ctx, j.dir, j.path, newest, true)
	if err != nil {
		return ctx.Err()
	}
	j.mu.Lock()
	j.snapshots, j.alone = []journal.Saved{{Index: newest, Bytes: size}}, newest
	j.mu.Unlock()
	return j.removeSnapshots()
}

// dropSegment takes the oldest segment out of the list when it can go.
func (j *Journal) dropSegment(before interlock.Index) (name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.snapshots)
	if n == 0 || n < snapshotNeeded && j.snapshots[0].Index != j.alone {
		return ""
	}
	before = min(before, j.snapshots[max(0, n-snapshotNeeded)].Index+1)
	if len(j.segments) < 2 || j.segments[1].first > before {
		return ""
	}
	name = j.segments[0].name
	j.segments = j.segments[1:]
	j.snapshots = journal.Retain(j.snapshots, j.segments[0].first, maxOldBytes)
	return name
}
