package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/merge/merger"
)

func newList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list REPO/TARGET",
		Short: "List the line of a target",
		Long: `List the submissions in line for a target, the next one to land first. TRIES counts how often
one was returned and came back.

EXPECTED is in how long one lands at the pace of the last 20 landings: its place times the mean
time that a landing took while there was a line. There is no estimate with fewer than 4 landings,
while the queue is paused, and without a merger. Where the merger fails, dies or does not run, a
line on standard error tells it, and the field trouble.`,
		Example: `  interlock merge list web/main`,
		Args:    cli.OneArg("a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), a, args[0], func(ctx context.Context, c *requests, n merger.Name) error {
				list, err := inLine(ctx, c, n)
				if err != nil {
					return err
				}
				if err := expect(ctx, c, n, list); err != nil {
					return err
				}
				if a.JSON() {
					text, err := lineTrouble(ctx, c, n, list)
					if err != nil {
						return err
					}
					return a.Print(&struct {
						Submissions []entry `json:"submissions"`
						Trouble     string  `json:"trouble,omitempty"`
					}{append([]entry{}, list...), text})
				}
				if text, err := lineTrouble(ctx, c, n, list); err != nil {
					return err
				} else if text != "" {
					a.Complain("%s: %s", n, text)
				}
				if len(list) == 0 {
					a.Complain("nothing is in line for %s", n)
					return nil
				}
				t := a.Table("PLACE", "SUBMISSION", "AGENT", "STATE", "TRIES", "AGE", "EXPECTED", "PURPOSE")
				for _, e := range list {
					t.Row(
						e.Position, cli.Clean(e.Submission), cli.OrDash(cli.Clean(e.Agent)), stateOf(e.State), e.Tries,
						cli.Short(time.Duration(e.AgeMS)*time.Millisecond), e.expected(),
						cli.OrDash(cli.Clean(e.Purpose)),
					)
				}
				return t.Write(a.Out)
			})
		},
	}
}

// lineTrouble is why those in line cannot land, if the merger or a freeze is why.
func lineTrouble(ctx context.Context, c *requests, n merger.Name, list []entry) (string, error) {
	return stops(ctx, c, n, slices.ContainsFunc(list, func(e entry) bool { return merges(e.State) }))
}

// expect adds when the submissions in line are expected to land.
func expect(ctx context.Context, c *requests, n merger.Name, list []entry) error {
	if len(list) == 0 {
		return nil
	}
	q, err := c.queue(ctx, n.Queue())
	if err != nil || q.Paused || q.Idle == 0 && q.Tasks.Running == 0 {
		return err
	}
	recent, err := merger.Recent(ctx, c, n)
	if err != nil {
		return err
	}
	each, known := merger.Pace(recent)
	for i := range list {
		// What waits for a person, for the lease of another, or for the end of a freeze has no place that counts.
		if e := &list[i]; known && e.State != interlock.TaskAsking.String() && e.Blocker == "" && !e.Frozen {
			ms := int64(e.Position) * each.Milliseconds()
			e.ExpectedMS = &ms
		}
	}
	return nil
}

// expected is in how long it is expected to land, in words.
func (e *entry) expected() string {
	if e.ExpectedMS == nil {
		return "no estimate"
	}
	return "in " + cli.Short(time.Duration(*e.ExpectedMS)*time.Millisecond)
}

// with calls do for a target.
func with(
	ctx context.Context, a *cli.App, target string, do func(ctx context.Context, c *requests, n merger.Name) error,
) error {
	n, err := nameArg(target)
	if err != nil {
		return err
	}
	err = do(ctx, &requests{a.API()}, n)
	if refused, ok := errors.AsType[*interlock.Error](err); ok && refused.Code == interlock.CodeUnknownQueue {
		return cli.ExitWith(cli.ExitCode(err), fmt.Errorf(
			"there is no queue %s: start a merger of the target, or name another one", n.Queue(),
		))
	}
	return err
}

// stateOf is a task's state in the words of a merge queue.
func stateOf(task string) string {
	switch task {
	case "running":
		return "in line"
	case "asking":
		return "asks a person"
	}
	return task
}

// one makes a command about one submission of a target.
func one(
	use, short, long, example string, a *cli.App, do func(context.Context, *requests, merger.Name, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use + " REPO/TARGET SUBMISSION", Short: short, Long: long, Example: example,
		Args: cli.TwoArgs("the target", "the submission"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), a, args[0], func(ctx context.Context, c *requests, n merger.Name) error {
				return do(ctx, c, n, args[1])
			})
		},
	}
}

func newShow(a *cli.App) *cobra.Command {
	return one(
		"show", "Show a submission and its outcome",
		`Print a submission as JSON: its task, state and tries, and the outcome if it has one. The
outcome of a returned submission has the conflicts with their hunks, the landings that changed
the same files, and the ends of failed checks' reports. SUBMISSION is its id, or that of its
task.`,
		`  interlock merge show web/main fix-login-0f3a9c12d4e5`, a,
		func(ctx context.Context, c *requests, n merger.Name, id string) error {
			e, err := find(ctx, c, n, id)
			if err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(&e)
			}
			text, err := json.MarshalIndent(&e, "", "  ")
			if err != nil {
				return err
			}
			a.Say("%s\n", cli.CleanLines(string(text)))
			return nil
		},
	)
}

func find(ctx context.Context, c *requests, n merger.Name, id string) (entry, error) {
	task, err := merger.Find(ctx, c, n, id)
	if err != nil {
		return entry{}, err
	}
	e, _, err := look(ctx, c, n, task)
	return e, err
}

func newWhy(a *cli.App) *cobra.Command {
	return one(
		"why", "Tell why a submission has not landed",
		`Tell in words where a submission is: what is before it in line, which others in line conflict
with it, that the queue is paused, why the merger fails, or why it was returned and what to do. SUBMISSION is its
id, or that of its task.`,
		`  interlock merge why web/main fix-login-0f3a9c12d4e5`, a,
		func(ctx context.Context, c *requests, n merger.Name, id string) error {
			text, err := why(ctx, c, n, id)
			if err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(&struct {
					Message string `json:"message"`
				}{text})
			}
			a.Say("%s\n", cli.CleanLines(text))
			return nil
		},
	)
}

func why(ctx context.Context, c *requests, n merger.Name, id string) (string, error) {
	e, err := find(ctx, c, n, id)
	switch {
	case err != nil:
		return "", err
	case e.Outcome != nil:
		return fmt.Sprintf("%s: %s", e.Submission, e.Outcome.Message), nil
	case e.State == interlock.TaskCancelled.String(), e.State == interlock.TaskDead.String():
		return fmt.Sprintf("%s is %s.", e.Submission, e.State), nil
	}
	list, err := inLine(ctx, c, n)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s is in line for %s", e.Submission, n)
	if i := slices.IndexFunc(list, func(o entry) bool { return o.Task == e.Task }); i > 0 {
		text += fmt.Sprintf(
			" at place %d of %d, behind %s of %q", i+1, len(list), list[i-1].Submission, list[i-1].Agent,
		)
	} else if i == 0 {
		text += fmt.Sprintf(" at place 1 of %d", len(list))
	}
	reason, err := waits(ctx, c, n, &e, list)
	return text + priorities(&e, list) + reason + "." + clashes(&e, list), err
}

// waits is what a submission in line waits for besides those before it.
func waits(ctx context.Context, c *requests, n merger.Name, e *entry, line []entry) (string, error) {
	q, err := c.queue(ctx, n.Queue())
	if err != nil {
		return "", err
	}
	frozen, err := merger.FreezeOf(ctx, c, n)
	switch {
	case err != nil:
		return "", err
	case q.Paused:
		return "; the queue is paused: nothing lands until `interlock merge resume`", nil
	case frozen != nil && slices.ContainsFunc(line, func(o entry) bool { return o.Task == e.Task && o.Frozen }):
		return "; " + frozen.Text(n), nil
	case e.On != "" && slices.ContainsFunc(line, func(o entry) bool { return o.Submission == e.On }):
		return fmt.Sprintf("; it builds on %s, and lands after that one or comes back with it", e.On), nil
	case e.Resolving != "":
		return fmt.Sprintf("; its conflict with the target waits for a resolver, as task %s", e.Resolving), nil
	case e.Blocker != "":
		return fmt.Sprintf("; it waits for the lease on %s: `interlock why %s` names its holder", e.Blocker, e.Blocker), nil
	case e.State == interlock.TaskAsking.String():
		return fmt.Sprintf("; it was returned %d times, and a person must approve another try", e.Tries), nil
	}
	if !merges(e.State) {
		return "", nil
	}
	text, err := trouble(ctx, c, n)
	if text != "" {
		text = "; " + text
	}
	return text, err
}

// priorities tells the rule of priorities to a submission that has one, or that stands behind one.
func priorities(e *entry, line []entry) string {
	const rule = "a priority passes what has none and came up to 10 s for each step earlier, unless its checks run"
	if e.Priority > 0 {
		return fmt.Sprintf("; it has priority %d: %s", e.Priority, rule)
	}
	for i := range line {
		if o := &line[i]; o.Task == e.Task {
			break
		} else if o.Priority > 0 {
			return fmt.Sprintf("; %s ahead of it has priority %d: %s", o.Submission, o.Priority, rule)
		}
	}
	return ""
}

func newPause(a *cli.App) *cobra.Command {
	return pausing(
		a, true, "pause", "Stop the landings of a target",
		`Stop the landings of a target. Checks that run go on, and submissions are still accepted.
It needs an operator's credential, or one on the queue's admin list.`,
	)
}

func newResume(a *cli.App) *cobra.Command {
	return pausing(a, false, "resume", "Let the landings of a target go on", `Let the landings of a target go on.`)
}

func pausing(a *cli.App, paused bool, use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use + " REPO/TARGET", Short: short, Long: long, Example: "  interlock merge " + use + " web/main",
		Args: cli.OneArg("a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), a, args[0], func(ctx context.Context, c *requests, n merger.Name) error {
				if err := c.post(ctx, view.QueuePath(n.Queue(), use), struct{}{}, nil); err != nil {
					return err
				}
				if a.JSON() {
					return a.Print(&struct {
						Paused bool `json:"paused"`
					}{paused})
				}
				a.Say("%s: %sd\n", n, use)
				return nil
			})
		},
	}
}
