package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

var crashOptions = Options{SegmentBytes: 4 << 10, ReserveBytes: 4 << 10, inline: true, page: 512}

// ledger remembers what the user of a journal knows, and what is not known.
type ledger struct {
	known    []string // entry of index i+1; "" is an epoch record
	maybe    []string // the append under way: whole or not at all
	openings int      // of unknown outcome: each may have left its epoch record
	snapshot interlock.Index
	saving   interlock.Index // the snapshot under way
	truncate interlock.Index // the highest truncation asked for
	adopted  bool            // the identity is that of this directory, durably
	copied   bool            // it is not, until Adopt was called
	roomy    bool            // the journal said that it has its reserve, and no space was taken since

	salts rand.PCG // the random bits of segments, so that every run is the same
}

func (l *ledger) tail() interlock.Index { return interlock.Index(len(l.known)) }

// fork copies a ledger.
func (l *ledger) fork() *ledger {
	out := *l
	out.known, out.maybe = slices.Clone(l.known), slices.Clone(l.maybe)
	return &out
}

// start opens the journal, and learns nothing from it.
func (l *ledger) start(d *simdisk.Disk) (*Journal, error) {
	opts := crashOptions
	opts.salt = func() uint32 { return uint32(l.salts.Uint64()) }
	l.openings++
	return open(context.Background(), d, "", opts)
}

// open is for a journal that is known completely.
func (l *ledger) open(d *simdisk.Disk) (*Journal, error) {
	j, err := l.start(d)
	if err != nil {
		return nil, err
	}
	l.openings, l.adopted = 0, l.adopted || !l.copied
	l.known = append(l.known, "")
	l.roomy = !j.Low()
	return j, nil
}

func (l *ledger) append(j *Journal, n, size int) error {
	var group [][]byte
	for i := range n {
		text := fmt.Sprintf("entry %d of %d ", int(l.tail())+i+1, size)
		text = strings.Repeat(text, size/len(text)+1)[:size]
		l.maybe = append(l.maybe, text)
		group = append(group, []byte(text))
	}
	err := j.Append(context.Background(), l.tail()+1, group)
	switch {
	case err == nil:
		l.known, l.maybe = append(l.known, l.maybe...), nil
	case errors.Is(err, journal.ErrNoSpace):
		l.maybe = nil
	}
	l.roomy = err == nil && !j.Low()
	return err
}

func stateAt(at interlock.Index) string {
	return strings.Repeat(fmt.Sprintf("state after %d\n", at), 20)
}

func (l *ledger) save(j *Journal, at interlock.Index) error { return l.saveLarge(j, at, 1) }

// saveLarge saves a snapshot that contains the same several times.
func (l *ledger) saveLarge(j *Journal, at interlock.Index, times int) error {
	l.saving = at
	err := j.SaveSnapshot(context.Background(), at, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat(stateAt(at), times))
		return err
	})
	switch {
	case err == nil:
		l.snapshot, l.saving = at, 0
	case errors.Is(err, journal.ErrNoSpace):
		l.saving = 0
	}
	return err
}

func (l *ledger) truncateBefore(j *Journal, before interlock.Index) error {
	l.truncate = max(l.truncate, before)
	return j.Truncate(context.Background(), before)
}

func (l *ledger) adopt(j *Journal) error {
	l.copied = false // from here on it may be either
	err := j.Adopt()
	l.adopted = err == nil
	return err
}

// check opens the disk and compares it with the known entries. Entries that it found are known
// from then on. The journal is left open.
func (l *ledger) check(d *simdisk.Disk) (*Journal, error) {
	j, err := l.start(d)
	if errors.Is(err, journal.ErrNoSpace) && !l.roomy {
		d.SetLimit(0)
		j, err = l.start(d)
	}
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if l.adopted && j.Copied() {
		return nil, errors.New("it says that it was copied")
	}
	if l.copied && !j.Copied() {
		return nil, errors.New("it was copied, and does not say so")
	}
	found, err := l.entries(j)
	if err != nil {
		return nil, err
	}
	at, err := l.state(j)
	if err != nil {
		return nil, err
	}
	l.known, l.maybe, l.openings, l.snapshot, l.saving = found, nil, 0, at, 0
	l.adopted, l.roomy = !j.Copied(), !j.Low()
	return j, nil
}

// entries reads the journal, and returns what is not as it must be.
func (l *ledger) entries(j *Journal) ([]string, error) {
	if limit := max(1, l.truncate); j.First() > limit {
		return nil, fmt.Errorf("first is %d, truncated before %d", j.First(), limit)
	}
	if j.First() > l.tail()+1 {
		return nil, fmt.Errorf("first is %d, the tail was %d", j.First(), l.tail())
	}
	found := make([]string, j.First()-1, j.Tail())
	copy(found, l.known)
	err := j.Read(context.Background(), j.First(), func(e journal.Entry) error {
		if int(e.Index) != len(found)+1 {
			return fmt.Errorf("index %d where %d should be", e.Index, len(found)+1)
		}
		found = append(found, string(e.Data))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(found) < len(l.known) {
		return nil, fmt.Errorf("%d entries were acknowledged, %d are there", len(l.known), len(found))
	}
	for i, want := range l.known {
		if found[i] != want {
			return nil, fmt.Errorf("entry %d is %.30q, acknowledged was %.30q", i+1, found[i], want)
		}
	}
	rest := found[len(l.known):]
	if len(rest) > len(l.maybe) && len(l.maybe) > 0 && rest[0] != "" {
		for i, want := range l.maybe {
			if rest[i] != want {
				return nil, fmt.Errorf("unacknowledged entry is %.30q, appended was %.30q", rest[i], want)
			}
		}
		rest = rest[len(l.maybe):]
	}
	if len(rest) < 1 || len(rest) > l.openings || strings.Join(rest, "") != "" {
		return nil, fmt.Errorf("behind what was appended stands %.100q, with %d openings", rest, l.openings)
	}
	return found, nil
}

// state reads the snapshot, and returns what is not as it must be.
func (l *ledger) state(j *Journal) (interlock.Index, error) {
	at, r, err := j.Snapshot(context.Background())
	if err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	if at != l.snapshot && (l.saving == 0 || at != l.saving) {
		return 0, fmt.Errorf("snapshot of %d, saved were %d and perhaps %d", at, l.snapshot, l.saving)
	}
	if at+1 < j.First() {
		return 0, fmt.Errorf("snapshot of %d, first entry %d", at, j.First())
	}
	if r == nil {
		return 0, nil
	}
	defer r.Close()
	state, err := io.ReadAll(r)
	if err != nil || len(state) == 0 || strings.ReplaceAll(string(state), stateAt(at), "") != "" {
		return 0, fmt.Errorf("snapshot is %.30q, %w", state, err)
	}
	return at, nil
}

// checkTwice also works on until the segment that was recovered is no longer the
// last one, closes, and looks again after a second, total loss.
func (l *ledger) checkTwice(d *simdisk.Disk) error {
	j, err := l.check(d)
	if err != nil {
		return err
	}
	d.SetLimit(0)
	for _, step := range []func() error{
		func() error { return l.append(j, 1, 2500) },
		func() error { return l.save(j, l.tail()) },
		func() error { return l.append(j, 1, 2500) },
		func() error { return l.truncateBefore(j, l.snapshot+1) },
		func() error { return j.Close() },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("at work after recovery: %w", err)
		}
	}
	after := d.PowerCut(simdisk.LoseAll, rand.New(rand.NewPCG(0, 0)))
	if _, err := l.check(after); err != nil {
		return fmt.Errorf("after recovery and a power cut: %w", err)
	}
	return nil
}
