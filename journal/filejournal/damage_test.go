package filejournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// smallJournal builds a journal of three segments and two snapshots, and returns its disk and
// its entries. closed reports whether it was closed in order.
func smallJournal(t *testing.T, closed bool) (*simdisk.Disk, []string) {
	t.Helper()
	d, led := simdisk.New(), new(ledger)
	j, err := led.open(d)
	for _, step := range []func() error{
		func() error { return err },
		func() error { return led.append(j, 2, 50) },
		func() error { return led.append(j, 1, 3800) },
		func() error { return led.save(j, 2) },
		func() error { return led.append(j, 3, 20) },
		func() error { return led.save(j, 5) },
		func() error { return led.append(j, 1, 3800) },
		func() error { return led.append(j, 1, 30) },
		func() error { return led.append(j, 2, 10) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if closed {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(j.segments); n != 3 {
		t.Fatalf("%d segments", n)
	}
	return d, led.known
}

// contents opens a disk and returns its entries but the new epoch record, after
// checking that the snapshot can be trusted.
func contents(d *simdisk.Disk) ([]string, error) {
	j, err := open(context.Background(), d, "", crashOptions)
	if err != nil {
		return nil, err
	}
	var out []string
	err = j.Read(context.Background(), j.First(), func(e journal.Entry) error {
		if e.Index < j.Tail() {
			out = append(out, string(e.Data))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read after a good start: %w", err)
	}
	at, r, err := j.Snapshot(context.Background())
	if err != nil {
		return nil, fmt.Errorf("snapshot after a good start: %w", err)
	}
	if at+1 < j.First() {
		return nil, fmt.Errorf("snapshot of %d, the entries begin with %d", at, j.First())
	}
	if r != nil {
		if state, err := io.ReadAll(r); err != nil || string(state) != stateAt(at) {
			return nil, fmt.Errorf("snapshot of %d is %.30q, %w", at, state, err)
		}
	}
	return out, j.Close()
}

// refusal checks that a start was refused well: it names the place, and changed nothing.
func refusal(err error, file string, before, after *simdisk.Disk) error {
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		return fmt.Errorf("not a damage error: %w", err)
	}
	if damage.File != file {
		return fmt.Errorf("the damage is in %s, the error says: %w", file, err)
	}
	if !same(before, after) {
		return fmt.Errorf("a refused start changed the directory")
	}
	return nil
}

func TestDamagedDirectory(t *testing.T) {
	clean, want := smallJournal(t, true)
	segs := segments(slices.Collect(maps.Keys(clean.Files)))
	first, second, last := segs[0].name, segs[1].name, segs[2].name
	older, newest := indexName(2, snapshotSuffix), indexName(5, snapshotSuffix)
	for _, c := range []struct {
		name   string
		change func(d *simdisk.Disk)
		file   string // the location of the damage in the refusal; "-": no refusal
	}{
		{"first segment missing", func(d *simdisk.Disk) { delete(d.Files, first); delete(d.Files, newest) }, second},
		{"middle segment missing", func(d *simdisk.Disk) { delete(d.Files, second) }, first},
		{"last segment missing", func(d *simdisk.Disk) { delete(d.Files, last) }, second},
		{
			"all segments missing",
			func(d *simdisk.Disk) { delete(d.Files, first); delete(d.Files, second); delete(d.Files, last) }, "",
		},
		{
			"segments exchanged", func(d *simdisk.Disk) { d.Files[first], d.Files[second] = d.Files[second], d.Files[first] },
			first,
		},
		{"segment cut", func(d *simdisk.Disk) { n := d.Files[second]; n.Data = n.Data[:2000] }, second},
		{"segment longer", func(d *simdisk.Disk) { n := d.Files[second]; n.Data = append(n.Data, 0) }, second},
		{"segment empty", func(d *simdisk.Disk) { d.Files[last].Data = nil }, last},
		{"segment zeroed", func(d *simdisk.Disk) { clear(d.Files[last].Data) }, last},
		{"last frame zeroed", func(d *simdisk.Disk) { clear(d.Files[last].Data[4000:]) }, last},
		{"first frame written over the second", func(d *simdisk.Disk) {
			n := d.Files[first].Data
			copy(n[segmentHeaderSize+48:], n[segmentHeaderSize:segmentHeaderSize+48])
		}, first},
		{"newest snapshot missing", func(d *simdisk.Disk) { delete(d.Files, newest) }, "-"},
		{"newest snapshot empty", func(d *simdisk.Disk) { d.Files[newest].Data = nil }, "-"},
		{"both snapshots cut", func(d *simdisk.Disk) {
			for _, name := range []string{older, newest} {
				d.Files[name].Data = d.Files[name].Data[:100]
			}
		}, "-"},
		{"snapshot of a later index", func(d *simdisk.Disk) {
			led := &ledger{known: make([]string, 100)}
			j := &Journal{dir: d, tail: 100, pool: newPool(d, crashOptions, &inspection{}, nil)}
			j.snapshots, j.segments = []journal.Saved{{Index: 5}}, []segment{{first: 1}}
			if err := led.save(j, 99); err != nil {
				t.Fatal(err)
			}
		}, last},
		{
			"foreign files",
			func(d *simdisk.Disk) { d.Files["README"] = &simdisk.Inode{}; d.Files["1.log"] = &simdisk.Inode{} }, "-",
		},
		{"spare full of garbage", func(d *simdisk.Disk) { d.Files[spareName].Data = bytes.Repeat([]byte("x"), 4096) }, "-"},
		{"reserve of another size", func(d *simdisk.Disk) { d.Files[reserveName].Data = make([]byte, 100) }, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := clean.Clone()
			c.change(d)
			before := d.Clone()
			got, err := contents(d)
			if c.file == "-" {
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%d entries, want %d: %v", len(got), len(want), err)
				}
				if again, err := contents(d); err != nil || len(again) != len(want)+1 {
					t.Fatalf("second start: %d entries: %v", len(again), err)
				}
				return
			}
			if err := refusal(err, c.file, before, d); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A damaged newest snapshot is passed over when the entries since the older one are
// there, and stops the start when they are not.
func TestSpoiledSnapshot(t *testing.T) {
	d, led := simdisk.New(), new(ledger)
	j, err := led.open(d)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := errors.Join(
			led.append(j, 1, 3500), led.append(j, 1, 3500), led.save(j, led.tail()), led.truncateBefore(j, led.tail()+1),
		); err != nil {
			t.Fatal(err)
		}
	}
	n := len(j.snapshots)
	if j.First() == 1 || n < 2 {
		t.Fatalf("first %d, snapshots %v", j.First(), j.snapshots)
	}
	older, newest := j.snapshots[n-2].Index, j.snapshots[n-1].Index
	d.Files[indexName(newest, snapshotSuffix)].Data[100] ^= 1

	one := d.Clone()
	led.snapshot = older
	if j, err = led.check(one); err != nil {
		t.Fatal(err)
	}
	if err := led.save(j, led.tail()); err != nil {
		t.Fatal(err)
	}
	if one.Files[indexName(newest, snapshotSuffix)] != nil {
		t.Error("the spoiled snapshot was kept, in place of one that checks")
	}

	two := d.Clone()
	two.Files[indexName(older, snapshotSuffix)].Data[0] ^= 1
	before := two.Clone()
	_, err = contents(two)
	if err := refusal(err, indexName(newest, snapshotSuffix), before, two); err != nil {
		t.Fatal(err)
	}
}

// A snapshot that rots while the journal is open fails before io.EOF.
func TestSnapshotRots(t *testing.T) {
	d, _ := smallJournal(t, true)
	j, err := open(t.Context(), d, "", crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	d.Files[indexName(5, snapshotSuffix)].Data[60] ^= 1
	_, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var damage *journal.DamageError
	if _, err := io.ReadAll(r); !errors.As(err, &damage) {
		t.Errorf("read: %v", err)
	}
}

// An entry that rots while the journal is open is found by Read.
func TestEntryRots(t *testing.T) {
	d, _ := smallJournal(t, true)
	j, err := open(t.Context(), d, "", crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	d.Files[j.segments[2].name].Data[segmentHeaderSize+frameHeaderSize+5] ^= 1
	var damage *journal.DamageError
	err = j.Read(t.Context(), 1, func(journal.Entry) error { return nil })
	if !errors.As(err, &damage) || damage.Index == 0 {
		t.Errorf("read: %v", err)
	}
}

// A directory of a newer version is refused as such, whichever file shows it, and is not
// changed.
func TestNewer(t *testing.T) {
	clean, _ := smallJournal(t, true)
	for name := range clean.Files {
		if name == spareName || name == reserveName {
			continue
		}
		d := clean.Clone()
		b := d.Files[name].Data
		order.PutUint32(b[8:], version+1)
		order.PutUint32(b[12:], checksum(b[:12]))
		clear(b[16:]) // the rest may be anything
		before := d.Clone()
		_, err := contents(d)
		if !errors.Is(err, journal.ErrNewer) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if !same(before, d) {
			t.Errorf("%s: the directory was changed", name)
		}
	}
}

// A journal that is not accepted stops the start before anything is changed.
func TestNotAccepted(t *testing.T) {
	d, want := smallJournal(t, true)
	before := d.Clone()
	stop, seen := errors.New("not this one"), 0
	opts := crashOptions
	opts.Accept = func(e journal.Entry) error {
		if string(e.Data) != want[seen] {
			t.Fatalf("entry %d is %.30q", e.Index, e.Data)
		}
		if seen++; seen == len(want) {
			return stop
		}
		return nil
	}
	if _, err := open(t.Context(), d, "", opts); !errors.Is(err, stop) {
		t.Errorf("open: %v", err)
	}
	if !same(before, d) {
		t.Error("the directory was changed")
	}
}

// Two histories of the same indexes and epoch: a frame of the one is refused in the
// other.
func TestSplicedFrame(t *testing.T) {
	d, led := simdisk.New(), new(ledger)
	if _, err := led.open(d); err != nil {
		t.Fatal(err)
	}
	var segment [2][]byte
	var last [2]int64
	for i, letter := range []string{"a", "b"} {
		d := d.Clone()
		j, err := open(t.Context(), d, "", crashOptions)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			last[i] = j.off
			if err := j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte(letter)}); err != nil {
				t.Fatal(err)
			}
		}
		segment[i] = d.Files[j.segments[0].name].Data
	}
	if last[0] != last[1] {
		t.Fatal("the histories do not fit each other")
	}
	copy(segment[0][last[0]:], segment[1][last[0]:])
	d.Files[indexName(1, logSuffix)].Data = segment[0]
	before := d.Clone()
	_, err := contents(d)
	if err := refusal(err, indexName(1, logSuffix), before, d); err != nil {
		t.Fatal(err)
	}
}

// A client's data cannot pass for a frame, although it is one, byte for byte.
func TestForgedFrame(t *testing.T) {
	d, led := simdisk.New(), new(ledger)
	j, err := led.open(d)
	if err != nil {
		t.Fatal(err)
	}
	forged := make([]byte, frameLength(4+100))
	encodeFrame(forged, j.epoch, [][]byte{bytes.Repeat([]byte("f"), 100)}, 12345, j.at)
	entry := append(make([]byte, 4), bytes.Repeat(forged, 5)...) // aligned to 8 in the file
	if err := j.Append(t.Context(), 2, [][]byte{entry}); err != nil {
		t.Fatal(err)
	}
	clear(d.Files[j.segments[0].name].Data[j.off-frameLength(4+len(entry)):][:64]) // the frame is torn
	if got, err := contents(d); err != nil || len(got) != 1 {
		t.Errorf("%d entries: %v", len(got), err)
	}
}
