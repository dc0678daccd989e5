package sim

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// disk is the file journal on a simulated disk. One process has it at a time.
type disk struct {
	w      *world
	disk   *simdisk.Disk
	holder *owner
}

func (d *disk) open(o *owner) (journal.Journal, error) {
	if d.holder != nil && d.holder != o {
		return nil, journal.ErrLocked
	}
	d.holder = o
	if d.w.chance(0.05) && !d.w.calm {
		d.stop(60) // it dies while it recovers
	}
	options := filejournal.Options{SegmentBytes: d.w.plan.segment, ReserveBytes: d.w.plan.segment / 2}
	j, err := filejournal.OpenOn(context.Background(), d.disk, options, d.w.rng.Uint32)
	if err != nil {
		return nil, err // not a nil *Journal in an interface
	}
	o.soon(time.Second, func() { d.refill(o, j) })
	return j, nil
}

func (d *disk) excuses(err error) bool {
	return errors.Is(err, journal.ErrLocked) || errors.Is(err, journal.ErrNoSpace) || errors.Is(err, journal.ErrFailed) ||
		errors.Is(err, journal.ErrFenced)
}

// refill does what the journal's own goroutine would.
func (d *disk) refill(o *owner, j *filejournal.Journal) {
	if o.shard != nil {
		j.Refill()
	}
	o.soon(time.Second, func() { d.refill(o, j) })
}

// stop makes the machine stop within so many system calls.
func (d *disk) stop(within int) {
	if d.disk.StopAt == 0 {
		d.disk.StopAt = d.disk.Calls + 1 + d.w.rng.IntN(within)
	}
}

func (d *disk) arm(*owner) {
	switch d.w.rng.IntN(4) {
	case 0:
		d.w.totals.fault("failed sync")
		d.disk.FailSync = d.disk.Calls + 2
	default:
		d.stop(3)
	}
}

func (d *disk) armSnapshot(*owner) {
	d.w.totals.fault("crash in a snapshot")
	d.stop(12)
}

func (d *disk) disarm() {}

func (d *disk) dead(o *owner) bool {
	return d.holder == o && d.disk.StopAt > 0 && d.disk.Calls >= d.disk.StopAt
}

func (d *disk) began() {}

func (d *disk) failed(*owner, error) {}

func (d *disk) died(o *owner, power bool) {
	if d.holder != o {
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

func (d *disk) settle() {
	if d.holder == nil {
		d.disk.Restart()
	}
}
