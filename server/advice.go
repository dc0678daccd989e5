package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// worthWaiting is how long an agent had better wait than do something else: a
// longer wait costs it its place in the model's prompt cache, and its user's
// patience.
const worthWaiting = 5 * time.Minute

// adviceFor says what the reader of an answer should do next, in words that a
// model or a person can act on. It is the only place where such a sentence is
// made; both doors put it into their answers. A plain success needs none and
// gets the zero Advice.
//
// Names, purposes and notes in it are other agents' text: they are cleaned, and
// quoted unless they are plain words.
func adviceFor(eff *engine.Effect) interlock.Advice {
	switch eff.Outcome {
	case engine.Granted:
		return grantedAdvice(&eff.Lease)
	case engine.Queued:
		return queuedAdvice(&eff.Ticket, eff.Conflict)
	case engine.Skipped:
		message := "somebody already does this: there is nothing to do, go on with something else"
		if c := eff.Conflict; c != nil {
			message = situation(c) + ": it is being done already, go on with something else"
		}
		return interlock.Advice{Action: interlock.ActWorkElsewhere, Message: message}
	case engine.Warned:
		return warnedAdvice(&eff.Lease)
	case engine.Lost:
		return lostAdvice(&eff.Lease, eff.Code)
	case engine.Refused:
		return refusedAdvice(eff)
	}
	return interlock.Advice{}
}

func grantedAdvice(l *interlock.Lease) interlock.Advice {
	switch {
	case l.State == interlock.Grace:
		return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
			"the hard end has passed: begin nothing new; commit what is finished and release within %s", short(l.ExpiresIn),
		)}
	case l.Changed:
		return interlock.Advice{Action: interlock.ActReRead, Message: fmt.Sprintf(
			"somebody who could write held %s while you waited: read it again before you decide", claimed(l.Claims),
		)}
	case l.State == interlock.Soft:
		return warnedAdvice(l)
	}
	return interlock.Advice{}
}

// howToWait is for those who come in by HTTP; the clients of the stream wait by
// themselves and show their own words.
const howToWait = " (GET /v1/tickets/{id}?wait_ms=55000, and again at least every two minutes)"

func queuedAdvice(t *interlock.Ticket, c *engine.Conflict) interlock.Advice {
	var b strings.Builder
	if c != nil {
		b.WriteString(situation(c))
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "you are %s of %d in line, ", ordinal(t.Position), max(t.Length, t.Position))
	if t.ETA > worthWaiting {
		fmt.Fprintf(&b, "expected wait %s: do not wait, work on something else; the ticket keeps your place while you ask after it now and then, or leave the line", short(t.ETA))
		return interlock.Advice{Action: interlock.ActWorkElsewhere, RetryAfter: time.Minute, Message: b.String()}
	}
	if t.ETA > 0 {
		fmt.Fprintf(&b, "expected wait %s: wait on the ticket%s", short(t.ETA), howToWait)
	} else {
		b.WriteString("expected wait unknown: wait on the ticket" + howToWait)
	}
	return interlock.Advice{Action: interlock.ActWait, Message: b.String()}
}

func warnedAdvice(l *interlock.Lease) interlock.Advice {
	if l.MaxHoldIn > 0 && l.MaxHoldIn <= l.ExpiresIn {
		return interlock.Advice{Action: interlock.ActStop, Message: fmt.Sprintf(
			"%s may be held for another %s and no longer, whatever heartbeats come: finish, write and release", claimed(l.Claims), short(l.MaxHoldIn),
		)}
	}
	return interlock.Advice{Action: interlock.ActRetry, Message: fmt.Sprintf(
		"the lease on %s ends in %s without a heartbeat: renew it now, or finish and release", claimed(l.Claims), short(l.ExpiresIn),
	)}
}

func lostAdvice(l *interlock.Lease, code interlock.Code) interlock.Advice {
	if l.State == interlock.Grace {
		return grantedAdvice(l)
	}
	info := infoOf(code)
	return interlock.Advice{Action: info.action, RetryAfter: info.after, Message: fmt.Sprintf(
		"the lease on %s is lost (%s): %s", claimed(l.Claims), code, info.next,
	)}
}

func refusedAdvice(eff *engine.Effect) interlock.Advice {
	c := eff.Conflict
	switch {
	case eff.Code == interlock.CodeHeld && eff.Repeated:
		return interlock.Advice{Action: interlock.ActRetry, RetryAfter: atLeastASecond(0), Message: "this is the earlier answer to this request id, " +
			"and stays so: ask again under a fresh one, with on_conflict wait to stand in line"}
	case eff.Code == interlock.CodeFenced && c != nil && c.Kind == "":
		return interlock.Advice{Action: interlock.ActReRead, Message: "look at the key and name the fence of its present holder, if there still is one to revoke"}
	case eff.Code == interlock.CodeHeld && c != nil:
		return heldAdvice(c)
	case eff.Code == interlock.CodeDeadlock && c != nil && len(c.Cycle) > 0:
		info := infoOf(eff.Code)
		return interlock.Advice{Action: info.action, RetryAfter: info.after, Message: fmt.Sprintf(
			"waiting would never end, because %s: %s", cycleText(c.Cycle), info.next,
		)}
	case eff.Code == interlock.CodeTaken && c != nil:
		info := infoOf(eff.Code)
		return interlock.Advice{Action: info.action, RetryAfter: info.after, Message: fmt.Sprintf(
			"%s: write nothing more under the old lease; acquire again to stand in line, then read again", situation(c),
		)}
	}
	return adviceForCode(eff.Code)
}

// adviceForCode is for refusals about which nothing more is known.
func adviceForCode(code interlock.Code) interlock.Advice {
	info := infoOf(code)
	return interlock.Advice{Action: info.action, RetryAfter: info.after, Message: info.next}
}

func heldAdvice(c *engine.Conflict) interlock.Advice {
	what, eta := situation(c), c.Queue.ETA
	if c.Kind == interlock.SameAgentOtherFlow {
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: atLeastASecond(eta), Message: what +
			": that is another flow of your own session; let it finish and release, do not wait for it while it waits for you"}
	}
	line := ""
	switch c.Queue.Length {
	case 0:
	case 1:
		line = " and 1 waits in line"
	default:
		line = fmt.Sprintf(" and %d wait in line", c.Queue.Length)
	}
	switch {
	case eta > worthWaiting:
		return interlock.Advice{Action: interlock.ActWorkElsewhere, RetryAfter: eta, Message: fmt.Sprintf(
			"%s%s: do not wait (%s), work on something else", what, line, short(eta),
		)}
	case eta > 0:
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: atLeastASecond(eta), Message: fmt.Sprintf(
			"%s%s: expected wait %s; ask again with on_conflict wait to stand in line, or work on something else", what, line, short(eta),
		)}
	}
	return interlock.Advice{Action: interlock.ActWait, RetryAfter: infoOf(interlock.CodeHeld).after, Message: fmt.Sprintf(
		"%s%s: expected wait unknown; ask again with on_conflict wait to stand in line, or work on something else", what, line,
	)}
}

// situation says who stands in the way, as the beginning of a sentence.
func situation(c *engine.Conflict) string {
	key := cleanText(string(c.Key))
	if len(c.Holders) == 0 {
		switch {
		case c.Kind == interlock.LockDelayed:
			return key + " stays closed for a while, because its last holder died"
		case c.Queue.Length > 0:
			return fmt.Sprintf("%s has %d in line ahead", key, c.Queue.Length)
		}
		return key + " is not free"
	}
	h := &c.Holders[0]
	var b strings.Builder
	switch {
	case h.Key == c.Key || h.Key == "":
		fmt.Fprintf(&b, "%s is held by %s", key, who(h))
	case c.Kind == interlock.AncestorHeld:
		fmt.Fprintf(&b, "%s lies under %s, which is held by %s", key, cleanText(string(h.Key)), who(h))
	default:
		fmt.Fprintf(&b, "%s covers %s, which is held by %s", key, cleanText(string(h.Key)), who(h))
	}
	fmt.Fprintf(&b, " for %s", short(h.Held))
	if n := len(c.Holders) - 1 + c.More; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}

// who names a holder with what is known of it: billing-7 (live, "apply late fee").
func who(h *interlock.Holder) string {
	state := h.Liveness.String()
	if h.Liveness == interlock.Suspect {
		state = "no heartbeat for " + short(h.HeartbeatAge) + ", gone in " + short(h.ExpiresIn) + " at the latest"
	}
	if purpose := cleanText(h.Purpose); purpose != "" {
		return fmt.Sprintf("%s (%s, %q)", agentName(h.Agent), state, purpose)
	}
	return fmt.Sprintf("%s (%s)", agentName(h.Agent), state)
}

func cycleText(cycle []interlock.CycleStep) string {
	agents := map[string]int{}
	for i := range cycle {
		agents[cycle[i].Agent]++
	}
	name := func(c *interlock.CycleStep) string {
		text := agentName(c.Agent)
		if agents[c.Agent] > 1 && c.Flow != "" {
			text += "/" + quoteUnlessPlain(cleanText(c.Flow))
		}
		if c.Victim {
			text += " (you)"
		}
		return text
	}
	steps := make([]string, 0, len(cycle))
	for i := range cycle {
		text := fmt.Sprintf("%s waits for %s", name(&cycle[i]), cleanText(string(cycle[i].Key)))
		if next := i + 1; next < len(cycle) || next < interlock.MaxCycleSteps {
			text += " behind " + name(&cycle[next%len(cycle)])
		}
		steps = append(steps, text)
	}
	return strings.Join(steps, ", ")
}

func agentName(name string) string {
	if name = cleanText(name); name != "" {
		return quoteUnlessPlain(name)
	}
	return "an agent without a name"
}

// quoteUnlessPlain leaves plain words as they are and puts everything else, which
// might read like an instruction or like our own text, between quotation marks.
func quoteUnlessPlain(s string) string {
	for _, r := range s {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._:@/#-", r) {
			continue
		}
		return strconv.Quote(s)
	}
	return s
}

// claimed names what a lease is about: one key, or the first and how many more.
func claimed(claims []interlock.Claim) string {
	switch len(claims) {
	case 0:
		return "its keys"
	case 1:
		return cleanText(string(claims[0].Key))
	}
	return fmt.Sprintf("%s and %d more", cleanText(string(claims[0].Key)), len(claims)-1)
}

// short writes a duration as people say it: 40 s, 59 min, 3 h.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", (d+time.Second/2)/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", (d+time.Minute/2)/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", (d+time.Hour/2)/time.Hour)
	}
	return fmt.Sprintf("%d days", (d+12*time.Hour)/(24*time.Hour))
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func atLeastASecond(d time.Duration) time.Duration { return max(d, time.Second) }
