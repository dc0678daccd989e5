package engine

import (
	"github.com/interlockdev/interlock/engine/record"
)

// breakCycle continues a search, or begins with the oldest suspect. If a cycle goes through the
// suspect, the victim's wait ends and the suspect is searched again, for there may be another
// cycle. A wait of the suspect itself for permits ends as well.
func (e *Engine) breakCycle() {
	if e.Search == nil {
		s := e.Suspects.Pop()
		if s.FlowState != nil {
			s.FlowState.Suspected = false
		}
		if r := s.WaitsForItself(); r != nil {
			e.Suspect(s.FlowState, s.Req)
			e.leaveLine(r, record.ByPattern)
			return
		}
		e.Search = e.NewSearch(s)
	}
	x := e.Search
	if !x.Paused {
		e.Looks.Spent += x.Size()
	}
	if !x.Paused && !x.IsWaitedFor() {
		e.EndSearch()
		return
	}
	cycle, done := x.Continue()
	switch {
	case !done:
		x.Paused = true
	case len(cycle) == 0:
		e.EndSearch()
	default:
		s := x.Suspect
		e.EndSearch()
		e.Search = e.NewSearch(s)
		e.breakDeadlock(cycle)
	}
}
