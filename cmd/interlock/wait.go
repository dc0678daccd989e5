package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// asking is the flags with which a lease is asked for, by run and by lock.
type asking struct {
	Shared   bool
	Wait     wait
	TTL      time.Duration
	Grace    time.Duration
	MaxHold  time.Duration
	Priority int
	Purpose  string
	Agent    string
}

func (q *asking) flags(cmd *cobra.Command, ttl time.Duration) {
	f := cmd.Flags()
	q.Wait = forever
	f.BoolVar(&q.Shared, "shared", false, "share the keys with other readers (default: exclusive)")
	f.Var(&q.Wait, "wait", "how long to wait in line: a `duration`, 0 to fail at once, or forever")
	f.DurationVar(&q.TTL, "ttl", ttl, "how long the lease outlives the last sign of life")
	f.DurationVar(&q.Grace, "grace", interlock.DefaultGrace, "time to finish after the lease has ended, before the keys go on")
	f.DurationVar(&q.MaxHold, "max-hold", 0, "how long the keys may be held at all (default: no limit)")
	f.IntVar(&q.Priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	f.StringVar(&q.Purpose, "purpose", "", "what it is for, for others to read")
	f.StringVar(&q.Agent, "agent", "", "your `name`, for others to read (default: user@host:pid)")
	bind(f, "agent", "")
}

// check refuses what no server takes, so that the refusal can name the flag.
func (q *asking) check() error {
	for _, d := range []struct {
		flag        string
		value       time.Duration
		least, most time.Duration
	}{
		{"--ttl", q.TTL, interlock.MinTTL, interlock.MaxTTL},
		{"--grace", q.Grace, 0, interlock.MaxGrace},
		{"--max-hold", q.MaxHold, 0, interlock.MaxMaxHold},
	} {
		if d.value < d.least || d.value > d.most {
			return usage("%s %s: want a duration from %s to %s", d.flag, d.value, d.least, d.most)
		}
	}
	if q.Priority < -interlock.MaxPriority || q.Priority > interlock.MaxPriority {
		return usage("--priority %d: want a number from %d to %d", q.Priority, -interlock.MaxPriority, interlock.MaxPriority)
	}
	return nil
}

func (q *asking) mode() interlock.Mode {
	if q.Shared {
		return interlock.Shared
	}
	return interlock.Exclusive
}

// wait is how long to wait in line.
type wait time.Duration

const forever wait = -1

func (w *wait) String() string {
	if *w == forever {
		return "forever"
	}
	return time.Duration(*w).String()
}

func (w *wait) Set(s string) error {
	if s == "forever" {
		*w = forever
		return nil
	}
	if s == "0" {
		*w = 0
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return usage("want a duration such as 30s, 0, or forever")
	}
	*w = wait(d)
	return nil
}

func (w *wait) Type() string { return "duration" }
