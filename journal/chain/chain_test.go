package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// entries makes a journal of two epochs.
func entries(n int) (list []journal.Entry) {
	for i := range n {
		e := journal.Entry{
			Index: interlock.Index(i + 1), Epoch: 1 + interlock.Epoch(i/20), Data: fmt.Appendf(nil, "entry %d", i),
		}
		if i%20 == 0 {
			e.Data = nil
		}
		list = append(list, e)
	}
	return list
}

// linksAt returns the links after each entry, and at 0 the start.
func linksAt(list []journal.Entry) []Link {
	c := From(Start(0))
	links := []Link{c.Last()}
	for _, e := range list {
		c.Add(e)
		links = append(links, c.Last())
	}
	return links
}

// headsAt returns the heads after each entry, and at 0 the start.
func headsAt(list []journal.Entry) (heads []Head) {
	for _, l := range linksAt(list) {
		heads = append(heads, l.Head())
	}
	return heads
}

// renumber sets the indexes of entries to those of their places.
func renumber(list []journal.Entry) []journal.Entry {
	for i := range list {
		list[i].Index = interlock.Index(i + 1)
	}
	return list
}

func verify(list []journal.Entry, r Record, heads ...Head) (Proof, error) {
	v := NewVerifier(r, heads)
	for _, e := range list {
		v.Add(e)
	}
	return v.End()
}

// The definition, written once more.
func TestDefinition(t *testing.T) {
	list := entries(50)
	links := linksAt(list)
	start := sha256.Sum256(append([]byte("interlock journal chain 1\n"), make([]byte, 8)...))
	hash := start[:]
	for i, e := range list {
		b := binary.LittleEndian.AppendUint64(slices.Clone(hash), uint64(e.Index))
		b = append(binary.LittleEndian.AppendUint64(b, uint64(e.Epoch)), e.Data...)
		sum := sha256.Sum256(b)
		if hash = sum[:]; links[i+1] != (Link{e.Index, sum}) {
			t.Fatalf("link %v, want hash %x", links[i+1], sum)
		}
		if outer := sha256.Sum256(append(
			[]byte("interlock journal head 1\n"), hash...,
		)); links[i+1].Head() != (Head{e.Index, outer}) {
			t.Fatalf("head %s, want hash %x", links[i+1].Head(), outer)
		}
	}
	const want = "50:087b4cfc44277c436cfc5c6f0398fccc0cb09361affebfc9e832c37ba9888879"
	if got := links[50].Head().String(); got != want {
		t.Errorf("head %s, and it was %s: published heads would not be confirmed any more", got, want)
	}
}

func TestParse(t *testing.T) {
	head := headsAt(entries(7))[7]
	if got, err := Parse(head.String()); err != nil || got != head {
		t.Errorf("%s: %s, %v", head, got, err)
	}
	for _, text := range []string{
		"", "7", "7:", head.String()[1:], head.String() + "0", "x" + head.String(),
		"7:" + string(bytes.Repeat([]byte("g"), 64)),
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Each change of entries is found by one head behind it, and with the heads of all indexes it
// is known to the entry where it begins.
func TestTampering(t *testing.T) {
	const n = 45
	type forgery struct {
		name  string
		first interlock.Index // that differs
		list  []journal.Entry
	}
	var forged []forgery
	add := func(first int, name string, change func([]journal.Entry) []journal.Entry) {
		list := entries(n)
		for i := range list {
			list[i].Data = slices.Clone(list[i].Data)
		}
		forged = append(forged, forgery{fmt.Sprintf("%s %d", name, first), interlock.Index(first), renumber(change(list))})
	}
	for i := range n {
		for at := range entries(n)[i].Data {
			add(i+1, fmt.Sprintf("byte %d of", at), func(l []journal.Entry) []journal.Entry { l[i].Data[at] ^= 1; return l })
		}
		add(i+1, "a byte more in", func(l []journal.Entry) []journal.Entry { l[i].Data = append(l[i].Data, 'x'); return l })
		add(i+1, "the epoch of", func(l []journal.Entry) []journal.Entry { l[i].Epoch++; return l })
		add(i+1, "without", func(l []journal.Entry) []journal.Entry { return slices.Delete(l, i, i+1) })
		add(i+1, "another one before", func(l []journal.Entry) []journal.Entry {
			return slices.Insert(l, i, journal.Entry{Epoch: l[i].Epoch, Data: []byte("forged")})
		})
		if i+1 < n && len(entries(n)[i+1].Data) > 0 {
			add(
				i+1, "exchanged with the next one:",
				func(l []journal.Entry) []journal.Entry { l[i], l[i+1] = l[i+1], l[i]; return l },
			)
			add(i+1, "joined with the next one:", func(l []journal.Entry) []journal.Entry {
				l[i].Data = append(l[i].Data, l[i+1].Data...)
				l[i+1].Data = []byte("x")
				return l
			})
		}
		add(i+1, "cut off before", func(l []journal.Entry) []journal.Entry { return l[:i] })
	}
	heads := headsAt(entries(n))
	for _, f := range forged {
		_, err := verify(f.list, Record{}, heads[n])
		tampered, ok := errors.AsType[*TamperError](err)
		if !ok || tampered.After >= f.first && len(f.list) >= n || tampered.UpTo < f.first {
			t.Errorf("%s: %v", f.name, err)
		}
		_, err = verify(f.list, Record{}, heads[1:]...)
		if tampered, ok := errors.AsType[*TamperError](err); !ok || tampered.UpTo != f.first || tampered.After != f.first-1 {
			t.Errorf("%s, by all heads: %v", f.name, err)
		}
	}
	if proof, err := verify(entries(n), Record{}, heads[n], heads[20], heads[0]); err != nil ||
		len(proof.Confirmed) != 3 || proof.Head != heads[n] {
		t.Errorf("as it was: %+v, %v", proof, err)
	}
}

// A mark that was forged, to fit forged entries or not, does not help against a head.
func TestForgedMarks(t *testing.T) {
	links, heads := linksAt(entries(60)), headsAt(entries(60))
	forged := entries(60)
	forged[29].Data = []byte("forged")
	fit := linksAt(forged)
	for name, c := range map[string]struct {
		list      []journal.Entry
		marks     []Link
		after, to interlock.Index
	}{
		"true marks":               {forged, []Link{links[0], links[10], links[20], links[40]}, 20, 40},
		"fitting marks":            {forged, []Link{fit[0], fit[10], fit[20], fit[40]}, 40, 60},
		"fitting marks behind it":  {forged[35:], []Link{fit[35], fit[40]}, 40, 60},
		"true marks behind it":     {forged[35:], []Link{links[35], {40, fit[40].Hash}}, 35, 40},
		"forged marks, true rest":  {entries(60), []Link{links[0], fit[40]}, 0, 40},
		"a chain that begins anew": {entries(60), []Link{Start(0), Start(40)}, 0, 40},
	} {
		_, err := verify(c.list, Record{c.marks}, heads[60])
		if tampered, ok := errors.AsType[*TamperError](err); !ok || tampered.After != c.after || tampered.UpTo != c.to {
			t.Errorf("%s: %v, want behind %d and up to %d", name, err, c.after, c.to)
		}
	}
	if _, err := verify(entries(60), Record{[]Link{Start(40)}}, heads[30]); !errors.Is(err, ErrTooOld) {
		t.Error("a chain that begins behind the head:", err)
	}
}

// The kept part of a journal is confirmed from the first mark in it.
func TestTruncated(t *testing.T) {
	list := entries(60)
	links, heads := linksAt(list), headsAt(list)
	record := Record{[]Link{links[0], links[25], links[40]}}
	for first := 1; first <= 60; first++ {
		proof, err := verify(list[first-1:], record, heads[60])
		from := interlock.Index(0)
		switch {
		case first > 41:
			if !errors.Is(err, ErrTooOld) {
				t.Errorf("kept from %d on, behind all marks: %v", first, err)
			}
			continue
		case first > 26:
			from = 40
		case first > 1:
			from = 25
		}
		if err != nil || proof.From != from || proof.Head != heads[60] {
			t.Errorf("kept from %d on: %+v, %v", first, proof, err)
		}
	}
	if _, err := verify(list[30:], record, heads[35], heads[60]); !errors.Is(err, ErrTooOld) {
		t.Error("a head before the first mark:", err)
	}
	if proof, err := verify(list[39:40], record, heads[40]); err != nil || len(proof.Confirmed) != 1 {
		t.Errorf("nothing behind the last mark: %+v, %v", proof, err)
	}
}

// Marks stay few however long the chain gets, the first one stays, and a record continues where
// it was read.
func TestMarker(t *testing.T) {
	m := MarkFrom(Record{[]Link{Start(0)}})
	last := Link{}
	for i := interlock.Index(1); i <= 3_000_000; i++ {
		last = Link{Index: i}
		m.Grow(last)
		if i%500_000 == 0 {
			r := m.Record(last, 1)
			got, err := Read(bufio.NewReader(bytes.NewReader(append(r.Append(nil), "state"...))), i)
			if err != nil || !slices.Equal(got.Marks, r.Marks) {
				t.Fatalf("at %d: %v", i, err)
			}
			m = MarkFrom(got)
		}
	}
	r := m.Record(last, 1)
	if n := len(r.Marks); n < mostMarks/2 || n > mostMarks+1 || r.Marks[0] != Start(0) || r.Last() != last {
		t.Errorf("%d marks, from %v to %v", n, r.Marks[0], r.Last())
	}
	if r = m.Record(last, 2_000_000); r.Marks[0].Index < 1_999_999 || r.Marks[0].Index > 2_010_000 {
		t.Errorf("of a journal that begins at 2,000,000 the first mark is %v", r.Marks[0])
	}
}

// A record is read back, or refused.
func FuzzRead(f *testing.F) {
	links := linksAt(entries(5))
	f.Add(Record{links}.Append(nil), uint64(5))
	f.Add(Record{links[3:4]}.Append(nil), uint64(3))
	f.Add([]byte{1, 0, 0, 0, 1}, uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, at uint64) {
		r, err := Read(bufio.NewReader(bytes.NewReader(data)), interlock.Index(at))
		if err != nil {
			return
		}
		if r.Last().Index != interlock.Index(at) {
			t.Fatalf("a record of %d is at %d", at, r.Last().Index)
		}
		if b := r.Append(nil); r.Marks[0] != Start(interlock.Index(at)) && !bytes.HasPrefix(data, b) {
			t.Fatalf("%x is written as %x", data, b)
		}
	})
}
