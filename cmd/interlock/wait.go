package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// waitFlags is how long to stand in line.
type waitFlags struct {
	Wait    wait
	MaxWait time.Duration
}

func (q *waitFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	q.Wait = forever
	f.Var(&q.Wait, "wait", "how long to wait in line: a `duration`, 0 to fail at once, or forever")
	f.DurationVar(
		&q.MaxWait, "max-wait", 0,
		"how long the request may stand in line at all, by the server's clock (default: the key pattern's, else no limit)",
	)
}

// check refuses what no server takes, so that the refusal can name the flag.
func (q *waitFlags) check() error {
	return checkDurations(duration{"--max-wait", q.MaxWait, 0, interlock.MaxMaxWait})
}

// wait is how long to wait in line.
type wait time.Duration

const forever wait = -1

// deadline is when the time is over; zero for never.
func (w wait) deadline() time.Time {
	if w == forever || w == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(w))
}

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

// duration is a flag with its bounds.
type duration struct {
	flag        string
	value       time.Duration
	least, most time.Duration
}

func checkDurations(list ...duration) error {
	for _, d := range list {
		if d.value < d.least || d.value > d.most {
			return usage("%s %s: want a duration from %s to %s", d.flag, d.value, d.least, d.most)
		}
	}
	return nil
}
