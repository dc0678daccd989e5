package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/advice"
	"github.com/interlockdev/interlock/internal/histogram"
	"github.com/interlockdev/interlock/internal/incident"
)

// The bounds of a Reducer.
const (
	MaxClasses = 1_000
	MaxKeys    = 50_000
	MaxTop     = 20 // keys in a report
)

// Sums are the numbers of a class of keys, or of all.
type Sums struct {
	Class    string // "" for all, and for keys that are plain words
	Grants   int
	Waits    int           // that ended, with a grant or without
	Failures int           // waits without a grant, and leases that were lost
	Lost     time.Duration // the sum of the waits

	wait, hold histogram.Histogram
}

// Wait returns a percentile of the waits; requests that were granted at once are none.
func (s *Sums) Wait(percent int) time.Duration { return s.wait.Percentile(percent) }

// Hold returns a percentile of the holds that ended.
func (s *Sums) Hold(percent int) time.Duration { return s.hold.Percentile(percent) }

// Key is a key with the time lost at it.
type Key struct {
	Key   interlock.Key
	Waits int
	Lost  time.Duration
}

// Report is what happened.
type Report struct {
	All       Sums
	Classes   []*Sums // by time lost, then by grants
	Top       []Key   // by time lost
	Incidents *incident.Result
	Advice    *advice.Result
}

// Options are what a report is about.
type Options struct {
	Namespace interlock.Namespace
	// Since is the time of the first event that counts. Earlier ones only tell what goes on.
	Since record.Time
	// Patterns are those that were set before the first event.
	Patterns []interlock.Pattern
}

// Reducer folds the events of one namespace. It is for one goroutine.
type Reducer struct {
	since     record.Time
	all       Sums
	classes   map[string]*Sums
	keys      map[interlock.Key]*Key
	closed    map[lease]bool // those that ended, with keys that stay closed for a while
	incidents *incident.Reducer
	advice    *advice.Reducer
}

type lease struct {
	ns interlock.Namespace
	id [16]byte
}

// New makes a reducer.
func New(o Options) *Reducer {
	r := &Reducer{
		since: o.Since, classes: map[string]*Sums{}, keys: map[interlock.Key]*Key{}, closed: map[lease]bool{},
		incidents: incident.New(incident.Options{Since: o.Since}), advice: advice.New(),
	}
	for i := range o.Patterns {
		r.advice.SetPattern(o.Namespace, &o.Patterns[i])
	}
	return r
}

// Add folds the next event of the journal. Events of snapshots must not be added.
// The event must not be changed afterwards.
func (r *Reducer) Add(index interlock.Index, ev *record.Event) {
	r.incidents.Add(index, ev)
	r.advice.Add(index, ev)
	if ev.At < r.since {
		return
	}
	switch ev.Kind {
	case record.Granted, record.TaskDispatched, record.Admitted, record.Left:
		granted := ev.Kind != record.Left
		if ev.Reason == record.ByConversion || len(ev.Claims) == 0 { // declared waits, and most tasks, ask for no key
			return
		}
		r.each(ev, func(s *Sums) { s.asked(granted, ev) })
		if ev.Waited > 0 {
			r.lost(ev)
		}
	case record.Closed, record.Ended:
		at := lease{ev.Namespace, ev.ID}
		if ev.Kind == record.Ended && r.closed[at] { // counted when it was closed
			delete(r.closed, at)
			return
		}
		if ev.Kind == record.Closed && len(r.closed) < MaxKeys {
			r.closed[at] = true
		}
		failed := slices.Contains([]record.Reason{
			record.ByTTL, record.ByForgetting, record.ByMaxHold, record.ByStall, record.ByRevocation, record.ByDeath,
		}, ev.Reason)
		r.each(ev, func(s *Sums) {
			s.hold.Add(ev.Held)
			if failed {
				s.Failures++
			}
		})
	}
}

// asked counts a request that was granted, or left the line.
func (s *Sums) asked(granted bool, ev *record.Event) {
	if granted {
		s.Grants++
	} else {
		s.Failures++
	}
	if ev.Waited > 0 {
		s.Waits++
		s.Lost += ev.Waited
		s.wait.Add(ev.Waited)
	}
}

// each calls a function for the sums of all keys, and for those of the class of an event's first key.
func (r *Reducer) each(ev *record.Event, count func(*Sums)) {
	count(&r.all)
	if len(ev.Claims) == 0 {
		return
	}
	name := record.Class(string(ev.Claims[0].Key))
	s := r.classes[name]
	if s == nil {
		if len(r.classes) >= MaxClasses {
			return
		}
		s = &Sums{Class: name}
		r.classes[name] = s
	}
	count(s)
}

func (r *Reducer) lost(ev *record.Event) {
	for i := range ev.Claims {
		name := ev.Claims[i].Key
		k := r.keys[name]
		if k == nil {
			if len(r.keys) >= MaxKeys {
				continue
			}
			k = &Key{Key: name}
			r.keys[name] = k
		}
		k.Waits++
		k.Lost += ev.Waited
	}
}

// Report returns the report as of a time. It ends the reducer.
func (r *Reducer) Report(now record.Time) *Report {
	p := &Report{All: r.all, Incidents: r.incidents.Result(now), Advice: r.advice.Result()}
	for _, s := range r.classes {
		p.Classes = append(p.Classes, s)
	}
	slices.SortFunc(p.Classes, func(a, b *Sums) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Grants, a.Grants), cmp.Compare(a.Class, b.Class))
	})
	for _, k := range r.keys {
		p.Top = append(p.Top, *k)
	}
	slices.SortFunc(p.Top, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Key, b.Key)) })
	p.Top = p.Top[:min(len(p.Top), MaxTop)]
	return p
}
