package server

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// busiest says which of any number of names deserve a metric of their own. It names the first
// that it sees, up to its room, and counts the others in a sketch of bounded size (space
// saving: a name that is not in it takes the place of the least, and its count as a possible
// error). At a review, candidates that were surely seen more than twice as often as a named one
// take its place, few at a time: a label set that appears is kept by who scrapes, long after it
// is gone. Counts are halved then, so that what was long ago counts for less and less.
//
// It allocates at a review, and for the first names only.
type busiest struct {
	room     int // how many may be named
	named    int
	entries  map[name]*entry
	waiting  candidates // the others, the least first
	rest     series
	reviewed engine.Time
}

// name is what is counted: the name of something in a namespace.
type name struct {
	namespace interlock.Namespace
	name      string
}

// restLabel stands for everything without a metric of its own.
const restLabel = "other"

// entry is a name that is counted.
type entry struct {
	name
	count  uint64
	over   uint64  // how much of the count may have been another name's
	at     int     // its place among the candidates
	series *series // nil: it is a candidate
}

// sure is how often the name was seen at least.
func (e *entry) sure() uint64 { return e.count - e.over }

// fits reports whether a name can be a label of its own.
func (n name) fits() bool {
	return n != name{restLabel, restLabel} && n.name == cleanText(n.name) && string(n.namespace) == cleanText(string(n.namespace))
}

const (
	// candidatesPerRoom is how many candidates are counted for each name that may be named.
	candidatesPerRoom = 4

	// reviewEvery is how often names may take the place of others. At most one in exchanged
	// of those that are named is replaced then.
	reviewEvery = 5 * time.Minute
	exchanged   = 5
)

func newBusiest(room int) *busiest { return &busiest{room: room, entries: map[name]*entry{}} }

// of counts a name once and gives the series that it is counted under.
func (b *busiest) of(n name, now engine.Time) *series {
	if now >= b.reviewed.Add(reviewEvery) {
		b.review(now)
	}
	e := b.entries[n]
	switch {
	case e == nil && b.named < b.room && n.fits():
		e = &entry{name: n, count: 1, series: &series{}}
		b.entries[n] = e
		b.named++
	case e == nil && len(b.waiting) < b.room*candidatesPerRoom:
		e = &entry{name: n, count: 1}
		b.entries[n] = e
		heap.Push(&b.waiting, e)
	case e == nil:
		e = b.waiting[0]
		delete(b.entries, e.name)
		e.name, e.over, e.count = n, e.count, e.count+1
		b.entries[n] = e
		heap.Fix(&b.waiting, 0)
	default:
		e.count++
		if e.series == nil {
			heap.Fix(&b.waiting, e.at)
		}
	}
	if e.series == nil {
		return &b.rest
	}
	return e.series
}

// review lets candidates take the place of names that are seen less.
func (b *busiest) review(now engine.Time) {
	b.reviewed = now
	var named, others []*entry
	for _, e := range b.entries {
		if e.series != nil {
			named = append(named, e)
		} else if e.fits() {
			others = append(others, e)
		}
	}
	slices.SortFunc(named, func(x, y *entry) int { return cmp.Or(cmp.Compare(x.count, y.count), x.compare(y.name)) })
	slices.SortFunc(others, func(x, y *entry) int { return cmp.Or(cmp.Compare(y.sure(), x.sure()), x.compare(y.name)) })
	for i := range min(len(named), len(others), max(1, b.room/exchanged)) {
		out, in := named[i], others[i]
		if in.sure() <= 2*out.count {
			break
		}
		in.series, out.series = &series{}, nil
		out.at, b.waiting[in.at] = in.at, out
	}
	for _, e := range b.entries {
		e.count, e.over = e.count/2, e.over/2
	}
	heap.Init(&b.waiting)
}

// compare orders names.
func (n name) compare(o name) int {
	return cmp.Or(cmp.Compare(n.namespace, o.namespace), cmp.Compare(n.name, o.name))
}

// each gives all series that counted something, the rest among them.
func (b *busiest) each(f func(name, series)) {
	for _, e := range b.entries {
		if e.series != nil {
			f(e.name, *e.series)
		}
	}
	f(name{restLabel, restLabel}, b.rest)
}

// candidates are a heap.
type candidates []*entry

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].count < c[j].count }
func (c candidates) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].at, c[j].at = i, j
}

// Push and Pop are for container/heap.
func (c *candidates) Push(x any) {
	e := x.(*entry)
	e.at = len(*c)
	*c = append(*c, e)
}

func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = slices.Delete(*c, len(*c)-1, len(*c))
	return last
}
