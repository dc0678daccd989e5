package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/test/search"
)

// TestRandomRuns starts runs of one organisation under a cap that changes, with callers that
// wait, hang up, come back under the same request id, and crash together with the engine. gate
// has the invariants.
func TestRandomRuns(t *testing.T) {
	t.Parallel()
	from, to := search.Seeds(t, 0, 60, 60)
	for seed := from; seed < to; seed++ {
		g := &gate{
			rig: newRig().wide(), r: rand.New(rand.NewPCG(seed, 2)), born: map[uint64]string{}, admitted: map[string]uint64{},
			waiting: map[uint64]bool{},
		}
		g.blind = true
		if err := g.play(300); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// gate is an organisation with its invariants: never more runs than the cap allows except those
// admitted under a larger one; one run for a request id; and no listening waiter in line while
// there is room.
type gate struct {
	*rig
	r        *rand.Rand
	cap      int
	alive    []interlock.LeaseID
	born     map[uint64]string // the request ids of those asked for, by their numbers
	admitted map[string]uint64 // the numbers of the runs, by their request ids
	waiting  map[uint64]bool   // the waiters in line, and whether they have a listener
	calls    []call            // that wait, or did
}

type call struct {
	id   [16]byte
	num  uint64
	link uint64
}

func (g *gate) play(steps int) error {
	if err := g.start(); err != nil {
		return err
	}
	if err := g.setCap(2); err != nil {
		return err
	}
	for range steps {
		if err := g.next(); err != nil {
			return err
		}
	}
	replayed, err := g.replay()
	if err != nil {
		return err
	}
	return g.sameState(replayed)
}

func (g *gate) next() error {
	head := engine.Head{Namespace: "one"}
	switch g.r.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		return g.startOne()
	case 6, 7, 8:
		if len(g.alive) == 0 {
			return nil
		}
		return g.do(&engine.Release{Head: head, Lease: g.alive[g.r.IntN(len(g.alive))]})
	case 9, 10:
		if len(g.calls) == 0 {
			return nil
		}
		c := g.calls[g.r.IntN(len(g.calls))]
		head.Link = c.link
		if g.r.IntN(2) == 0 {
			return g.do(&engine.Poll{Head: head, Ticket: c.id})
		}
		return g.do(&engine.Detach{Head: head, Ticket: c.id})
	case 11:
		return g.setCap(1 + g.r.IntN(4))
	case 12:
		return g.do(&engine.RevertPattern{Head: head, Name: "runs"})
	case 13:
		if err := g.snap(); err != nil {
			return err
		}
		fallthrough
	case 14:
		for num := range g.waiting {
			g.waiting[num] = false // their callers died with the server
		}
		if err := g.restart(0); err != nil {
			return err
		}
		return g.see(nil)
	}
	g.now = g.now.Add(time.Duration(g.r.IntN(20)) * time.Second)
	for {
		timer, ok := g.e.NextTimer()
		if err := g.do(&engine.Tick{}); err != nil || !ok || timer > g.now {
			return err
		}
	}
}

func (g *gate) setCap(n int) error {
	return g.do(&engine.SetPattern{
		Head:    engine.Head{Namespace: "one"},
		Pattern: interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: uint32(n)},
	})
}

func (g *gate) startOne() error {
	name := fmt.Sprintf("run-%d", g.r.IntN(40))
	c := &engine.StartRun{
		Head: engine.Head{Namespace: "one", RequestID: name, Link: 1 + g.r.Uint64N(3)}, ID: g.id(), Org: "acme",
		TTL: 30 * time.Second,
	}
	if g.r.IntN(3) > 0 {
		c.MaxWait, c.Attach = time.Duration(1+g.r.IntN(30))*time.Second, true
	}
	return g.do(c)
}

// do carries out cmd, and compares.
func (g *gate) do(cmd engine.Command) error {
	if err := g.step(cmd); err != nil {
		return err
	}
	return g.see(cmd)
}

func (g *gate) see(cmd engine.Command) error {
	before := len(g.alive)
	start, _ := cmd.(*engine.StartRun)
	for i := range g.last.Events {
		ev := &g.last.Events[i]
		switch ev.Kind {
		case record.Queued:
			g.waiting[ev.Num], g.born[ev.Num] = true, start.RequestID
			g.calls = append(g.calls, call{ev.ID, ev.Num, start.Link})
		case record.Left:
			delete(g.waiting, ev.Num)
		case record.Granted, record.Admitted:
			if ev.Kind == record.Granted {
				g.born[ev.Num] = start.RequestID
			}
			delete(g.waiting, ev.Num)
			if ev.Offer {
				return fmt.Errorf("run %d is offered to nobody in particular", ev.Num)
			}
			if other, twice := g.admitted[g.born[ev.Num]]; twice {
				return fmt.Errorf("%s is admitted as %d, and as %d before", g.born[ev.Num], ev.Num, other)
			}
			g.admitted[g.born[ev.Num]] = ev.Num
			g.alive = append(g.alive, ev.ID)
		case record.Ended:
			for j, id := range g.alive {
				if id == ev.ID {
					g.alive = append(g.alive[:j], g.alive[j+1:]...)
					break
				}
			}
		case record.PatternSet:
			p, err := ev.Pattern()
			if err != nil {
				return err
			}
			g.cap = int(p.Capacity)
		}
	}
	if len(g.alive) > g.cap && len(g.alive) > before {
		return fmt.Errorf("%d runs, and the cap is %d", len(g.alive), g.cap)
	}
	if err := g.hears(start); err != nil {
		return err
	}
	for num, listens := range g.waiting {
		if listens && len(g.alive) < g.cap {
			return fmt.Errorf("%s stands in line, with %d runs at a cap of %d", g.born[num], len(g.alive), g.cap)
		}
	}
	rows := &engine.RunList{Namespace: "one", Org: "acme"}
	for !rows.Look(g.e) {
	}
	if len(rows.Rows) != len(g.alive) {
		return fmt.Errorf("%d runs are listed, of %d", len(rows.Rows), len(g.alive))
	}
	return nil
}

// hears tracks the listeners, and checks the answers to starts.
func (g *gate) hears(start *engine.StartRun) error {
	for i := range g.last.Effects {
		e := &g.last.Effects[i]
		if start == nil || e.To != start.From {
			continue
		}
		switch {
		case e.Outcome == engine.Queued:
			for j := range g.calls {
				if c := &g.calls[j]; c.id == e.Ticket.ID {
					g.waiting[c.num], c.link = true, start.Link
				}
			}
		case e.Outcome == engine.Granted && g.admitted[start.RequestID] == 0:
			return fmt.Errorf("%s runs, and was not admitted", start.RequestID)
		case e.Outcome == engine.Refused && e.Code == interlock.CodeTooManyRuns:
			if len(g.alive) < g.cap && len(g.waiting) == 0 {
				return fmt.Errorf("%s is refused with %d runs at a cap of %d", start.RequestID, len(g.alive), g.cap)
			}
			if e.Conflict == nil {
				return fmt.Errorf("%s is refused, and not told by whom", start.RequestID)
			}
		}
	}
	return nil
}
