package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// history records the journal of a stage, so that each earlier state can be made again.
type history struct {
	*stage
	entries [][]byte
}

func (h *history) do(after time.Duration, cmd engine.Command) *engine.Effect {
	h.Helper()
	effect := h.step(after, cmd)
	if len(h.out.Entry) > 0 {
		h.entries = append(h.entries, append([]byte(nil), h.out.Entry...))
	}
	return effect
}

// at makes the state after n entries.
func (h *history) at(n int) *engine.Engine {
	h.Helper()
	e := engine.New()
	for _, entry := range h.entries[:n] {
		if err := e.Apply(entry); err != nil {
			h.Fatal(err)
		}
	}
	e.LookBack(0)
	return e
}

// compare compares the states after two numbers of entries.
func (h *history) compare(before, after int, c engine.Comparison) *engine.Comparison {
	h.Helper()
	a, b := h.at(before), h.at(after)
	for looks := 0; !c.Look(a, b); looks++ {
		if looks > 10_000 {
			h.Fatal("the comparison does not end")
		}
	}
	return &c
}

// told are the leases that differ, as "KEY: AGENT FENCE > AGENT FENCE".
func told(c *engine.Comparison) string {
	side := func(h *interlock.Holder) string {
		if h == nil {
			return "-"
		}
		return fmt.Sprint(h.Agent, " ", h.Mode, " ", h.Fence)
	}
	var list []string
	for _, row := range c.Leases.Rows {
		of := row.After
		if of == nil {
			of = row.Before
		}
		list = append(list, fmt.Sprintf("%s: %s > %s", of.Key, side(row.Before), side(row.After)))
	}
	return strings.Join(list, "; ")
}

// A key that passed from one agent to another is one change, shared holders come and go each for itself, and a lease
// that is held as before is none.
func TestCompareLeases(t *testing.T) {
	h := &history{stage: newStage(t)}
	ns := interlock.Namespace("default")
	h.entries = append(h.entries, append([]byte(nil), h.out.Entry...))
	acquire := func(agent, key string, mode interlock.Mode) *engine.Acquire {
		c := h.acquire(engine.Head{Namespace: ns}, interlock.Key(key))
		c.Agent, c.Claims[0].Mode = agent, mode
		h.do(0, c)
		return c
	}
	release := func(c *engine.Acquire) {
		h.do(0, &engine.Release{Head: engine.Head{Namespace: ns}, Lease: interlock.LeaseID(c.ID)})
	}
	passed := acquire("one", "a", interlock.Exclusive)
	acquire("one", "b", interlock.Exclusive)
	left := acquire("one", "c", interlock.Shared)
	acquire("two", "c", interlock.Shared)
	again := acquire("one", "d", interlock.Exclusive)
	before := len(h.entries)
	release(passed)
	acquire("two", "a", interlock.Exclusive)
	release(left)
	acquire("three", "c", interlock.Shared)
	release(again)
	acquire("one", "d", interlock.Exclusive)
	acquire("one", "e", interlock.Exclusive)

	c := h.compare(before, len(h.entries), engine.Comparison{Namespace: ns})
	want := "a: one exclusive 1 > two exclusive 6; c: one shared 3 > -; c: - > three shared 7; " +
		"d: one exclusive 5 > one exclusive 8; e: - > one exclusive 9"
	if got := told(c); got != want {
		t.Errorf("forth:\n%s\nwant\n%s", got, want)
	}
	if c.Leases.New != 2 || c.Leases.Gone != 1 || c.Leases.Changed != 2 {
		t.Errorf("forth: %d new, %d gone, %d changed", c.Leases.New, c.Leases.Gone, c.Leases.Changed)
	}
	want = "a: two exclusive 6 > one exclusive 1; c: - > one shared 3; c: three shared 7 > -; " +
		"d: one exclusive 8 > one exclusive 5; e: one exclusive 9 > -"
	if got := told(h.compare(len(h.entries), before, engine.Comparison{Namespace: ns})); got != want {
		t.Errorf("back:\n%s\nwant\n%s", got, want)
	}
	if c := h.compare(before, before, engine.Comparison{Namespace: ns}); told(c) != "" {
		t.Errorf("a state differs from itself: %s", told(c))
	}
	if c := h.compare(0, before, engine.Comparison{Namespace: ns}); c.Leases.New != 5 {
		t.Errorf("since before the namespace there are %d leases, want 5", c.Leases.New)
	}
	if c := h.compare(before, len(h.entries), engine.Comparison{Namespace: ns, Prefix: "a"}); told(c) !=
		"a: one exclusive 1 > two exclusive 6" {
		t.Errorf("below a: %s", told(c))
	}
}

// The changes of random states are those that their listings have, and a limit leaves the later rows out of the
// lists and not out of the numbers.
func TestCompareIsWhatTheListingsShow(t *testing.T) {
	h := &history{stage: newStage(t)}
	ns := interlock.Namespace("default")
	h.entries = append(h.entries, append([]byte(nil), h.out.Entry...))
	chance := rand.New(rand.NewPCG(3, 4))
	var held [][16]byte
	var version interlock.Version
	for range 800 {
		switch n := chance.IntN(10); {
		case n < 5:
			c := h.acquire(engine.Head{Namespace: ns}, interlock.Key(fmt.Sprint("key:", chance.IntN(30))))
			c.OnConflict = interlock.Wait
			h.do(0, c)
			held = append(held, c.ID)
		case n < 8 && len(held) > 0:
			i := chance.IntN(len(held))
			h.do(0, &engine.Leave{Head: engine.Head{Namespace: ns}, Ticket: interlock.TicketID(held[i])})
			h.do(0, &engine.Release{Head: engine.Head{Namespace: ns}, Lease: interlock.LeaseID(held[i])})
			held = append(held[:i], held[i+1:]...)
		default:
			key := interlock.Key(fmt.Sprint("doc:", chance.IntN(20)))
			w := interlock.Write{Key: key, Op: interlock.Put, Body: []byte("1"), ContentType: interlock.JSONType}
			if chance.IntN(3) == 0 {
				w = interlock.Write{Key: key, Op: interlock.Delete}
			}
			h.ids++
			h.do(0, &engine.Commit{Head: engine.Head{Namespace: ns}, CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{w}, AsOf: version,
			}})
		}
	}
	seen := 0
	for range 40 {
		before, after := chance.IntN(len(h.entries)), chance.IntN(len(h.entries)+1)
		c := h.compare(before, after, engine.Comparison{Namespace: ns, Limit: 1000})
		then, now := h.listed(ns, before), h.listed(ns, after)
		news, gone, changed := 0, 0, 0
		for name, was := range then {
			if is, ok := now[name]; !ok {
				gone++
			} else if is != was {
				changed++
			}
		}
		for name := range now {
			if _, ok := then[name]; !ok {
				news++
			}
		}
		got := [3]int{
			c.Leases.New + c.Waiters.New + c.Documents.New, c.Leases.Gone + c.Waiters.Gone + c.Documents.Gone,
			c.Leases.Changed + c.Waiters.Changed + c.Documents.Changed,
		}
		if want := [3]int{news, gone, changed}; got != want {
			t.Errorf("from %d to %d: new, gone and changed are %v, want %v", before, after, got, want)
		}
		seen += news + gone + changed
		few := h.compare(before, after, engine.Comparison{Namespace: ns, Limit: 2})
		if len(few.Leases.Rows) != min(2, len(c.Leases.Rows)) || few.Leases.New != c.Leases.New ||
			told(few) != strings.Join(strings.SplitN(told(c), "; ", 3)[:min(2, len(c.Leases.Rows))], "; ") {
			t.Errorf("from %d to %d with 2 rows: %s, of %s", before, after, told(few), told(c))
		}
	}
	if seen < 500 {
		t.Errorf("only %d changes were compared", seen)
	}
}

// listed is a state as its listings show it: what each key's exclusive lease, each waiter and each document has.
func (h *history) listed(ns interlock.Namespace, n int) map[string]string {
	h.Helper()
	e := h.at(n)
	list := map[string]string{}
	leases := engine.LeaseList{Namespace: ns, Filter: engine.RequestFilter{Limit: 1000}}
	tickets := engine.TicketList{Namespace: ns, Filter: engine.RequestFilter{Limit: 1000}}
	documents := engine.DocumentList{Namespace: ns, Limit: 1000}
	for _, survey := range []engine.Scan{&leases, &tickets, &documents} {
		for !survey.Look(e) {
		}
	}
	for _, r := range leases.Rows {
		if r.Liveness == interlock.Offered {
			continue // it is among the tickets
		}
		list["lease "+string(r.Claims[0].Key)] = fmt.Sprint(r.Request, r.Fence)
	}
	for _, r := range tickets.Rows {
		list[fmt.Sprint("ticket ", r.Request)] = fmt.Sprint(r.Position, r.Offered)
	}
	for _, d := range documents.Rows {
		list["document "+string(d.Key)] = fmt.Sprint(d.Version)
	}
	return list
}
