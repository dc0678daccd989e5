package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// What a wait or a hold is counted under, for the figures of a server. It is known when the
// event happens and is not journaled: an event that was read from a journal has none of it.

// attributes are what the event of a request is counted under.
type attributes struct {
	patterns []string // shared, never changed
	run      *run     // likewise
	group    string
}

// maxAttributed bounds the claims of a request whose patterns are looked up for its events.
const maxAttributed = 8

// outsidePatterns stands for a key that fits no pattern.
var outsidePatterns = []string{""}

// Patterns gives the names of the patterns that the keys of a request fit, each once, when it
// was granted, left the line or ended; "" stands for keys that fit none. The first 8 claims
// count. It is nil for other events. The caller does not change it.
func (ev *Event) Patterns() []string { return ev.attributes.patterns }

// Org gives the organisation of a run, and Claimants the group of a request, for the events for
// which Patterns says something; "" if there is none.
func (ev *Event) Org() string {
	if ev.attributes.run == nil {
		return ""
	}
	return ev.attributes.run.org
}

// Claimants is described at Org.
func (ev *Event) Claimants() string { return ev.attributes.group }

// Unattributed is the option of an engine whose events are counted by nobody: Patterns, Org
// and Claimants say nothing, and the patterns of claims are not looked up.
func Unattributed(e *Engine) { e.unattributed = true }

// attribute says under what the event of a request is counted. It allocates only for a request
// whose keys fit several patterns.
func (e *Engine) attribute(ev *Event) {
	if e.unattributed {
		return
	}
	switch ev.Kind {
	case EvGranted, EvAdmitted, EvLeft, EvEnded:
		r := ev.req
		ev.attributes = attributes{r.space.patternsOf(ev.Claims), r.run, r.Group}
	}
}

// patternsOf names the patterns of some claims, each once.
func (s *space) patternsOf(claims []interlock.Claim) (names []string) {
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
