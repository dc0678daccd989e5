package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// patternOf converts a key pattern of a journal to the form of the HTTP API.
func patternOf(p *interlock.Pattern) *api.KeyPattern {
	a := &api.KeyPattern{Name: p.Name, PatternRequest: api.PatternRequest{
		Shape: p.Shape, Aliases: p.Aliases, Members: p.Members,
		Capacity: p.Capacity, Rate: p.Rate, Per: p.Per.Milliseconds(), Burst: p.Burst,
		TTL: p.TTL.Milliseconds(), MaxTTL: p.MaxTTL.Milliseconds(), Grace: p.Grace.Milliseconds(),
		MaxGrace: p.MaxGrace.Milliseconds(),
		MaxHold:  p.MaxHold.Milliseconds(), Stall: p.Stall.Milliseconds(), LockDelay: p.LockDelay.Milliseconds(),
		MaxWait: p.MaxWait.Milliseconds(), MaxPark: p.MaxPark.Milliseconds(), MaxWaiters: p.MaxWaiters,
		Preempt: p.Preempt.String(), Park: p.Park.String(), OnDeadlock: p.OnDeadlock.String(),
		Write: p.Write.String(), Writer: p.Writer, WriterQueue: p.WriterQueue, AuditRefusals: p.AuditRefusals,
	}}
	for _, g := range p.Groups {
		a.Groups = append(a.Groups, api.GroupRequest(g))
	}
	for _, r := range p.Allow {
		rule := api.RuleRequest{Principal: r.Principal}
		for _, m := range r.Modes {
			rule.Modes = append(rule.Modes, m.String())
		}
		a.Allow = append(a.Allow, rule)
	}
	return a
}

// PatternLine returns the settings of a pattern on one line.
func PatternLine(p *api.PatternRequest) string {
	var facts []string
	for _, fact := range PatternFacts(p) {
		facts = append(facts, fact[0]+" "+fact[1])
	}
	return strings.Join(facts, ", ")
}

// SaySet prints what was set, with its settings.
func SaySet(a *cli.App, what string, facts [][2]string) {
	for i, fact := range facts {
		what += []string{": ", ", "}[min(i, 1)] + strings.TrimSpace(fact[0]+" "+fact[1])
	}
	a.Say("%s\n", what)
}

// PatternFacts returns the settings of a pattern that differ from the defaults, each with the name of its flag.
func PatternFacts(p *api.PatternRequest) (facts [][2]string) {
	add := func(flag, value string) {
		if value != "" {
			facts = append(facts, [2]string{flag, cli.Clean(value)})
		}
	}
	number := func(flag string, n uint32) {
		if n > 0 {
			add(flag, strconv.FormatUint(uint64(n), 10))
		}
	}
	for _, alias := range p.Aliases {
		add("alias", alias)
	}
	for _, member := range p.Members {
		add("member", member)
	}
	number("capacity", p.Capacity)
	if p.Rate > 0 {
		add("rate", RateText(p.Rate, cli.Millis(p.Per)))
	}
	number("burst", p.Burst)
	for i := range p.Groups {
		add("group", GroupText(&p.Groups[i]))
	}
	for i, n := range []int64{
		p.TTL, p.MaxTTL, p.Grace, p.MaxGrace, p.MaxHold, p.Stall, p.LockDelay, p.MaxWait, p.MaxPark,
	} {
		if n > 0 {
			add(PatternDurations[i].Flag, cli.ShortMillis(n))
		}
	}
	number("max-waiters", uint32(p.MaxWaiters))
	for i := range p.Allow {
		add("allow", RuleText(&p.Allow[i]))
	}
	for _, c := range []struct{ flag, value, normal string }{
		{"preempt", p.Preempt, interlock.PreemptAsk.String()},
		{"park", p.Park, interlock.ParkChoice.String()},
		{"on-deadlock", p.OnDeadlock, interlock.DeadlockRefuse.String()},
		{"write", p.Write, interlock.WriteGuarded.String()},
		{"writer", p.Writer, ""},
		{"writer-queue", p.WriterQueue, ""},
	} {
		if c.value != c.normal {
			add(c.flag, c.value)
		}
	}
	if p.AuditRefusals {
		add("audit-refusals", "true")
	}
	return facts
}

// PatternDurations are the flags of durations with their usage; the field of each is
// the flag's name with _ms.
var PatternDurations = []struct{ Flag, Usage string }{
	{"ttl", "ttl of leases that ask for none"},
	{"max-ttl", "longest ttl"},
	{"grace", "grace of leases that ask for none"},
	{"max-grace", "longest grace"},
	{"max-hold", "how long a key may be held, by default and at most"},
	{"stall", "how long a lease lives without new progress, by default and at most"},
	{"lock-delay", "how long a key stays closed when its holder dies, by default and at least"},
	{"max-wait", "how long a request may stand in line, by default and at most"},
	{"max-park", "how long a lease may be parked (default " + interlock.DefaultPark.String() + ")"},
}

// RateText is a rate as --rate takes it.
func RateText(tokens uint32, per time.Duration) string {
	if per == 0 {
		per = time.Second
	}
	text := per.String()
	text = strings.TrimSuffix(text, "0s")
	if text = strings.TrimSuffix(text, "0m"); text == "" || !strings.HasSuffix(text, "m") && !strings.HasSuffix(text, "h") {
		text = per.String()
	}
	return strconv.FormatUint(uint64(tokens), 10) + "/" + text
}

// GroupText returns the share of a claimant group as --group takes it.
func GroupText(g *api.GroupRequest) string {
	bounds := ".."
	if g.Min > 0 {
		bounds = strconv.FormatUint(uint64(g.Min), 10) + bounds
	}
	if g.Max > 0 {
		bounds += strconv.FormatUint(uint64(g.Max), 10)
	}
	return g.Name + "=" + bounds
}

// RuleText returns a claim rule as --allow takes it.
func RuleText(r *api.RuleRequest) string {
	if len(r.Modes) == 0 {
		return r.Principal
	}
	return r.Principal + "=" + strings.Join(r.Modes, ",")
}
