package shard

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

const (
	// groupCommands bounds the commands of one group, and with them its buffers and
	// how long its first answer waits for its last step.
	groupCommands = 1024

	// groupBytes is how many bytes of entries close a group. What is left up to
	// journal.MaxAppendBytes is room for the entry of its last step.
	groupBytes = 256 << 10

	// maxEntry is the invariant that the engine keeps for one step.
	maxEntry = journal.MaxAppendBytes - groupBytes
)

// group is what becomes durable together: some steps, their entries in one
// buffer and their effects. It belongs to the owner while it is filled and to the
// committer while it is written, and its buffers are used again and again.
//
//	cmds   [ acquire ][ heartbeat ][ release ]
//	marks  [ 1 / 1   ][ 2 / 1     ][ 4 / 2   ]     effects and entries so far
//	            │           │           │
//	Effects   granted     done     done, granted (a waiter)
//	Entry   [ entry ]               [ entry ]      index first, first + 1
type group struct {
	generation int             // of the engine that made it
	first      interlock.Index // of its first entry

	out   engine.Output
	cmds  []engine.Command
	marks []mark
	ends  []int // where each entry ends in out.Entry

	// refusal, when it is set, is what all its commands are told: they were not
	// stepped.
	refusal *interlock.Error

	lag  time.Duration // how long the command that waited longest had waited
	work time.Duration // what its steps count for

	entries [][]byte // the entries, cut for Append
}

// mark is where one step ends.
type mark struct {
	effects int
	entries int
}

// begin empties the group for the next steps.
func (g *group) begin(generation int, first interlock.Index) {
	clear(g.cmds)
	clear(g.out.Effects)
	clear(g.out.Events)
	g.generation, g.first = generation, first
	g.out.Entry = g.out.Entry[:0]
	g.out.Effects = g.out.Effects[:0]
	g.out.Events = g.out.Events[:0]
	g.cmds, g.marks, g.ends = g.cmds[:0], g.marks[:0], g.ends[:0]
	g.refusal = nil
	g.lag, g.work = 0, 0
}

func (g *group) empty() bool { return len(g.cmds) == 0 }

// full says that nothing more may be stepped into the group.
func (g *group) full() bool {
	return len(g.cmds) >= groupCommands || len(g.out.Entry) >= groupBytes
}

// next is the index that the next entry gets.
func (g *group) next() interlock.Index { return g.first + interlock.Index(len(g.ends)) }

// step carries cmd out and notes what came of it. One step gives at most one
// entry.
func (g *group) step(e *engine.Engine, cmd engine.Command) {
	before := len(g.out.Entry)
	e.Step(cmd, &g.out)
	g.mark(cmd, before)
}

// mark ends the step of cmd, before which the entries were of the given length.
func (g *group) mark(cmd engine.Command, before int) {
	if n := len(g.out.Entry) - before; n > maxEntry {
		panic(fmt.Sprintf("shard: invariant broken: the entry of one %T has %d bytes, at most %d", cmd, n, maxEntry))
	} else if n > 0 {
		g.ends = append(g.ends, len(g.out.Entry))
	}
	g.cmds = append(g.cmds, cmd)
	g.marks = append(g.marks, mark{effects: len(g.out.Effects), entries: len(g.ends)})
}

// cut gives the entries for Append. They are valid until begin.
func (g *group) cut() [][]byte {
	g.entries = g.entries[:0]
	start := 0
	for _, end := range g.ends {
		g.entries = append(g.entries, g.out.Entry[start:end:end])
		start = end
	}
	return g.entries
}
