package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The earlier revisions of a pattern. Each time that a pattern is set, dropped or reverted is a
// revision of it. The events that do so are the only record: a journal that is older than
// revisions has them.

// revisions are those of one name that are remembered, oldest first.
type revisions struct {
	name  string
	list  []revision
	bytes int
}

type revision struct {
	number   uint64
	reverted uint64 // which one it brought back
	at       Time
	actor    string
	blob     []byte // the pattern; nil: it was dropped
}

// last returns the present one.
func (v *revisions) last() *revision { return &v.list[len(v.list)-1] }

// add appends one, and forgets the oldest of too many.
func (v *revisions) add(x revision) {
	v.list = append(v.list, x)
	v.bytes += len(x.blob)
	for len(v.list) > interlock.MaxRevisions || len(v.list) > 1 && v.bytes > interlock.MaxRevisionBytes {
		v.trim()
	}
}

// trim forgets the oldest one.
func (v *revisions) trim() {
	v.bytes -= len(v.list[0].blob)
	v.list = slices.Delete(v.list, 0, 1)
}

// trimRevisions forgets the oldest revisions of a namespace that remembers too much, as
// long as there is one that is not the present one of its pattern. So of a snapshot,
// which has them by name, nothing is forgotten as it is read.
func (s *namespace) trimRevisions() {
	for s.revisionBytes > interlock.MaxSpaceRevisionBytes {
		v := s.oldestRevised()
		if v == nil {
			return
		}
		s.revisionBytes -= v.bytes
		v.trim()
		s.revisionBytes += v.bytes
	}
}

// oldestRevised returns the pattern with the oldest of all superseded revisions, nil if there
// are none; of two that are as old, the first by name.
func (s *namespace) oldestRevised() (oldest *revisions) {
	look := func(v *revisions) {
		if len(v.list) > 1 && (oldest == nil || cmp.Or(cmp.Compare(v.list[0].at, oldest.list[0].at), strings.Compare(v.name, oldest.name)) < 0) {
			oldest = v
		}
	}
	for _, p := range s.patterns {
		look(s.revisions[p.Name])
	}
	for _, name := range s.dropped {
		look(s.revisions[name])
	}
	return oldest
}

// find returns the revision with a number, or with 0 the one before the present one; nil
// if it is not remembered.
func (v *revisions) find(number uint64) *revision {
	if number == 0 {
		if number = v.last().number - 1; number == 0 {
			return nil
		}
	}
	for i := range v.list {
		if v.list[i].number == number {
			return &v.list[i]
		}
	}
	return nil
}

// evolveRevision records the revision of an record.PatternSet or record.PatternDropped. Of the dropped
// patterns, those of the last MaxPatterns names are remembered.
func (s *namespace) evolveRevision(ev *record.Event) {
	name := ev.PatternName
	v := s.revisions[name]
	if v == nil {
		v = &revisions{name: name}
		if s.revisions == nil {
			s.revisions = map[string]*revisions{}
		}
		s.revisions[name] = v
	}
	x := revision{number: ev.Generation, reverted: ev.By, at: ev.At, actor: ev.Actor}
	if ev.Kind == record.PatternSet {
		x.blob = ev.Blob
	}
	if x.number == 0 { // of a journal that is older than revisions
		x.number = 1
		if len(v.list) > 0 {
			x.number += v.last().number
		}
	}
	s.revisionBytes -= v.bytes
	v.add(x)
	s.revisionBytes += v.bytes
	s.dropped = slices.DeleteFunc(s.dropped, func(n string) bool { return n == name })
	if ev.Kind == record.PatternDropped {
		if s.dropped = append(s.dropped, name); len(s.dropped) > interlock.MaxPatterns {
			s.revisionBytes -= s.revisions[s.dropped[0]].bytes
			delete(s.revisions, s.dropped[0])
			s.dropped = slices.Delete(s.dropped, 0, 1)
		}
	}
	s.trimRevisions()
}

// revise emits that a pattern is set to blob, or dropped if it is nil.
func (e *Engine) revise(name string, blob []byte, reverted uint64) {
	if problem := e.pendingWork.ns.tooManyChanges(); problem != nil {
		e.refuse(interlock.CodeOverloaded, problem)
		return
	}
	*e.draft() = record.Event{Kind: record.PatternSet, Namespace: e.head.Namespace, PatternName: name, Blob: blob, By: reverted, Generation: 1, Actor: e.head.Actor}
	if blob == nil {
		e.ev.Kind = record.PatternDropped
	}
	if s := e.pendingWork.ns; s != nil && s.revisions[name] != nil {
		e.ev.Generation += s.revisions[name].last().number
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done)
}

func (c *RevertPattern) decide(e *Engine) {
	if !e.configurable() {
		return
	}
	var v *revisions
	if s := e.pendingWork.ns; s != nil {
		v = s.revisions[c.Name]
	}
	if v == nil {
		e.refuseNoPattern(c.Name)
		return
	}
	x := v.find(c.Revision)
	if x == nil {
		problem := message.New(message.UnknownRevision, message.Str(c.Name), message.Num(c.Revision))
		if c.Revision == 0 {
			problem = message.New(message.NoEarlierRevision, message.Str(c.Name))
		}
		e.refuse(interlock.CodeNoSuchRevision, problem)
		return
	}
	if x.blob == nil {
		e.revise(c.Name, nil, x.number)
		return
	}
	pattern, err := record.DecodePattern(x.blob)
	if err != nil {
		panic("engine: own pattern cannot be read: " + err.Error())
	}
	e.register(&pattern, x.number)
}

// Revisions lists what is remembered of a pattern, dropped or not, the newest first.
func (e *Engine) Revisions(ns interlock.Namespace, name string) (list []interlock.PatternRevision) {
	s := e.turnTo(ns)
	if s == nil || s.revisions[name] == nil {
		return nil
	}
	for _, x := range slices.Backward(s.revisions[name].list) {
		r := interlock.PatternRevision{
			Pattern: interlock.Pattern{Name: name}, Revision: x.number, Dropped: x.blob == nil, Reverted: x.reverted,
			Actor: x.actor, Age: e.now.Sub(x.at),
		}
		if x.blob != nil {
			r.Pattern, _ = record.DecodePattern(x.blob) // it was read before
		}
		list = append(list, r)
	}
	return list
}
