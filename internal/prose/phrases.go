package prose

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/invisible"
)

// The parts of the sentences of advice.go and explain.go.

// cleanText returns one line of an agent's text, safe to show.
func cleanText(s string) string { return invisible.Line(s) }

// situation returns the blockers, as the beginning of a sentence.
func situation(c *engine.Conflict) string {
	key := cleanText(string(c.Key))
	switch {
	case c.Kind == interlock.RateUsed && c.Capacity != nil:
		return fmt.Sprintf("%s has %s", key, tokensText(c.Capacity))
	case c.Kind == interlock.CapacityUsed && c.Capacity != nil:
		return fmt.Sprintf("%s has %s", key, permitsText(c.Capacity)) + heldBy(c) + sharesText(c)
	case c.Kind == interlock.PartiesMissing && len(c.Holders) > 0:
		return fmt.Sprintf("%s is a barrier that waits for %s%s", key, AgentName(c.Holders[0].Agent), andMore(c))
	case c.Kind == interlock.PartiesMissing:
		return key + " is a barrier whose other parties have not arrived yet"
	case c.Ahead > 0:
		return lineText(c)
	case len(c.Holders) == 0 && c.Kind == interlock.LockDelayed:
		return key + " stays closed for a while, because its last holder died"
	case len(c.Holders) == 0:
		return key + " is not free"
	}
	h := &c.Holders[0]
	if h.Liveness == interlock.Closed {
		return fmt.Sprintf(
			"%s stays closed for another %s, because its last holder %s died", key, short(h.ExpiresIn), AgentName(h.Agent),
		)
	}
	text := key
	switch {
	case h.Key == c.Key || h.Key == "":
		text += fmt.Sprintf(" is held by %s for %s", who(h), short(h.Held))
	case c.Kind == interlock.AncestorHeld:
		text += " lies under " + heldText(h)
	default:
		text += " covers " + heldText(h)
	}
	return text + andMore(c)
}

// lineText reads: a/y lies under a, which has 2 earlier waiters, the first of which waits for
// a/x, which is held by billing-7 (live) for 12 s.
func lineText(c *engine.Conflict) string {
	text := cleanText(string(c.Key))
	if c.LineKey != c.Key {
		text += " lies under " + cleanText(string(c.LineKey)) + ", which"
	}
	text += " has " + Count(c.Ahead, "earlier waiter", "earlier waiters")
	if len(c.Holders) == 0 {
		return text
	}
	if h := &c.Holders[0]; c.Ahead == 1 {
		text += ", which waits for " + heldText(h)
	} else {
		text += ", the first of which waits for " + heldText(h)
	}
	return text + andMore(c)
}

// heldText reads: a/x, which is held by billing-7 (live) for 12 s.
func heldText(h *interlock.Holder) string {
	return fmt.Sprintf("%s, which is held by %s for %s", cleanText(string(h.Key)), who(h), short(h.Held))
}

// heldBy names the first holders of the permits of a key.
func heldBy(c *engine.Conflict) string {
	if len(c.Holders) == 0 {
		return ""
	}
	return " by " + who(&c.Holders[0]) + andMore(c)
}

func andMore(c *engine.Conflict) string {
	if n := len(c.Holders) - 1 + c.More; n > 0 {
		return fmt.Sprintf(" and %d more", n)
	}
	return ""
}

// permitsText reads: 2 of 2 permits taken.
func permitsText(c *interlock.Capacity) string {
	return fmt.Sprintf("%d of %s taken", c.Used, Count(int(c.Permits), "permit", "permits"))
}

// sharesText returns which limits of claimant groups keep the free permits of a key from a waiter:
// , and group batch has 1 of its 1, and 2 free ones are kept for group prod.
func sharesText(c *engine.Conflict) string {
	full := c.Capacity
	if full.Used >= full.Permits {
		return ""
	}
	var b strings.Builder
	var kept uint32
	var whose []string
	for i := range full.Groups {
		g := &full.Groups[i]
		switch {
		case g.Name != c.Group && g.Used < g.Min:
			kept += g.Min - g.Used
			whose = append(whose, groupName(g.Name))
		case g.Name == c.Group && g.Max > 0:
			fmt.Fprintf(&b, ", and %s has %d of its %d", groupName(g.Name), g.Used, g.Max)
		}
	}
	if kept > 0 {
		free := full.Permits - full.Used
		fmt.Fprintf(
			&b, ", and %s reserved for %s", Count(int(min(kept, free)), "free one is", "free ones are"),
			strings.Join(whose, " and "),
		)
	}
	return b.String()
}

// groupsText reads: group prod has 0 (min 2), group batch has 1 (min 0, max 1).
func groupsText(c *interlock.Capacity) string {
	var facts []string
	for i := range c.Groups {
		facts = append(facts, groupText(groupName(c.Groups[i].Name), &c.Groups[i]))
	}
	return strings.Join(facts, ", ")
}

// groupText reads: group batch has 1 (min 0, max 1).
func groupText(name string, g *interlock.GroupUse) string {
	limits := fmt.Sprintf("min %d", g.Min)
	if g.Max > 0 {
		limits += fmt.Sprintf(", max %d", g.Max)
	}
	return fmt.Sprintf("%s has %d (%s)", name, g.Used, limits)
}

// groupName names a claimant group.
func groupName(name string) string {
	if name = cleanText(name); name != "" {
		return "group " + quoteUnlessPlain(name)
	}
	return "callers without a group"
}

// tokensText reads: 0 of 10 tokens left, the next in 3 s.
func tokensText(c *interlock.Capacity) string {
	text := tokensLeft(c)
	if c.Refill > 0 {
		text += ", the next in " + short(c.Refill)
	}
	return text
}

// tokensLeft reads: 0 of 10 tokens left.
func tokensLeft(c *interlock.Capacity) string {
	return fmt.Sprintf("%d of %s left", c.Available, Count(int(c.Tokens), "token", "tokens"))
}

// roomText is the free part of a key.
func roomText(c *interlock.Capacity) string {
	switch {
	case c.Tokens > 0 && c.Permits > 0:
		return permitsText(c) + ", and " + tokensText(c)
	case c.Tokens > 0:
		return tokensText(c)
	}
	return permitsText(c)
}

// isDry reports whether all tokens are used up for now.
func isDry(c *interlock.Capacity) bool { return c != nil && c.Tokens > 0 && c.Available == 0 }

// refill is when the next token of a conflict's key comes.
func refill(c *engine.Conflict) time.Duration {
	if c.Capacity == nil {
		return 0
	}
	return c.Capacity.Refill
}

// isParked reports whether the blocker is a parked lease.
func isParked(c *engine.Conflict) bool {
	return len(c.Holders) > 0 && c.Holders[0].Liveness == interlock.LiveParked
}

// who returns a holder's name with its known details: billing-7 (live, "apply late fee").
func who(h *interlock.Holder) string {
	state := h.Liveness.String()
	switch h.Liveness {
	case interlock.Suspect:
		state = "no heartbeat for " + short(h.HeartbeatAge) + ", gone in " + short(h.ExpiresIn) + " at the latest"
	case interlock.LiveParked:
		state = "parked until a human decides" + asks(h) + ", for " + short(h.ExpiresIn) + " at most"
	case interlock.Offered:
		state = "offered, gone in " + short(h.ExpiresIn) + " unless accepted"
	case interlock.LiveGrace:
		state = "in grace, gone in " + short(h.ExpiresIn) + " at the latest"
	}
	switch y := h.Yield; {
	case y != nil && y.Revoked:
		state += ", preempted by " + AgentName(y.Agent)
	case y != nil:
		state += ", asked by " + AgentName(y.Agent) + " to yield"
	}
	if h.Mode.Counts() && h.Count > 0 {
		state = counted(h.Mode, h.Count) + ", " + state
	}
	if purpose := cleanText(h.Purpose); purpose != "" {
		return fmt.Sprintf("%s (%s, %q)", AgentName(h.Agent), state, purpose)
	}
	return fmt.Sprintf("%s (%s)", AgentName(h.Agent), state)
}

// asks quotes the question of a parked lease to a human.
func asks(h *interlock.Holder) string {
	if h.Parking == nil {
		return ""
	}
	if reason := cleanText(h.Parking.Reason); reason != "" {
		return fmt.Sprintf(" on %q", reason)
	}
	return ""
}

// over returns how the time of a holder has come to its end: billing-7 is silent.
func over(h *interlock.Holder) string {
	name := AgentName(h.Agent)
	switch h.EndedBy {
	case "", record.ByTTL.String(), record.ByDeath.String():
		return name + " is silent"
	case record.ByForgetting.String():
		return name + " has lost its handle"
	case record.ByPreemption.String():
		if h.Yield != nil {
			return fmt.Sprintf("%s was preempted for %s", name, asker(h.Yield))
		}
		return name + " was preempted"
	}
	return fmt.Sprintf("the lease of %s has passed its hard end%s", name, because(h.EndedBy))
}

// yields names the first few holders that were asked to release the keys: hot ("fix the outage")
// asked slow to yield 12 s ago.
func yields(holders []interlock.Holder) string {
	const most = 3
	var b strings.Builder
	for i, told := 0, 0; i < len(holders) && told < most; i++ {
		h := &holders[i]
		if h.Yield == nil {
			continue
		}
		told++
		fmt.Fprintf(&b, "%s asked %s to yield %s ago", asker(h.Yield), AgentName(h.Agent), short(h.Yield.Since))
		if h.Yield.Revoked {
			fmt.Fprintf(&b, ", and it loses the lease in %s at the latest", short(h.ExpiresIn))
		}
		b.WriteString(". ")
	}
	return b.String()
}

func cycleText(cycle []interlock.CycleStep) string {
	agents := map[string]int{}
	for i := range cycle {
		agents[cycle[i].Agent]++
	}
	name := func(c *interlock.CycleStep) string {
		text := AgentName(c.Agent)
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
		next, behind := "", i+1 < len(cycle) || i+1 < interlock.MaxCycleSteps
		if behind {
			next = name(&cycle[(i+1)%len(cycle)])
		}
		text := name(&cycle[i]) + " waits for "
		switch {
		case cycle[i].Key == "" && behind: // a declared wait
			if text += next; cycle[i].Next == interlock.Within {
				text += ", which works under its lease"
			}
		case cycle[i].Key == "":
			text += "another"
		case behind && cycle[i].Mode == interlock.Barrier:
			text += next + " at " + cleanText(string(cycle[i].Key))
		case behind:
			text += keyText(&cycle[i]) + map[interlock.BlockerRole]string{
				0: ", which needs ", interlock.Holds: " held by ", interlock.Ahead: " in line behind ",
			}[cycle[i].Next] + next
		default:
			text += cleanText(string(cycle[i].Key))
		}
		steps = append(steps, text)
	}
	return strings.Join(steps, ", ")
}

// keyText names what a step of a cycle waits for, with its mode unless that is exclusive.
func keyText(c *interlock.CycleStep) string {
	text := cleanText(string(c.Key))
	if c.Mode != 0 && c.Mode != interlock.Exclusive {
		text += " (" + c.Mode.String() + ")"
	}
	return text
}

// AgentName names an agent in a sentence. A name that is more than plain words is quoted, because it might read like
// the sentence itself.
func AgentName(name string) string {
	if name = cleanText(name); name != "" {
		return quoteUnlessPlain(name)
	}
	return "an unnamed agent"
}

// submitterName names an agent, or one without a name by its credential.
func submitterName(agent, principal string) string {
	if principal = cleanText(principal); cleanText(agent) == "" && principal != "" {
		return "credential " + quoteUnlessPlain(principal)
	}
	return AgentName(agent)
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

// claimed names what a lease is about.
func claimed(claims []interlock.Claim) string {
	keys := make([]interlock.Key, len(claims))
	for i := range claims {
		keys[i] = claims[i].Key
	}
	return several(keys)
}

// several names one key, or the first and how many more.
func several(keys []interlock.Key) string {
	switch len(keys) {
	case 0:
		return "its keys"
	case 1:
		return cleanText(string(keys[0]))
	}
	return fmt.Sprintf("%s and %d more", cleanText(string(keys[0])), len(keys)-1)
}

// staleKeys names the documents that were changed.
func staleKeys(stale []interlock.Stale, more bool) string {
	keys := make([]interlock.Key, len(stale))
	for i := range stale {
		keys[i] = stale[i].Now.Key
	}
	if more {
		return fmt.Sprintf("%s and at least %d more", cleanText(string(keys[0])), len(keys))
	}
	return several(keys)
}

// stops returns the parts that their member must stop, nil for none.
func stops(l *interlock.Lease) (keys []interlock.Key) {
	for i := range l.Parts {
		if l.Parts[i].Stop {
			keys = append(keys, l.Parts[i].Key)
		}
	}
	return keys
}

// soonest is when the first of the parts to stop is taken away; 0 when none is.
func soonest(parts []interlock.Part) (left time.Duration) {
	for i := range parts {
		if p := &parts[i]; p.Stop && p.Left > 0 && (left == 0 || p.Left < left) {
			left = p.Left
		}
	}
	return left
}

// asker names the party that asks a holder to yield: support-2 ("fix the outage").
func asker(y *interlock.Yield) string {
	if purpose := cleanText(y.Purpose); purpose != "" {
		return fmt.Sprintf("%s (%q)", AgentName(y.Agent), purpose)
	}
	return AgentName(y.Agent)
}

// because returns why a lease is over, as a clause to put behind; "" if the code already contains
// it.
func because(endedBy string) string {
	if clause := endings[endedBy]; clause != "" {
		return ", because " + clause
	}
	return ""
}

// endings are the values of Lease.EndedBy, which are record.Reason's names.
var endings = map[string]string{
	record.ByTTL.String():        "no heartbeat came within its ttl",
	record.ByForgetting.String(): "its client lives and no longer knows of it",
	record.ByTakeOver.String():   "the next process of its holder took it over",
	record.ByMaxHold.String():    "it reached its max_hold",
	record.ByStall.String():      "no progress was reported in time",
	record.ByDeath.String():      "its session went silent",
	record.BySession.String():    "its session was closed",
	record.ByDeadlock.String():   "it was chosen as the victim of a deadlock",
	record.ByPreemption.String(): "another request asked for its keys",
	record.ByBase.String():       "its base lease ended",
	record.ByParking.String():    "its maximum parking time passed",
	record.ByTarget.String():     "the session that it waited for ended",
	record.ByPattern.String():    "its key will never have that many permits besides those that its flow holds",
}

// modeText is how a holder claims a key: exclusive, or 2 permits.
func modeText(h *interlock.Holder) string {
	if h.Mode.Counts() && h.Count > 0 {
		return counted(h.Mode, h.Count)
	}
	return h.Mode.String()
}

// counted reads: 2 permits.
func counted(m interlock.Mode, n uint32) string {
	units := map[interlock.Mode][2]string{
		interlock.Permits: {"permit", "permits"}, interlock.Barrier: {"party", "parties"},
		interlock.Member: {"part", "parts"},
	}[m]
	return Count(int(n), units[0], units[1])
}

// quotedList names up to four of a list, each quoted unless it is plain.
func quotedList(list []string) string {
	const most = 4
	var names []string
	for _, s := range list[:min(len(list), most)] {
		names = append(names, quoteUnlessPlain(cleanText(s)))
	}
	return strings.Join(names, ", ")
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

// roughly is short for an estimate.
func roughly(d time.Duration) string {
	if d < time.Second {
		return short(d)
	}
	return "about " + short(d)
}

// Ordinal reads: 1st, 2nd, 3rd, 4th.
func Ordinal(n int) string {
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

// Count reads: 1 waiter, 2 waiters.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// enumerated reads: a, b and c.
func enumerated(list []string) string {
	n := len(list)
	if n < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
}
