package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

// policy is the flags of a key pattern. Only those that were given become fields.
type policy struct {
	aliases, members []string
	capacity, burst  uint32
	rate             rateFlag
	groups           groupsFlag
	durations        map[string]*time.Duration // by flag
	maxWaiters       uint32
	allow            rulesFlag
	preempt, park    choice
	onDeadlock       choice
	write            choice
	writer           string
	auditRefusals    bool
}

// patternDurations are the flags of durations with their usage; the field of each is
// the flag's name with _ms.
var patternDurations = []struct{ flag, usage string }{
	{"ttl", "ttl of leases without a session that ask for none"},
	{"max-ttl", "longest ttl"},
	{"grace", "grace of leases that ask for none"},
	{"max-grace", "longest grace"},
	{"max-hold", "how long a key may be held at all, by default and at most"},
	{"stall", "how long a lease lives without news of progress, by default and at most"},
	{"lock-delay", "how long a key stays closed when its holder dies, by default and at least"},
	{"max-wait", "how long a request may stand in line, by default and at most"},
	{"max-park", "how long a lease may be parked (default " + interlock.DefaultPark.String() + ")"},
}

func (p *policy) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(
		&p.aliases, "alias", nil, "another spelling of the same keys, a `shape` with the same variables; may be repeated",
	)
	f.StringArrayVar(
		&p.members, "member", nil,
		"a `key` of the pool from which --any-prefix takes one, or several such as gpu:{0..7}; may be repeated",
	)
	f.Uint32Var(&p.capacity, "capacity", 0, "how many `permits` each key has")
	f.Var(&p.rate, "rate", "how many tokens come back in which time, `N/TIME` such as 60/1m")
	f.Uint32Var(&p.burst, "burst", 0, "how many `tokens` there are at most (default: those of --rate)")
	f.Var(
		&p.groups, "group",
		"the share of a claimant group in the capacity, `NAME=MIN..MAX` such as batch=1..4, batch=1.. or batch=..4; may be repeated",
	)
	p.durations = map[string]*time.Duration{}
	for _, d := range patternDurations {
		p.durations[d.flag] = f.Duration(d.flag, 0, d.usage)
	}
	f.Uint32Var(
		&p.maxWaiters, "max-waiters", 0,
		"how many may stand in line for a key (default "+strconv.Itoa(interlock.MaxWaitersPerKey)+")",
	)
	f.Var(
		&p.allow, "allow",
		"allow claims: `WHO=MODES` such as billing=exclusive,shared or *=shared; without = all modes; the first that fits counts; may be repeated",
	)
	p.preempt.among(cmd, "preempt", "what --preempt does to a holder", words[interlock.PreemptPolicy]()...)
	p.park.among(cmd, "park", "what becomes of the keys of a parked lease", words[interlock.ParkPolicy]()...)
	p.onDeadlock.among(
		cmd, "on-deadlock", "what becomes of a deadlock victim's leases that others wait for",
		words[interlock.DeadlockPolicy]()...,
	)
	p.write.among(cmd, "write", "the writers that may commit documents at the keys", words[interlock.WritePolicy]()...)
	f.StringVar(&p.writer, "writer", "", "the `principal` that may write, with --write single-writer")
	f.BoolVar(
		&p.auditRefusals, "audit-refusals", false,
		"record requests that are refused at the keys in the trail, at most 20 a minute",
	)
}

// fields returns the fields of the flags that were set, as in the HTTP API.
func (p *policy) fields(f *pflag.FlagSet) map[string]any {
	fields := map[string]any{}
	set := func(flag, field string, value any) {
		if f.Changed(flag) {
			fields[field] = value
		}
	}
	set("alias", "aliases", listed(p.aliases))
	set("member", "members", listed(p.members))
	set("capacity", "capacity", p.capacity)
	set("rate", "rate", p.rate.tokens)
	set("rate", "per_ms", p.rate.per.Milliseconds())
	set("burst", "burst", p.burst)
	set("group", "groups", listed(p.groups))
	for flag, d := range p.durations {
		set(flag, strings.ReplaceAll(flag, "-", "_")+"_ms", d.Milliseconds())
	}
	set("max-waiters", "max_waiters", p.maxWaiters)
	set("allow", "allow", listed(p.allow))
	set("preempt", "preempt", p.preempt.value)
	set("park", "park", p.park.value)
	set("on-deadlock", "on_deadlock", p.onDeadlock.value)
	set("write", "write", p.write.value)
	set("writer", "writer", p.writer)
	set("audit-refusals", "audit_refusals", p.auditRefusals)
	return fields
}

// listed is a list without what is empty, which stands for no list at all.
func listed[T comparable](list []T) []T {
	kept := []T{}
	var zero T
	for _, v := range list {
		if v != zero {
			kept = append(kept, v)
		}
	}
	return kept
}

// rateFlag reads N/TIME.
type rateFlag struct {
	tokens uint32
	per    time.Duration
}

func (r *rateFlag) Set(s string) error {
	n, per, given := strings.Cut(s, "/")
	tokens, err := strconv.ParseUint(n, 10, 32)
	if err != nil {
		return usage("want N/TIME, such as 60/1m")
	}
	r.tokens, r.per = uint32(tokens), 0
	if !given {
		return nil
	}
	if r.per, err = time.ParseDuration(per); err != nil {
		// 60/m is how people write it.
		r.per, err = time.ParseDuration("1" + per)
	}
	if err != nil || r.per < time.Millisecond {
		return usage("want N/TIME, such as 60/1m, with at least a millisecond")
	}
	return nil
}

func (r *rateFlag) String() string {
	if r.tokens == 0 {
		return ""
	}
	return rateText(r.tokens, r.per)
}

func (r *rateFlag) Type() string { return "rate" }

// rateText is a rate as --rate takes it.
func rateText(tokens uint32, per time.Duration) string {
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

// shareOf is a claimant group in the form of the HTTP API.
type shareOf struct {
	Name string `json:"name"`
	Min  uint32 `json:"min,omitempty"`
	Max  uint32 `json:"max,omitempty"`
}

func (g shareOf) String() string {
	bounds := ".."
	if g.Min > 0 {
		bounds = strconv.FormatUint(uint64(g.Min), 10) + bounds
	}
	if g.Max > 0 {
		bounds += strconv.FormatUint(uint64(g.Max), 10)
	}
	return g.Name + "=" + bounds
}

type groupsFlag []shareOf

func (f *groupsFlag) Set(s string) error {
	if s == "" {
		*f = append(*f, shareOf{})
		return nil
	}
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return usage("want NAME=MIN..MAX, such as batch=1..4")
	}
	g := shareOf{Name: s[:i]}
	least, most, ok := strings.Cut(s[i+1:], "..")
	for _, bound := range []struct {
		text string
		to   *uint32
	}{{least, &g.Min}, {most, &g.Max}} {
		if bound.text == "" {
			continue
		}
		n, err := strconv.ParseUint(bound.text, 10, 32)
		ok = ok && err == nil
		*bound.to = uint32(n)
	}
	if !ok || least+most == "" {
		return usage("want NAME=MIN..MAX, such as batch=1..4, batch=1.. or batch=..4")
	}
	*f = append(*f, g)
	return nil
}

func (f *groupsFlag) String() string {
	list := make([]string, len(*f))
	for i, g := range *f {
		list[i] = g.String()
	}
	return strings.Join(list, " ")
}

func (f *groupsFlag) Type() string { return "group" }

// ruleOf is a claim rule in the form of the door.
type ruleOf struct {
	Principal string   `json:"principal"`
	Modes     []string `json:"modes,omitempty"`
}

func (r *ruleOf) String() string {
	if len(r.Modes) == 0 {
		return r.Principal
	}
	return r.Principal + "=" + strings.Join(r.Modes, ",")
}

type rulesFlag []*ruleOf

func (f *rulesFlag) Set(s string) error {
	if s == "" {
		*f = append(*f, nil)
		return nil
	}
	who, list, given := strings.Cut(s, "=")
	r := &ruleOf{Principal: who}
	if given {
		r.Modes = strings.Split(list, ",")
	}
	for _, name := range r.Modes {
		if _, ok := interlock.ParseMode(name); !ok {
			return usage("%q is no mode: want %s, permits, barrier or member", clean(name), strings.Join(modes(), ", "))
		}
	}
	*f = append(*f, r)
	return nil
}

func (f *rulesFlag) String() string {
	list := make([]string, len(*f))
	for i, r := range *f {
		if r != nil {
			list[i] = r.String()
		}
	}
	return strings.Join(list, " ")
}

func (f *rulesFlag) Type() string { return "rule" }

// choice is a flag with one of a few words.
type choice struct {
	value string
	words []string
}

// words are those of an enumeration of the root package.
func words[T interface {
	~uint8
	String() string
}]() (list []string) {
	for v := T(0); v.String() != ""; v++ {
		list = append(list, v.String())
	}
	return list
}

// among adds the flag; the first of the words is the default.
func (c *choice) among(cmd *cobra.Command, flag, what string, words ...string) {
	c.words = words
	cmd.Flags().Var(
		c, flag, what+": "+strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1]+" (default "+words[0]+")",
	)
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) Set(s string) error {
	for _, word := range c.words {
		if s == word {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.words, ", "))
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }
