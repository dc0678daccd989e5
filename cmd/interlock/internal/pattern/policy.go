package pattern

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
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
	preempt, park    cli.Choice
	onDeadlock       cli.Choice
	write            cli.Choice
	writer           string
	auditRefusals    bool
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
	f.Var(&p.rate, "rate", "at most N claims in any TIME, `N/TIME` such as 60/1m, evenly")
	f.Uint32Var(&p.burst, "burst", 0, "how many `tokens` of --rate may be saved up and taken at once (default 1)")
	f.Var(
		&p.groups, "group",
		"the share of a claimant group in the capacity, `NAME=MIN..MAX` such as batch=1..4, batch=1.. or batch=..4; may be repeated",
	)
	p.durations = map[string]*time.Duration{}
	for _, d := range view.PatternDurations {
		p.durations[d.Flag] = new(time.Duration)
		cli.DurationVar(f, p.durations[d.Flag], d.Flag, 0, d.Usage)
	}
	f.Uint32Var(
		&p.maxWaiters, "max-waiters", 0,
		"how many may stand in line for a key (default "+strconv.Itoa(interlock.MaxWaitersPerKey)+")",
	)
	f.Var(
		&p.allow, "allow",
		"allow claims: `WHO=MODES` such as billing=exclusive,shared or *=shared; without = all modes; the first that fits counts; may be repeated",
	)
	p.preempt.Among(cmd, "preempt", "what --preempt does to a holder", cli.Words[interlock.PreemptPolicy]()...)
	p.park.Among(cmd, "park", "the treatment of the keys of a parked lease", cli.Words[interlock.ParkPolicy]()...)
	p.onDeadlock.Among(
		cmd, "on-deadlock", "the treatment of a deadlock victim's leases that others wait for",
		cli.Words[interlock.DeadlockPolicy]()...,
	)
	p.write.Among(cmd, "write", "the writers that may commit documents at the keys", cli.Words[interlock.WritePolicy]()...)
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
	set("alias", "aliases", cli.Listed(p.aliases))
	set("member", "members", cli.Listed(p.members))
	set("capacity", "capacity", p.capacity)
	set("rate", "rate", p.rate.tokens)
	set("rate", "per_ms", p.rate.per.Milliseconds())
	set("burst", "burst", p.burst)
	set("group", "groups", cli.Listed(p.groups))
	for flag, d := range p.durations {
		set(flag, strings.ReplaceAll(flag, "-", "_")+"_ms", d.Milliseconds())
	}
	set("max-waiters", "max_waiters", p.maxWaiters)
	set("allow", "allow", cli.Listed(p.allow))
	set("preempt", "preempt", p.preempt.Value)
	set("park", "park", p.park.Value)
	set("on-deadlock", "on_deadlock", p.onDeadlock.Value)
	set("write", "write", p.write.Value)
	set("writer", "writer", p.writer)
	set("audit-refusals", "audit_refusals", p.auditRefusals)
	return fields
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
		return cli.Usagef("want N/TIME, such as 60/1m")
	}
	if r.tokens, r.per = uint32(tokens), 0; tokens == 0 {
		return nil
	}
	if !given {
		return cli.Usagef("in which time? %d/1s is %d a second, %d/1m a minute", tokens, tokens, tokens)
	}
	if r.per, err = time.ParseDuration(per); err != nil {
		// 60/m is how people write it.
		r.per, err = time.ParseDuration("1" + per)
	}
	if err != nil || r.per < time.Millisecond {
		return cli.Usagef("want N/TIME, such as 60/1m, with at least a millisecond")
	}
	return nil
}

func (r *rateFlag) String() string {
	if r.tokens == 0 {
		return ""
	}
	return view.RateText(r.tokens, r.per)
}

func (r *rateFlag) Type() string { return "rate" }

type groupsFlag []api.GroupRequest

func (f *groupsFlag) Set(s string) error {
	if s == "" {
		*f = append(*f, api.GroupRequest{})
		return nil
	}
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return cli.Usagef("want NAME=MIN..MAX, such as batch=1..4")
	}
	g := api.GroupRequest{Name: s[:i]}
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
		return cli.Usagef("want NAME=MIN..MAX, such as batch=1..4, batch=1.. or batch=..4")
	}
	*f = append(*f, g)
	return nil
}

func (f *groupsFlag) String() string {
	list := make([]string, len(*f))
	for i := range *f {
		list[i] = view.GroupText(&(*f)[i])
	}
	return strings.Join(list, " ")
}

func (f *groupsFlag) Type() string { return "group" }

type rulesFlag []*api.RuleRequest

func (f *rulesFlag) Set(s string) error {
	if s == "" {
		*f = append(*f, nil)
		return nil
	}
	who, list, given := strings.Cut(s, "=")
	r := &api.RuleRequest{Principal: who}
	if given {
		r.Modes = strings.Split(list, ",")
	}
	for _, name := range r.Modes {
		if _, ok := interlock.ParseMode(name); !ok {
			return cli.Usagef(
				"%q is no mode: want %s, permits, barrier or member", cli.Clean(name), strings.Join(view.Modes(), ", "),
			)
		}
	}
	*f = append(*f, r)
	return nil
}

func (f *rulesFlag) String() string {
	list := make([]string, len(*f))
	for i, r := range *f {
		if r != nil {
			list[i] = view.RuleText(r)
		}
	}
	return strings.Join(list, " ")
}

func (f *rulesFlag) Type() string { return "rule" }
