package filejournal

import (
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
)

// reseal does what an attacker with the files does after changing one: all checksums are right
// again.
func reseal(d *simdisk.Disk) {
	names := slices.Sorted(maps.Keys(d.Files))
	var at position
	for _, name := range names {
		b := d.Files[name].Data
		if !strings.HasSuffix(name, logSuffix) {
			continue
		}
		order.PutUint32(b[12:], checksum(b[:12]))
		order.PutUint32(b[40:], at.chain)
		at.chain = checksum(b[:60])
		order.PutUint32(b[60:], at.chain)
		salt := order.Uint32(b[44:])
		for b = b[segmentHeaderSize:]; len(b) >= frameHeaderSize && order.Uint32(b) == frameMagic; {
			size := int64(order.Uint32(b[4:]))
			if frameLength(int(size)) > int64(len(b)) {
				break
			}
			order.PutUint32(b[28:], at.chain)
			order.PutUint32(b[32:], checksum(b[frameHeaderSize:frameHeaderSize+size]))
			order.PutUint32(b[36:], crc32.Update(salt, castagnoli, b[:36]))
			h, _ := decodeFrameHeader(b, salt)
			at = h.after()
			b = b[frameLength(int(size)):]
		}
	}
	for name, f := range d.Files {
		b := f.Data
		switch {
		case name == cleanName:
			order.PutUint32(b[12:], checksum(b[:12]))
			order.PutUint64(b[16:], uint64(at.index))
			order.PutUint32(b[24:], at.chain)
			order.PutUint32(b[28:], checksum(b[:28]))
		case strings.HasSuffix(name, snapshotSuffix):
			order.PutUint32(b[12:], checksum(b[:12]))
			end := len(b) - snapshotTrailerSize
			order.PutUint32(b[end+8:], checksum(b[:end+8]))
		}
	}
}

// listed returns the entries on a disk, as verify reads them.
func listed(t *testing.T, d *simdisk.Disk) (list []journal.Entry, err error) {
	t.Helper()
	_, err = inspect(t.Context(), d, "", true, func(h frameHeader, body []byte) error {
		return h.each(body, func(e journal.Entry) error {
			e.Data = slices.Clone(e.Data)
			list = append(list, e)
			return nil
		})
	})
	return list, err
}

func sameEntry(a, b journal.Entry) bool {
	return a.Index == b.Index && a.Epoch == b.Epoch && string(a.Data) == string(b.Data)
}

// proved checks the entries against a head that was published.
func proved(list []journal.Entry, head chain.Head) error {
	v := chain.NewVerifier(chain.Record{}, []chain.Head{head})
	for _, e := range list {
		v.Add(e)
	}
	_, err := v.End()
	return err
}

// A change of a byte of any file, with all checksums made right again, has changed no entry, or
// leaves a journal that no server starts with, or is found by the head.
func TestForgeEveryByte(t *testing.T) {
	pristine, _ := smallJournal(t, true)
	reseal(pristine)
	want, err := listed(t, pristine.Clone())
	if err != nil {
		t.Fatal(err)
	}
	c := chain.From(chain.Start(0))
	for _, e := range want {
		c.Add(e)
	}
	if err := proved(want, c.Last().Head()); err != nil {
		t.Fatal("as it was:", err)
	}
	d, refused, found, same := pristine.Clone(), 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(pristine.Files)) {
		for off, was := range pristine.Files[name].Data {
			for _, mask := range []byte{0xff, 1} {
				d.Files[name].Data[off] = was ^ mask
				reseal(d)
				got, err := listed(t, d)
				switch {
				case err != nil:
					refused++
				case slices.EqualFunc(got, want, sameEntry):
					same++
				default:
					err := proved(got, c.Last().Head())
					if _, tampered := errors.AsType[*chain.TamperError](err); !tampered {
						t.Fatalf(
							"%s, byte %d changed by %#x: %d entries in place of %d, and the head says %v", name, off, mask, len(got),
							len(want), err,
						)
					}
					found++
				}
				for name, f := range pristine.Files {
					copy(d.Files[name].Data, f.Data)
				}
			}
		}
	}
	t.Logf("%d found by the head, %d refused for other reasons, %d changed no entry", found, refused, same)
	if found < 15_000 {
		t.Errorf("only %d forgeries had to be found by the head", found)
	}
}

// The same for more than a byte: entries that are gone, doubled, exchanged or put into another
// frame, in files that are right in themselves.
func TestForgeEntries(t *testing.T) {
	led, d := new(ledger), simdisk.New()
	j, err := led.open(d)
	for range 6 {
		err = errors.Join(err, led.append(j, 2, 40))
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := listed(t, d.Clone())
	if err != nil {
		t.Fatal(err)
	}
	c := chain.From(chain.Start(0))
	for _, e := range want {
		c.Add(e)
	}
	rewrite := func(list []journal.Entry, group int) []journal.Entry {
		t.Helper()
		d := simdisk.New()
		j, err := new(ledger).open(d)
		for at := interlock.Index(2); len(list) > 0 && err == nil; at = j.Tail() + 1 {
			n := min(group, len(list))
			data := make([][]byte, n)
			for i := range data {
				data[i] = list[i].Data
			}
			err = j.Append(t.Context(), at, data)
			list = list[n:]
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := listed(t, d)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	list := want[1:] // without the epoch record, which each Open writes
	for group := 1; group < len(list); group++ {
		if err := proved(rewrite(list, group), c.Last().Head()); err != nil {
			t.Errorf("the same entries, %d in an append: %v", group, err)
		}
	}
	for i := range list {
		for name, forged := range map[string][]journal.Entry{
			"gone":    slices.Delete(slices.Clone(list), i, i+1),
			"doubled": slices.Insert(slices.Clone(list), i, list[i]),
			"cut off": list[:i],
			"moved":   append(slices.Delete(slices.Clone(list), i, i+1), list[i]),
		} {
			if i == len(list)-1 && (name == "moved" || name == "doubled") {
				continue // up to the head all is as it was
			}
			err := proved(rewrite(forged, 2), c.Last().Head())
			if _, tampered := errors.AsType[*chain.TamperError](err); !tampered {
				t.Errorf("entry %d %s: %v", list[i].Index, name, err)
			}
		}
	}
}
