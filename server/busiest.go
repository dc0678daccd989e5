package server

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// busiest decides which of any number of names deserve a metric of their own. It names the first
// that it sees, up to its room, and counts the others in a sketch of bounded size (space saving: a
// name that is not in it takes the place of the least, and its count as a possible error). At a
// review, candidates that were surely seen more than twice as often as a named one take its place,
// few at a time: a scraper keeps a label set that appears long after it is gone. Counts are halved
// then, so that what was long ago counts for less and less.
//
// Each namespace with traffic has a share of the room, and of the sketch: the same for all, and
// at least one. The room that others leave goes to the busiest, wherever they are. A namespace
// takes places of others only as far as they have more than their share, so none pushes out
// another's busiest, however many busy names it has. If there are more namespaces than places,
// the busiest of them have one.
//
// It allocates at a review, and for the first names only.
type busiest struct {
	room     int // how many may be named
	named    int
	entries  map[name]*entry
	waiting  candidates                  // the others, the least first
	kept     map[interlock.Namespace]int // how many of them are of each namespace
	share    int                         // how many of them a namespace has before it makes way for others
	rest     series
	reviewed engine.Time
}

// name is the counted name of something in a namespace.
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
	return n != name{restLabel, restLabel} && n.name == cleanText(n.name) &&
		string(n.namespace) == cleanText(string(n.namespace))
}

const (
	// candidatesPerRoom is how many candidates are counted for each name that may be named.
	candidatesPerRoom = 4

	// reviewEvery is how often names may take the place of others. At most one in exchanged
	// of those that are named is replaced then.
	reviewEvery = 5 * time.Minute
	exchanged   = 5

	// looked bounds the candidates in the search for one that makes way.
	looked = 64
)

func newBusiest(room int) *busiest {
	return &busiest{room: room, entries: map[name]*entry{}, kept: map[interlock.Namespace]int{}}
}

// of counts a name once and returns the series that it is counted under.
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
		b.keep(n.namespace, 1)
	case e == nil:
		if e = b.givesWay(n.namespace); e == nil {
			return &b.rest
		}
		delete(b.entries, e.name)
		b.keep(e.namespace, -1)
		b.keep(n.namespace, 1)
		e.name, e.over, e.count = n, e.count, e.count+1
		b.entries[n] = e
		heap.Fix(&b.waiting, e.at)
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

// keep counts a namespace's candidates.
func (b *busiest) keep(ns interlock.Namespace, n int) {
	if n += b.kept[ns]; n == 0 {
		delete(b.kept, ns)
	} else {
		b.kept[ns] = n
	}
	b.share = max(1, b.room*candidatesPerRoom/max(1, len(b.kept)))
}

// givesWay returns the candidate that makes place for a new name of a namespace: one of its own if
// it has its share, else one of a namespace that has more, else the least of all. They are looked
// for among the lesser ones; nil if there is none of its own.
func (b *busiest) givesWay(ns interlock.Namespace) *entry {
	full := b.kept[ns] >= b.share
	for _, e := range b.waiting[:min(len(b.waiting), looked)] {
		if full && e.namespace == ns || !full && b.kept[e.namespace] > b.share {
			return e
		}
	}
	if full {
		return nil
	}
	return b.waiting[0]
}

// review lets candidates take the place of names that are seen less, or have more than their
// namespace's share.
func (b *busiest) review(now engine.Time) {
	b.reviewed = now
	var named, others []*entry
	has, busy := map[interlock.Namespace]int{}, map[interlock.Namespace]bool{} // named ones; with traffic
	for _, e := range b.entries {
		if e.count > 0 {
			busy[e.namespace] = true
		}
		if e.series != nil {
			named = append(named, e)
			has[e.namespace]++
		} else if e.fits() {
			others = append(others, e)
		}
	}
	slices.SortFunc(named, func(x, y *entry) int { return cmp.Or(cmp.Compare(x.count, y.count), x.compare(y.name)) })
	slices.SortFunc(others, func(x, y *entry) int { return cmp.Or(cmp.Compare(y.sure(), x.sure()), x.compare(y.name)) })
	share, crowded := max(1, b.room/max(1, len(busy))), len(busy) > b.room
	left := max(1, b.room/exchanged)
	for _, in := range others {
		i := slices.IndexFunc(named, func(out *entry) bool {
			switch above := has[out.namespace] > share || !busy[out.namespace]; {
			case out.namespace == in.namespace, !above && crowded && has[in.namespace] == 0:
				return in.sure() > 2*out.count
			case above && has[in.namespace] < share:
				return true
			default:
				return above && in.sure() > 2*out.count
			}
		})
		if i < 0 || in.sure() == 0 {
			continue
		}
		out := named[i]
		named = slices.Delete(named, i, i+1)
		in.series, out.series = &series{}, nil
		out.at, b.waiting[in.at] = in.at, out
		has[out.namespace]--
		has[in.namespace]++
		b.keep(in.namespace, -1)
		b.keep(out.namespace, 1)
		if left--; left == 0 {
			break
		}
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

// each yields all series that counted something, the rest among them.
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
