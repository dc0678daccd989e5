package sim

import (
	"bytes"
	"context"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/shard"
)

// audit follows the journal and checks the rules. Its knowledge comes from durable entries and
// from answers that left, and from nowhere else.
type audit struct {
	w *world

	// The journal as it is known: what was acknowledged, or was found by a later owner.
	entries []journal.Entry // the one with index i+1
	epoch   interlock.Epoch
	tenures int           // how often it was opened
	since   time.Duration // when it was opened last
	owner   *owner
	join    shard.Joiner
	shadow  *engine.Engine // to which every entry was applied, and nothing else

	// The highest index that clients have received.
	told interlock.Index

	sent  map[tag]int  // how often a command has reached an owner and was not refused without room
	never map[tag]bool // the commands that were refused without room each time

	loss loss
	picture
}

// loss is what is known of a tail that the engine of the journal has lost.
type loss struct {
	open  bool            // since then no owner has begun
	after interlock.Index // the last entry that is left
	at    time.Duration
	count int // of those with a later owner
}

func newAudit(w *world) *audit {
	return &audit{w: w, shadow: engine.New(), picture: newPicture(), sent: map[tag]int{}, never: map[tag]bool{}}
}

// tail is the index of the last entry that is known to be durable.
func (a *audit) tail() interlock.Index { return interlock.Index(len(a.entries)) }

// appended is called when an append has returned success.
func (a *audit) appended(o *owner, epoch interlock.Epoch, first interlock.Index, entries [][]byte) {
	if o.tenure < a.tenures {
		a.w.fail("I16", "an append of epoch %d succeeded at index %d, after epoch %d was opened", epoch, first, a.epoch)
		return
	}
	if a.loss.open {
		a.w.fail("I15", "an append of epoch %d succeeded at index %d, and the entries before it are lost", epoch, first)
		return
	}
	if first != a.tail()+1 {
		a.w.fail("journal", "an append at index %d succeeded, and the tail was %d", first, a.tail())
		return
	}
	for _, e := range entries {
		a.take(journal.Entry{Index: a.tail() + 1, Epoch: epoch, Data: e})
	}
}

// opened is called when a host has opened the journal: it compares what is there with what was
// acknowledged, and takes what was acknowledged to no client.
func (a *audit) opened(o *owner, j journal.Journal) error {
	if a.loss.open {
		if jump(j) == 0 {
			a.w.fail("I2", "entries behind %d are lost, and epoch %d does not let fences jump", a.loss.after, j.Epoch())
			return nil
		}
		a.rewind()
	}
	if j.Tail() < a.tail() {
		a.w.fail("I15", "%d entries were acknowledged, and epoch %d finds %d", a.tail(), j.Epoch(), j.Tail())
		return nil
	}
	if j.Epoch() <= a.epoch {
		a.w.fail("I16", "epoch %d was opened after epoch %d", j.Epoch(), a.epoch)
		return nil
	}
	known := a.tail()
	err := j.Read(context.Background(), j.First(), func(e journal.Entry) error {
		switch {
		case e.Index > known:
			a.take(e)
		case sumOf(a.entries[e.Index-1]) != sumOf(e):
			a.w.fail("I15", "entry %d is not what was acknowledged", e.Index)
		}
		return nil
	})
	a.epoch, a.since, a.owner = j.Epoch(), a.w.now, o
	a.tenures++
	o.tenure = a.tenures
	return err
}

// loses is called when the engine of the journal has lost all entries behind one.
func (a *audit) loses(after interlock.Index) { a.loss = loss{true, after, a.w.now, a.loss.count} }

// rewind goes back to what is left after a loss. What was given out before stays given out.
func (a *audit) rewind() {
	left, before := a.entries[:a.loss.after], a.picture
	a.entries, a.join, a.shadow, a.picture = nil, shard.Joiner{}, engine.New(), newPicture()
	for _, e := range left {
		a.take(e)
	}
	a.fence = max(a.fence, before.fence)
	for name, s := range before.spaces {
		if now := a.spaces[name]; now != nil {
			now.version = max(now.version, s.version)
		}
	}
	a.told = min(a.told, a.tail())
	a.loss.open, a.epoch = false, 0
	a.loss.count++
}

func sumOf(e journal.Entry) uint64 { return sum(e.Data) ^ uint64(e.Epoch) }

// take folds the next entry.
func (a *audit) take(e journal.Entry) {
	w := a.w
	e.Data = bytes.Clone(e.Data)
	a.entries = append(a.entries, e)
	w.story.mix(sumOf(e))
	if a.entryEpoch > e.Epoch || len(e.Data) == 0 && a.entryEpoch == e.Epoch {
		w.fail("I16", "entry %d of epoch %d follows one of epoch %d", e.Index, e.Epoch, a.entryEpoch)
	}
	a.entryEpoch = e.Epoch
	entry, err := a.join.Join(e)
	if err != nil {
		w.fail("journal", "%v", err)
	}
	if entry == nil {
		return
	}
	a.begin(e.Index)
	if err := record.DecodeEntry(entry, func(ev *record.Event) error {
		if w.story.told() {
			w.story.tell("      %d: %s", e.Index, shownEvent(ev))
		}
		a.fold(w, ev)
		return nil
	}); err != nil {
		w.fail("I17", "entry %d cannot be read: %v", e.Index, err)
	}
	if err := a.shadow.Apply(entry); err != nil {
		w.fail("I17", "entry %d cannot be applied: %v", e.Index, err)
		return
	}
	a.end(w)
	w.totals.Entries++
}

// compare checks that the live engine has the state that the journal yields.
func (a *audit) compare(o *owner) {
	if o.shard == nil || !o.shard.Settled() || o.shard.Parked() || o.shard.At().Index != a.tail() ||
		o.tenure != a.tenures || a.loss.open {
		return
	}
	a.w.totals.Compared++
	live, replayed := o.shard.Engine().Hash(), a.shadow.Hash()
	a.w.story.mixBytes(live[:])
	if live != replayed {
		a.w.fail("I17", "at index %d the engine of host %d is not what a replay of the journal gives", a.tail(), o.h.number)
	}
}
