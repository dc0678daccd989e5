package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// revise emits that a pattern is set to blob, or dropped if it is nil.
func (e *Engine) revise(name string, blob []byte, reverted uint64, reason string) {
	if problem := e.PendingWork.NS.TooManyChanges(); problem != nil {
		e.refuse(interlock.CodeOverloaded, problem)
		return
	}
	*e.draft() = record.Event{
		Kind: record.PatternSet, Namespace: e.head.Namespace, PatternName: name, Blob: blob, By: reverted, Generation: 1,
		Actor: e.head.Actor, Note: reason,
	}
	if blob == nil {
		e.ev.Kind = record.PatternDropped
	}
	if s := e.PendingWork.NS; s != nil && s.Revisions[name] != nil {
		e.ev.Generation += s.Revisions[name].Last().Number
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done)
}

func (c *RevertPattern) decide(e *Engine) {
	if !e.configurable() || !e.acceptsReason(c.Reason) {
		return
	}
	var v *store.Revisions
	if s := e.PendingWork.NS; s != nil {
		v = s.Revisions[c.Name]
	}
	if v == nil {
		e.refuseNoPattern(c.Name)
		return
	}
	x := v.Find(c.Revision)
	if x == nil {
		problem := message.New(message.UnknownRevision, message.Str(c.Name), message.Num(c.Revision))
		if c.Revision == 0 {
			problem = message.New(message.NoEarlierRevision, message.Str(c.Name))
		}
		e.refuse(interlock.CodeUnknownRevision, problem)
		return
	}
	if x.Blob == nil {
		e.revise(c.Name, nil, x.Number, c.Reason)
		return
	}
	pattern, err := record.DecodePattern(x.Blob)
	if err != nil {
		panic("engine: own pattern cannot be read: " + err.Error())
	}
	e.register(&pattern, x.Number, c.Reason)
}

// Revisions lists the remembered revisions of a pattern, dropped or not, the newest first.
func (e *Engine) Revisions(ns interlock.Namespace, name string) (list []interlock.PatternRevision) {
	s := e.turnTo(ns)
	if s == nil || s.Revisions[name] == nil {
		return nil
	}
	for _, x := range slices.Backward(s.Revisions[name].List) {
		r := interlock.PatternRevision{
			Pattern: interlock.Pattern{Name: name}, Revision: x.Number, Dropped: x.Blob == nil, Reverted: x.Reverted,
			Actor: x.Actor, Age: e.Clock.Sub(x.At),
		}
		if x.Blob != nil {
			r.Pattern, _ = record.DecodePattern(x.Blob) // it was read before
		}
		list = append(list, r)
	}
	return list
}
