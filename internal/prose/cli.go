package prose

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// The phrases of the command line. Durations in them have the form of its tables.

// Warning returns which end of a lease comes near, left from now, and what prevents it.
func Warning(l *interlock.Lease, left time.Duration) string {
	switch {
	case l.StallIn > 0 && l.StallIn <= l.ExpiresIn:
		return "the lease ends in " + Short(left) +
			" unless the command reports progress (interlock lease renew --progress) with a different text than last time"
	case l.MaxHoldIn > 0 && l.MaxHoldIn <= l.ExpiresIn:
		return "the lease ends in " + Short(left) + ": it reaches its max_hold"
	}
	return "the lease ends in " + Short(left) + " unless a heartbeat arrives"
}

// Loss returns why a lease is lost; text is the text of a refusal.
func Loss(err error, text func(*interlock.Error) string) string {
	refusal, ok := errors.AsType[*interlock.Error](err)
	switch {
	case !ok:
		return "the lease is lost"
	case refusal.EndedBy != "":
		return "the lease is lost (" + cleanText(refusal.EndedBy) + "): " + text(refusal)
	}
	return "the lease is lost: " + text(refusal)
}

// HeldBy returns the holder that blocks a request, as a clause behind what was asked for.
func HeldBy(name, purpose string) string {
	text := ": held by " + name
	if purpose = cleanText(purpose); purpose != "" {
		text += " (" + purpose + ")"
	}
	return text
}

// Verdict returns a person's verdict with its author and its reason: denied by ada: over budget.
func Verdict(verdict, principal, by, reason string) string {
	text := cleanText(verdict)
	if by := interlock.Answerer(cleanText(principal), cleanText(by)); by != "" {
		text += " by " + by
	}
	if reason = cleanText(reason); reason != "" {
		text += ": " + reason
	}
	return text
}

// Capacity reads: 2 of 3 permits taken, group batch has 1 (min 0, max 2), 5 of 10 tokens left.
func Capacity(c *interlock.Capacity) string {
	var facts []string
	if c.Permits > 0 {
		facts = append(facts, permitsText(c))
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		name := "no group"
		if g.Name != "" {
			name = "group " + cleanText(g.Name)
		}
		facts = append(facts, groupText(name, g))
	}
	if c.Tokens > 0 {
		text := tokensLeft(c)
		if c.Refill > 0 && c.Available < c.Tokens {
			text += ", the next in " + Short(c.Refill)
		}
		facts = append(facts, text)
	}
	return strings.Join(facts, ", ")
}

// Short returns a duration for a table: two units at most, no false precision.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Short(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
