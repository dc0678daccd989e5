package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// ErrInTime reports that the time for waiting is over.
var ErrInTime = errors.New("not in time")

// WaitFlags is how long to stand in line.
type WaitFlags struct {
	Wait    Wait
	MaxWait time.Duration
}

// Define adds the flags to a command.
func (q *WaitFlags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	q.Wait = Forever
	f.Var(&q.Wait, "wait", "how long to wait in line: a `duration`, 0 to fail at once, or forever")
	DurationVar(
		f, &q.MaxWait, "max-wait", 0,
		"how long the request may wait in line, by the server's clock (default: the key pattern's, else no limit)",
	)
}

// Check refuses what no server takes, so that the refusal can name the flag.
func (q *WaitFlags) Check() error {
	return CheckDurations(Duration("--max-wait", q.MaxWait, 0, interlock.MaxMaxWait))
}

// Wait is how long to wait in line.
type Wait time.Duration

// Forever waits until the server answers.
const Forever Wait = -1

// Deadline is when the time is over; zero for never.
func (w Wait) Deadline() time.Time {
	if w == Forever || w == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(w))
}

func (w *Wait) String() string {
	if *w == Forever {
		return "forever"
	}
	return Span(time.Duration(*w))
}

func (w *Wait) Set(s string) error {
	if s == "forever" {
		*w = Forever
		return nil
	}
	d, err := ParseDuration(s)
	if errors.Is(err, errNoDuration) {
		return fmt.Errorf("%w, 0, or forever", err)
	}
	if err != nil {
		return err
	}
	*w = Wait(d)
	return nil
}

func (w *Wait) Type() string { return "duration" }

// BoundedDuration is the value of a flag with its bounds.
type BoundedDuration struct {
	flag        string
	value       time.Duration
	least, most time.Duration
}

// Duration is the value of a flag that must lie between least and most.
func Duration(flag string, value, least, most time.Duration) BoundedDuration {
	return BoundedDuration{flag, value, least, most}
}

// CheckDurations refuses the first flag that is out of its bounds.
func CheckDurations(list ...BoundedDuration) error {
	for _, d := range list {
		if d.value < d.least || d.value > d.most {
			return Usagef("%s %s: want a duration from %s to %s", d.flag, Span(d.value), Span(d.least), Span(d.most))
		}
	}
	return nil
}
