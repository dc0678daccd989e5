package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// TestSnapshotCut: a snapshot without its end is refused, wherever it was cut, also between two
// of its entries.
func TestSnapshotCut(t *testing.T) {
	t.Parallel()
	_, snapshot := realJournal(t)
	for n := range snapshot {
		if _, err := engine.ReadSnapshot(bytes.NewReader(snapshot[:n])); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a whole snapshot", n, len(snapshot))
		}
	}
	if _, err := engine.ReadSnapshot(bytes.NewReader(snapshot)); err != nil {
		t.Errorf("the whole snapshot: %v", err)
	}
}

// TestEntryCut: the same for an entry.
func TestEntryCut(t *testing.T) {
	entries, _ := realJournal(t)
	for i, entry := range entries {
		events := func(data []byte) (n int, err error) {
			err = record.DecodeEntry(data, func(*record.Event) error { n++; return nil })
			return n, err
		}
		whole, err := events(entry)
		if err != nil || whole == 0 {
			t.Fatalf("entry %d: %d events, %v", i, whole, err)
		}
		for n := range entry {
			if got, err := events(entry[:n]); err == nil && got >= whole {
				t.Errorf("entry %d: %d of its %d bytes have all its events", i, n, len(entry))
			}
		}
	}
}

// TestNewerFormat: an entry that a newer version wrote is refused with a reason,
// and not taken for something else.
func TestNewerFormat(t *testing.T) {
	entries, _ := realJournal(t)
	entry := bytes.Clone(entries[len(entries)-1])
	entry[0]++
	if err := engine.New().Apply(entry); err == nil {
		t.Error("an entry with a higher format number was applied")
	}
}

// TestSnapshotLength: a length that nothing follows costs no memory.
func TestSnapshotLength(t *testing.T) {
	huge := binary.LittleEndian.AppendUint32(nil, 1<<32-1)
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := engine.ReadSnapshot(bytes.NewReader(huge)); err == nil {
			t.Error("four bytes are no snapshot")
		}
	})
	if allocated > 1000 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestVisitEnds: DecodeEntry stops when its visitor does not want any more.
func TestVisitEnds(t *testing.T) {
	s := newStand()
	s.step(&engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: interlock.SessionID(s.id()), Agent: "agent"})
	stop := errors.New("enough")
	if err := record.DecodeEntry(s.out.Entry, func(*record.Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("want the visitor's error, got %v", err)
	}
}
