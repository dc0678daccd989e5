package packet

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// Limits of one packet.
const (
	// MaxBytes bounds all differences of a packet together, and its Message.
	MaxBytes = 16 << 10
	// MaxDiffBytes bounds one difference.
	MaxDiffBytes = 4 << 10
	// MaxNoteBytes bounds a note; the document has all of it.
	MaxNoteBytes = 1 << 10
	// MaxBetweenBytes bounds the note of each of the writes before the last.
	MaxBetweenBytes = 256
	// MaxCompareBytes is the size of a body above which it is not compared, and
	// MaxWorkBytes bounds all bodies that are compared for a packet.
	MaxCompareBytes = 256 << 10
	MaxWorkBytes    = 1 << 20
)

// Occasion is how the caller came to hear that its state is stale.
type Occasion uint8

const (
	// Commit is a commit that was refused.
	Commit Occasion = iota
	// Grant is a lease that was granted after a wait in which the state moved.
	Grant
	// File is a write to a file that was refused.
	File
	// Answer is a task that was handed out after a person's answer, before which the
	// state moved.
	Answer
)

// New makes the packet about documents that are stale; more reports that there are others. The
// texts of the packet's documents are as their authors wrote them, the notes cut to
// MaxNoteBytes: only Message may go to a prompt or a terminal as it is.
func New(stale []interlock.Stale, more bool, occasion Occasion) *interlock.Packet {
	list := make([]item, len(stale))
	for i := range stale {
		s := &stale[i]
		list[i] = item{Stale: s, then: decimal(s.Then.Version), now: decimal(s.Now.Version), key: string(s.Now.Key)}
		if s.Then.Version == 0 && !s.Then.Absent {
			list[i].then = "" // interlock.Read.Present
		}
		for k := range s.Between {
			list[i].betweens = append(list[i].betweens, decimal(s.Between[k].Version))
		}
	}
	return build(list, more, occasion)
}

// NewFile makes the packet about a file: its path is the documents' key, and its versions are
// no numbers; one that is not there may have none. between are those of the writes in between.
func NewFile(s *interlock.Stale, then, now string, between []string) *interlock.Packet {
	return build([]item{{Stale: s, then: then, now: now, betweens: between, key: string(s.Now.Key)}}, false, File)
}

// item is a stale document on its way into the packet.
type item struct {
	*interlock.Stale
	key       string
	then, now string // the versions; "" for any
	betweens  []string
	diff      interlock.Difference
}

func build(list []item, more bool, occasion Occasion) *interlock.Packet {
	room, work := MaxBytes, MaxWorkBytes
	for i := range list {
		// Those that need less than their share leave it to those behind them.
		list[i].diff = list[i].compare(min(MaxDiffBytes, room/(len(list)-i)), &work)
		room -= len(list[i].diff.Text)
	}
	p := &interlock.Packet{More: more}
	told, message := message(list, more, occasion)
	p.Message = message
	p.More = more || told < len(list)
	p.Changes = make([]interlock.Change, told)
	for i := range p.Changes {
		it := &list[i]
		c := interlock.Change{
			Then: it.Then, Known: it.Known, Now: it.Now, Writes: it.Writes, Between: slices.Clone(it.Between), Left: it.Left(),
			Diff: it.diff,
		}
		for k := range c.Between {
			c.Between[k].Note, _ = cut(c.Between[k].Note, MaxBetweenBytes)
		}
		c.Then.Body, c.Now.Body = nil, nil
		c.Then.Note, _ = cut(c.Then.Note, MaxNoteBytes)
		c.Now.Note, _ = cut(c.Now.Note, MaxNoteBytes)
		p.Changes[i] = c
	}
	return p
}

func decimal(v interlock.Version) string { return strconv.FormatUint(uint64(v), 10) }

// cut shortens text to at most limit bytes, between characters.
func cut(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit], true
}
