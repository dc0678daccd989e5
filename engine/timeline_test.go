package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/timeline"
)

// TestTimeline checks the timelines of random histories: each fence has one hold, each queued request one wait for each
// time in line, what goes on is what the engine holds, and links join what they say.
func TestTimeline(t *testing.T) {
	n := 30
	if testing.Short() {
		n = 12
	}
	met := map[string]int{}
	for seed := uint64(1); seed <= uint64(n); seed++ {
		g, err := run(program(seed, *steps))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkTimeline(g, met); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, what := range []string{
		"wait", "hold", "attempt", "grace", "parked", "lock_delay", "blocked_by", "handed_on", "deadlock", "yield_asked",
		"granted", "converted", "resumed", "open", "attempt_failed",
	} {
		if met[what] == 0 {
			t.Errorf("no history has %q", what)
		}
	}
}

func checkTimeline(g *rig, met map[string]int) error {
	tl, events := timelineOf(g)
	if again, _ := timelineOf(g); !reflect.DeepEqual(tl, again) {
		return fmt.Errorf("the same events have two timelines")
	}
	if tl.MoreBars+tl.MoreOpen > 0 {
		return fmt.Errorf("%d bars and %d requests are left out", tl.MoreBars, tl.MoreOpen)
	}
	type moment struct {
		fence interlock.Fence
		at    record.Time
	}
	holds, waits := map[moment]int{}, map[record.Time]int{}
	for i := range events {
		switch ev := &events[i]; {
		case ev.Kind == record.Granted, ev.Kind == record.Admitted, ev.Kind == record.Converted,
			ev.Kind == record.TaskDispatched, ev.Kind == record.Resumed && !ev.Queued:
			holds[moment{ev.Fence, ev.At}]++
		case ev.Kind == record.Queued, ev.Kind == record.Resumed:
			waits[ev.At]++
		}
	}
	open, moved := 0, slices.ContainsFunc(events, func(ev record.Event) bool { return ev.Kind == record.NamespaceMoved })
	for i := range tl.Bars {
		b := &tl.Bars[i]
		met[string(b.Kind)]++
		met[b.Outcome]++
		if b.To == 0 && b.Outcome != "" || b.To != 0 && (b.To < b.From || b.Outcome == "" || b.EndIndex < b.Index) {
			return fmt.Errorf("bar %d is from %d to %d with outcome %q", i, b.From, b.To, b.Outcome)
		}
		switch b.Kind {
		case timeline.Hold, timeline.Attempt:
			if b.Index == 0 { // the journal begins later, with the copy of a namespace
				if !moved {
					return fmt.Errorf("%+v has no beginning", b)
				}
				continue
			}
			holds[moment{b.Fence, b.From}]--
			if b.To == 0 {
				open++
			}
		case timeline.Wait:
			if b.Index > 0 {
				waits[b.From]--
			}
		}
	}
	for m, n := range holds {
		if n != 0 {
			return fmt.Errorf("fence %d at %d has %d holds too few", m.fence, m.at, n)
		}
	}
	for at, n := range waits {
		if n != 0 {
			return fmt.Errorf("at %d there are %d waits too few", at, n)
		}
	}
	met["open"] += open
	if held := len(g.m.inPhase(offered, held, inGrace)); !moved && open != held {
		return fmt.Errorf("%d holds go on, the model has %d", open, held)
	}
	for _, l := range tl.Links {
		met[l.Kind]++
		from, to := &tl.Bars[l.From], &tl.Bars[l.To]
		isHold := func(b *timeline.Bar) bool { return b.Kind != timeline.Wait && b.Kind != timeline.Grace }
		switch {
		case from.Namespace != to.Namespace, l.From == l.To:
			return fmt.Errorf("a link %+v joins %+v and %+v", l, from, to)
		case l.Kind == timeline.BlockedBy && (from.Kind != timeline.Wait || !isHold(to)):
			return fmt.Errorf("a wait %+v is for %+v", from, to)
		case l.Kind == timeline.HandedOn && (!isHold(from) || !isHold(to) || from.To == 0 || from.To > to.From):
			return fmt.Errorf("%+v was handed on to %+v", from, to)
		}
	}
	for _, m := range tl.Marks {
		met[m.Kind]++
	}
	return nil
}

func timelineOf(g *rig) (*timeline.Timeline, []record.Event) {
	r := timeline.New(timeline.Filter{})
	var events []record.Event
	for i, entry := range g.journal {
		err := record.DecodeEntry(entry, func(ev *record.Event) error {
			kept := *ev
			events = append(events, kept)
			r.Add(interlock.Index(i+1), &kept)
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	return r.Timeline(), events
}
