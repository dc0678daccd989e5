package filejournal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock/journal"
)

// pool keeps two zeroed files ready: the spare, which becomes the next segment,
// and the reserve, which becomes it when there is no space for a spare. They are
// made by a goroutine, so that an append waits for a new segment only when it
// writes faster than the disk can be filled with zeros.
//
//	          space                    no space
//	┌──────┐  take   ┌─────────┐ fill  ┌──────────┐  take   ┌───────────┐  take
//	│ both │ ──────▶ │ reserve │ ────▶ │ reserve, │ ──────▶ │ none, low │ ─────▶ ErrNoSpace
//	└──────┘ ◀────── └─────────┘       │ low      │         └───────────┘
//	    ▲     fill                     └──────────┘               │
//	    └──────────────── fill, as soon as there is space ◀───────┘
type pool struct {
	dir  directory
	opts Options
	fail func(doing string, err error) error
	low  atomic.Bool
	room atomic.Int64 // bytes for the next snapshot, which a new spare must leave free
	want atomic.Bool  // files are missing for want of descriptors

	kick    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	started bool
	closing atomic.Bool

	// filling is held while files are made, and guards the slots.
	filling sync.Mutex
	spare   slot
	reserve slot
}

// spareFile is a zeroed file of a size. It is still called name.
type spareFile struct {
	file
	name string
	size int64
}

// slot is the place for one prepared file.
type slot struct {
	name  string
	size  int64
	leave bool // room for a snapshot is left behind it
	ready *spareFile
	found bool // a file of an earlier owner, not looked at yet
}

func newPool(dir directory, opts Options, in *inspection, fail func(string, error) error) *pool {
	return &pool{
		dir: dir, opts: opts, fail: fail,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		spare:   slot{name: spareName, size: opts.SegmentBytes, leave: true, found: in.spare},
		reserve: slot{name: reserveName, size: opts.ReserveBytes, found: in.reserve},
	}
}

func (p *pool) start() {
	if p.opts.inline {
		p.fill()
		return
	}
	p.started = true
	go p.run()
	p.refill()
}

// run fills when it is asked to, and while space or descriptors are short again and again.
func (p *pool) run() {
	defer close(p.done)
	for {
		var retry <-chan time.Time
		if p.low.Load() || p.want.Load() {
			retry = time.After(retryEvery)
		}
		select {
		case <-p.stop:
			return
		case <-p.kick:
		case <-retry:
		}
		p.fill()
	}
}

// refill asks for missing files, and does not wait for them.
func (p *pool) refill() {
	if p.opts.inline {
		p.fill()
		return
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *pool) close() {
	p.closing.Store(true)
	close(p.stop)
	if p.started {
		<-p.done
	}
	p.filling.Lock()
	defer p.filling.Unlock()
	for _, s := range []*slot{&p.spare, &p.reserve} {
		if s.ready != nil {
			s.ready.Close()
			s.ready = nil
		}
	}
}

// fill makes missing files: the reserve first, because it is the promise.
func (p *pool) fill() {
	p.filling.Lock()
	defer p.filling.Unlock()
	if p.ensure(&p.reserve) == nil && p.ensure(&p.spare) == nil {
		p.low.Store(false)
		p.want.Store(false)
	}
}

var errClosing = errors.New("closing")

// ensure makes the file of a slot. Want of space or of descriptors is noted and is no
// failure of the storage, all else is. The caller holds filling.
func (p *pool) ensure(s *slot) error {
	if s.ready != nil {
		return nil
	}
	f, err := p.prepare(s)
	switch {
	case err == nil:
		s.ready = &spareFile{f, s.name, s.size}
	case err == errClosing:
	case noSpace(err):
		p.low.Store(true)
	case noFiles(err):
		p.want.Store(true)
	default:
		return p.fail("preparing "+s.name, err)
	}
	return err
}

// take hands a file with at least this many bytes to use, which must rename it before it
// returns; until then nothing else is prepared, because a new file of the old name would take
// its place in the directory.
func (p *pool) take(bytes int64, use func(*spareFile) error) error {
	p.filling.Lock()
	defer p.filling.Unlock()
	s := &p.spare
	if bytes > s.size {
		// A frame that is larger than a segment gets one of its own size.
		s = &slot{name: "large" + tempSuffix, size: bytes}
	}
	err := p.ensure(s)
	if (noSpace(err) || noFiles(err)) && bytes <= p.reserve.size && p.ensure(&p.reserve) == nil {
		s, err = &p.reserve, nil
	}
	switch {
	case err == nil:
		return use(s.give())
	case noSpace(err):
		return fmt.Errorf("%w: free some on the journal's disk: %w", journal.ErrNoSpace, err)
	case noFiles(err):
		return fmt.Errorf("%w: %w: allow the server more open files: %w", journal.ErrNoSpace, journal.ErrNoFiles, err)
	}
	return err
}

func (s *slot) give() *spareFile {
	f := s.ready
	s.ready = nil
	return f
}

// prepare makes the file of a slot, or takes the one that an earlier owner left.
func (p *pool) prepare(s *slot) (file, error) {
	if s.found {
		s.found = false
		f, err := p.dir.Open(s.name, os.O_RDWR)
		if err != nil {
			return nil, err
		}
		usable, err := zeroed(f, s.size)
		if usable {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		if err := p.dir.Remove(s.name); err != nil {
			return nil, err
		}
	}
	if room := p.room.Load(); s.leave && room > 0 {
		if err := p.probe(s.size + room); err != nil {
			return nil, err
		}
	}
	temp := s.name + tempSuffix
	f, err := p.dir.Open(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	// Blocks that were only allocated turn into written ones at their first write,
	// which is metadata to be synced: so zeros are written now.
	err = f.Allocate(s.size)
	if err == nil {
		err = writeZeros(f, 0, s.size, p.closing.Load)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = p.dir.Rename(temp, s.name)
		temp = s.name
	}
	if err == nil {
		err = p.dir.Sync()
	}
	if err != nil {
		f.Close()
		p.dir.Remove(temp) // the error that counts is the one before
		return nil, err
	}
	return f, nil
}

// probe finds out whether so many bytes are free.
func (p *pool) probe(size int64) error {
	const name = "probe" + tempSuffix
	f, err := p.dir.Open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	err = f.Allocate(size)
	return errors.Join(err, f.Close(), p.dir.Remove(name))
}

// snapshotTakes notes the size of the newest snapshot. The next one needs its own room before
// the older ones can go, and it is what makes room in a log that has filled the disk. Where
// all runs in one goroutine, the disk is a simulated one that is too small for that.
func (p *pool) snapshotTakes(bytes int64) {
	if p.opts.inline {
		return
	}
	p.room.Store(max(p.opts.ReserveBytes, bytes+bytes/4))
}

// retryEvery is how often space is looked for while there is too little. An idle
// shard that admits nothing because space is low makes no call that would look.
const retryEvery = time.Second

// zeroStep is how much is written between two syncs: the appends on the same disk
// wait for at most that much.
const zeroStep = 1 << 20

// writeZeros writes zeros from off up to end. The last piece is not synced.
func writeZeros(f file, off, end int64, stop func() bool) error {
	for off < end {
		if stop() {
			return errClosing
		}
		n := min(zeroStep-off%zeroStep, end-off)
		if err := f.Zero(off, n); err != nil {
			return err
		}
		if off += n; off < end {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// zeroed reports whether a file has this size and nothing in it but, perhaps, the
// header of a segment that never came to be.
func zeroed(f file, size int64) (bool, error) {
	if got, err := f.Size(); err != nil || got != size {
		return false, err
	}
	b := make([]byte, min(windowSize, size))
	for off := int64(segmentHeaderSize); off < size; {
		n, err := f.ReadAt(b[:min(int64(len(b)), size-off)], off)
		if n == 0 && err != nil {
			return false, err
		}
		if !allZero(b[:n]) {
			return false, nil
		}
		off += int64(n)
	}
	return true, nil
}
