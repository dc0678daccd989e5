package filejournal

import (
	"bytes"
	"os"
	"testing"
)

// TestZero: just the range becomes zeros, wherever it begins and ends in its pages, and
// what is written next, through memory, is there too.
func TestZero(t *testing.T) {
	d, err := openDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Open("file", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const pages = 300 // more than are written at once
	for _, c := range []struct{ off, size int64 }{
		{0, 0},
		{0, pages * pageSize},
		{0, 64},
		{100, 200},
		{100, pageSize},
		{100, 2*pageSize - 100},
		{pageSize, 3 * pageSize},
		{pageSize - 1, 3*pageSize + 2},
		{pages*pageSize - 8, 8},
		{8, pages*pageSize - 16},
	} {
		want := bytes.Repeat([]byte{0xa5}, pages*pageSize)
		if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Zero(c.off, c.size); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		clear(want[c.off : c.off+c.size])
		mark := []byte("a frame")
		at := c.off + c.size/2
		if c.size >= int64(2*len(mark)) {
			if _, err := f.WriteAt(mark, at); err != nil {
				t.Fatal(err)
			}
			copy(want[at:], mark)
		}
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%+v: other bytes than the range are zeros now, or not all of it", c)
		}
	}
}
