package shard

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// An entry that is cut and joined again is the same, wherever in a buffer it stands, and each
// part fits into an append.
func TestPieces(t *testing.T) {
	const most = journal.MaxAppendBytes
	for _, c := range []struct{ start, size, pieces int }{
		{0, 1, 1},
		{0, most, 1},
		{77, most, 1},
		{0, most + 1, 2},
		{77, 2 * (most - pieceHead), 2},
		{0, 2*(most-pieceHead) + 1, 3},
		{5, maxEntry, 7},
	} {
		whole := make([]byte, c.size)
		rand.NewChaCha8([32]byte{1}).Read(whole)
		whole[0] = 1
		before := bytes.Repeat([]byte{9}, c.start)
		b, ends := cutPieces(append(bytes.Clone(before), whole...), c.start, []int{c.start})
		if len(ends) != 1+c.pieces || ends[c.pieces] != len(b) {
			t.Fatalf("%d bytes became pieces up to %v of %d", c.size, ends, len(b))
		}
		if !bytes.Equal(b[:c.start], before) {
			t.Errorf("%d bytes: what stood before them has changed", c.size)
		}
		var j Joiner
		for i, end := range ends[1:] {
			part := b[ends[i]:end]
			if len(part) > most {
				t.Errorf("%d bytes: piece %d has %d, more than an append takes", c.size, i, len(part))
			}
			got, err := j.Join(journal.Entry{Index: interlock.Index(i + 1), Data: part})
			if last := i == c.pieces-1; err != nil || (got != nil) != last {
				t.Fatalf("%d bytes: piece %d gave %d bytes, %v", c.size, i, len(got), err)
			} else if last && !bytes.Equal(got, whole) {
				t.Errorf("%d bytes came back as %d others", c.size, len(got))
			}
		}
	}
}

// Pieces without their last one are nothing, and what follows them counts.
func TestUnfinishedPieces(t *testing.T) {
	piece := func(before, after byte, text string) string {
		return string([]byte{pieceMark, before, after}) + text
	}
	for _, c := range []struct {
		name    string
		midway  bool
		entries []string
		want    []string // of each entry; the last may be "error"
	}{
		{"an entry follows", false, []string{piece(0, 2, "a"), piece(1, 1, "b"), "\x01x"}, []string{"", "", "\x01x"}},
		{"an epoch begins", false, []string{piece(0, 1, "a"), "", piece(1, 0, "b")}, []string{"", "", "error"}},
		{"others begin", false, []string{piece(0, 2, "a"), piece(0, 1, "b"), piece(1, 0, "c")}, []string{"", "", "bc"}},
		{
			"others of the same length begin", false,
			[]string{piece(0, 1, "a"), piece(0, 1, "b"), piece(1, 0, "c")},
			[]string{"", "", "bc"},
		},
		{"one is left out", false, []string{piece(0, 2, "a"), piece(2, 0, "c")}, []string{"", "error"}},
		{"of another length", false, []string{piece(0, 2, "a"), piece(1, 0, "c")}, []string{"", "error"}},
		{"the first is not there", false, []string{piece(1, 0, "b")}, []string{"error"}},
		{
			"the reader begins behind it", true,
			[]string{piece(1, 1, "b"), piece(2, 0, "c"), piece(0, 1, "d"), piece(1, 0, "e")},
			[]string{"", "", "", "de"},
		},
		{"but not later", true, []string{"\x01x", piece(1, 0, "b")}, []string{"\x01x", "error"}},
		{"one alone", false, []string{piece(0, 0, "a")}, []string{"error"}},
		{"without a part", false, []string{piece(0, 1, "")}, []string{"error"}},
		{"cut short", false, []string{"\xff\x00"}, []string{"error"}},
	} {
		j := Joiner{Midway: c.midway}
		for i, e := range c.entries {
			got, err := j.Join(journal.Entry{Index: interlock.Index(i + 1), Data: []byte(e)})
			switch want := c.want[i]; {
			case want == "error":
				if !errors.Is(err, errPiece) || got != nil {
					t.Errorf("%s: entry %d gave %q, %v; want an error", c.name, i, got, err)
				}
			case err != nil || string(got) != want || (got == nil) != (want == ""):
				t.Errorf("%s: entry %d gave %q, %v; want %q", c.name, i, got, err, want)
			}
		}
	}
}

// A program that does not know pieces must take them for entries of a newer one.
func TestPieceIsNoEntry(t *testing.T) {
	b, ends := cutPieces(make([]byte, journal.MaxAppendBytes+1), 0, nil)
	err := record.DecodeEntry(b[:ends[0]], func(*record.Event) error { return nil })
	if !errors.Is(err, record.ErrNewer) {
		t.Errorf("the engine takes a piece for an entry: %v", err)
	}
}

// A group takes as few appends as its entries' sizes allow, none of them too large,
// and a step counts when its last piece is written.
func TestAppendsOfAGroup(t *testing.T) {
	g := new(group)
	g.begin(1, 11)
	step := func(size int) {
		before := len(g.out.Entry)
		g.out.Entry = append(g.out.Entry, make([]byte, size)...)
		g.mark(&engine.Tick{}, before)
	}
	step(100)
	step(0)
	step(2_500_000) // three pieces
	step(0)
	step(journal.MaxAppendBytes)
	var indexes []interlock.Index
	for i := range g.marks {
		indexes = append(indexes, g.index(i))
	}
	if want := []interlock.Index{11, 11, 14, 14, 15}; !slices.Equal(indexes, want) {
		t.Errorf("the steps have the indexes %d, want %d", indexes, want)
	}
	var appends, whole []int
	for g.written < len(g.ends) {
		entries := g.cut()
		total := 0
		for _, e := range entries {
			total += len(e)
		}
		if total > journal.MaxAppendBytes {
			t.Errorf("an append of %d bytes", total)
		}
		g.wrote(len(entries))
		appends, whole = append(appends, len(entries)), append(whole, g.whole)
	}
	if want := []int{2, 1, 1, 1}; !slices.Equal(appends, want) {
		t.Errorf("appends of %d entries, want %d", appends, want)
	}
	if want := []int{2, 2, 4, 5}; !slices.Equal(whole, want) {
		t.Errorf("steps durable after each: %d, want %d", whole, want)
	}
}
