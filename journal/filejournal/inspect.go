package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// inspection is the content of a directory. Making one changes nothing.
type inspection struct {
	segments  []segment
	log       walker          // at the end of the log
	snapshots []journal.Saved // oldest first; the newest ones check, see readSnapshots
	spoiled   []error         // snapshots that do not check: *journal.DamageError
	temps     []string
	entries   uint64

	identity bool // there is a file of that name
	copied   bool // the identity is missing or that of another file
	clean    bool // the log's end is marked, and was checked against the mark
	spare    bool
	reserve  bool
}

// first is the index of the oldest entry.
func (in *inspection) first() interlock.Index {
	if len(in.segments) == 0 {
		return 1
	}
	return in.segments[0].first
}

// inspect reads and checks a whole directory. live: see walker. visit may be nil.
func inspect(
	ctx context.Context, dir directory, path string, live bool, visit func(frameHeader, []byte) error,
) (*inspection, error) {
	names, err := dir.Names()
	if err != nil {
		return nil, failedOpening(err)
	}
	if slices.Contains(names, restoringName) {
		return nil, fmt.Errorf("%w: there is %s", journal.ErrFilling, filepath.Join(path, restoringName))
	}
	in := &inspection{
		segments: segments(names),
		log:      walker{dir: dir, path: path, live: live},
		identity: slices.Contains(names, identityName),
		spare:    slices.Contains(names, spareName),
		reserve:  slices.Contains(names, reserveName),
	}
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			in.temps = append(in.temps, name)
		}
	}
	if err := in.readIdentity(); err != nil {
		return nil, err
	}
	// The mark is read before the log and believed after it, so that a server that
	// opens the journal meanwhile is not taken for damage.
	tail, chain, marked, err := in.readClean()
	if err != nil {
		return nil, err
	}
	err = in.log.walk(ctx, in.segments, func(h frameHeader, body []byte) error {
		in.entries += uint64(h.count)
		if visit != nil {
			return visit(h, body)
		}
		return nil
	})
	if err != nil {
		return in, err
	}
	if marked && (tail != in.log.at.index || chain != in.log.at.chain) {
		if _, _, still, err := in.readClean(); err != nil || still {
			return in, in.log.damage(
				in.lastName(), in.log.off, fmt.Sprintf("the log ends here, but it was closed at index %d", tail),
			)
		}
		marked = false
	}
	in.clean = marked
	if err := in.readSnapshots(ctx, names, live); err != nil {
		return in, err
	}
	return in, in.judge(marked)
}

func (in *inspection) lastName() string {
	if len(in.segments) == 0 {
		return ""
	}
	return in.segments[len(in.segments)-1].name
}

// judge checks that the files found belong together.
func (in *inspection) judge(marked bool) error {
	tail, first := in.log.at.index, in.first()
	if len(in.segments) == 0 && (in.identity || marked || len(in.snapshots)+len(in.spoiled) > 0) {
		return in.log.damage("", 0, "the directory was used before, but its segments are missing")
	}
	newest := interlock.Index(0)
	if n := len(in.snapshots); n > 0 {
		newest = in.snapshots[n-1].Index
	}
	if newest > tail {
		return in.log.damage(
			in.lastName(), in.log.off, fmt.Sprintf("the log ends here, but there is a snapshot of index %d", newest),
		)
	}
	if newest+1 < first {
		if n := len(in.spoiled); n > 0 {
			return in.spoiled[n-1]
		}
		return in.log.damage(
			in.segments[0].name, 0, fmt.Sprintf("the log begins with index %d, and no snapshot leads up to it", first),
		)
	}
	return nil
}

// small returns the bytes of a small file, and the file; nil when it is not there.
func small(dir directory, name string) (data []byte, device, inode uint64, err error) {
	f, err := dir.Open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, failedOpening(err)
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, 0, 0, fmt.Errorf("%w: reading %s: %w", journal.ErrFailed, name, err)
	}
	if device, inode, err = f.ID(); err != nil {
		return nil, 0, 0, fmt.Errorf("%w: %w", journal.ErrFailed, err)
	}
	return b[:n], device, inode, nil
}

func (in *inspection) readIdentity() error {
	b, device, inode, err := small(in.log.dir, identityName)
	if err != nil {
		return err
	}
	same, err := sameIdentity(b, device, inode)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(in.log.path, identityName), err)
	}
	in.copied = !same
	return nil
}

func (in *inspection) readClean() (tail interlock.Index, chain uint32, ok bool, err error) {
	b, _, _, err := small(in.log.dir, cleanName)
	if err != nil || b == nil {
		return 0, 0, false, err
	}
	tail, chain, ok, err = decodeClean(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Join(in.log.path, cleanName), err)
	}
	return tail, chain, ok, err
}

// readSnapshots lists the snapshots. It reads those that a restart needs, the newest two that check, and
// with whole all. An older one is read when the past is asked for.
func (in *inspection) readSnapshots(ctx context.Context, names []string, whole bool) error {
	var all []interlock.Index
	for _, name := range names {
		if at, ok := nameIndex(name, snapshotSuffix); ok {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	for _, at := range slices.Backward(all) {
		size, err := checkSnapshot(ctx, in.log.dir, in.log.path, at, whole || len(in.snapshots) < snapshotNeeded)
		var damage *journal.DamageError
		switch {
		case err == nil:
			in.snapshots = append(in.snapshots, journal.Saved{Index: at, Bytes: size})
		case errors.As(err, &damage):
			in.spoiled = append(in.spoiled, err)
		default:
			return err // also when it was removed meanwhile: see verify
		}
	}
	slices.Reverse(in.snapshots)
	slices.Reverse(in.spoiled)
	return nil
}
