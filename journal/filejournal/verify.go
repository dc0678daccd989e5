package filejournal

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Report is the result of Verify.
type Report struct {
	First, Tail interlock.Index // of the entries that are there; Tail 0 in an empty directory
	Epoch       interlock.Epoch // of the last entry
	Entries     uint64
	Segments    int
	Bytes       int64 // of the segments, with what is allocated and not used yet

	Snapshots []interlock.Index // that check, oldest first
	Spoiled   []error           // snapshots that do not check, each a *journal.DamageError

	// Unfinished: behind the tail stands a write that was not finished. Beside a
	// running server that is the append of this moment; else it is what a crash left,
	// and the next Open erases it.
	Unfinished bool
	// Clean: the journal was closed in order, and ends where it was closed.
	Clean bool
	// Copied: the directory is a copy or a restored backup that no server has
	// adopted yet.
	Copied bool
}

// Verify reads and checks a whole journal. It takes no lock and writes nothing, so
// it can run beside a server. progress, which may be nil, is called now and then
// with how many bytes of frames were checked.
//
// A *journal.DamageError means that a server would refuse to start, and names the place of the
// first damage; the report then holds what was read before it. A spoiled snapshot that can be
// passed over is in the report only.
func Verify(ctx context.Context, dir string, progress func(checked int64)) (Report, error) {
	d, err := openDisk(dir)
	if err != nil {
		return Report{}, err
	}
	defer d.Close()
	return verify(ctx, d, dir, progress)
}

// attempts bounds how often a reader begins again because a segment or a snapshot
// that it was about to read was removed. A server truncates now and then and not all
// the time, so that one or two are enough.
const attempts = 100

func verify(ctx context.Context, d directory, dir string, progress func(checked int64)) (Report, error) {
	const step = 1 << 20
	for attempt := 1; ; attempt++ {
		var checked, told int64
		in, err := inspect(ctx, d, dir, true, func(_ frameHeader, body []byte) error {
			checked += frameLength(len(body))
			if progress != nil && checked-told >= step {
				told = checked
				progress(checked)
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) && attempt < attempts {
			continue
		}
		if in == nil {
			return Report{}, err
		}
		if progress != nil && checked > told {
			progress(checked)
		}
		return Report{
			First:      in.first(),
			Tail:       in.log.at.index,
			Epoch:      in.log.at.epoch,
			Entries:    in.entries,
			Segments:   len(in.segments),
			Bytes:      in.log.bytes,
			Snapshots:  indexes(in.snapshots),
			Spoiled:    in.spoiled,
			Unfinished: in.log.torn != 0,
			Clean:      in.clean,
			Copied:     in.copied && in.log.at.index > 0,
		}, err
	}
}

// Dump visits the entries from an index on, or from the oldest one that is there
// when from is 0. Like Verify it can run beside a server; it then ends where the
// log ended when it came there. An entry's Data is valid during the call only. It
// returns visit's error, ErrTrimmed, or *journal.DamageError after all entries
// before the damage.
func Dump(ctx context.Context, dir string, from interlock.Index, visit func(journal.Entry) error) error {
	d, err := openDisk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return dump(ctx, d, dir, from, visit)
}

func dump(ctx context.Context, d directory, dir string, from interlock.Index, visit func(journal.Entry) error) error {
	for attempt := 1; ; attempt++ {
		names, err := d.Names()
		if err != nil {
			return failedOpening(err)
		}
		segs := segments(names)
		if len(segs) == 0 {
			return nil
		}
		if from != 0 && from < segs[0].first {
			return trimmed(from, segs[0].first)
		}
		var refused error
		w := walker{dir: d, path: dir, live: true}
		err = w.walk(ctx, since(segs, from), func(h frameHeader, body []byte) error {
			if refused = visitFrom(h, body, from, visit); refused == nil {
				from = max(from, h.last()+1)
			}
			return refused
		})
		if refused == nil && errors.Is(err, fs.ErrNotExist) && attempt < attempts {
			continue
		}
		return err
	}
}

// ReadSnapshot passes the newest snapshot that checks to visit, as the next Open would find it.
// Like Verify it can run beside a server. It does not call visit if there is none, and returns
// visit's error.
func ReadSnapshot(ctx context.Context, dir string, visit func(at interlock.Index, state io.Reader) error) error {
	d, err := openDisk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for attempt := 1; ; attempt++ {
		names, err := d.Names()
		if err != nil {
			return failedOpening(err)
		}
		in := inspection{log: walker{dir: d, path: dir, live: true}}
		if err = in.readSnapshots(ctx, names, false); err == nil && len(in.snapshots) == 0 {
			return nil
		}
		var r *snapshotReader
		if err == nil {
			r, err = openSnapshot(d, dir, in.snapshots[len(in.snapshots)-1].Index)
		}
		if errors.Is(err, fs.ErrNotExist) && attempt < attempts {
			continue
		}
		if err != nil {
			return err
		}
		defer r.Close()
		return visit(r.at, r)
	}
}
