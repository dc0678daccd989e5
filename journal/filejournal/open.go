package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal/device"
)

// Options are the settings of a file journal. The zero value is right for a server.
type Options struct {
	// SegmentBytes is the size of one log file. Each is allocated before it is
	// needed, so about two of them are always taken on disk. Truncation frees whole
	// files only. Default 64 MiB, at least 4 KiB.
	SegmentBytes int64

	// ReserveBytes is the size of the file that is kept for the time when the disk is full, so
	// that leases can still be released. Default 8 MiB or SegmentBytes, whichever is less; at
	// least 4 KiB.
	ReserveBytes int64

	// Accept, if it is set, sees every entry before anything in the directory is
	// changed. Its error is that of Open. So a program that cannot read what a newer
	// one has stored leaves it as it is.
	Accept func(journal.Entry) error

	// inline does what a goroutine does otherwise in the call that asks for it, so
	// that tests see the same system calls each time.
	inline bool

	salt func() uint32 // random bits for a segment; nil: rand.Uint32

	// page is the multiple up to which an append is padded with zeros. Default pageSize; less
	// in tests: their journals are so small that a page would cover the remains of a crash.
	page int64
}

const (
	defaultSegmentBytes = 64 << 20
	defaultReserveBytes = 8 << 20
	leastSegmentBytes   = 4 << 10
)

func (o Options) check() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = min(defaultReserveBytes, o.SegmentBytes)
	}
	if o.SegmentBytes < leastSegmentBytes || o.ReserveBytes < leastSegmentBytes {
		return o, fmt.Errorf("%w: segments of %d and a reserve of %d bytes: both must be at least %d",
			journal.ErrMisuse, o.SegmentBytes, o.ReserveBytes, leastSegmentBytes)
	}
	o.SegmentBytes = (o.SegmentBytes + frameAlign - 1) &^ (frameAlign - 1)
	o.ReserveBytes = (o.ReserveBytes + frameAlign - 1) &^ (frameAlign - 1)
	return o, nil
}

// Journal is a journal in a directory, open for its only owner.
type Journal struct {
	dir   directory
	path  string // for messages
	salt  func() uint32
	page  int64 // see Options
	epoch interlock.Epoch
	pool  *pool

	copied atomic.Bool

	// writing is held by Append and Close, and guards the fields of this block: the
	// segment being written and the buffer that frames are put together in.
	writing sync.Mutex
	active  file
	header  segmentHeader
	off     int64 // where the next frame goes
	at      position
	buf     []byte

	// upkeep is held by SaveSnapshot, Truncate, Adopt and Close.
	upkeep sync.Mutex

	// mu guards what follows, and is held for moments only.
	mu        sync.Mutex
	tail      interlock.Index
	segments  []segment
	snapshots []journal.Saved // the kept ones, oldest first
	alone     interlock.Index // a snapshot that checked when no other was kept
	closed    bool
	failed    error // the first failure; the journal is not usable after it
}

var _ journal.Journal = (*Journal)(nil)

var errClosed = fmt.Errorf("%w: used after Close", journal.ErrMisuse)

// Open takes the journal in a directory for writing, and makes the directory where
// it is missing. All of it is read and checked first, which takes about as long as
// the disk needs for that.
//
// ErrLocked means that another process has it, ErrNewer that this program is too old for it,
// *journal.DamageError what is damaged, ErrNoSpace that there is no room for as much as the
// epoch record. The first three changed nothing.
func Open(ctx context.Context, dir string, opts Options) (*Journal, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	d, err := lockDisk(dir)
	if err != nil {
		return nil, err
	}
	j, err := open(ctx, d, dir, opts)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return j, nil
}

// OpenOn is Open on a directory that is not the operating system's, such as that of a simulated
// disk. It is not locked. All runs in the caller's goroutine, and the random bits that
// distinguish segments come from salt, so that a run can be repeated.
func OpenOn(ctx context.Context, dir device.Directory, opts Options, salt func() uint32) (*Journal, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	opts.inline, opts.salt, opts.page = true, salt, 512
	return open(ctx, dir, "", opts)
}

// Refill makes the files that are missing, if there is room for them by now. A journal of Open
// does that by itself; one of OpenOn needs a call now and then.
func (j *Journal) Refill() { j.pool.fill() }

// open is Open behind the lock.
func open(ctx context.Context, dir directory, path string, opts Options) (*Journal, error) {
	var visit func(frameHeader, []byte) error
	if opts.Accept != nil {
		visit = func(h frameHeader, body []byte) error { return h.each(body, opts.Accept) }
	}
	in, err := inspect(ctx, dir, path, false, visit)
	if err != nil {
		return nil, err
	}
	if opts.salt == nil {
		opts.salt = rand.Uint32
	}
	if opts.page == 0 {
		opts.page = pageSize
	}
	j := &Journal{
		dir:       dir,
		path:      path,
		salt:      opts.salt,
		page:      opts.page,
		epoch:     in.log.at.epoch + 1,
		at:        in.log.at,
		header:    in.log.header,
		off:       in.log.off,
		tail:      in.log.at.index,
		segments:  in.segments,
		snapshots: in.snapshots,
	}
	// A journal that was never written to cannot be a copy.
	j.copied.Store(in.copied && j.at.index > 0)
	if err := j.settle(in); err != nil {
		j.closeActive()
		return nil, err
	}
	j.pool = newPool(dir, opts, in, j.fail)
	if newest := j.newestSnapshot(); newest > 0 {
		r, err := openSnapshot(dir, path, newest)
		if err != nil {
			j.closeActive()
			return nil, err
		}
		j.pool.snapshotTakes(r.end)
		r.Close()
	} else {
		j.pool.snapshotTakes(0)
	}
	if err := j.enter(in); err != nil {
		j.pool.close()
		j.closeActive()
		return nil, err
	}
	j.pool.start()
	return j, nil
}

// enter writes the epoch record. A directory without entries gets its first segment
// and its identity before, so that an identity that is missing beside entries
// always means a copy.
func (j *Journal) enter(in *inspection) error {
	if j.active == nil {
		if err := j.rotate(frameLength(4)); err != nil {
			return err
		}
	}
	if in.copied && j.at.index == 0 {
		if err := j.writeIdentity(); err != nil {
			return err
		}
	}
	return j.write(nil)
}

// settle makes the entries that were read durable, and erases the rest.
//
// The last frame is written again because the server that wrote it may have died
// before its sync, or of a failed sync: then the page cache shows the frame and
// the disk may not have it, and a mere sync could find nothing to do.
func (j *Journal) settle(in *inspection) error {
	if n := len(j.segments); n > 0 {
		name := j.segments[n-1].name
		f, err := j.dir.Open(name, os.O_RDWR)
		if err != nil {
			return j.fail("opening "+name, err)
		}
		j.active = f
		from := in.log.start // 0: no frame yet, the header is written again
		again := make([]byte, j.off-from)
		if _, err := f.ReadAt(again, from); err != nil {
			return j.fail("reading "+name, err)
		}
		if _, err := f.WriteAt(again, from); err != nil {
			return j.fail("writing "+name, err)
		}
		erase := in.log.torn
		if in.copied {
			// Copying tools leave holes for zeros; appending into them would change
			// metadata and could run out of space.
			erase = j.header.capacity
		}
		if err := writeZeros(f, j.off, erase, func() bool { return false }); err != nil {
			return j.fail("erasing the end of "+name, err)
		}
		if err := f.Sync(); err != nil {
			return j.fail("syncing "+name, err)
		}
	}
	gone := in.temps
	if _, _, _, err := small(j.dir, cleanName); err == nil {
		gone = append(gone, cleanName)
	}
	for _, name := range gone {
		if err := j.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return j.fail("removing "+name, err)
		}
	}
	if err := j.dir.Sync(); err != nil {
		return j.fail("syncing the directory", err)
	}
	return nil
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	// From here on no call begins to write; those under way are waited for.
	j.writing.Lock()
	defer j.writing.Unlock()
	j.upkeep.Lock()
	defer j.upkeep.Unlock()
	j.pool.close()
	var err error
	if j.failure() == nil {
		err = j.markClean()
	}
	return errors.Join(err, j.closeActive(), j.dir.Close())
}

func (j *Journal) closeActive() error {
	if j.active == nil {
		return nil
	}
	return j.active.Close()
}

// usable returns why the journal cannot be written to.
func (j *Journal) usable() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	return j.failed
}

func (j *Journal) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// fail makes the journal unusable for good and returns why.
func (j *Journal) fail(doing string, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		j.failed = fmt.Errorf(
			"%w: %s in %s: %w: check the disk, then start the server again", journal.ErrFailed, doing, j.path, err,
		)
	}
	return j.failed
}
