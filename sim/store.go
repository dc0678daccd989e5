package sim

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// store is where the journal lives, longer than any host.
type store interface {
	// open hands the journal to a host.
	open(h *host) (journal.Journal, error)
	// arm prepares a fault for the next write of the host, which may be deadly.
	arm(h *host)
	// dead reports whether the host's machine has stopped in the middle of something.
	dead(h *host) bool
	// died is called when the host's process is gone; power means that its machine is, too.
	died(h *host, power bool)
	// full sets whether there is no space.
	full(full bool)
}

// memory is a journal in memory, as a database would be: any number of hosts may
// open it, and the last one counts.
type memory struct {
	w     *world
	store memjournal.Store
}

func (m *memory) open(*host) (journal.Journal, error) { return m.store.Open(context.Background()) }

func (m *memory) arm(*host) {
	switch m.w.rng.IntN(3) {
	case 0:
		m.w.totals.fault("append lost")
		m.store.Inject(memjournal.Lost)
	case 1:
		m.w.totals.fault("append stored, answer lost")
		m.store.Inject(memjournal.Stored)
	default:
		m.w.totals.fault("append without space")
		m.store.Inject(memjournal.NoSpace)
	}
}

func (m *memory) dead(*host) bool  { return false }
func (m *memory) died(*host, bool) {}
func (m *memory) full(full bool)   { m.store.SetLow(full) }

// disk is the file journal on a simulated disk. One process has it at a time.
type disk struct {
	w      *world
	disk   *simdisk.Disk
	holder *host
}

func (d *disk) open(h *host) (journal.Journal, error) {
	if d.holder != nil && d.holder != h {
		return nil, journal.ErrLocked
	}
	d.holder = h
	if d.w.chance(0.05) && !d.w.calm {
		d.stop(60) // it dies while it recovers
	}
	o := filejournal.Options{SegmentBytes: d.w.plan.segment, ReserveBytes: d.w.plan.segment / 2}
	j, err := filejournal.OpenOn(context.Background(), d.disk, o, d.w.rng.Uint32)
	if err != nil {
		return nil, err // not a nil *Journal in an interface
	}
	h.soon(time.Second, func() { d.refill(h, j) })
	return j, nil
}

// refill does what the journal's own goroutine would.
func (d *disk) refill(h *host, j *filejournal.Journal) {
	if h.shard != nil {
		j.Refill()
	}
	h.soon(time.Second, func() { d.refill(h, j) })
}

// stop makes the machine stop within so many system calls.
func (d *disk) stop(within int) {
	if d.disk.StopAt == 0 {
		d.disk.StopAt = d.disk.Calls + 1 + d.w.rng.IntN(within)
	}
}

func (d *disk) arm(*host) {
	switch d.w.rng.IntN(4) {
	case 0:
		d.w.totals.fault("failed sync")
		d.disk.FailSync = d.disk.Calls + 2
	default:
		d.stop(3)
	}
}

func (d *disk) dead(h *host) bool {
	return d.holder == h && d.disk.StopAt > 0 && d.disk.Calls >= d.disk.StopAt
}

func (d *disk) died(h *host, power bool) {
	if d.holder != h {
		return
	}
	d.holder = nil
	limit := d.disk.Limit
	if power {
		how := simdisk.Loss(d.w.rng.IntN(int(simdisk.Losses)))
		d.w.totals.fault("power cut: " + how.String())
		d.disk = d.disk.PowerCut(how, d.w.rng)
	}
	d.disk.Restart()
	d.disk.Limit = limit
}

func (d *disk) full(full bool) {
	d.disk.Limit = 0
	if full {
		d.disk.Limit = 1 // nothing can grow
	}
}

// tap is a journal that shows the audit what becomes durable.
type tap struct {
	journal.Journal
	h *host
}

func (t *tap) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	err := t.Journal.Append(ctx, first, entries)
	if err == nil {
		t.h.w.audit.appended(t.Epoch(), first, entries)
	} else if !errors.Is(err, journal.ErrNoSpace) && !errors.Is(err, journal.ErrFenced) {
		t.h.w.totals.Unknown++
	}
	return err
}

func (t *tap) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	err := t.Journal.SaveSnapshot(ctx, at, write)
	if err == nil {
		t.h.w.totals.Snapshots++
	}
	return err
}
