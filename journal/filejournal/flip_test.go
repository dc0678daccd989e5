package filejournal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// Masks are the changed bits of a byte.
var (
	wholeByte = []byte{0xff}
	eachBit   = []byte{0xff, 1, 2, 4, 8, 16, 32, 64, 128}
)

// flips starts on a disk with one byte changed, for every byte of every file. A refused start
// must name the file and the place, which is that of the header, frame or trailer to which the
// byte belongs, and must have changed nothing. accept judges what else a start may find.
func flips(
	t *testing.T, pristine *simdisk.Disk, masks []byte, accept func(name string, off int64, got []string) error,
) {
	t.Helper()
	if testing.Short() {
		masks = wholeByte
	}
	d, before := pristine.Clone(), pristine.Clone()
	count, refused := 0, 0
	for _, name := range slices.Sorted(maps.Keys(pristine.Files)) {
		for off, was := range pristine.Files[name].Data {
			for _, mask := range masks {
				d.Files[name].Data[off] = was ^ mask
				before.Files[name].Data[off] = was ^ mask
				got, err := contents(d)
				if err == nil {
					err = accept(name, int64(off), got)
					d = pristine.Clone()
				} else {
					refused++
					err = errors.Join(refusal(err, name, before, d), nearby(err, int64(off)))
				}
				if err != nil {
					t.Fatalf("%s, byte %d changed by %#x: %v", name, off, mask, err)
				}
				d.Files[name].Data[off] = was
				count++
			}
			before.Files[name].Data[off] = was
		}
	}
	t.Attr("count.byte_flips", strconv.Itoa(count))
	t.Logf("%d flips, %d of them refused", count, refused)
	if refused < 7000*len(masks) {
		t.Errorf("only %d of %d flips were refused", refused, count)
	}
}

// nearby checks that a refusal names the place of a changed byte: the start of the
// frame or the header to which it belongs.
func nearby(err error, off int64) error {
	var damage *journal.DamageError
	if errors.As(err, &damage) && (damage.Offset > off || damage.Offset < off-4000) {
		return fmt.Errorf("said to be at byte %d", damage.Offset)
	}
	return nil
}

// A journal that was closed in order is the same after the flip, or refuses.
func TestFlipEveryByte(t *testing.T) {
	clean, want := smallJournal(t, true)
	flips(t, clean, eachBit, func(_ string, _ int64, got []string) error {
		if !slices.Equal(got, want) {
			return fmt.Errorf("entries changed from %d to %d", len(want), len(got))
		}
		return nil
	})
}

// Without an orderly close a flip in the very last frame passes for a torn write, and
// then exactly that frame is gone. No other flip may.
func TestFlipAfterKill(t *testing.T) {
	killed, want := smallJournal(t, false)
	in, err := inspect(t.Context(), killed.Clone(), "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	flips(t, killed, wholeByte, func(name string, off int64, got []string) error {
		inLast := name == in.lastName() && off >= in.log.start && off < in.log.off
		if !slices.Equal(got, want) && (!inLast || !slices.Equal(got, want[:len(want)-2])) {
			return fmt.Errorf("entries changed from %d to %d", len(want), len(got))
		}
		return nil
	})
}

// Of a journal that forgot its beginning the snapshots are needed, too: a spoiled one
// costs nothing as long as the other one leads up to the entries that are there.
func TestFlipTruncated(t *testing.T) {
	d, led := simdisk.New(), new(ledger)
	j, err := led.open(d)
	for range 3 {
		err = errors.Join(
			err, led.append(j, 1, 3500), led.save(j, led.tail()), led.append(j, 1, 300), led.truncateBefore(j, led.snapshot+1),
		)
	}
	if err = errors.Join(err, j.Close()); err != nil || j.First() == 1 {
		t.Fatalf("first entry %d: %v", j.First(), err)
	}
	want := led.known[j.First()-1:]
	flips(t, d, wholeByte, func(_ string, _ int64, got []string) error {
		if !slices.Equal(got, want) {
			return fmt.Errorf("entries changed from %d to %d", len(want), len(got))
		}
		return nil
	})
}
