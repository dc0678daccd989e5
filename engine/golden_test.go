package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/shard"
)

// The folders in testdata/journals/VERSION are journals as that version stored them.
// None is ever changed: what a release has written, every later one reads, to the same
// state. Each has
//
//	*.log, *.snap, identity, clean   the files of a file journal, without what is made anew
//	dump                             its entries: index, epoch, base64
//	states                           hashes of the state: index, SHA-256
const goldenFolder = "testdata/journals"

// goldens lists the stored journals.
func goldens(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(goldenFolder, "*", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no stored journals: %v", err)
	}
	return dirs
}

// dumpLine is an entry in a dump.
func dumpLine(e journal.Entry) string {
	return strings.TrimSuffix(fmt.Sprintf("%d %d %s", e.Index, e.Epoch, base64.StdEncoding.EncodeToString(e.Data)), " ") +
		"\n"
}

// golden is a stored journal that was read.
type golden struct {
	entries   []journal.Entry
	snapshots []interlock.Index
	states    map[interlock.Index]string // hashes, as they were recorded
}

func readGolden(t *testing.T, dir string) golden {
	t.Helper()
	g := golden{states: map[interlock.Index]string{}}
	report, err := filejournal.Verify(t.Context(), dir, nil)
	if err != nil || len(report.Spoiled) > 0 || !report.Clean {
		t.Fatalf("%+v, %v", report, err)
	}
	g.snapshots = report.Snapshots
	var dump strings.Builder
	err = filejournal.Dump(t.Context(), dir, 0, func(e journal.Entry) error {
		e.Data = bytes.Clone(e.Data)
		g.entries = append(g.entries, e)
		dump.WriteString(dumpLine(e))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := readText(t, dir, "dump"); dump.String() != want {
		t.Error("the entries are not those of the dump")
	}
	for line := range strings.Lines(readText(t, dir, "states")) {
		var at interlock.Index
		var hash string
		if _, err := fmt.Sscan(line, &at, &hash); err != nil {
			t.Fatalf("states: %q: %v", line, err)
		}
		g.states[at] = hash
	}
	for _, at := range append(slices.Clone(g.snapshots), report.Tail) {
		if g.states[at] == "" {
			t.Errorf("no state is recorded at index %d", at)
		}
	}
	return g
}

func readText(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// replay applies the entries after an index, and compares with what was recorded.
func (g *golden) replay(e *engine.Engine, after interlock.Index) error {
	var pieces shard.Joiner
	for _, x := range g.entries[after:] {
		entry, err := pieces.Join(x)
		if err == nil && entry != nil {
			err = e.Apply(entry)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", x.Index, err)
		}
		if want, got := g.states[x.Index], e.Hash(); want != "" && want != hex.EncodeToString(got[:]) {
			return fmt.Errorf("the state after entry %d has the hash %x, had %s", x.Index, got, want)
		}
	}
	return nil
}

// TestGoldenJournals replays what earlier versions stored: from the beginning, and from
// each snapshot.
func TestGoldenJournals(t *testing.T) {
	t.Parallel()
	if *storeJournals != "" {
		storeGolden(t, *storeJournals)
	}
	for _, dir := range goldens(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(dir), goldenFolder+"/"), func(t *testing.T) {
			g := readGolden(t, dir)
			whole := engine.New()
			if err := g.replay(whole, 0); err != nil {
				t.Error(err)
			}
			for i, at := range g.snapshots {
				if err := g.replayFrom(t, dir, at, g.snapshots[i+1:]); err != nil {
					t.Errorf("snapshot after entry %d: %v", at, err)
				}
			}
			// Fences remembered then still count: the next fence is above all of them.
			var out engine.Output
			before := highestFence(t, g.entries)
			whole.Step(&engine.Recover{Head: engine.Head{At: whole.Now()}, Epoch: 1 << 20}, &out)
			if len(out.Events) == 0 || out.Events[0].Kind != record.Opened || out.Events[0].Fence < before {
				t.Errorf("the next term begins with %+v, after fence %d", out.Events, before)
			}
		})
	}
}

// replayFrom opens a copy of the journal as a server does, with this snapshot as the
// newest.
func (g *golden) replayFrom(t *testing.T, dir string, at interlock.Index, newer []interlock.Index) error {
	own := t.TempDir()
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		return err
	}
	for _, at := range newer {
		if err := os.Remove(filepath.Join(own, fmt.Sprintf("%020d.snap", at))); err != nil {
			return err
		}
	}
	j, err := filejournal.Open(t.Context(), own, filejournal.Options{SegmentBytes: 4 << 10})
	if err != nil {
		return err
	}
	defer j.Close()
	found, r, err := j.Snapshot(t.Context())
	if err != nil || found != at {
		return fmt.Errorf("found that after entry %d, %w", found, err)
	}
	defer r.Close()
	var stored bytes.Buffer
	if _, err := stored.ReadFrom(r); err != nil {
		return err
	}
	e, err := engine.ReadSnapshot(bytes.NewReader(stored.Bytes()))
	if err != nil {
		return err
	}
	if got := e.Hash(); g.states[at] != hex.EncodeToString(got[:]) {
		return fmt.Errorf("it has the hash %x, had %s", got, g.states[at])
	}
	return g.replay(e, at)
}

func highestFence(t *testing.T, entries []journal.Entry) (highest interlock.Fence) {
	eachEvent(t, entries, func(ev *record.Event) { highest = max(highest, ev.Fence) })
	return highest
}

// eachEvent visits the events of entries, and checks that each entry is what its events
// are encoded to: the form of an entry leaves no choice.
func eachEvent(t *testing.T, entries []journal.Entry, visit func(*record.Event)) {
	t.Helper()
	var pieces shard.Joiner
	for _, x := range entries {
		entry, err := pieces.Join(x)
		if err != nil {
			t.Fatal(err)
		}
		if entry == nil {
			continue
		}
		var events []record.Event
		err = record.DecodeEntry(entry, func(ev *record.Event) error {
			events = append(events, *ev)
			visit(ev)
			return nil
		})
		if err != nil {
			t.Fatalf("entry %d: %v", x.Index, err)
		}
		if again := engine.EncodeEntry(events); !bytes.Equal(again, entry) {
			t.Errorf("entry %d is encoded again to\n%x, was\n%x", x.Index, again, entry)
		}
	}
}

// TestGoldenMeets: the stored journals cover every kind of event, every field and every reason.
// A change that adds one stores new journals: go test ./engine -run TestGoldenJournals
// -journals v9
func TestGoldenMeets(t *testing.T) {
	if missing := notMet(t, storedWords(t)); len(missing) > 0 {
		t.Errorf("no stored journal has %s", strings.Join(missing, ", "))
	}
}

// storedWords returns the part of the vocabulary that stored journals use.
func storedWords(t *testing.T) map[string]bool {
	t.Helper()
	met := map[string]bool{}
	for _, dir := range goldens(t) {
		g := readGolden(t, dir)
		meet(t, g.entries, met)
		files, err := filepath.Glob(filepath.Join(dir, "*.snap"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			meet(t, snapshotEntries(t, b[32:len(b)-16]), met) // docs/journal.md: between head and end
		}
	}
	return met
}
