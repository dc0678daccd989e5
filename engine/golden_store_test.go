package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

var storeJournals = flag.String(
	"journals", "", "store journals of every kind of event in this new folder of testdata/journals",
)

// meet notes what of an event's vocabulary stands in entries.
func meet(t *testing.T, entries []journal.Entry, met map[string]bool) {
	t.Helper()
	for _, e := range entries {
		if len(e.Data) > 0 && e.Data[0] == 0xFF {
			met["an entry in pieces"] = true
		}
	}
	eachEvent(t, entries, func(ev *record.Event) {
		met["event "+ev.Kind.String()] = true
		if ev.Reason != 0 {
			met["reason "+ev.Reason.String()] = true
		}
		for _, why := range reasons(t, ev) {
			if _, words := why.Verbatim(); !words {
				met[fmt.Sprint("message ", why.ID)] = true
			}
		}
		for bit := range 64 {
			if engine.Fields(ev)>>bit&1 != 0 {
				met[fmt.Sprint("field ", bit)] = true
			}
		}
	})
}

// reasons returns the messages about a task or a namespace in an event.
func reasons(t *testing.T, ev *record.Event) []*message.Text {
	t.Helper()
	list := []*message.Text{ev.Why()}
	switch ev.Kind {
	case record.ApprovalDecided:
		_, _, why, err := ev.Verdict()
		must(t, err)
		list = append(list, why)
	case record.TaskSubmitted: // of a snapshot
		task, err := record.DecodeTask(ev)
		must(t, err)
		if task.Approval != nil {
			list = append(list, task.Approval.Why())
		}
	}
	return list
}

// vocabulary is all that events can say, read from the source.
func vocabulary(t *testing.T) (all []string) {
	t.Helper()
	all = append(all, "an entry in pieces")
	inspect := func(n ast.Node) bool {
		value, ok := n.(*ast.ValueSpec)
		if !ok || len(value.Values) != 1 {
			return true
		}
		typ, _ := value.Type.(*ast.Ident)
		lit, _ := value.Values[0].(*ast.BasicLit)
		switch {
		case typ == nil || lit == nil:
		case typ.Name == "Kind":
			name := record.Kind(atoi(lit.Value)).String()
			if name == "" {
				name = value.Names[0].Name
			}
			all = append(all, "event "+name)
		case typ.Name == "Reason":
			all = append(all, "reason "+record.Reason(atoi(lit.Value)).String())
		}
		return true
	}
	for _, file := range []string{"record/kind.go", "record/reason.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, inspect)
	}
	for bit := range 64 {
		if engine.KnownFields>>bit&1 != 0 {
			all = append(all, fmt.Sprint("field ", bit))
		}
	}
	for id := message.TaskPastDeadline; id <= message.NamespaceContents; id++ {
		all = append(all, fmt.Sprint("message ", id))
	}
	if len(all) < 100 {
		t.Fatalf("found only %d words in the source", len(all))
	}
	return all
}

func notMet(t *testing.T, met map[string]bool) []string {
	t.Helper()
	return slices.DeleteFunc(vocabulary(t), func(word string) bool { return met[word] })
}

// snapshotEntries cuts a snapshot into its entries.
func snapshotEntries(t *testing.T, b []byte) (entries []journal.Entry) {
	t.Helper()
	for len(b) > 0 {
		n := 4 + binary.LittleEndian.Uint32(b)
		entries = append(entries, journal.Entry{Data: b[4:n]})
		b = b[n:]
	}
	return entries
}

// life is the entries of one engine, and where a snapshot is taken.
type life struct {
	name  string
	steps [][]byte
	at    []int // after so many steps; two
}

// states returns the snapshots of a life after each step.
func (x *life) states(t *testing.T) (snapshots [][]byte) {
	t.Helper()
	e := engine.New()
	for _, step := range x.steps {
		if err := e.Apply(step); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := e.WriteSnapshot(&b); err != nil {
			t.Fatal(err)
		}
		snapshots = append(snapshots, b.Bytes())
	}
	return snapshots
}

// gain is how many new words a life brings, with snapshots where they bring most.
func (x *life) gain(t *testing.T, met map[string]bool) (after map[string]bool) {
	t.Helper()
	after = maps.Clone(met)
	entries := make([]journal.Entry, len(x.steps))
	for i, step := range x.steps {
		entries[i].Data = step
	}
	meet(t, entries, after)
	snapshots := x.states(t)
	x.at = []int{len(snapshots) / 3, 2 * len(snapshots) / 3}
	for half, from, to := 0, 1, len(snapshots)/2; half < 2; half, from, to = half+1, to, len(snapshots) {
		best := after
		for i := from; i < to; i++ {
			with := maps.Clone(after)
			if meet(t, snapshotEntries(t, snapshots[i-1]), with); len(with) > len(best) {
				best, x.at[half] = with, i
			}
		}
		after = best
	}
	return after
}

// storeGolden stores journals of this version in a new folder: of the lives
// that scripts and random runs lead, those that have every word that events know and no
// stored journal has, with as few bytes as it finds.
func storeGolden(t *testing.T, folder string) {
	t.Helper()
	met := storedWords(t)
	dir := filepath.Join(goldenFolder, folder)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("stored journals are not stored again: %v", err)
	}
	met["an entry in pieces"] = true
	lives := candidates(t)
	for len(notMet(t, met)) > 0 {
		var best *life
		most, with := 0, met
		for _, x := range lives {
			if after := x.gain(t, met); x.worth(len(after)-len(met)) > most {
				best, most, with = x, x.worth(len(after)-len(met)), after
			}
		}
		if best == nil {
			t.Fatalf("no life has %s", strings.Join(notMet(t, met), ", "))
		}
		met = with
		best.store(t, filepath.Join(dir, best.name))
	}
}

// worth is how many words a life brings by its size.
func (x *life) worth(words int) int {
	size := 9000
	for _, step := range x.steps {
		size += len(step)
	}
	return words * 1_000_000 / size
}

func candidates(t *testing.T) (lives []*life) {
	t.Helper()
	for seed := range uint64(30) {
		g, err := run(program(seed, 150))
		if err != nil {
			t.Fatal(err)
		}
		lives = append(lives, &life{name: fmt.Sprint("random-", seed), steps: g.journal})
	}
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt")
		lives = append(lives, &life{name: strings.ReplaceAll(name, "/", "-"), steps: runScript(t, file).journal})
	}
	lives = append(
		lives, &life{name: "traced", steps: traced(t)}, &life{name: "forgotten", steps: forgotten(t)},
		&life{name: "moved", steps: moved(t)},
	)
	// Each is to begin with a term, to have two snapshots, and something before and after them.
	return slices.DeleteFunc(lives, func(x *life) bool { return len(x.steps) < 6 || !opensTerm(t, x.steps[0]) })
}

// traced runs requests that carry a trace, which no script does.
func traced(t *testing.T) [][]byte {
	t.Helper()
	g := newRig()
	must(t, g.start())
	for i := range 4 {
		head := engine.Head{Namespace: "one"}
		must(t, g.step(&engine.Acquire{
			Head: head, ID: g.id(), Agent: "agent", LeaseRequest: interlock.LeaseRequest{
				Claims: []interlock.Claim{{Key: interlock.Key(fmt.Sprint("traced/", i)), Mode: interlock.Exclusive}},
				Terms:  interlock.Terms{TTL: time.Minute}, Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			},
		}))
	}
	must(t, g.restart(0))
	return g.journal
}

// forgotten is a life in which a namespace is forgotten for another one.
func forgotten(t *testing.T) [][]byte {
	t.Helper()
	l := newLoad(t)
	l.e.HoldAtMost(1)
	for _, ns := range []interlock.Namespace{"one", "two", "three"} {
		l.take(ns, "", time.Minute)
		l.later(time.Minute)
		l.later(interlock.NamespaceIdle)
	}
	l.take("one", "", time.Minute)
	return l.log
}

// pieceBytes is where a stored entry is cut, so that there are pieces in a small journal.
const pieceBytes = 300

// store writes a life as a server would have, with several steps in an append, and a
// start wherever it has one.
func (x *life) store(t *testing.T, dir string) {
	t.Helper()
	disk, salts := simdisk.New(), uint32(0)
	salt := func() uint32 { salts += 0x9e3779b9; return salts }
	var j *filejournal.Journal
	var dump, states strings.Builder
	var group [][]byte
	flush := func() {
		if len(group) > 0 {
			must(t, j.Append(context.Background(), j.Tail()+1, group))
			group = nil
		}
	}
	snapshots, e := x.states(t), engine.New()
	for i, step := range x.steps {
		if opensTerm(t, step) {
			if j != nil {
				flush()
				must(t, j.Close())
			}
			var err error
			j, err = filejournal.OpenOn(
				t.Context(), disk, filejournal.Options{SegmentBytes: 4 << 10, ReserveBytes: 4 << 10}, salt,
			)
			must(t, err)
		}
		must(t, e.Apply(step))
		group = append(group, cutStep(step)...)
		saved := slices.Contains(x.at, i+1)
		if saved || i%3 == 0 || i+1 == len(x.steps) {
			flush()
		}
		if saved {
			must(t, j.SaveSnapshot(t.Context(), j.Tail(), func(w io.Writer) error {
				_, err := w.Write(snapshots[i])
				return err
			}))
		}
		if hash := e.Hash(); saved || i+1 == len(x.steps) {
			fmt.Fprintf(&states, "%d %s\n", j.Tail(), hex.EncodeToString(hash[:]))
		}
	}
	must(t, j.Read(t.Context(), 1, func(e journal.Entry) error { dump.WriteString(dumpLine(e)); return nil }))
	must(t, j.Close())
	files := map[string][]byte{"dump": []byte(dump.String()), "states": []byte(states.String())}
	for name, n := range disk.Files {
		if name != "spare" && name != "reserve" { // these are made anew
			files[name] = n.Data
		}
	}
	must(t, os.Mkdir(dir, 0o755))
	for name, b := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opensTerm reports whether a step begins an owner's term.
func opensTerm(t *testing.T, step []byte) bool {
	t.Helper()
	first := record.Kind(0)
	stop := errors.New("enough")
	err := record.DecodeEntry(step, func(ev *record.Event) error { first = ev.Kind; return stop })
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return first == record.Opened
}

// cutStep cuts a large step into pieces as the shard cuts larger ones.
func cutStep(step []byte) (entries [][]byte) {
	if len(step) <= pieceBytes {
		return [][]byte{step}
	}
	parts := slices.Collect(slices.Chunk(step, pieceBytes))
	for i, part := range parts {
		entries = append(entries, append([]byte{0xFF, byte(i), byte(len(parts) - 1 - i)}, part...))
	}
	return entries
}
