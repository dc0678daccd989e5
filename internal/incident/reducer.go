package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Reducer folds events into incidents. It is for one goroutine.
type Reducer struct {
	options Options
	kept    map[Kind][]*Incident
	byWhat  map[what]*Incident // the last one of each
	left    map[Kind]int

	waits    map[id]wait
	closed   map[id]bool // leases that ended, with keys that stay closed for a while
	leftOpen int
	last     interlock.Index
}

// id is a lease, or the wait for one.
type id struct {
	ns interlock.Namespace
	id [16]byte
}

// wait is one that goes on.
type wait struct {
	ns    interlock.Namespace
	index interlock.Index
	since record.Time
	agent string
	keys  []interlock.Key
}

// what tells whether two incidents are the same one, which repeats.
type what struct {
	kind                Kind
	ns                  interlock.Namespace
	cause, agents, keys string
}

// New makes a reducer.
func New(o Options) *Reducer {
	o.Stuck, o.Fold = cmp.Or(o.Stuck, DefaultStuck), cmp.Or(o.Fold, DefaultFold)
	return &Reducer{
		options: o, kept: map[Kind][]*Incident{}, byWhat: map[what]*Incident{}, left: map[Kind]int{},
		waits: map[id]wait{}, closed: map[id]bool{},
	}
}

// Add folds the next event of the journal. Events of snapshots must not be added.
func (r *Reducer) Add(index interlock.Index, ev *record.Event) {
	r.last = index
	at := id{ev.Namespace, ev.ID}
	switch ev.Kind {
	case record.Opened:
		r.opened(index, ev)
	case record.Queued:
		r.waiting(index, ev, at)
	case record.Admitted:
		delete(r.waits, at)
		if ev.Waited >= r.options.Stuck {
			r.stuck(index, ev, ev.Waited, "granted")
		}
	case record.Left:
		r.leaves(index, ev, at)
	case record.Resumed:
		if ev.Queued {
			r.waiting(index, ev, at)
		}
	case record.Parked: // a resumption that was abandoned
		delete(r.waits, at)
		r.deadlock(index, ev)
	case record.Closed:
		r.lost(index, ev)
		if len(r.closed) < MaxOpen {
			r.closed[at] = true
		}
	case record.Ended:
		delete(r.waits, at)
		if r.closed[at] {
			delete(r.closed, at)
		} else {
			r.lost(index, ev)
		}
		r.deadlock(index, ev)
	case record.Refused:
		r.refused(index, ev)
	case record.AttemptFailed, record.TaskMoved:
		if interlock.TaskState(ev.Op) == interlock.TaskDead {
			r.dead(index, ev)
		}
	case record.NamespaceDeleted:
		r.forget(ev.Namespace)
	case record.NamespaceMoved:
		if record.MoveStep(ev.Op) == record.MoveLeft {
			r.forget(ev.Namespace)
		}
	}
}

// forget forgets what goes on in a namespace.
func (r *Reducer) forget(ns interlock.Namespace) {
	for at := range r.waits {
		if at.ns == ns {
			delete(r.waits, at)
		}
	}
	for at := range r.closed {
		if at.ns == ns {
			delete(r.closed, at)
		}
	}
}

func (r *Reducer) waiting(index interlock.Index, ev *record.Event, at id) {
	if len(r.waits) >= MaxOpen {
		r.leftOpen++
		return
	}
	r.waits[at] = wait{ev.Namespace, index, ev.At, ev.Agent, keysOf(ev.Claims)}
}

// leaves is for the end of a wait without a grant. Waits that ended with their session, or by a decision of the waiter
// itself, count only if they were long.
func (r *Reducer) leaves(index interlock.Index, ev *record.Event, at id) {
	delete(r.waits, at)
	switch {
	case ev.Reason == record.ByDeadlock:
		r.deadlock(index, ev)
	case ev.Reason == record.ByWaitLimit, ev.Waited >= r.options.Stuck && ev.Reason != record.ByConversion:
		r.stuck(index, ev, ev.Waited, ev.Reason.String())
	}
}

func (r *Reducer) opened(index interlock.Index, ev *record.Event) {
	if index <= 1 || ev.Idle == 0 && ev.Epoch <= 1 {
		return // the journal begins
	}
	r.add(&Incident{Kind: FailOver, Took: ev.Idle, Cause: "epoch"}, index, ev)
}

func (r *Reducer) deadlock(index interlock.Index, ev *record.Event) {
	if ev.Reason != record.ByDeadlock || len(ev.Cycle) == 0 {
		return
	}
	in := &Incident{Kind: Deadlock, Agents: []string{ev.Agent}, Cycle: ev.Cycle, Took: ev.Waited}
	for i := range ev.Cycle {
		s := &ev.Cycle[i]
		if s.Agent != ev.Agent {
			in.Agents = append(in.Agents, s.Agent)
		}
		if s.Key != "" {
			in.Keys = append(in.Keys, s.Key)
		}
	}
	slices.Sort(in.Agents[1:])
	in.Agents = slices.Compact(in.Agents)
	slices.Sort(in.Keys)
	in.Keys = slices.Compact(in.Keys)
	r.add(in, index, ev)
}

// lost is for the end of a lease against its holder's will. A preempted one is not lost: its pattern asks for that.
func (r *Reducer) lost(index interlock.Index, ev *record.Event) {
	switch ev.Reason {
	case record.ByTTL, record.ByForgetting, record.ByMaxHold, record.ByStall, record.ByRevocation, record.ByDeath:
		r.add(&Incident{
			Kind: LostLease, Agents: []string{ev.Agent}, Keys: keysOf(ev.Claims), Took: ev.Held, Cause: ev.Reason.String(),
		}, index, ev)
	}
}

func (r *Reducer) refused(index interlock.Index, ev *record.Event) {
	switch ev.Code {
	case interlock.CodeFenced, interlock.CodeTaken, interlock.CodeExpired, interlock.CodeStale:
		r.add(&Incident{
			Kind: StaleWrite, Agents: []string{ev.Agent}, Keys: keysOf(ev.Claims), Cause: string(ev.Code),
		}, index, ev)
	}
}

func (r *Reducer) stuck(index interlock.Index, ev *record.Event, took time.Duration, cause string) {
	r.add(&Incident{
		Kind: StuckWait, Agents: []string{ev.Agent}, Keys: keysOf(ev.Claims), Took: took, Cause: cause,
	}, index, ev)
}

func (r *Reducer) dead(index interlock.Index, ev *record.Event) {
	r.add(&Incident{
		Kind: DeadLetter, Agents: []string{ev.Agent}, Keys: keysOf(ev.Claims), Task: interlock.TaskID(ev.ID),
		Cause: ev.Reason.String(), Took: ev.Held,
	}, index, ev)
}

// add keeps an incident, or counts it with the same one before it.
func (r *Reducer) add(in *Incident, index interlock.Index, ev *record.Event) {
	if ev.At < r.options.Since && !in.GoesOn {
		return
	}
	in.Agents, in.Keys = in.Agents[:min(len(in.Agents), MaxNames)], in.Keys[:min(len(in.Keys), MaxNames)]
	in.Namespace, in.Time, in.Last, in.Index, in.Count = ev.Namespace, ev.At, ev.At, index, 1
	if !in.GoesOn {
		in.Before = index - 1
	}
	same := what{in.Kind, in.Namespace, in.Cause, strings.Join(in.Agents, "\x00"), joined(in.Keys)}
	before := r.byWhat[same]
	switch {
	case in.Kind != FailOver && before != nil && ev.At.Sub(before.Last) <= r.options.Fold:
		before.Count++
		before.Last, before.Took = ev.At, max(before.Took, in.Took)
	case len(r.kept[in.Kind]) >= MaxOfKind:
		r.left[in.Kind]++
	default:
		r.kept[in.Kind] = append(r.kept[in.Kind], in)
		r.byWhat[same] = in
	}
}

// Result returns the incidents, with the waits that go on at a time since Options.Stuck or longer. It ends the reducer.
func (r *Reducer) Result(now record.Time) *Result {
	res := &Result{Left: r.left, LeftOpen: r.leftOpen, Open: len(r.waits)}
	var long []wait
	for _, w := range r.waits {
		res.OpenFor += now.Sub(w.since)
		if now.Sub(w.since) >= r.options.Stuck {
			long = append(long, w)
		}
	}
	slices.SortFunc(long, func(a, b wait) int {
		return cmp.Or(
			cmp.Compare(a.index, b.index), cmp.Compare(a.ns, b.ns), cmp.Compare(a.agent, b.agent),
			slices.Compare(a.keys, b.keys),
		)
	})
	for _, w := range long {
		r.add(&Incident{
			Kind: StuckWait, Agents: []string{w.agent}, Keys: w.keys, Took: now.Sub(w.since), GoesOn: true,
			Before: r.last, Cause: "waiting",
		}, w.index, &record.Event{Namespace: w.ns, At: w.since})
	}
	for _, kind := range Kinds {
		for _, in := range r.kept[kind] {
			in.describe()
			res.Incidents = append(res.Incidents, *in)
		}
	}
	slices.SortStableFunc(res.Incidents, func(a, b Incident) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Index, b.Index))
	})
	return res
}

func keysOf(claims []interlock.Claim) []interlock.Key {
	keys := make([]interlock.Key, 0, min(len(claims), MaxNames))
	for i := range claims[:min(len(claims), MaxNames)] {
		keys = append(keys, claims[i].Key)
	}
	return keys
}

func joined(keys []interlock.Key) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(string(k))
		b.WriteByte(0)
	}
	return b.String()
}
