package engine

import (
	"github.com/interlockdev/interlock/engine/record"
)

// Unattributed is an option for engines without statistics of events: Patterns, Org and
// Claimants stay empty, and the patterns of claims are not looked up.
func Unattributed(e *Engine) { e.unattributed = true }

// attribute sets the patterns and the organisation under which the event of a request is
// counted. It allocates only if the request's keys fit several patterns.
func (e *Engine) attribute(ev *record.Event) {
	if e.unattributed {
		return
	}
	switch ev.Kind {
	case record.Granted, record.Admitted, record.Left, record.Ended:
		r := e.Hint.Req
		org := ""
		if r.Run != nil {
			org = r.Run.Org
		}
		ev.Attribute(r.NS.PatternsOf(ev.Claims), org, r.Group)
	}
}
