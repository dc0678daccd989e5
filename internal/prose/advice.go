package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/problem"
)

// worthWaiting is how long an agent had better wait than do something else: a
// longer wait costs it its place in the model's prompt cache, and its user's
// patience.
const worthWaiting = 5 * time.Minute

// For returns what the reader of an answer should do next, in words that a model or a person can
// act on. HTTP and the session stream put it into their answers. A plain success needs none and gets
// the zero Advice.
func For(eff *engine.Effect) interlock.Advice {
	switch eff.Outcome {
	case engine.Granted:
		return grantedAdvice(&eff.Lease)
	case engine.Queued:
		if eff.Question != nil {
			return interlock.Advice{
				Action: interlock.ActAskHuman, Message: "the lease resumes when a person approves its question",
			}
		}
		return queuedAdvice(&eff.Ticket, eff.Conflict)
	case engine.Skipped:
		message := "another caller is already doing this: skip it and work on something else"
		if c := eff.Conflict; c != nil {
			message = situation(c) + ": it is already being done; skip it and work on something else"
		}
		return interlock.Advice{Action: interlock.ActWorkElsewhere, Message: message}
	case engine.Warned, engine.Asked, engine.Done:
		if eff.Contention != nil {
			return ForContention(eff.Contention)
		}
		if len(eff.Tasks) == 1 {
			return taskAdvice(&eff.Tasks[0])
		}
		return ForLease(&eff.Lease)
	case engine.Lost:
		return ForLoss(&eff.Lease, eff.Code)
	case engine.Refused:
		return refusedAdvice(eff)
	}
	return interlock.Advice{}
}

// grantedAdvice is for a holder that looks at its lease: what is urgent comes first,
// then that it must read again, then what can still be put right.
func grantedAdvice(l *interlock.Lease) interlock.Advice {
	switch {
	case l.State == interlock.Grace || l.Yield != nil || stops(l) != nil:
	case len(l.Moved) > 0:
		return interlock.Advice{Action: interlock.ActReRead, Message: fmt.Sprintf(
			"others may have written %s while the lease was parked: read it again, and decide again if it changed",
			several(l.Moved),
		)}
	case len(l.Stale) > 0:
		return interlock.Advice{Action: interlock.ActReRead, Message: fmt.Sprintf(
			"%s was committed by others in the meantime: look at the changes and decide again before you write",
			staleKeys(l.Stale, l.StaleMore),
		)}
	case l.Changed:
		return interlock.Advice{Action: interlock.ActReRead, Message: fmt.Sprintf(
			"another holder could write %s while you waited: read it again before you decide", claimed(l.Claims),
		)}
	}
	return ForLease(l)
}

// ForLease is for a holder that must know something of a lease that is not over.
func ForLease(l *interlock.Lease) interlock.Advice {
	switch {
	case l.State == interlock.Grace:
		return graceAdvice(l)
	case l.State == interlock.Parked:
		return parkedAdvice(l)
	case l.Yield != nil:
		return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
			"%s asks for %s: finish work that must not be left half done, release the lease with a note, then acquire again; "+
				"or continue if your work is more urgent",
			asker(l.Yield), claimed(l.Claims),
		)}
	}
	if parts := stops(l); parts != nil {
		message := fmt.Sprintf("another member will get %s: stop work on it and release its lease", several(parts))
		if left := soonest(l.Parts); left > 0 {
			message += fmt.Sprintf(" within %s, before it is reassigned", short(left))
		}
		return interlock.Advice{Action: interlock.ActStop, Message: message + "; continue with your other parts"}
	}
	if l.State == interlock.Soft {
		return warnedAdvice(l)
	}
	return interlock.Advice{}
}

// ForLeftOut advises about a lease that the list of its client leaves out.
func ForLeftOut(l *interlock.Lease) interlock.Advice {
	return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
		"the client has lost the lease on %s: it ends in %s unless a later list has it; release it if no work is left",
		claimed(l.Claims), short(l.ExpiresIn),
	)}
}

// wayOut returns how the reader of a deadlock can end it: the agent before it in the cycle needs one thing.
func wayOut(cycle []interlock.CycleStep) string {
	for i := range cycle {
		if last := i+1 == len(cycle); last && i+1 == interlock.MaxCycleSteps || !cycle[(i+1)%len(cycle)].Victim {
			continue
		}
		before := &cycle[i]
		key := cleanText(string(before.Key))
		switch {
		case before.Key == "":
			return "finish what " + AgentName(before.Agent) + " waits for"
		case before.Next == interlock.Holds:
			return "release your lease that blocks " + key
		case before.Next == interlock.Ahead:
			return "leave the line for " + key
		case before.Mode == interlock.Barrier:
			return "arrive at " + key
		}
	}
	return "release your leases in the cycle"
}

func graceAdvice(l *interlock.Lease) interlock.Advice {
	if l.Yield != nil && l.Yield.Revoked {
		return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
			"%s asks for %s and gets it: %s", asker(l.Yield), claimed(l.Claims), graceStep(l),
		)}
	}
	return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
		"the lease has passed its hard end%s: %s", because(l.EndedBy), graceStep(l),
	)}
}

// graceStep is for the holder of a lease in its grace period.
func graceStep(l *interlock.Lease) string {
	return fmt.Sprintf("start nothing new; commit finished work and release the lease within %s", short(l.ExpiresIn))
}

func parkedAdvice(l *interlock.Lease) interlock.Advice {
	p := l.Parking
	if p == nil {
		return ForCode(interlock.CodeParked)
	}
	if d := l.Decision; d != nil {
		what := fmt.Sprintf(
			"%s was %s by %s%s", claimed(l.Claims), d.Verdict,
			quoteUnlessPlain(cleanText(interlock.Answerer(d.Principal, d.By))), saidWhy(d.Reason),
		)
		if d.Verdict == interlock.Denied {
			return interlock.Advice{
				Action: interlock.ActStop, Message: what + ": do not perform the action, and release the lease",
			}
		}
		return interlock.Advice{
			Action:  interlock.ActRetry,
			Message: fmt.Sprintf("%s: resume the lease by its id within %s, or release it", what, short(p.Left)),
		}
	}
	keys := "stays reserved for the lease"
	if p.Freed {
		keys = "is free for others in the meantime, and the lease keeps its position in line"
	}
	return interlock.Advice{Action: interlock.ActAskHuman, Message: fmt.Sprintf(
		"%s %s: ask the human to decide, then resume the lease by its id within %s, or release it; it needs no heartbeat "+
			"until then",
		claimed(l.Claims), keys, short(p.Left),
	)}
}

// howToWait is for callers that stand in line by themselves.
const howToWait = "stay in line, and ask for your ticket again at least every two minutes"

func queuedAdvice(t *interlock.Ticket, c *engine.Conflict) interlock.Advice {
	if t.Length == 0 {
		return interlock.Advice{Action: interlock.ActWait, Message: "the declared wait now counts in deadlock detection: " +
			"end it as soon as you no longer wait; asking for its ticket keeps it alive, and reports when the other session has " +
			"ended"}
	}
	var b strings.Builder
	if c != nil {
		b.WriteString(situation(c))
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "you are %s of %d in line, ", Ordinal(t.Position), max(t.Length, t.Position))
	if t.ETA > worthWaiting {
		fmt.Fprintf(
			&b,
			"expected wait %s: do not wait, work on something else; ask for your ticket from time to time to keep your position, "+
				"or leave the line",
			short(t.ETA),
		)
		return interlock.Advice{Action: interlock.ActWorkElsewhere, RetryAfter: time.Minute, Message: b.String()}
	}
	if t.ETA > 0 {
		fmt.Fprintf(&b, "expected wait %s: %s", short(t.ETA), howToWait)
	} else {
		b.WriteString("expected wait unknown: " + howToWait)
	}
	return interlock.Advice{Action: interlock.ActWait, Message: b.String()}
}

func warnedAdvice(l *interlock.Lease) interlock.Advice {
	if l.StallIn > 0 && l.StallIn <= l.ExpiresIn {
		return interlock.Advice{Action: interlock.ActRetry, Message: fmt.Sprintf(
			"the lease on %s ends in %s unless you report progress; heartbeats do not extend it: report progress with a "+
				"different text than last time, or finish and release",
			claimed(l.Claims), short(l.StallIn),
		)}
	}
	if l.MaxHoldIn > 0 && l.MaxHoldIn <= l.ExpiresIn {
		return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
			"%s can be held for at most another %s; heartbeats do not extend it: finish, write and release",
			claimed(l.Claims), short(l.MaxHoldIn),
		)}
	}
	return interlock.Advice{Action: interlock.ActRetry, Message: fmt.Sprintf(
		"the lease on %s ends in %s without a heartbeat: renew it now, or finish and release", claimed(l.Claims),
		short(l.ExpiresIn),
	)}
}

// ForLoss is for the former holder of a lease, beside the message about its end.
func ForLoss(l *interlock.Lease, code interlock.Code) interlock.Advice {
	if l.State == interlock.Grace {
		return interlock.Advice{Action: interlock.ActStop, Message: graceStep(l)}
	}
	if l.State == interlock.Ended && l.ExpiresIn > 0 {
		return closedAdvice(l)
	}
	return ForCode(code)
}

// closedAdvice is for the former holder of a lease when its keys stay closed for its lock_delay.
func closedAdvice(l *interlock.Lease) interlock.Advice {
	return interlock.Advice{
		Action: interlock.ActReRead, RetryAfter: l.ExpiresIn,
		Message: "write nothing more under it; acquire again and wait in line, and read again before you continue",
	}
}

func refusedAdvice(eff *engine.Effect) interlock.Advice {
	c, info := eff.Conflict, problem.Of(eff.Code)
	say := func(format string, args ...any) interlock.Advice {
		return interlock.Advice{Action: info.Action, RetryAfter: info.After, Message: fmt.Sprintf(format, args...)}
	}
	switch eff.Code {
	case interlock.CodeHeld, interlock.CodeAtCapacity, interlock.CodeRateLimited:
		if eff.Repeated {
			return interlock.Advice{Action: interlock.ActRetry, RetryAfter: atLeastASecond(0), Message: "this is the recorded answer to this request id " +
				"and does not change: send a new request with a new id, and wait in line"}
		}
		if len(eff.Tasks) == 1 {
			return say("try again when the attempt has ended, or revoke its lease first")
		}
		if c != nil && eff.Message != nil && eff.Message.ID == message.TooFarBack {
			return interlock.Advice{
				Action: interlock.ActWorkElsewhere, RetryAfter: atLeastASecond(c.Line.ETA),
				Message: "work on something else, or accept a later position in the line",
			}
		}
		if c != nil {
			return heldAdvice(c)
		}
	case interlock.CodeTooManyRuns:
		if c != nil {
			return fullAdvice(c)
		}
	case interlock.CodeFenced:
		if c != nil && c.Kind == "" {
			return interlock.Advice{
				Action:  interlock.ActReRead,
				Message: "look up the key and use the fence of its current holder, if it still needs to be revoked",
			}
		}
	case interlock.CodeDeadlock:
		var cycle []interlock.CycleStep
		if c != nil {
			cycle = c.Cycle
		}
		switch {
		case len(eff.Tasks) == 1:
			return say("%s, then wait for the task again", wayOut(cycle))
		case waitsForOwn(cycle):
			return interlock.Advice{
				Action: interlock.ActWorkElsewhere, Message: "use that lease, which has the key, or ask for other keys",
			}
		}
		return say("%s, then acquire all keys in one request", wayOut(cycle))
	case interlock.CodeExpired:
		if eff.Lease.ExpiresIn > 0 {
			return closedAdvice(&eff.Lease)
		}
	case interlock.CodeStale:
		message := info.Next
		if eff.Contention != nil {
			if better := ForContention(eff.Contention).Message; better != "" {
				message += "; " + better
			}
		}
		return say("%s", message)
	case interlock.CodeEffectClaimed:
		if eff.Effect != nil && eff.Effect.ExpiresIn > 0 {
			info.After = min(info.After, eff.Effect.ExpiresIn)
			return say("%s", info.Next)
		}
	case interlock.CodeQuota:
		if c != nil {
			info.After = atLeastASecond(refill(c))
			return say("%s", info.Next)
		}
	case interlock.CodeUnmatchedKey:
		if c != nil && len(c.Nearest) > 0 {
			return say("spell the key like one of %s", quotedList(c.Nearest))
		}
		if c != nil && c.Key != "" {
			return say("list the patterns, and use a key that matches one of them")
		}
		return interlock.Advice{
			Action:  interlock.ActAskHuman,
			Message: "no pattern of the namespace lists members: ask an operator to set one that does, or name the keys",
		}
	}
	if eff.Lease.EndedBy == record.ByTarget.String() {
		return interlock.Advice{
			Action:  interlock.ActReRead,
			Message: "continue without the session, or find out which agent has taken over its work",
		}
	}
	return ForCode(eff.Code)
}

// ForCode is for refusals about which nothing more is known.
func ForCode(code interlock.Code) interlock.Advice {
	info := problem.Of(code)
	return interlock.Advice{Action: info.Action, RetryAfter: info.After, Message: info.Next}
}

// fullAdvice is for a caller that could not start a run.
func fullAdvice(c *engine.Conflict) interlock.Advice {
	after := atLeastASecond(c.Line.ETA)
	if c.Line.ETA > worthWaiting {
		return interlock.Advice{Action: interlock.ActWorkElsewhere, RetryAfter: after, Message: elsewhere(after)}
	}
	return interlock.Advice{Action: interlock.ActWait, RetryAfter: after, Message: fmt.Sprintf(
		"try again in %s, with jitter, under the same request id; or wait longer in line", roughly(after),
	)}
}

// elsewhere is for a caller with too long a wait.
func elsewhere(wait time.Duration) string {
	return fmt.Sprintf("do not wait (%s), work on something else", short(wait))
}

// heldAdvice is for a caller that did not want to wait.
func heldAdvice(c *engine.Conflict) interlock.Advice {
	eta := c.Line.ETA
	advice := interlock.Advice{Action: interlock.ActWait, RetryAfter: atLeastASecond(eta)}
	switch {
	case c.Writing:
		advice.Message = "wait in line for the key, read the document again, and commit under that lease; or " +
			"work on something else"
	case c.Kind == interlock.SameAgentOtherFlow:
		advice.Message = "let your other flow finish and release, and do not wait for it while it waits for you"
	case isParked(c):
		advice.Action, advice.RetryAfter = interlock.ActWorkElsewhere, atLeastASecond(max(eta, worthWaiting))
		advice.Message = "work on something else, or ask that human: the duration of a human decision is unknown"
	case c.Kind == interlock.RateUsed && eta <= worthWaiting:
		advice.RetryAfter = atLeastASecond(max(eta, refill(c)))
		advice.Message = fmt.Sprintf(
			"try again in %s or later, with jitter, or wait in line for it", short(advice.RetryAfter),
		)
	case eta > worthWaiting:
		advice.Action, advice.Message = interlock.ActWorkElsewhere, elsewhere(eta)
	case eta > 0:
		advice.Message = fmt.Sprintf("wait in line for it (%s), or work on something else", roughly(eta))
	default:
		advice.RetryAfter = problem.Of(interlock.CodeHeld).After
		advice.Message = "wait in line for it (time unknown), or work on something else"
	}
	return advice
}
