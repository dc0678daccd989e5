package acquire

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// Flags is the flags with which a lease is asked for, by run and by lock.
type Flags struct {
	ClaimFlags
	Any             bool
	AnyPrefix       string
	Parties         cli.CountFlag
	interlock.Terms // without MaxWait, which is waiting's
	Priority        int
	Purpose         string
	Agent           string
	MaxPosition     int
	AsOf            uint64

	GraceGiven bool // else the pattern's counts
}

// ClaimFlags holds which keys are wanted and how long to wait for them: what a request and a
// conversion have in common.
type ClaimFlags struct {
	cli.WaitFlags
	Shared  bool
	Permits cli.CountFlag
	Claims  ClaimFlag
	Preempt bool
}

// Define adds the flags to a command.
func (q *ClaimFlags) Define(cmd *cobra.Command) {
	q.WaitFlags.Define(cmd)
	f := cmd.Flags()
	f.BoolVar(&q.Shared, "shared", false, "share the keys with other readers (default: exclusive, or a permit)")
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

// Define adds the flags to a command; ttl is the default of --ttl, where 0 leaves it to the server.
func (q *Flags) Define(cmd *cobra.Command, ttl time.Duration) {
	q.ClaimFlags.Define(cmd)
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
	if ttl == 0 {
		cli.TTLVar(f, &q.TTL, "the lease", "the key pattern's")
	} else {
		cli.DurationVar(f, &q.TTL, "ttl", ttl, "how long the lease outlives the last sign of life")
	}
	cli.DurationVar(
		f, &q.Grace, "grace", 0,
		"time to finish after the lease has ended, before the keys pass on (default: the key pattern's, else "+
			interlock.DefaultGrace.String()+")",
	)
	cli.DurationVar(
		f, &q.MaxHold, "max-hold", 0, "how long the keys may be held (default: the key pattern's, else no limit)",
	)
	cli.DurationVar(
		f, &q.Stall, "stall", 0,
		"how long the lease lives without new progress, see interlock lease renew --progress "+
			"(default: the key pattern's, else no limit)",
	)
	cli.DurationVar(
		f, &q.LockDelay, "lock-delay", 0,
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
	cli.AgentVar(f, &q.Agent, "your `name`, for others to read")
}

// Check refuses flags that contradict each other.
func (q *ClaimFlags) Check() error {
	if q.Shared && q.Permits > 0 {
		return cli.Usagef("--shared and --permits: use one of them, and --claim for keys that differ")
	}
	if q.Preempt && q.Wait == 0 {
		return cli.Usagef("--preempt asks others to yield, which takes them a moment: leave --wait 0 out")
	}
	return q.WaitFlags.Check()
}

// Check refuses flags that contradict each other or are out of their bounds.
func (q *Flags) Check(cmd *cobra.Command) error {
	q.GraceGiven = cmd.Flags().Changed("grace")
	if err := q.ClaimFlags.Check(); err != nil {
		return err
	}
	if q.Parties > interlock.MaxParties {
		return cli.Usagef("--parties %d: want a number from 1 to %d", q.Parties, interlock.MaxParties)
	}
	if q.Priority < -interlock.MaxPriority || q.Priority > interlock.MaxPriority {
		return cli.Usagef(
			"--priority %d: want a number from %d to %d", q.Priority, -interlock.MaxPriority, interlock.MaxPriority,
		)
	}
	if q.MaxPosition < 0 || q.MaxPosition > interlock.MaxWaitersPerKey {
		return cli.Usagef("--max-position %d: want a number from 0 to %d", q.MaxPosition, interlock.MaxWaitersPerKey)
	}
	return cli.CheckDurations(
		cli.Duration("--ttl", cmp.Or(q.TTL, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL),
		cli.Duration("--grace", q.Grace, 0, interlock.MaxGrace),
		cli.Duration("--max-hold", q.MaxHold, 0, interlock.MaxMaxHold),
		cli.Duration("--stall", q.Stall, 0, interlock.MaxStall),
		cli.Duration("--lock-delay", q.LockDelay, 0, interlock.MaxLockDelay),
	)
}

// Wanted are the keys of a command line with what is wanted of each.
func (q *ClaimFlags) Wanted(keys []string) ([]interlock.Claim, error) {
	var c interlock.Claim
	switch {
	case q.Shared:
		c.Mode = interlock.Shared
	case q.Permits > 0:
		c.Mode, c.Count = interlock.Permits, uint32(q.Permits)
	}
	return q.all(keys, c)
}

func (q *ClaimFlags) all(keys []string, c interlock.Claim) ([]interlock.Claim, error) {
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

// Wanted returns the claims of a request; none with --any-prefix.
func (q *Flags) Wanted(keys []string) ([]interlock.Claim, error) {
	switch several := len(keys) + len(q.Claims); {
	case q.AnyPrefix != "" && (several > 0 || q.Any || q.Parties > 0 || q.Shared || q.Permits > 0):
		return nil, cli.Usagef(
			"--any-prefix stands in place of keys, and takes one exclusively: leave the keys out, and --any, --shared, --permits, --claim and --parties",
		)
	case q.AnyPrefix != "":
		return nil, nil
	case q.Parties > 0 && (several != 1 || len(q.Claims) > 0 || q.Any || q.Shared || q.Permits > 0):
		return nil, cli.Usagef(
			"--parties is about one key, the barrier: name that key alone, without --any, --shared, --permits and --claim",
		)
	case q.Parties > 0:
		return q.all(keys, interlock.Claim{Mode: interlock.Barrier, Count: uint32(q.Parties)})
	}
	return q.ClaimFlags.Wanted(keys)
}

var errNoKeys = cli.Usagef("name one key or more, with --claim where they want different things")

// OnConflict returns the treatment of a request that cannot be granted at once.
func (q *ClaimFlags) OnConflict() interlock.OnConflict {
	switch {
	case q.Preempt:
		return interlock.Preempt
	case q.Wait == 0:
		return interlock.Fail
	}
	return interlock.Wait
}

// Conflict returns the fields of a request that say what becomes of it in a conflict.
func (q *ClaimFlags) Conflict() (onConflict string, wait *api.Milliseconds, maxWait api.Milliseconds) {
	conflict := q.OnConflict()
	if conflict == interlock.Wait {
		wait = new(api.Milliseconds)
	}
	return conflict.String(), wait, q.MaxWait.Milliseconds()
}

// Request returns the request for a lease on some keys.
func (q *Flags) Request(claims []interlock.Claim) *api.AcquireRequest {
	body := &api.AcquireRequest{
		Agent: cmp.Or(q.Agent, cli.OwnName()), Purpose: q.Purpose, Priority: q.Priority, Any: q.Any, Prefix: q.AnyPrefix,
		Group: q.Group, MaxPosition: q.MaxPosition, AsOf: interlock.Version(q.AsOf), Claims: view.ClaimsOf(claims),
		TTL: q.TTL.Milliseconds(), MaxHold: q.MaxHold.Milliseconds(), Stall: q.Stall.Milliseconds(),
		LockDelay: q.LockDelay.Milliseconds(),
	}
	if q.GraceGiven {
		body.Grace = new(q.Grace.Milliseconds())
	}
	body.OnConflict, body.Wait, body.MaxWait = q.Conflict()
	return body
}

// LockTTL is longer than a session's, because a lease that a script holds has no heartbeats.
const LockTTL = 5 * time.Minute
