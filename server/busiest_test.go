package server

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// labels lists what has a series of its own.
func (b *busiest) labels() map[name]series {
	list := map[name]series{}
	b.each(func(n name, s series) { list[n] = s })
	return list
}

// However many names there are, those that are seen most come to be named, their number and
// the memory are bounded, and each observation is in one series.
func TestBusiestAreNamed(t *testing.T) {
	const room, names = 10, 10_000
	b, at := newBusiest(room), engine.Time(1)
	busy := func(i int) name { return name{interlock.Namespace(fmt.Sprintf("tenant-%d", i)), "busy"} }
	for round := range 6 {
		for i := range names {
			b.of(name{"crowd", fmt.Sprintf("p%d", i)}, at).wait.observe(0)
			b.of(busy(i%room), at).wait.observe(0)
		}
		at = at.Add(reviewEvery)
		if len(b.entries) > room*(1+candidatesPerRoom) || b.named != room || len(b.labels()) != room+1 {
			t.Fatalf("round %d: %d entries, %d named, %d series", round, len(b.entries), b.named, len(b.labels()))
		}
	}
	before := b.labels()
	for i := range room {
		if _, ok := before[busy(i)]; !ok {
			t.Errorf("%v is not named", busy(i))
		}
		b.of(busy(i), at).wait.observe(0)
		if now := b.labels()[busy(i)].wait.count; now != before[busy(i)].wait.count+1 {
			t.Errorf("%v was counted %d times before, and then %d times", busy(i), before[busy(i)].wait.count, now)
		}
	}
}

// A namespace with any number of busy names does not push out the busiest of the others,
// whether it came first or last; and what they leave over is its.
func TestBusiestOfEachNamespace(t *testing.T) {
	const room, tenants = 10, 4
	hog := func(i int) name { return name{"hog", fmt.Sprint("busy-", i)} }
	quiet := func(i int) name { return name{interlock.Namespace(fmt.Sprint("tenant-", i)), "accounts"} }
	for _, first := range []bool{true, false} {
		b, at := newBusiest(room), engine.Time(1)
		for round := range 8 {
			few := func() {
				for i := range tenants {
					b.of(quiet(i), at).wait.observe(0)
				}
			}
			if !first && round == 0 {
				few()
			}
			for i := range 1000 {
				for range 100 {
					b.of(hog(i), at).wait.observe(0)
				}
			}
			few()
			at = at.Add(reviewEvery)
		}
		b.of(hog(0), at)
		list := b.labels()
		for i := range tenants {
			if _, ok := list[quiet(i)]; !ok {
				t.Errorf("the hog came first %v: %v is not named", first, quiet(i))
			}
		}
		if len(list) != room+1 || len(b.entries) > room*(1+candidatesPerRoom) {
			t.Errorf("the hog came first %v: %d series, %d entries", first, len(list), len(b.entries))
		}
	}
}

// Names that are all seen alike do not take each other's places: each of them that appears would be
// a series that a scraper keeps.
func TestBusiestStay(t *testing.T) {
	b, at := newBusiest(5), engine.Time(1)
	for range 20 {
		for i := range 100 {
			b.of(name{"crowd", fmt.Sprint(i)}, at)
		}
		at = at.Add(reviewEvery)
	}
	list := b.labels()
	for i := range 5 {
		if _, ok := list[name{"crowd", fmt.Sprint(i)}]; !ok {
			t.Errorf("%d is not named any more: %v", i, list)
		}
	}
}

// A series never goes down: a name that loses its place takes its counts along, and begins
// anew if it comes back. The rest only grows.
func TestSeriesNeverGoDown(t *testing.T) {
	b, at := newBusiest(2), engine.Time(1)
	last := b.labels()
	gone, back := 0, 0
	for round := range 40 {
		for i := range 200 {
			b.of(name{"n", fmt.Sprint((round/8*3)%5, i%3)}, at).hold.observe(0)
			now := b.labels()
			for n, s := range last {
				if is, ok := now[n]; !ok {
					gone++
				} else if is.hold.count < s.hold.count {
					t.Fatalf("%v went down from %d to %d", n, s.hold.count, is.hold.count)
				}
			}
			for n, s := range now {
				if _, ok := last[n]; !ok && round > 0 {
					if back++; s.hold.count > 1 {
						t.Fatalf("%v begins with %d", n, s.hold.count)
					}
				}
			}
			last = now
		}
		at = at.Add(reviewEvery)
	}
	if gone == 0 || back == 0 {
		t.Errorf("%d series went and %d came", gone, back)
	}
}

// Counts of "other" are never mixed up with a tenant of that name, and names that could not be
// printed are left out.
func TestUnfitNames(t *testing.T) {
	b := newBusiest(5)
	for _, n := range []name{{"other", "other"}, {"n", "a\x1b[31m"}, {"n", "\xff"}, {"n", "a\u202eb"}} {
		b.of(n, 1).wait.observe(0)
	}
	if list := b.labels(); len(list) != 1 || b.rest.wait.count != 4 {
		t.Errorf("the series are %v", list)
	}
	b.of(name{"other", "accounts"}, 1)
	if list := b.labels(); len(list) != 2 {
		t.Errorf("the series are %v", list)
	}
}

// Counting allocates nothing, for names that are named and for those that come and go.
func TestCountingAllocatesNothing(t *testing.T) {
	tenants := newTenantFigures(10)
	events := make([]record.Event, 1000)
	for i := range events {
		events[i] = record.Event{Kind: record.Ended, At: 1, Namespace: interlock.Namespace(fmt.Sprint("tenant-", i))}
	}
	count := func() {
		for i := range events {
			for range 1 + i%3 {
				tenants.of(byPattern, &events[i], "accounts").wait.observe(0)
			}
		}
	}
	count()
	if n := testing.AllocsPerRun(10, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
