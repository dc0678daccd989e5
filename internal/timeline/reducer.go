package timeline

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Reducer folds events into a Timeline. It is for one goroutine.
type Reducer struct {
	filter Filter
	leases map[id]*lease // those with a bar that goes on
	tasks  map[id]*task  // likewise
	holds  holds
	number int // of the last bar or task

	kept      shortestFirst
	marks     []Mark
	settled   []*task
	newest    record.Time // end or mark that is kept
	moreBars  int
	moreMarks int
	moreTasks int
	moreOpen  int
}

// id is a lease, or the wait for one: both have the same id.
type id struct {
	ns interlock.Namespace
	id [16]byte
}

// lease is what goes on about a lease: a bar and, in grace, a second one.
type lease struct {
	now, grace *bar
	context    Context
	purpose    string
}

// bar is a Bar with what the reducer needs of it.
type bar struct {
	Bar
	number int // from 1, in the order of the beginnings
	id     id
	named  [16]byte // the lease that it has the public name of
	links  []link
	stands []stand // of a hold that goes on
}

// link is one to a hold, at the later bar.
type link struct {
	kind string
	to   target
}

type stand struct {
	place   place
	element *list.Element
}

// New makes a reducer.
func New(f Filter) *Reducer {
	return &Reducer{filter: f, leases: map[id]*lease{}, tasks: map[id]*task{}}
}

// Add folds the next event of the journal. Events of snapshots have no place in a timeline and are ignored. What
// the event points to must not be changed afterwards.
func (r *Reducer) Add(index interlock.Index, ev *record.Event) {
	at := id{ev.Namespace, ev.ID}
	switch ev.Kind {
	case record.Queued:
		r.begin(index, ev, at, Wait)
	case record.Granted:
		r.begin(index, ev, at, Hold)
	case record.Admitted:
		r.admitted(index, ev, at)
	case record.TaskDispatched:
		r.grant(index, ev, at, Attempt, ev.At.Add(-ev.Waited))
		r.attempted(ev)
	case record.TaskSubmitted:
		r.submitted(index, ev, at)
	case record.TaskMoved, record.AttemptFailed, record.ApprovalDecided:
		r.taskMoved(index, ev, at)
	case record.Converted:
		r.end(index, ev, at, "converted")
		r.begin(index, ev, at, Hold)
	case record.Resumed:
		r.end(index, ev, at, "resumed")
		if ev.Queued {
			r.begin(index, ev, at, Wait)
		} else {
			r.begin(index, ev, at, Hold)
		}
	case record.Parked:
		r.parked(index, ev, at)
	case record.Grace:
		r.graceBegins(index, ev, at)
	case record.Closed:
		r.end(index, ev, at, ev.Reason.String())
		r.begin(index, ev, at, LockDelay)
	case record.Ended, record.Left:
		r.end(index, ev, at, ev.Reason.String())
		delete(r.leases, at)
	case record.NamespaceDeleted:
		r.endAll(index, ev, "namespace_deleted")
	case record.NamespaceMoved:
		if record.MoveStep(ev.Op) == record.MoveLeft {
			r.endAll(index, ev, "namespace_moved")
		}
	}
	if m, ok := markOf(index, ev); ok && r.filter.showsMark(&m) {
		if t, found := r.holds.find(ev.Namespace, m.Key, m.Fence); m.Fence != 0 && found {
			holder := t.public("")
			m.Holder = &holder
		}
		if len(r.marks) == r.most(MaxMarks) {
			r.moreMarks++
		} else {
			r.marks = append(r.marks, m)
			r.newest = max(r.newest, m.Time)
		}
	}
}

// begin begins the next bar of a lease. It returns nil if there is no room.
func (r *Reducer) begin(index interlock.Index, ev *record.Event, at id, kind Kind) *bar {
	l := r.leases[at]
	if l == nil {
		if len(r.leases) >= MaxOpen {
			r.moreOpen++
			return nil
		}
		l = &lease{}
		r.leases[at] = l
	}
	l.purpose, l.context = cmp.Or(ev.Purpose, l.purpose), cmp.Or(contextOf(ev.Trace), l.context)
	b := r.bar(ev, at, kind)
	b.From, b.Index, b.Purpose, b.Context = ev.At, index, l.purpose, l.context
	l.now = b
	if isHold(kind) {
		r.holds.add(b)
	}
	return b
}

// bar makes one of an event's lease.
func (r *Reducer) bar(ev *record.Event, at id, kind Kind) *bar {
	r.number++
	b := &bar{number: r.number, id: at, Bar: Bar{
		Kind: kind, Namespace: ev.Namespace, Agent: ev.Agent, Flow: ev.Flow, Claims: ev.Claims, Purpose: ev.Purpose,
		Context: contextOf(ev.Trace),
	}}
	if b.named = at.id; kind == Wait {
		if ev.Base != 0 && !ev.Part {
			b.named = ev.BaseID
		}
	} else {
		b.Fence = ev.Fence
	}
	if kind == Attempt {
		b.Task, b.Attempt = ev.BaseID, int(ev.Generation)
		if ev.Kind == record.Ended {
			b.Task, b.Attempt = ev.ByID, 0
		}
		if t := r.tasks[id{ev.Namespace, b.Task}]; t != nil {
			b.Queue = t.Queue
		}
	}
	return b
}

// isHold reports whether others wait for the end of a bar of a kind. A lease that is parked without its keys
// blocks none of them, which is seen from the hold that its parking ended.
func isHold(k Kind) bool { return k == Hold || k == Attempt || k == LockDelay }

// admitted ends a wait with a grant: of a lease, or of other claims to the lease that it converts.
func (r *Reducer) admitted(index interlock.Index, ev *record.Event, at id) {
	l := r.leases[at]
	waiting := ev.At.Add(-ev.Waited)
	if l != nil && l.now != nil && l.now.Kind == Wait {
		waiting = l.now.From
	}
	r.end(index, ev, at, "granted")
	delete(r.leases, at)
	of := at
	if ev.Base != 0 && !ev.Part {
		of.id = ev.BaseID
		r.end(index, ev, of, "converted")
	} else if l != nil {
		r.leases[at] = l // its purpose and its trace go on
	}
	r.grant(index, ev, of, Hold, waiting)
}

// grant begins a hold that was waited for, and links it to those that it waited for.
func (r *Reducer) grant(index interlock.Index, ev *record.Event, at id, kind Kind, waiting record.Time) {
	b := r.begin(index, ev, at, kind)
	if b == nil {
		return
	}
	b.Waited = kind == Hold
	for _, t := range r.holds.last(b, waiting) {
		b.links = append(b.links, link{HandedOn, t})
	}
}

func (r *Reducer) parked(index interlock.Index, ev *record.Event, at id) {
	if l := r.leases[at]; l != nil && l.now != nil && l.now.Kind == Parked {
		return // parked again, which changes the limit
	}
	r.end(index, ev, at, cmp.Or(ev.Reason.String(), "parked"))
	r.begin(index, ev, at, Parked)
}

func (r *Reducer) graceBegins(index interlock.Index, ev *record.Event, at id) {
	l := r.leases[at]
	if l == nil || l.grace != nil {
		return
	}
	b := r.bar(ev, at, Grace)
	b.From, b.Index, b.Purpose, b.Context = ev.At, index, l.purpose, l.context
	l.grace = b
}

// end ends what goes on about a lease. An end without a beginning has its time in the event.
func (r *Reducer) end(index interlock.Index, ev *record.Event, at id, outcome string) {
	l := r.leases[at]
	if l == nil {
		r.endUnseen(index, ev, at, outcome)
		return
	}
	for _, b := range []*bar{l.now, l.grace} {
		if b == nil {
			continue
		}
		if b.TraceID == "" { // the request came before the first event
			b.Context = contextOf(ev.Trace)
		}
		if b.Kind == Wait {
			r.linkWait(b, ev)
		}
		r.finish(b, index, ev.At, outcome)
	}
	l.now, l.grace = nil, nil
}

// finish sets the end of a bar, and keeps it if it is asked for.
func (r *Reducer) finish(b *bar, index interlock.Index, at record.Time, outcome string) {
	b.To, b.EndIndex, b.Outcome = max(at, b.From), index, outcome
	if b.stands != nil {
		r.holds.remove(b)
	}
	if isHold(b.Kind) {
		r.holds.close(b, b.To)
	}
	r.keep(b)
}

// endUnseen makes the bar of an end that has its beginning before the first event.
func (r *Reducer) endUnseen(index interlock.Index, ev *record.Event, at id, outcome string) {
	kind, took := Hold, ev.Held
	switch {
	case ev.Kind == record.Left, ev.Kind == record.Admitted && outcome == "granted":
		kind, took = Wait, ev.Waited
	case ev.Kind == record.Ended && ev.ByID != [16]byte{}:
		kind = Attempt
	case ev.Kind == record.Parked && ev.Reason == 0, ev.Kind == record.Closed,
		ev.Kind == record.Ended && ev.Reason != record.ByParking:
	default:
		return // it does not tell since when
	}
	b := r.bar(ev, at, kind)
	b.From = ev.At.Add(-took)
	if kind == Wait {
		r.linkWait(b, ev)
	}
	r.finish(b, index, ev.At, outcome)
}

// linkWait links a wait to the holds that it was for.
func (r *Reducer) linkWait(b *bar, ev *record.Event) {
	var blockers []target
	if ev.Kind == record.Admitted {
		chosen := *b
		chosen.Claims = ev.Claims // of its alternatives
		blockers = r.holds.last(&chosen, b.From)
	} else {
		blockers = r.holds.blockers(b)
	}
	for _, t := range blockers {
		b.links = append(b.links, link{BlockedBy, t})
	}
}

// endAll ends all that goes on in a namespace.
func (r *Reducer) endAll(index interlock.Index, ev *record.Event, outcome string) {
	for _, b := range r.open() {
		if b.Namespace == ev.Namespace {
			r.finish(b, index, ev.At, outcome)
			delete(r.leases, b.id)
		}
	}
	for _, t := range r.openTasks() {
		if t.Namespace == ev.Namespace {
			r.settle(t, index, ev.At, outcome)
		}
	}
}

// open returns the bars that go on, in the order of their beginnings.
func (r *Reducer) open() (list []*bar) {
	for _, l := range r.leases {
		for _, b := range []*bar{l.now, l.grace} {
			if b != nil {
				list = append(list, b)
			}
		}
	}
	slices.SortFunc(list, func(a, b *bar) int { return cmp.Compare(a.number, b.number) })
	return list
}

// keep keeps a bar that is asked for. If there are too many, the shortest one goes.
func (r *Reducer) keep(b *bar) {
	if !r.filter.shows(b.From, b.To, b.Agent, b.Claims) {
		return
	}
	most := MaxBars
	if r.filter.Ended {
		most = r.most(MaxEnded)
	}
	r.newest = max(r.newest, b.To)
	if heap.Push(&r.kept, b); len(r.kept) > most {
		heap.Pop(&r.kept)
		r.moreBars++
	}
}

// Full reports whether a result with Filter.Ended has no room for more, and all that it has ended in an earlier
// millisecond than that of a time. Then another result can begin there, and nothing is left out.
func (r *Reducer) Full(at record.Time) bool {
	return r.filter.Ended && at/millisecond > r.newest/millisecond &&
		(len(r.kept) >= MaxEnded || len(r.settled) >= MaxTasks || len(r.marks) >= MaxMarks)
}

// most is how many a result keeps of a kind. With Filter.Ended there is room for more, which ends together with the
// last one.
func (r *Reducer) most(usual int) int {
	if r.filter.Ended {
		return 2 * usual
	}
	return usual
}

const millisecond = record.Time(time.Millisecond)

// shortestFirst is a heap. A bar that goes on is longer than any that has ended.
type shortestFirst []*bar

func (h shortestFirst) Len() int { return len(h) }
func (h shortestFirst) Less(i, k int) bool {
	a, b := h[i], h[k]
	if (a.To == 0) != (b.To == 0) {
		return b.To == 0
	}
	if a.To == 0 { // the one that began last is the shortest
		return a.number > b.number
	}
	return cmp.Or(cmp.Compare(a.To.Sub(a.From), b.To.Sub(b.From)), cmp.Compare(a.number, b.number)) < 0
}
func (h shortestFirst) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push and Pop are for package heap.
func (h *shortestFirst) Push(x any) { *h = append(*h, x.(*bar)) }

// Pop returns the last one.
func (h *shortestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Timeline returns the result. It ends the reducer, which must not be used afterwards.
func (r *Reducer) Timeline() *Timeline {
	for _, b := range r.open() {
		if b.Kind == Wait {
			for _, t := range r.holds.blockers(b) {
				b.links = append(b.links, link{BlockedBy, t})
			}
		}
		r.keep(b)
	}
	bars := []*bar(r.kept)
	slices.SortFunc(bars, func(a, b *bar) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.number, b.number))
	})
	t := &Timeline{
		Tasks: r.keptTasks(), Marks: r.marks, MoreBars: r.moreBars, MoreMarks: r.moreMarks, MoreTasks: r.moreTasks,
		MoreOpen: r.moreOpen,
	}
	where := make(map[int]int, len(bars))
	lanes := map[string]bool{}
	lane := func(agent string) {
		if !lanes[agent] {
			lanes[agent] = true
			t.Lanes = append(t.Lanes, agent)
		}
	}
	for i, b := range bars {
		where[b.number] = i
		b.Lease = nameOf(b.named)
		for _, l := range b.links {
			b.Links = append(b.Links, l.to.public(l.kind))
		}
		t.Bars = append(t.Bars, b.Bar)
		lane(b.Agent)
	}
	for i := range t.Marks {
		if t.Marks[i].Namespace != "" { // not one of the whole server
			lane(t.Marks[i].Agent)
		}
	}
	for i, b := range bars {
		for _, l := range b.links {
			other, ok := where[l.to.number]
			switch {
			case !ok:
			case l.kind == HandedOn:
				t.Links = append(t.Links, Link{l.kind, other, i})
			default:
				t.Links = append(t.Links, Link{l.kind, i, other})
			}
		}
	}
	return t
}
