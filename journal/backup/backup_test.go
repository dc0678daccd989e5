package backup

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

var testHeader = Header{Shard: 3, Epoch: 9, Index: 44, Snapshot: 41, Time: time.Unix(1_764_000_000, 17).UTC()}

// testEntries follow the snapshot of testHeader. One opens an epoch.
func testEntries(large int) []journal.Entry {
	return []journal.Entry{
		{Index: 42, Epoch: 8, Data: []byte("forty-two")},
		{Index: 43, Epoch: 9, Data: []byte{}},
		{Index: 44, Epoch: 9, Data: bytes.Repeat([]byte("x"), large)},
	}
}

func made(t testing.TB, h Header, snapshot []byte, entries ...journal.Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, h)
	if _, err := w.Write(snapshot); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Entry(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Length() != int64(out.Len()) {
		t.Errorf("length %d, and %d bytes", w.Length(), out.Len())
	}
	return out.Bytes()
}

// What was written is read again: with parts that fill several chunks, and without a snapshot or
// without entries.
func TestRoundTrip(t *testing.T) {
	whole, fresh, still := testHeader, testHeader, testHeader
	fresh.Snapshot, fresh.Index = 0, 3
	still.Index = 41
	first := testEntries(5)
	for i := range first {
		first[i].Index = interlock.Index(i + 1)
	}
	for name, x := range map[string]struct {
		header   Header
		snapshot int
		entries  []journal.Entry
	}{
		"small":            {whole, 10, testEntries(5)},
		"several chunks":   {whole, 3*chunkSize + 1, testEntries(journal.MaxAppendBytes)},
		"whole chunks":     {whole, 2 * chunkSize, testEntries(chunkSize - 3*entryHead - 9)},
		"without snapshot": {fresh, 0, first},
		"without entries":  {still, 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := bytes.Repeat([]byte("s"), x.snapshot)
			b := made(t, x.header, snapshot, x.entries...)
			path := filepath.Join(t.TempDir(), "b")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Header != x.header || f.Length != int64(len(b)) {
				t.Errorf("%+v, %d bytes", f.Header, f.Length)
			}
			at, r, err := f.Snapshot(t.Context())
			if err != nil || at != x.header.Snapshot {
				t.Fatal(at, err)
			}
			if r != nil {
				defer r.Close()
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, snapshot) {
					t.Errorf("snapshot of %d bytes, %v", len(got), err)
				}
			}
			var got []journal.Entry
			err = f.Read(t.Context(), at+1, func(e journal.Entry) error {
				e.Data = slices.Clone(e.Data)
				got = append(got, e)
				return nil
			})
			equal := slices.EqualFunc(got, x.entries, func(a, b journal.Entry) bool {
				return a.Index == b.Index && a.Epoch == b.Epoch && bytes.Equal(a.Data, b.Data)
			})
			if err != nil || !equal {
				t.Errorf("%d entries, %v", len(got), err)
			}
		})
	}
}

// A file that ends anywhere but at its end, that has a flipped bit anywhere, or with anything
// behind its end, is refused as damaged.
func TestDamage(t *testing.T) {
	b := made(t, testHeader, bytes.Repeat([]byte("s"), 50), testEntries(60)...)
	refused := func(what string, at int, damaged []byte) {
		t.Helper()
		_, _, err := Check(t.Context(), bytes.NewReader(damaged), "b")
		var damage *journal.DamageError
		if !errors.As(err, &damage) {
			t.Errorf("%s at byte %d: %v", what, at, err)
		}
	}
	for n := range b {
		refused("cut off", n, b[:n])
		for bit := range 8 {
			flipped := bytes.Clone(b)
			flipped[n] ^= 1 << bit
			refused("flipped", n, flipped)
		}
	}
	refused("longer", len(b), append(bytes.Clone(b), 0))
	refused("twice", len(b), append(bytes.Clone(b), b...))
}

// Chunks that check, and do not belong together, are refused by the hash of all.
func TestForeignChunk(t *testing.T) {
	one := made(t, testHeader, bytes.Repeat([]byte("s"), 50), testEntries(60)...)
	two := made(t, testHeader, bytes.Repeat([]byte("t"), 50), testEntries(60)...)
	mixed := bytes.Clone(one)
	copy(mixed[headerSize:], two[headerSize:headerSize+chunkHead+50])
	_, _, err := Check(t.Context(), bytes.NewReader(mixed), "b")
	var damage *journal.DamageError
	if !errors.As(err, &damage) || damage.Reason != "the hash of the backup is wrong" {
		t.Error(err)
	}
}

// A newer format is distinguished from damage.
func TestNewer(t *testing.T) {
	b := made(t, testHeader, nil, testEntries(1)...)
	order.PutUint32(b[8:], version+1)

	order.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
	if _, _, err := Check(t.Context(), bytes.NewReader(b[:16]), "b"); !errors.Is(err, journal.ErrNewer) {
		t.Error(err)
	}
}

// Errors of the reader and the writer below, and of the context, are theirs and no damage.
func TestOthersErrors(t *testing.T) {
	b := made(t, testHeader, []byte("s"), testEntries(1)...)
	broken := errors.New("broken")
	for n := range b {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken))
		if _, _, err := Check(t.Context(), r, "b"); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Check(ended, bytes.NewReader(b), "b"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w := NewWriter(brokenWriter{broken}, testHeader)
	if err := w.Entry(testEntries(1)[0]); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// The writer refuses what no reader would accept.
func TestMisuse(t *testing.T) {
	entries := testEntries(1)
	w := NewWriter(io.Discard, testHeader)
	for _, err := range []error{w.Entry(entries[1]), w.Close()} {
		if !errors.Is(err, journal.ErrMisuse) {
			t.Error(err)
		}
	}
	for _, e := range entries {
		if err := w.Entry(e); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Write([]byte("s"))
	for _, err := range []error{err, w.Entry(journal.Entry{Index: 45, Epoch: 9})} {
		if !errors.Is(err, journal.ErrMisuse) {
			t.Error(err)
		}
	}
}

// No bytes make a reader panic, or return without an error what Check did not check.
func FuzzCheck(f *testing.F) {
	f.Add(made(f, testHeader, []byte("state"), testEntries(3)...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, length, err := Check(t.Context(), bytes.NewReader(b), "b")
		if err == nil && (length != int64(len(b)) || h.Index < h.Snapshot) {
			t.Errorf("%+v of %d bytes, and there are %d", h, length, len(b))
		}
	})
}
