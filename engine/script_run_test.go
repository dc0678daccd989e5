package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// startRun asks for a run in the name of holder=, or without a session with session=none.
func (s *script) startRun(w *words) error {
	c := &engine.StartRun{
		Head: s.head(w), ID: s.id(), Org: w.get("org"), Workflow: w.get("workflow"), Flow: w.get("flow"),
		Purpose:  w.get("purpose"),
		Priority: int(w.number("priority")), TTL: w.duration("ttl"), MaxHold: w.duration("max_hold"),
		MaxWait: w.duration("wait"),
		Attach:  w.has("wait") && !w.has("detached"),
	}
	s.asker(&c.Head, &c.Agent, w)
	return s.tellMore(c, w)
}

// showAdmission writes which runs there are, or what a pattern was before.
func (s *script) showAdmission(ns interlock.Namespace, w *words) {
	if w.has("runs") {
		l := &engine.RunList{
			Namespace: ns, Org: w.get("org"), After: interlock.Fence(w.number("after")), Limit: int(w.number("limit")),
		}
		for !l.Look(s.e) {
		}
		for i := range l.Rows {
			r := &l.Rows[i]
			s.printf("run of %s %q", r.Org, r.Workflow)
			s.printHolder(&r.Holder)
		}
		if l.More {
			s.printf("and more")
		}
		return
	}
	for _, r := range s.e.Revisions(ns, w.get("revisions")) {
		text := fmt.Sprintf("%d. ", r.Revision)
		if r.Dropped {
			text += "dropped"
		} else {
			text += fmt.Sprintf("%s capacity=%d", r.Pattern.Shape, r.Pattern.Capacity)
		}
		if r.Reverted > 0 {
			text += fmt.Sprintf(", as in %d", r.Reverted)
		}
		if r.Actor != "" {
			text += " by " + r.Actor
		}
		s.printf("%s age=%v", text, r.Age)
	}
}
