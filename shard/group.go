package shard

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
)

const (
	// groupCommands bounds the commands of one group, and with them its buffers and
	// how long its first answer waits for its last step.
	groupCommands = 1024

	// groupBytes is how many bytes of entries close a group. Most groups are one
	// append: what is left up to journal.MaxAppendBytes is room for the entry of the
	// last step. Only a large commit there takes more.
	groupBytes = 256 << 10

	// maxEntry is the invariant that the engine keeps for one step: the largest
	// acknowledgement, and what the step ends because it was due.
	maxEntry = 6 << 20
	_        = uint(maxEntry - (engine.AckEntryBytes + 1<<20)) // is constant, so it cannot be negative

	// keptBytes bounds the buffer that a group keeps for its next steps.
	keptBytes = 1 << 20
)

// group is some steps, their entries in one buffer and their effects. It belongs to
// the owner while it is filled and to the committer while it is written, and its
// buffers are used again and again.
//
//	cmds   [ acquire ][ heartbeat ][ release ]
//	marks  [ 1 / 1   ][ 2 / 1     ][ 4 / 2   ]     effects and entries so far
//	            │           │           │
//	Effects   granted     done     done, granted (a waiter)
//	Entry   [ entry ]               [ entry ]      index first, first + 1
//
// A large entry is cut to pieces (piece.go), and each of them counts as an entry here: the
// step's index is that of the last one. The group may then take several appends. Its durable
// part grows in order: written entries, and answered steps, with all their entries among them.
type group struct {
	generation int             // of the engine that made it
	first      interlock.Index // of its first entry

	out   engine.Output
	cmds  []engine.Command
	marks []mark
	ends  []int // where each entry, or piece of one, ends in out.Entry

	written int // entries that are durable
	whole   int // steps that are durable
	told    int // steps with delivered answers
	linked  int // entries that are in the hash chain

	// snapshot, when it is set, is the work of making one of the state before the first
	// step, with the record of the chain. It is begun when that is durable, so when the
	// committer takes the group.
	snapshot func(chain.Record)

	// refusal, when it is set, answers all its commands: they were not stepped.
	refusal *interlock.Error

	lag  time.Duration // how long the command that waited longest had waited
	work time.Duration // the cost of its steps

	entries [][]byte // of the next Append
}

// mark is where one step ends.
type mark struct {
	effects int
	events  int
	entries int
}

// begin empties the group for the next steps.
func (g *group) begin(generation int, first interlock.Index) {
	clear(g.cmds)
	clear(g.out.Effects)
	clear(g.out.Events)
	g.generation, g.first = generation, first
	if g.out.Entry = g.out.Entry[:0]; cap(g.out.Entry) > keptBytes {
		g.out.Entry = nil
	}
	g.out.Effects = g.out.Effects[:0]
	g.out.Events = g.out.Events[:0]
	g.cmds, g.marks, g.ends = g.cmds[:0], g.marks[:0], g.ends[:0]
	g.written, g.whole, g.told, g.linked = 0, 0, 0, 0
	g.snapshot, g.refusal = nil, nil
	g.lag, g.work = 0, 0
}

// empty reports whether it has nothing for the committer.
func (g *group) empty() bool { return len(g.cmds) == 0 && g.snapshot == nil }

// durable reports whether all its steps are.
func (g *group) durable() bool { return g.whole == len(g.marks) }

// full reports whether nothing more may be stepped into the group.
func (g *group) full() bool {
	return len(g.cmds) >= groupCommands || len(g.out.Entry) >= groupBytes
}

// next is the index that the next entry gets.
func (g *group) next() interlock.Index { return g.first + interlock.Index(len(g.ends)) }

// step carries cmd out and records its result. One step makes at most one entry. A tick often
// makes none: then there is nothing for the committer either.
func (g *group) step(e *engine.Engine, cmd engine.Command) {
	before, effects := len(g.out.Entry), len(g.out.Effects)
	e.Step(cmd, &g.out)
	if _, ok := cmd.(*engine.Tick); ok && len(g.out.Entry) == before && len(g.out.Effects) == effects {
		return
	}
	g.mark(cmd, before)
}

// mark ends the step of cmd, before which the entries were of the given length.
func (g *group) mark(cmd engine.Command, before int) {
	if n := len(g.out.Entry) - before; n > maxEntry {
		panic(fmt.Sprintf("shard: invariant broken: the entry of one %T has %d bytes, at most %d", cmd, n, maxEntry))
	} else if n > 0 {
		g.out.Entry, g.ends = cutPieces(g.out.Entry, before, g.ends)
	}
	g.cmds = append(g.cmds, cmd)
	g.marks = append(g.marks, mark{effects: len(g.out.Effects), events: len(g.out.Events), entries: len(g.ends)})
}

// at is where the entry with this number begins in out.Entry.
func (g *group) at(entry int) int {
	if entry == 0 {
		return 0
	}
	return g.ends[entry-1]
}

// through is the mark up to which steps steps go.
func (g *group) through(steps int) mark {
	if steps == 0 {
		return mark{}
	}
	return g.marks[steps-1]
}

// index is that of the state after the step with this number.
func (g *group) index(step int) interlock.Index {
	return g.first + interlock.Index(g.marks[step].entries) - 1
}

// cut returns as many entries for Append as it takes, from the first that is not
// written on. They are valid until begin.
func (g *group) cut() [][]byte {
	g.entries = g.entries[:0]
	begin := g.at(g.written)
	for start, i := begin, g.written; i < len(g.ends) && g.ends[i]-begin <= journal.MaxAppendBytes; i++ {
		g.entries = append(g.entries, g.out.Entry[start:g.ends[i]:g.ends[i]])
		start = g.ends[i]
	}
	return g.entries
}

// wrote counts entries as written, and returns the mark up to which the steps were durable
// before.
func (g *group) wrote(entries int) (before mark) {
	before = g.through(g.whole)
	g.written += entries
	for g.whole < len(g.marks) && g.marks[g.whole].entries <= g.written {
		g.whole++
	}
	return before
}
