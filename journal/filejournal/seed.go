package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// ErrNotEmpty: the directory has been written to already.
var ErrNotEmpty = errors.New("filejournal: there is a journal already")

// Seed makes an empty directory go on from a state that was written elsewhere: after index at, of
// epoch, as a snapshot. The next Open finds it to be a copy, because it has no identity.
//
// The file restoring stands in the directory until all of it is durable, and Open refuses a
// directory that has it. So a crash leaves nothing that a server could start from; Seed removes what
// an earlier Seed has left behind, and begins anew.
//
//	restoring ──► snapshot ──► segment without entries ──► restoring is removed
func Seed(
	ctx context.Context, dir string, opts Options, epoch interlock.Epoch, at interlock.Index,
	write func(io.Writer) error,
) error {
	opts, err := opts.check()
	if err != nil {
		return err
	}
	d, err := lockDisk(dir)
	if err != nil {
		return err
	}
	return errors.Join(seed(ctx, d, opts, segmentHeader{
		first: at + 1, epoch: epoch, capacity: opts.SegmentBytes, salt: rand.Uint32(),
	}, write), d.Close())
}

// CheckEmpty returns ErrNotEmpty if Seed would refuse the directory. A directory that is missing is
// an empty one.
func CheckEmpty(dir string) error {
	d, err := openDisk(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = leftovers(d)
	return err
}

// seed is Seed behind the lock. h is the header of the segment.
func seed(ctx context.Context, d directory, opts Options, h segmentHeader, write func(io.Writer) error) error {
	if h.first < 2 || h.epoch == 0 {
		return fmt.Errorf("%w: a state after no entry", journal.ErrMisuse)
	}
	names, err := leftovers(d)
	if err != nil {
		return err
	}
	if err := writeWhole(d, restoringName, encodeRestoring()); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	for _, name := range names {
		if err := d.Remove(name); err != nil {
			return err
		}
	}
	if _, _, err := writeSnapshot(ctx, d, indexName(h.first-1, snapshotSuffix), h.first-1, write); err != nil {
		return err
	}
	if err := writeSegment(d, opts, &h); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	if err := d.Remove(restoringName); err != nil {
		return err
	}
	return d.Sync()
}

// leftovers returns the files of an earlier Seed that did not end, or ErrNotEmpty if there
// are files of a journal.
func leftovers(d directory) (names []string, err error) {
	all, err := d.Names()
	if err != nil {
		return nil, failedOpening(err)
	}
	for _, name := range all {
		if name != restoringName && ours(name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 && !slices.Contains(all, restoringName) {
		return nil, ErrNotEmpty
	}
	return names, nil
}

// ours reports whether this package names files like that.
func ours(name string) bool {
	_, isLog := nameIndex(name, logSuffix)
	_, isSnapshot := nameIndex(name, snapshotSuffix)
	return isLog || isSnapshot || strings.HasSuffix(name, tempSuffix) ||
		slices.Contains([]string{spareName, reserveName, identityName, cleanName, restoringName}, name)
}

// writeSegment writes a segment without entries.
func writeSegment(d directory, opts Options, h *segmentHeader) error {
	f, err := d.Open(indexName(h.first, logSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	err = f.Allocate(opts.SegmentBytes)
	if err == nil {
		_, err = f.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeWhole writes a small file in place.
func writeWhole(d directory, name string, content []byte) error {
	f, err := d.Open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
