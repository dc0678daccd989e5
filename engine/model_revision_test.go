package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// revision is an earlier setting of a pattern. The model remembers all of them.
type revision struct {
	place   patternName
	number  uint64
	brought uint64 // the one that it brought back
	at      engine.Time
	actor   string
	pattern *interlock.Pattern // nil: it was dropped
}

// patternName is a pattern's name in its namespace.
type patternName struct {
	ns   interlock.Namespace
	name string
}

// revisionsOf are those of a pattern that the engine remembers, oldest first.
func (m *model) revisionsOf(of patternName) (list []*revision) {
	for _, x := range m.revisions {
		if x.place == of {
			list = append(list, x)
		}
	}
	return list[max(0, len(list)-interlock.MaxRevisions):]
}

// revisionMeant is the revision to which c goes back, nil for none.
func (m *model) revisionMeant(c *engine.RevertPattern) *revision {
	list := m.revisionsOf(patternName{c.Namespace, c.Name})
	for i, x := range list {
		if c.Revision == x.number || c.Revision == 0 && i == len(list)-2 {
			return x
		}
	}
	return nil
}

// revised is the revision that cmd makes, nil for none.
func (m *model) revised(cmd engine.Command) *revision {
	head := cmd.Header()
	x := &revision{number: 1, at: m.now, actor: head.Actor}
	x.place.ns = head.Namespace
	switch c := cmd.(type) {
	case *engine.SetPattern:
		x.place.name, x.pattern = c.Pattern.Name, &c.Pattern
	case *engine.DropPattern:
		x.place.name = c.Name
	case *engine.RevertPattern:
		to := m.revisionMeant(c)
		if to == nil {
			return nil
		}
		x.place.name, x.pattern, x.brought = c.Name, to.pattern, to.number
	default:
		return nil
	}
	for _, before := range m.revisionsOf(x.place) {
		x.number = before.number + 1
	}
	return x
}

// permitRevision: a pattern is what was sent, or what it was.
func (m *model) permitRevision(cmd engine.Command, ev *record.Event) error {
	x := m.revised(cmd)
	if x == nil || (x.pattern == nil) != (ev.Kind == record.PatternDropped) || ev.PatternName != x.place.name {
		return errors.New("nobody asked for it")
	}
	if ev.Generation != x.number || ev.By != x.brought || ev.Actor != x.actor {
		return fmt.Errorf("revision %d as in %d by %q, want %+v", ev.Generation, ev.By, ev.Actor, x)
	}
	return nil
}

// foldRevision takes in what a pattern is from now on.
func (m *model) foldRevision(cmd engine.Command) {
	x := m.revised(cmd)
	m.revisions = append(m.revisions, x)
	ns := x.place.ns
	m.patterns[ns] = slices.DeleteFunc(m.patterns[ns], func(p *interlock.Pattern) bool { return p.Name == x.place.name })
	if x.pattern != nil {
		m.patterns[ns] = append(m.patterns[ns], x.pattern)
	} else {
		m.recorded = slices.DeleteFunc(m.recorded, func(r recordedRefusal) bool { return r.pattern == x.place })
	}
}

// expectRevert: what an earlier revision said may no longer be said beside the other
// patterns.
func (m *model) expectRevert(c *engine.RevertPattern) answer {
	switch x := m.revisionMeant(c); {
	case len(m.revisionsOf(patternName{c.Namespace, c.Name})) == 0:
		return refusalKey(interlock.CodeUnknownPattern)
	case x == nil:
		return refusalKey(interlock.CodeUnknownRevision)
	case x.pattern == nil:
		return answer{outcome: engine.Done}
	}
	return refusalKey(interlock.CodeInvalidPattern, "")
}

// checkRevisions compares what is listed of each pattern.
func (m *model) checkRevisions(e *engine.Engine, ns interlock.Namespace) error {
	for _, last := range m.revisions {
		if last.place.ns != ns {
			continue
		}
		var want []interlock.PatternRevision
		for _, x := range slices.Backward(m.revisionsOf(last.place)) {
			v := interlock.PatternRevision{
				Pattern: interlock.Pattern{Name: x.place.name}, Revision: x.number, Dropped: x.pattern == nil, Reverted: x.brought,
				Actor: x.actor, Age: m.now.Sub(x.at),
			}
			if x.pattern != nil {
				v.Pattern = *x.pattern
			}
			want = append(want, v)
		}
		// an empty list is as good as none
		if got := e.Revisions(ns, last.place.name); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			return fmt.Errorf("pattern %q is listed as\n%+v, want\n%+v", last.place.name, got, want)
		}
	}
	return nil
}
