package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/interlockdev/interlock/merge/train"
)

// Merge is the load of the scenario merge.
type Merge struct {
	// Files are in the target's tree; 0 is 2000. They must be at least twice the submissions.
	Files int

	// Submissions wait when the merger starts; 0 is 100.
	Submissions int

	// Conflicts is the share of submissions that change a line which an earlier one has changed, from 0 to 1.
	Conflicts float64

	// Bad is the share of submissions that pass their checks alone, and fail together with an earlier one.
	Bad float64

	// Check is how long a check waits before it looks at the tree; 0 is not at all.
	Check time.Duration

	// Runners are how many checks run at a time, and how many agents push; 0 is 8.
	Runners int
}

func (m Merge) normal() (Merge, error) {
	if m.Files == 0 {
		m.Files = 2000
	}
	if m.Submissions == 0 {
		m.Submissions = 100
	}
	if m.Runners == 0 {
		m.Runners = 8
	}
	switch {
	case m.Submissions < 1 || m.Runners < 1 || m.Check < 0:
		return m, fmt.Errorf(
			"%d submissions, %d runners and checks of %v: want at least one, one and no time", m.Submissions, m.Runners, m.Check,
		)
	case m.Files < 2*m.Submissions:
		return m, fmt.Errorf(
			"%d files for %d submissions: each changes two files of its own, so want twice as many", m.Files, m.Submissions,
		)
	case m.Conflicts < 0 || m.Bad < 0 || m.Conflicts+m.Bad > 0.5:
		return m, fmt.Errorf(
			"shares of %g conflicts and %g bad ones: each needs another submission, so want at most 0.5 together",
			m.Conflicts, m.Bad,
		)
	}
	return m, nil
}

// slowMost is how many submissions the serial queue and the agents that push get: they land as many an hour, however
// many wait.
const slowMost = 40

var mergeScenario = Scenario{
	Name:  "merge",
	Short: "landings of a merge queue, of a serial one, and of direct pushes",
	About: "Submissions wait, each of them a commit on one base, when the work begins; it ends with the last outcome. " +
		"Real are the server, the merger with its git, the pushes of agents with clones of their own, and the look of a " +
		"check at the merged tree: the calls in it must have their definitions. Simulated are the agents' work, which " +
		"is made before, and the time of a check, which is a wait without load. A bad submission calls what an earlier " +
		"one renames: each passes alone, and both together fail. What is returned is not submitted again. The serial " +
		"queue checks one submission at a time, by one runner. Agents that push rebase until the push is accepted, " +
		"check nothing, and keep their own version of a file in conflict. Both get at most 40 submissions, of the same " +
		"shares. A commit is red if its tree fails the look; a change is lost if it was accepted and the last tree does " +
		"not have it. The boundary alone has no checks, no server and no line.",
	Transports: []Transport{Stream},
	Own:        true, // it makes queues and a pattern
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		m, err := cfg.Merge.normal()
		if err != nil {
			return nil, err
		}
		amount := fmt.Sprintf("%s of %s files", Number(float64(m.Submissions)), Number(float64(m.Files)))
		few := m
		few.Submissions = min(m.Submissions, slowMost)
		serial := few
		serial.Runners = 1
		mechanical := m
		mechanical.Check = 0
		throughQueue := func(m Merge, trains train.Config) mergeRun {
			return func(ctx context.Context, w *mergeWork, site Site) (mergeCount, error) {
				return w.queue(ctx, site, m, trains)
			}
		}
		for _, t := range targets {
			load := fmt.Sprintf("%s, checks of %v", amount, m.Check)
			queue := m.on(t, load, "merge queue", perHour, throughQueue(m, train.Config{Runners: m.Runners}))
			alone := serial.on(t, load, "serial queue", perHour, throughQueue(serial, train.Config{MaxBatch: 1, Repeats: -1}))
			queue.Against = alone.Target
			cases = append(cases, queue, alone, few.on(
				t, load, "direct pushes", perHour, func(ctx context.Context, w *mergeWork, _ Site) (mergeCount, error) {
					return w.pushes(ctx, m.Runners)
				},
			))
		}
		for _, t := range targets {
			load := amount + ", no time for checks"
			cases = append(cases, mechanical.on(
				t, load, "merge queue", perSecond, throughQueue(mechanical, train.Config{Runners: m.Runners}),
			), mechanical.on(
				t, load, "boundary alone", perSecond, func(ctx context.Context, w *mergeWork, _ Site) (mergeCount, error) {
					return w.boundary(ctx)
				},
			))
		}
		return cases, nil
	},
}

// mergeCount is what came of the submissions of one run.
type mergeCount struct {
	landed   []change
	returned int
	checks   int
	took     time.Duration
}

// mergeRun lands the submissions in one way.
type mergeRun func(context.Context, *mergeWork, Site) (mergeCount, error)

func perHour(n int, d time.Duration) Value {
	return Value{"landings", PerHour, float64(n) / d.Hours()}
}

func perSecond(n int, d time.Duration) Value { return rate("landings", n, d) }

// on makes a case that has a repository of its own for each run.
func (m Merge) on(
	t Target, load, target string, speed func(int, time.Duration) Value, run mergeRun,
) Case {
	c := on(t, load, 1, func(ctx context.Context, site Site) (values []Value, err error) {
		dir, err := os.MkdirTemp("", "interlock-bench-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		w, err := newMergeWork(ctx, dir, m)
		if err != nil {
			return nil, err
		}
		n, err := run(ctx, w, site)
		if err != nil {
			return nil, err
		}
		red, lost, err := w.audit(ctx, n.landed)
		if err != nil {
			return nil, err
		}
		landed := len(n.landed)
		return []Value{
			speed(landed, n.took),
			{"checks each", Plain, float64(n.checks) / float64(max(landed, 1))},
			count("red commits", red), count("lost changes", lost), count("returned", n.returned),
			{"took", Seconds, n.took.Seconds()},
		}, nil
	})
	c.Target += ", " + target
	return c
}
