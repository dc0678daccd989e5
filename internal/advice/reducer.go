package advice

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/histogram"
)

// Reducer learns from events. It is for one goroutine.
type Reducer struct {
	open     map[id]*lease
	byFence  map[fence]*lease
	held     map[party][]*lease // what each flow holds
	sessions map[session]time.Duration
	keys     map[place]*key
	edges    map[edge]*order
	classes  map[class]*holds
	patterns []*pattern
	cycles   map[place]int // deadlocks at a key
	lost     map[interlock.Namespace]time.Duration
	left     int
}

type (
	id struct {
		ns interlock.Namespace
		id [16]byte
	}
	fence struct {
		ns    interlock.Namespace
		fence interlock.Fence
	}
	session struct {
		ns  interlock.Namespace
		num uint64
	}
	place struct {
		ns  interlock.Namespace
		key interlock.Key
	}
	class struct {
		ns   interlock.Namespace
		name string
	}
	// party is what takes keys one after the other: a flow of a session. Requests without a session are parties only
	// by their agent.
	party struct {
		ns          interlock.Namespace
		session     uint64
		agent, flow string
	}
)

// lease is one that is held, or the request for one.
type lease struct {
	party  party
	claims []interlock.Claim
	fence  interlock.Fence // 0: in line
	ttl    time.Duration
	waited time.Duration
	index  interlock.Index
	below  map[interlock.Key][]string // what was written, by the claim's key: the next segments
}

// key is what is known about one key.
type key struct {
	waits, compared, others int
	lost, lostOthers        time.Duration
	below                   []string // what its last holder wrote
	examples, coarse        []interlock.Index
	inUse, most, grants     int // of permits
	mostAt                  interlock.Index
}

// holds are the holds of a class of keys.
type holds struct {
	histogram histogram.Histogram
	n, losses int
	ttl       time.Duration
	key       interlock.Key
	examples  []interlock.Index
}

type pattern struct {
	ns       interlock.Namespace
	name     string
	capacity int
	shape    *regexp.Regexp
}

// New makes a reducer.
func New() *Reducer {
	return &Reducer{
		open: map[id]*lease{}, byFence: map[fence]*lease{}, held: map[party][]*lease{}, sessions: map[session]time.Duration{},
		keys: map[place]*key{}, edges: map[edge]*order{}, classes: map[class]*holds{}, cycles: map[place]int{},
		lost: map[interlock.Namespace]time.Duration{},
	}
}

// SetPattern tells of a pattern that was set before the first event.
func (r *Reducer) SetPattern(ns interlock.Namespace, p *interlock.Pattern) { r.setPattern(ns, p) }

// Add folds the next event of the journal. Events of snapshots must not be added.
// The event must not be changed afterwards.
func (r *Reducer) Add(index interlock.Index, ev *record.Event) {
	at := id{ev.Namespace, ev.ID}
	switch ev.Kind {
	case record.SessionOpened:
		if len(r.sessions) < MaxOpen {
			r.sessions[session{ev.Namespace, ev.Session}] = ev.TTL
		}
	case record.SessionEnded:
		delete(r.sessions, session{ev.Namespace, ev.Session})
	case record.Queued:
		if l := r.request(index, ev, at); l != nil && ev.Base == 0 && !ev.Any {
			r.takes(index, l, true)
		}
	case record.Granted, record.TaskDispatched:
		if l := r.request(index, ev, at); l != nil {
			if ev.Kind == record.Granted {
				r.takes(index, l, false)
			}
			r.grant(l, ev)
		}
	case record.Admitted:
		r.admitted(index, ev, at)
	case record.Converted:
		if l := r.open[at]; l != nil {
			r.drop(l)
			l.claims = ev.Claims
			r.grant(l, ev)
		}
	case record.Resumed:
		if l := r.request(index, ev, at); l != nil && !ev.Queued {
			r.grant(l, ev)
		}
	case record.Left:
		r.waited(index, ev)
		r.deadlock(ev)
		delete(r.open, at)
	case record.Parked, record.Closed, record.Ended:
		r.deadlock(ev)
		r.ends(index, ev, at)
	case record.Written:
		r.written(ev)
	case record.PatternSet, record.PatternDropped:
		r.patternSet(ev)
	case record.NamespaceDeleted:
		for at, l := range r.open {
			if at.ns == ev.Namespace {
				r.drop(l)
				delete(r.open, at)
			}
		}
	}
}

// request notes a request, or a lease that is held at once. It returns nil if there is no room.
func (r *Reducer) request(index interlock.Index, ev *record.Event, at id) *lease {
	if l := r.open[at]; l != nil { // resumed
		r.drop(l)
		delete(r.open, at)
	}
	if len(r.open) >= MaxOpen {
		r.left++
		return nil
	}
	l := &lease{
		party: party{ev.Namespace, ev.Session, ev.Agent, ev.Flow}, claims: ev.Claims, index: index,
		ttl: cmp.Or(ev.TTL, r.sessions[session{ev.Namespace, ev.Session}]),
	}
	r.open[at] = l
	return l
}

// grant begins a hold.
func (r *Reducer) grant(l *lease, ev *record.Event) {
	l.fence, l.waited = ev.Fence, ev.Waited
	r.byFence[fence{ev.Namespace, ev.Fence}] = l
	if of := r.held[l.party]; len(of) < MaxHeld {
		r.held[l.party] = append(of, l)
	}
	for i := range l.claims {
		if c := &l.claims[i]; c.Mode == interlock.Permits {
			if k := r.key(ev.Namespace, c.Key); k != nil {
				k.grants++
				k.inUse += int(c.Count)
				if k.inUse > k.most {
					k.most, k.mostAt = k.inUse, l.index
				}
			}
		}
	}
}

// drop ends a hold, or nothing for a request.
func (r *Reducer) drop(l *lease) {
	if l.fence == 0 {
		return
	}
	delete(r.byFence, fence{l.party.ns, l.fence})
	of := slices.DeleteFunc(r.held[l.party], func(o *lease) bool { return o == l })
	if r.held[l.party] = of; len(of) == 0 {
		delete(r.held, l.party)
	}
	for i := range l.claims {
		if c := &l.claims[i]; c.Mode == interlock.Permits {
			if k := r.key(l.party.ns, c.Key); k != nil {
				k.inUse -= int(c.Count)
			}
		}
	}
	l.fence = 0
}

func (r *Reducer) admitted(index interlock.Index, ev *record.Event, at id) {
	r.waited(index, ev)
	l := r.open[at]
	if ev.Base != 0 && !ev.Part { // a conversion: the base has the claims now
		delete(r.open, at)
		if l = r.open[id{ev.Namespace, ev.BaseID}]; l == nil {
			return
		}
		r.drop(l)
	}
	if l == nil {
		if l = r.request(index, ev, at); l == nil {
			return
		}
	}
	l.claims = ev.Claims
	r.grant(l, ev)
}

// waited counts the time of a wait that has ended.
func (r *Reducer) waited(index interlock.Index, ev *record.Event) {
	if ev.Waited <= 0 {
		return
	}
	r.lost[ev.Namespace] += ev.Waited
	for i := range ev.Claims {
		if k := r.key(ev.Namespace, ev.Claims[i].Key); k != nil {
			k.waits++
			k.lost += ev.Waited
			k.examples = example(k.examples, index)
		}
	}
}

// ends is for a hold that is over, or put aside.
func (r *Reducer) ends(index interlock.Index, ev *record.Event, at id) {
	l := r.open[at]
	if l == nil { // it began earlier, so its permits were in use from the beginning
		for i := range ev.Claims {
			if c := &ev.Claims[i]; c.Mode == interlock.Permits {
				if k := r.key(ev.Namespace, c.Key); k != nil {
					k.most, k.mostAt = k.most+int(c.Count), index
				}
			}
		}
		return
	}
	if l.fence != 0 && ev.Kind != record.Parked {
		r.countHold(index, ev, l)
		r.compare(index, l)
	}
	r.drop(l)
	delete(r.open, at)
}

// countHold counts a hold in the class of its first key.
func (r *Reducer) countHold(index interlock.Index, ev *record.Event, l *lease) {
	if len(l.claims) == 0 {
		return
	}
	at := class{ev.Namespace, record.Class(string(l.claims[0].Key))}
	h := r.classes[at]
	if h == nil {
		if len(r.classes) >= MaxClasses {
			r.left++
			return
		}
		h = &holds{key: l.claims[0].Key}
		r.classes[at] = h
	}
	h.n++
	switch ev.Reason {
	case record.ByDeath, record.ByForgetting: // a silent holder: how long it held tells nothing about the ttl
	case record.ByTTL:
		h.losses++
		h.ttl = max(h.ttl, l.ttl)
		h.examples = example(h.examples, index)
	default:
		h.histogram.Add(ev.Held)
	}
}

// compare compares the children that a lease wrote with those of the holder before it.
func (r *Reducer) compare(index interlock.Index, l *lease) {
	for i := range l.claims {
		c := &l.claims[i]
		if c.Mode != interlock.Exclusive {
			continue
		}
		k := r.key(l.party.ns, c.Key)
		if k == nil {
			continue
		}
		wrote := l.below[c.Key]
		if l.waited > 0 && len(wrote) > 0 && len(k.below) > 0 {
			k.compared++
			if !slices.ContainsFunc(wrote, func(s string) bool { return slices.Contains(k.below, s) }) {
				k.others++
				k.lostOthers += l.waited
				k.coarse = example(k.coarse, index)
			}
		}
		k.below = wrote
	}
}

// written notes a document that was written below a key of its author's lease.
func (r *Reducer) written(ev *record.Event) {
	l := r.byFence[fence{ev.Namespace, ev.Fence}]
	if l == nil || len(ev.Claims) == 0 {
		return
	}
	for i := range l.claims {
		top := l.claims[i].Key
		rest, ok := strings.CutPrefix(string(ev.Claims[0].Key), string(top)+"/")
		if !ok || len(l.below[top]) >= MaxHeld {
			continue
		}
		child, _, _ := strings.Cut(rest, "/")
		if l.below == nil {
			l.below = map[interlock.Key][]string{}
		}
		if !slices.Contains(l.below[top], child) {
			l.below[top] = append(l.below[top], child)
		}
	}
}

func (r *Reducer) deadlock(ev *record.Event) {
	if ev.Reason != record.ByDeadlock {
		return
	}
	var seen []interlock.Key
	for i := range ev.Cycle {
		at := place{ev.Namespace, ev.Cycle[i].Key}
		if slices.Contains(seen, at.key) || r.cycles[at] == 0 && len(r.cycles) >= MaxKeys {
			continue
		}
		seen = append(seen, at.key)
		r.cycles[at]++
	}
}

func (r *Reducer) patternSet(ev *record.Event) {
	r.dropPattern(ev.Namespace, ev.PatternName)
	if p, err := ev.Pattern(); ev.Kind == record.PatternSet && err == nil {
		p.Name = ev.PatternName
		r.setPattern(ev.Namespace, &p)
	}
}

func (r *Reducer) dropPattern(ns interlock.Namespace, name string) {
	r.patterns = slices.DeleteFunc(r.patterns, func(p *pattern) bool { return p.ns == ns && p.name == name })
}

func (r *Reducer) setPattern(ns interlock.Namespace, p *interlock.Pattern) {
	if len(r.patterns) >= MaxPatterns {
		return
	}
	if shape, err := regexp.Compile(shapeOf(p.Shape)); err == nil {
		r.patterns = append(r.patterns, &pattern{ns, p.Name, int(p.Capacity), shape})
	}
}

var variable = regexp.MustCompile(`/?\\\{[^}]*\\\}`)

// shapeOf returns the regular expression for the keys of a shape.
func shapeOf(shape string) string {
	return "^" + variable.ReplaceAllStringFunc(regexp.QuoteMeta(shape), func(v string) string {
		slash := strings.TrimSuffix(v[:1], `\`)
		switch {
		case strings.Contains(v, `\.\.\.`):
			return "(" + slash + ".*)?"
		case strings.Contains(v, ":int"):
			return slash + "[0-9]+"
		}
		return slash + "[^/]+"
	}) + "$"
}

// patternOf returns the pattern of a key; of several, the one with the longest shape.
func (r *Reducer) patternOf(ns interlock.Namespace, k interlock.Key) (best *pattern) {
	for _, p := range r.patterns {
		if p.ns == ns && p.shape.MatchString(string(k)) &&
			(best == nil || len(p.shape.String()) > len(best.shape.String())) {
			best = p
		}
	}
	return best
}

// key returns what is known about a key, or nil if there is no room.
func (r *Reducer) key(ns interlock.Namespace, name interlock.Key) *key {
	at := place{ns, name}
	k := r.keys[at]
	if k == nil {
		if len(r.keys) >= MaxKeys {
			r.left++
			return nil
		}
		k = &key{}
		r.keys[at] = k
	}
	return k
}

func example(list []interlock.Index, index interlock.Index) []interlock.Index {
	if len(list) >= MaxExamples || slices.Contains(list, index) {
		return list
	}
	return append(list, index)
}
