package merge

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge/merger"
)

// withdrawWithin is how long the merger may take to end a submission that it has: it looks each second.
const withdrawWithin = 5 * time.Second

func newWithdraw(a *cli.App) *cobra.Command {
	return one(
		"withdraw", "Take a submission out of the line",
		`Take a submission out of the line. One that the merger has taken ends within a second or so,
also while it is checked or a resolver has its conflict: the task of the resolver is cancelled,
or its result is ignored. One that has landed or was returned stays as it is. SUBMISSION is its
id, or that of its task.

It takes an operator or the agent that submitted; for one that the merger has taken, the role
agent, because the wish is a document.

Exit codes: 0 withdrawn; 1 it has landed, was returned, or is not there; 75 the merger was asked
and has not answered within 5 seconds: it cannot land any more, unless it has meanwhile; 69 no
server answered; 77 not allowed; 2 wrong flags.`,
		`  interlock merge withdraw web/main fix-login-0f3a9c12d4e5`, a,
		func(ctx context.Context, c *requests, n merger.Name, id string) error {
			task, asked, err := merger.Withdraw(ctx, c, n, id)
			if err != nil {
				return err
			}
			text := cli.Clean(id) + " is withdrawn"
			if asked {
				o, err := withdrawal(ctx, c, task)
				if err != nil {
					return err
				}
				text = cli.Clean(id) + ": " + cli.Clean(o.Message)
			}
			if a.JSON() {
				return a.Print(&struct{}{})
			}
			a.Say("%s\n", text)
			return nil
		},
	)
}

// withdrawal waits until the merger has ended a submission, and fails unless it was withdrawn.
func withdrawal(ctx context.Context, c *requests, id interlock.TaskID) (o merger.Outcome, err error) {
	late := time.After(withdrawWithin)
	for {
		task, err := c.Task(ctx, id)
		if err != nil {
			return o, err
		}
		if task.State == interlock.TaskDone {
			if o, err = merger.OutcomeOf(&task); err == nil && o.Code != merger.Withdrawn {
				err = fmt.Errorf("it was not withdrawn in time: %s", cli.Clean(o.Message))
			}
			return o, err
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-late:
			return o, cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf(
				"the merger has not answered within %v; it, or the next one, ends the submission before it can land: "+
					"`interlock task wait %s` waits for that", withdrawWithin, id,
			))
		case <-time.After(withdrawWithin / 50):
		}
	}
}
