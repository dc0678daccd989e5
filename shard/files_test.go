package shard

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// unreadable is a journal that cannot be read for want of descriptors, for a while.
type unreadable struct {
	journal.Journal
	times atomic.Int32
}

func (j *unreadable) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	if j.times.Add(-1) >= 0 {
		return fmt.Errorf("%w: opening a segment", journal.ErrNoFiles)
	}
	return j.Journal.Read(ctx, from, visit)
}

// When there is no descriptor for the next file of the journal, the callers of the append are
// refused and nothing else happens: newcomers are welcome at once, and no answer mentions a full
// disk.
func TestNoFiles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		r.store.Inject(memjournal.NoFiles)
		r.refused(interlock.CodeOverloaded, acquire(nil, "b"))
		synctest.Wait()
		r.expect(engine.Granted, acquire(nil, "b"))
		r.expect(engine.Done, release(nil, held.ID))
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Error("the live engine is not what the journal says")
		}
	})
}

// While the journal cannot even be read for want of descriptors, the shard refuses and waits,
// and continues by itself.
func TestNoFilesToRebuildFrom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j unreadable
		r := newRig(t, func(c *Config) { j.Journal, c.Journal = c.Journal, &j })
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease // ttl 30 s
		const rounds = 100
		j.times.Store(rounds)
		r.store.Inject(memjournal.NoFiles)
		r.refused(interlock.CodeOverloaded, acquire(nil, "b"))
		<-time.After(rounds / 2 * parkedFor)
		r.refused(interlock.CodeOverloaded, &engine.Renew{Head: head(nil), Lease: held.ID})
		<-time.After(rounds/2*parkedFor + time.Second)
		if lease := r.expect(
			engine.Granted, &engine.GetLease{Head: head(nil), Lease: held.ID},
		).Lease; lease.ExpiresIn < 25*time.Second {
			t.Errorf(
				"after %v without descriptors the lease has %v left, want nearly all of its ttl", rounds*parkedFor,
				lease.ExpiresIn,
			)
		}
		r.expect(engine.Granted, acquire(nil, "b"))
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Error("the live engine is not what the journal says")
		}
	})
}
