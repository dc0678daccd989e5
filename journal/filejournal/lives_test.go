package filejournal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// life is a small life of a journal, to be stopped anywhere. It stops at the first
// error.
type life struct {
	name string
	// before lives first, and is never stopped: its disk is what work finds.
	before func(*simdisk.Disk, *ledger) (*simdisk.Disk, error)
	work   func(*simdisk.Disk, *ledger) error
}

var lives = []life{
	{name: "everything once", work: workOnce},
	{name: "large appends", work: workLarge},
	{name: "large snapshots", work: workSnapshots},
	{name: "full disk", before: fullBefore, work: workFull},
	{name: "full to the brim", work: workBrim},
	{name: "copied", before: copiedBefore, work: workCopied},
	{name: "killed and started", work: workKilled},
}

// begin returns the disk and the ledger that the life begins with.
func (x life) begin(tb testing.TB) (*simdisk.Disk, *ledger) {
	tb.Helper()
	d, l := simdisk.New(), new(ledger)
	if x.before != nil {
		var err error
		if d, err = x.before(d, l); err != nil {
			tb.Fatalf("%s: before: %v", x.name, err)
		}
		d.Restart()
	}
	return d, l
}

// calls is how many system calls the life makes.
func (x life) calls(tb testing.TB) int {
	tb.Helper()
	d, l := x.begin(tb)
	if err := x.work(d, l); err != nil {
		tb.Fatalf("%s: %v", x.name, err)
	}
	return d.Calls
}

// stopped is the life up to a system call, which is not carried out.
func (x life) stopped(tb testing.TB, stop int) (*simdisk.Disk, *ledger) {
	tb.Helper()
	d, l := x.begin(tb)
	d.StopAt = stop
	if err := x.work(d, l); err != nil && !errors.Is(err, simdisk.ErrStopped) && !errors.Is(err, journal.ErrFailed) {
		tb.Fatalf("%s, stop %d: %v", x.name, stop, err)
	}
	return d, l
}

// follow takes steps up to the first error.
func follow(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// workOnce rotates, saves, truncates, closes and opens again.
func workOnce(d *simdisk.Disk, l *ledger) error {
	j, err := l.open(d)
	return follow(
		func() error { return err },
		func() error { return l.append(j, 1, 10) },
		func() error { return l.append(j, 3, 700) },
		func() error { return l.save(j, 2) },
		func() error { return l.append(j, 2, 1500) }, // rotates
		func() error { return l.append(j, 1, 6000) }, // larger than a segment
		func() error { return l.save(j, 7) },
		func() error { return l.truncateBefore(j, 8) },
		func() error { return l.append(j, 5, 100) },
		func() error { return l.save(j, 11) },
		func() error { return l.truncateBefore(j, 12) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { return l.append(j, 4, 333) },
		func() error { return l.append(j, 1, 3000) },
		func() error { return l.save(j, l.tail()) },
		func() error { return l.truncateBefore(j, l.tail()) },
		func() error { return l.append(j, 1, 1) },
	)
}

// workLarge writes frames of many sectors, in segments of the common size and of
// their own.
func workLarge(d *simdisk.Disk, l *ledger) error {
	j, err := l.open(d)
	return follow(
		func() error { return err },
		func() error { return l.append(j, 1, 3900) }, // all of a segment
		func() error { return l.append(j, 3, 1200) },
		func() error { return l.append(j, 2, 9000) },
		func() error { return l.append(j, 40, 90) },
		func() error { return l.append(j, 1, 25000) },
		func() error { return l.save(j, l.tail()-1) },
		func() error { return l.append(j, 9, 2000) },
		func() error { return l.append(j, 1, 5) },
		func() error { return l.save(j, l.tail()) },
		func() error { return l.truncateBefore(j, l.tail()+1) },
		func() error { return l.append(j, 2, 7000) },
		func() error { return j.Close() },
	)
}

// workSnapshots saves states that are written in several steps.
func workSnapshots(d *simdisk.Disk, l *ledger) error {
	j, err := l.open(d)
	return follow(
		func() error { return err },
		func() error { return l.append(j, 2, 2000) },
		func() error { return l.saveLarge(j, l.tail(), 20) },
		func() error { return l.append(j, 2, 2000) },
		func() error { return l.saveLarge(j, l.tail(), 300) }, // two writes
		func() error { return l.truncateBefore(j, l.tail()+1) },
		func() error { return l.append(j, 1, 50) },
		func() error { return l.saveLarge(j, l.tail(), 60) },
		func() error { return l.saveLarge(j, l.tail(), 61) }, // of the same index
		func() error { return l.truncateBefore(j, l.tail()+1) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { return l.saveLarge(j, l.tail(), 40) },
		func() error { return l.truncateBefore(j, l.tail()+1) },
		func() error { return l.append(j, 3, 1900) },
	)
}

// fullBefore is a disk with room for the segment, the spare and the reserve, and for
// one small file.
func fullBefore(d *simdisk.Disk, l *ledger) (*simdisk.Disk, error) {
	j, err := l.open(d)
	if err != nil {
		return nil, err
	}
	d.SetLimit(3*4096 + 400)
	return d, follow(func() error { return l.append(j, 1, 100) }, j.Close)
}

// workFull uses the spare and the reserve up, is refused, gets some space, and then
// enough.
func workFull(d *simdisk.Disk, l *ledger) error {
	refused := func(err error) error {
		if errors.Is(err, journal.ErrNoSpace) {
			return nil
		}
		if err == nil {
			return errors.New("the disk is full, and that was stored")
		}
		return err
	}
	j, err := l.open(d)
	return follow(
		func() error { return err },
		func() error { return l.append(j, 2, 1500) },
		func() error { return l.append(j, 1, 3500) }, // in the spare
		func() error { return refused(l.append(j, 1, 9000)) },
		func() error { return l.append(j, 2, 1700) }, // in the reserve
		func() error { return refused(l.append(j, 1, 3000)) },
		func() error { return refused(l.saveLarge(j, l.tail(), 20)) },
		func() error { return l.append(j, 1, 200) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { d.SetLimit(4*4096 + 900); return nil },
		func() error { return l.append(j, 1, 3000) },
		func() error { return l.save(j, l.tail()-1) },
		func() error { return l.save(j, l.tail()) },
		func() error { return l.truncateBefore(j, l.tail()+1) },
		func() error { return l.append(j, 1, 3000) },
		func() error { d.SetLimit(0); return nil },
		func() error { return l.append(j, 3, 3000) },
	)
}

// workBrim fills each segment to its last byte on a disk without room for anything else,
// so that the next start has to find the spare or the reserve.
func workBrim(d *simdisk.Disk, l *ledger) error {
	j, err := l.open(d)
	const all, rest = 4096 - segmentHeaderSize - frameHeaderSize - 4, 48 // of an epoch record
	return follow(
		func() error { return err },
		func() error { d.SetLimit(3*4096 + 100); return nil },
		func() error { return l.append(j, 1, all-rest) },
		func() error { return l.append(j, 1, all) },
		func() error { return l.append(j, 1, all) },
		func() error { d.SetLimit(0); return l.append(j, 1, all) },
	)
}

// copiedBefore is a copy of a directory, as another machine finds it.
func copiedBefore(d *simdisk.Disk, l *ledger) (*simdisk.Disk, error) {
	if err := workOnce(d, l); err != nil {
		return nil, err
	}
	out := d.Clone()
	for i, name := range slices.Sorted(maps.Keys(out.Files)) {
		out.Files[name].Number = uint64(1000 + i)
	}
	l.copied, l.adopted, l.roomy = true, false, false
	return out, nil
}

// workCopied jumps, adopts the directory, and continues.
func workCopied(d *simdisk.Disk, l *ledger) error {
	j, err := l.open(d)
	return follow(
		func() error { return err },
		func() error { return l.append(j, 1, 30) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { return l.append(j, 1, 40) },
		func() error { return l.adopt(j) },
		func() error { return l.append(j, 1, 3000) },
		func() error { return l.save(j, l.tail()) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { return l.append(j, 1, 700) },
	)
}

// workKilled is a process that dies again and again on a machine that does not.
func workKilled(d *simdisk.Disk, l *ledger) error {
	for i := range 6 {
		j, err := l.open(d)
		err = follow(
			func() error { return err },
			func() error { return l.append(j, 1+i%2, 100+900*i) },
			func() error {
				if i%2 == 0 {
					return nil
				}
				return l.save(j, interlock.Index(1)+l.tail()/2)
			},
			func() error { return l.append(j, 1, 20) },
			func() error { return l.truncateBefore(j, l.snapshot) },
		)
		if err != nil {
			return fmt.Errorf("life %d: %w", i, err)
		}
	}
	return nil
}
