package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// leaseFlags is the flags with which a lease is asked for, by run and by lock.
type leaseFlags struct {
	claimFlags
	Any             bool
	AnyPrefix       string
	Parties         countFlag
	interlock.Terms // without MaxWait, which is waiting's
	Priority        int
	Purpose         string
	Agent           string
	MaxPosition     int
	AsOf            uint64

	graceGiven bool // else the pattern's counts
}

// claimFlags holds which keys are wanted and how long to wait for them: what a request and a
// conversion have in common.
type claimFlags struct {
	waitFlags
	Shared  bool
	Permits countFlag
	Claims  claimFlag
	Preempt bool
}

func (q *claimFlags) flags(cmd *cobra.Command) {
	q.waitFlags.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&q.Shared, "shared", false, "share the keys with other readers (default: exclusive)")
	f.Var(
		&q.Permits, "permits",
		"take this `number` of permits of each key, which needs a key pattern with a capacity or a rate",
	)
	f.Var(
		&q.Claims, "claim",
		"a key with a mode or a number of permits of its own, `KEY=WHAT`, such as ledger:2026=shared or org:acme/runs=2; may be repeated",
	)
	f.BoolVar(
		&q.Preempt, "preempt", false,
		"ask the blocking holders to yield; where the key pattern allows it, they lose the keys after their grace",
	)
}

func (q *leaseFlags) flags(cmd *cobra.Command, ttl time.Duration) {
	q.claimFlags.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&q.Any, "any", false, "take exactly one of the keys: the first that is free or becomes free")
	f.StringVar(
		&q.AnyPrefix, "any-prefix", "",
		"take any one member of the key patterns' pools that begins with this `prefix`, in place of keys",
	)
	f.Var(
		&q.Parties, "parties", "wait at the barrier KEY until this `number` of parties is there; all are granted together",
	)
	f.StringVar(&q.Group, "group", "", "the claimant `group` that takes the permits")
	f.DurationVar(&q.TTL, "ttl", ttl, "how long the lease outlives the last sign of life")
	f.DurationVar(
		&q.Grace, "grace", 0,
		"time to finish after the lease has ended, before the keys pass on (default: the key pattern's, else "+
			interlock.DefaultGrace.String()+")",
	)
	f.DurationVar(
		&q.MaxHold, "max-hold", 0, "how long the keys may be held at all (default: the key pattern's, else no limit)",
	)
	f.DurationVar(
		&q.Stall, "stall", 0,
		"how long the lease lives without news of progress, see interlock renew --progress (default: the key pattern's, else no limit)",
	)
	f.DurationVar(
		&q.LockDelay, "lock-delay", 0,
		"how long the keys stay closed when the holder dies instead of releasing them (default: the key pattern's, else 0)",
	)
	f.IntVar(&q.Priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	f.IntVar(
		&q.MaxPosition, "max-position", 0,
		"fail instead of waiting further back than this queue `position` (default: wait at any)",
	)
	f.Uint64Var(
		&q.AsOf, "as-of", 0, "the `version` of the namespace that you have read: the grant lists later writes at the keys",
	)
	f.StringVar(&q.Purpose, "purpose", "", "its purpose, for others to read")
	f.StringVar(&q.Agent, "agent", "", "your `name`, for others to read (default: user@host:pid)")
	bind(f, "agent", "")
}

func (q *claimFlags) check() error {
	if q.Shared && q.Permits > 0 {
		return usage("--shared and --permits: use one of them, and --claim for keys that differ")
	}
	if q.Preempt && q.Wait == 0 {
		return usage("--preempt asks others to yield, which takes them a moment: leave --wait 0 out")
	}
	return q.waitFlags.check()
}

func (q *leaseFlags) check(cmd *cobra.Command) error {
	q.graceGiven = cmd.Flags().Changed("grace")
	if err := q.claimFlags.check(); err != nil {
		return err
	}
	if q.Parties > interlock.MaxParties {
		return usage("--parties %d: want a number from 1 to %d", q.Parties, interlock.MaxParties)
	}
	if q.Priority < -interlock.MaxPriority || q.Priority > interlock.MaxPriority {
		return usage("--priority %d: want a number from %d to %d", q.Priority, -interlock.MaxPriority, interlock.MaxPriority)
	}
	if q.MaxPosition < 0 || q.MaxPosition > interlock.MaxWaitersPerKey {
		return usage("--max-position %d: want a number from 0 to %d", q.MaxPosition, interlock.MaxWaitersPerKey)
	}
	return checkDurations(
		duration{"--ttl", q.TTL, interlock.MinTTL, interlock.MaxTTL},
		duration{"--grace", q.Grace, 0, interlock.MaxGrace},
		duration{"--max-hold", q.MaxHold, 0, interlock.MaxMaxHold},
		duration{"--stall", q.Stall, 0, interlock.MaxStall},
		duration{"--lock-delay", q.LockDelay, 0, interlock.MaxLockDelay},
	)
}

// claims are the keys of a command line with what is wanted of each.
func (q *claimFlags) claims(keys []string) ([]interlock.Claim, error) {
	c := interlock.Claim{Mode: interlock.Exclusive}
	switch {
	case q.Shared:
		c.Mode = interlock.Shared
	case q.Permits > 0:
		c.Mode, c.Count = interlock.Permits, uint32(q.Permits)
	}
	return q.all(keys, c)
}

func (q *claimFlags) all(keys []string, c interlock.Claim) ([]interlock.Claim, error) {
	list := make([]interlock.Claim, 0, len(keys)+len(q.Claims))
	for _, key := range keys {
		c.Key = interlock.Key(key)
		list = append(list, c)
	}
	if list = append(list, q.Claims...); len(list) == 0 {
		return nil, errNoKeys
	}
	return list, nil
}

// claims returns the claims of a request; none with --any-prefix.
func (q *leaseFlags) claims(keys []string) ([]interlock.Claim, error) {
	switch several := len(keys) + len(q.Claims); {
	case q.AnyPrefix != "" && (several > 0 || q.Any || q.Parties > 0 || q.Shared || q.Permits > 0):
		return nil, usage(
			"--any-prefix stands in place of keys, and takes one exclusively: leave the keys out, and --any, --shared, --permits, --claim and --parties",
		)
	case q.AnyPrefix != "":
		return nil, nil
	case q.Parties > 0 && (several != 1 || len(q.Claims) > 0 || q.Any || q.Shared || q.Permits > 0):
		return nil, usage(
			"--parties is about one key, the barrier: name that key alone, without --any, --shared, --permits and --claim",
		)
	case q.Parties > 0:
		return q.all(keys, interlock.Claim{Mode: interlock.Barrier, Count: uint32(q.Parties)})
	}
	return q.claimFlags.claims(keys)
}

var errNoKeys = usage("name one key or more, with --claim where they want different things")

// onConflict returns what becomes of a request that cannot be granted at once.
func (q *claimFlags) onConflict() interlock.OnConflict {
	switch {
	case q.Preempt:
		return interlock.Preempt
	case q.Wait == 0:
		return interlock.Fail
	}
	return interlock.Wait
}

// fields returns its fields for the HTTP/JSON door.
func (q *claimFlags) fields(body map[string]any) {
	conflict := q.onConflict()
	body["on_conflict"] = conflict.String()
	if conflict == interlock.Wait {
		body["wait_ms"] = 0
	}
	milliseconds(body, "max_wait_ms", q.MaxWait)
}

func (q *leaseFlags) fields(body map[string]any) {
	q.claimFlags.fields(body)
	body["agent"], body["purpose"], body["priority"] = q.Agent, q.Purpose, q.Priority
	if q.Agent == "" {
		body["agent"] = ownName()
	}
	if q.Any {
		body["any"] = true
	}
	if q.AnyPrefix != "" {
		body["any_prefix"] = q.AnyPrefix
	}
	if q.Group != "" {
		body["group"] = q.Group
	}
	if q.MaxPosition != 0 {
		body["max_position"] = q.MaxPosition
	}
	if q.AsOf > 0 {
		body["as_of"] = strconv.FormatUint(q.AsOf, 10)
	}
	if q.graceGiven {
		body["grace_ms"] = q.Grace.Milliseconds()
	}
	milliseconds(body, "ttl_ms", q.TTL)
	milliseconds(body, "max_hold_ms", q.MaxHold)
	milliseconds(body, "stall_ms", q.Stall)
	milliseconds(body, "lock_delay_ms", q.LockDelay)
}

// milliseconds leaves out what was not asked for, so that the pattern's counts.
func milliseconds(body map[string]any, name string, d time.Duration) {
	if d != 0 {
		body[name] = d.Milliseconds()
	}
}
