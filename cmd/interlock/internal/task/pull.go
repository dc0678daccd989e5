package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// assignment is a task in a worker's hands, with the texts that describe it.
type assignment api.Assignment

func (h *assignment) task() *view.Task { return view.TaskOf(&h.Task) }

// variables are the environment of the task's worker.
func (h *assignment) variables() [][2]string {
	variables := [][2]string{
		{"INTERLOCK_TASK", h.Task.ID},
		{"INTERLOCK_ATTEMPT", strconv.Itoa(h.Task.Attempt)},
		{"INTERLOCK_KIND", cli.Clean(h.Task.Kind)},
		{"INTERLOCK_LEASE", h.Lease.ID},
		{"INTERLOCK_FENCE", h.Lease.Fence.String()},
		{"INTERLOCK_KEYS", view.JoinKeys(h.task().Keys(), "\n")},
		{"INTERLOCK_AS_OF", h.AsOf.String()},
	}
	verdict, used := "", ""
	if a := h.Task.Approval; a != nil {
		if verdict = cli.Clean(a.Verdict); a.UsedIn > 0 {
			used = strconv.Itoa(a.UsedIn)
		}
	}
	variables = append(
		variables, [2]string{"INTERLOCK_APPROVAL", verdict}, [2]string{"INTERLOCK_APPROVAL_USED_IN", used},
	)
	if h.Task.Trace != "" {
		variables = append(variables, [2]string{"TRACEPARENT", cli.Clean(h.Task.Trace)})
	}
	return variables
}

// text returns what the attempt is about.
func (h *assignment) text() string {
	text := fmt.Sprintf("attempt %s, fence %s", h.task().Tries(), h.Lease.Fence)
	if what := h.task().What(); what != "-" {
		text += ": " + what
	}
	return text
}

// pullFlags asks a queue for tasks.
type pullFlags struct {
	api   *cli.API
	queue string
	body  api.PullRequest
	// id makes the pull of a session repeatable, so that nothing is lost that was handed
	// out in an answer which did not arrive.
	id string
}

// pull waits for up to left for tasks; without any, list is empty.
func (p *pullFlags) pull(ctx context.Context, left time.Duration) (list []api.Assignment, answer []byte, err error) {
	left = min(max(left, 0), interlock.MaxLongPoll)
	p.body.Wait = left.Milliseconds()
	r := cli.Request{Method: http.MethodPost, Path: view.QueuePath(p.queue, "pull"), Body: &p.body, ID: p.id, Wait: left}
	if _, answer, err = p.api.Insist(ctx, r, false); err != nil {
		return nil, answer, err
	}
	var got api.Pulled
	if err := cli.Decode(answer, &got); err != nil {
		return nil, nil, err
	}
	return got.Tasks, answer, nil
}

func newTaskPull(a *cli.App) *cobra.Command {
	p := &pullFlags{}
	var ttl time.Duration
	var agent string
	var limit cli.Wait
	cmd := &cobra.Command{
		Use:   "pull QUEUE",
		Short: "Take a task for a script that renews and acknowledges it",
		Long: `Take the next task of QUEUE that can run, and print it as variables for a shell:

  INTERLOCK_TASK     its id                INTERLOCK_ATTEMPT  which attempt it is
  INTERLOCK_KIND     its kind              INTERLOCK_KEYS     its keys, one a line
  INTERLOCK_LEASE    the lease's id, which is a secret
  INTERLOCK_FENCE    the fence: pass it along wherever you write
  INTERLOCK_AS_OF    the version of the namespace to read state at
  INTERLOCK_APPROVAL approved, if a person was asked
  INTERLOCK_APPROVAL_USED_IN  the earlier attempt that has used the approval, if any: what
                     it was given for may have been done
  TRACEPARENT        the trace of the submitter, if it sent one
  INTERLOCK_PAYLOAD  its payload, JSON; not exported, since it may be long

Keep it alive with "interlock lease renew": the attempt has failed when --ttl has passed
since the last renewal. "interlock task work" does all of this around a command.

Exit codes: 0 there is one, 75 there was none in time, 1 there is no such queue, 69 no
server answered, 77 not allowed, 2 wrong flags.`,
		Example: `  eval "$(interlock task pull billing --wait 1m)" || exit
  ./charge --fence "$INTERLOCK_FENCE" <<< "$INTERLOCK_PAYLOAD" || interlock task nack "card refused" --in 60s
  interlock task ack '{"charged": true}'
  interlock task pull billing --max 10 -o json | jq -c '.tasks[]'`,
		Args:              cli.OneArg("a queue"),
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckDurations(cli.Duration("--ttl", ttl, interlock.MinTTL, interlock.MaxTTL)); err != nil {
				return err
			}
			if p.body.Max < 1 || p.body.Max > interlock.MaxPull {
				return cli.Usagef("--max %d: want a number from 1 to %d", p.body.Max, interlock.MaxPull)
			}
			if p.body.Max > 1 && !a.JSON() {
				return cli.Usagef("--max %d: a shell's variables hold one task: read several with -o json", p.body.Max)
			}
			p.body.Agent, p.body.TTL = cmp.Or(agent, cli.OwnName()), ttl.Milliseconds()
			p.api, p.queue = a.API(), args[0]
			return pull(cmd.Context(), a, p, limit)
		},
	}
	f := cmd.Flags()
	limit = cli.Forever
	f.Var(&limit, "wait", "how long to wait for a task: a `duration`, 0, or forever")
	cli.DurationVar(f, &ttl, "ttl", acquire.LockTTL, "how long the lease outlives the last renewal")
	f.IntVar(&p.body.Max, "max", 1, "how many tasks to take at most, with -o json")
	cli.AgentVar(f, &agent, "your `name`, for others to read")
	return cmd
}

// pull takes a task, and tells of it so that a shell can read it.
func pull(ctx context.Context, a *cli.App, p *pullFlags, limit cli.Wait) error {
	deadline := limit.Deadline()
	for {
		left := time.Until(deadline)
		switch {
		case limit == cli.Forever:
			left = interlock.MaxLongPoll
		case limit == 0:
			left = 0
		}
		list, answer, err := p.pull(ctx, left)
		empty := err == nil && len(list) == 0
		if empty && (limit == cli.Forever || time.Until(deadline) > 0) {
			continue
		}
		if a.JSON() && answer != nil {
			err = errors.Join(err, a.Raw(answer))
		}
		switch {
		case err != nil:
			return err
		case empty:
			return cli.ExitWith(
				cli.ExitNotAcquired,
				fmt.Errorf(
					"queue %s has no task that can run: `interlock queue get %s` lists its tasks", cli.Clean(p.queue),
					cli.Quote(cli.Clean(p.queue)),
				),
			)
		case !a.JSON():
			tellHanded(a, (*assignment)(&list[0]))
		}
		return nil
	}
}

func tellHanded(a *cli.App, h *assignment) {
	for _, v := range h.variables() {
		a.Say("export %s=%s\n", v[0], cli.Quote(v[1]))
	}
	a.Say("INTERLOCK_PAYLOAD=%s\n", cli.Quote(string(h.Task.Payload)))
	a.Complain("%s; the lease ends in %s unless it is renewed", h.text(), cli.ShortMillis(h.Lease.ExpiresIn))
	view.TellApproval(a, h.Task.Approval)
	view.TellNotes(a, false, nil, h.Notes)
}
