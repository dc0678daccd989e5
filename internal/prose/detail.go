package prose

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
)

// Detail returns what a refusal is about in this instance: the blockers and since when, the cycle of
// a deadlock, what has changed. The class is the title of the code, and the next step is For's.
func Detail(eff *engine.Effect) string {
	text, c := Sentence(eff.Message), eff.Conflict
	if c == nil || eff.Message == nil || eff.Repeated {
		return text
	}
	switch id := eff.Message.ID; {
	case id == message.KeyFitsNoPattern && len(eff.Message.Args) > 1:
		return strings.TrimSuffix(text, ": "+Sentence(eff.Message.Args[1].Part)) // the step, which the advice has
	case id == message.LeasedExclusively:
		return situation(c) + ", so its document can be written only under that lease"
	case namesNoBlocker[id]:
		return situation(c) + queueText(c)
	case id == message.TooFarBack:
		return situation(c) + "; " + text
	case id == message.FollowDeadlock && len(c.Cycle) > 0:
		return text + ": " + cycleText(c.Cycle)
	case eff.Code == interlock.CodeDeadlock && waitsForOwn(c.Cycle):
		return fmt.Sprintf(
			"waiting would never end: %s is held by your own lease, the one of %s under which you work",
			keyText(&c.Cycle[0]), AgentName(c.Cycle[1].Agent),
		)
	case eff.Code == interlock.CodeDeadlock && len(c.Cycle) > 0:
		return "waiting would be a deadlock: " + cycleText(c.Cycle)
	case eff.Code == interlock.CodeTaken && len(c.Holders) > 0:
		return strings.TrimSuffix(text, sentences[message.KeyTaken]) + "; " + situation(c)
	case eff.Code == interlock.CodeTooManyRuns && id == message.LeaseOver:
		return text + "; " + situation(c)
	}
	return text
}

// waitsForOwn reports whether a cycle is that of work which waits for the lease around it.
func waitsForOwn(cycle []interlock.CycleStep) bool {
	return len(cycle) == 2 && cycle[0].Next == interlock.Holds && cycle[1].Next == interlock.Within
}

// namesNoBlocker has the messages that say of a conflict only that there is one.
var namesNoBlocker = map[message.ID]bool{
	message.KeyHeld: true, message.PartiesMissing: true, message.PermitsTaken: true,
	message.PermitsNotForUngrouped: true, message.PermitsNotForGroup: true, message.NoTokens: true,
}

// queueText returns how long the line of a conflict's key is, unless situation contains it.
func queueText(c *engine.Conflict) string {
	text := ""
	switch {
	case c.Kind == interlock.SameAgentOtherFlow:
		text = ", which is another flow of your session"
	case c.Line.Length == 0, c.Ahead > 0:
	case c.Line.Length == 1:
		text = ", and 1 request waits in line"
	default:
		text = ", and " + Count(c.Line.Length, "request", "requests") + " wait in line"
	}
	return text
}
