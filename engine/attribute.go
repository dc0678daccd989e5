package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The patterns and the organisation that a wait or a hold is counted under, for the figures of
// a server. They are computed when the event happens and are not journaled: an event that was
// read from a journal has none.

// maxAttributed bounds the number of claims up to which a request's patterns are looked up for
// its events.
const maxAttributed = 8

// outsidePatterns stands for a key that fits no pattern.
var outsidePatterns = []string{""}

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
		r := e.hint.req
		org := ""
		if r.run != nil {
			org = r.run.Org
		}
		ev.Attribute(r.ns.patternsOf(ev.Claims), org, r.Group)
	}
}

// patternsOf names the patterns of some claims, each once.
func (s *namespace) patternsOf(claims []interlock.Claim) (names []string) {
	if len(claims) == 0 {
		return nil
	}
	if len(s.patterns) == 0 {
		return outsidePatterns
	}
	for i := range claims[:min(len(claims), maxAttributed)] {
		of := outsidePatterns
		if p := s.policyAt(string(claims[i].Key)); p != nil {
			of = p.alone
		}
		switch {
		case names == nil:
			names = of
		case !slices.Contains(names, of[0]):
			names = append(slices.Clip(names), of[0])
		}
	}
	return names
}
