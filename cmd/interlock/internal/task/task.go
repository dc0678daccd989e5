package task

import (
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command task.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"task", "Create tasks in queues, and work on them",
		`A task is work that stands in line for its keys instead of a waiting agent. It holds nothing
until its keys are free and a worker of its queue is idle; then the worker gets it with a
lease on them. A failed task is tried again after a pause, and is a dead letter after the
last attempt.

  create ─► scheduled ─► waiting ─► running ─┬─► done
                ▲                       │    └─► dead ── replay ─► waiting
                └───── again later ─────┘

"interlock task work QUEUE -- COMMAND" is a whole worker. docs/tasks.md is a guide.`,
		newTaskCreate(a), newTaskList(a), newTaskGet(a), newTaskWait(a), newTaskCancel(a), newTaskReschedule(a),
		newTaskReplay(a), newTaskDelete(a),
		newTaskPull(a), newTaskAck(a), newTaskNack(a), newTaskAsk(a), newTaskWork(a),
	)
}

func newTaskCreate(a *cli.App) *cobra.Command {
	var s Flags
	var keys []string
	var claims acquire.ClaimFlag
	var shared bool
	var kind, group string
	var backoff, maxBackoff time.Duration
	var follow FollowFlags
	cmd := &cobra.Command{
		Use:   "create QUEUE [PAYLOAD]",
		Short: "Create a task in a queue",
		Long: `Put a task into QUEUE, and print its id. PAYLOAD is for the worker: JSON, @FILE with JSON,
or - for standard input. The task runs when all of its keys are free together; until then it
holds none of them, and its agent can do something else.

With --wait its result is printed when it is done. Such a wait counts as a wait of the
session: if the session's own leases keep the task from running, the command reports the
deadlock.

` + FollowExits,
		Example: `  interlock task create billing '{"fee": 3500}' --key account:12345 --purpose "late fee"
  interlock task create billing @fee.json --key account:12345 --in 60s
  interlock task create mail - --group acme --claim org:acme/mails=1 < letter.json
  interlock task create deploy --question "deploy release 42 on a Friday?" --question-for 8h`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usagef("name the queue: %s", cli.UseLine(cmd))
			case len(args) > 2:
				return cli.Usagef("too many arguments: keys are named by --key: %s", cli.UseLine(cmd))
			}
			return nil
		},
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var body api.SubmitRequest
			body.Queue, body.Kind, body.Group = args[0], kind, group
			if len(args) == 2 {
				if body.Payload, err = cli.JSONArg(a.In, args[1], "the payload", interlock.MaxPayloadBytes); err != nil {
					return err
				}
			}
			var mode interlock.Mode
			if shared {
				mode = interlock.Shared
			}
			list := make([]interlock.Claim, 0, len(keys)+len(claims))
			for _, key := range keys {
				list = append(list, interlock.Claim{Key: interlock.Key(key), Mode: mode})
			}
			body.Claims = view.ClaimsOf(append(list, claims...))
			if err := cli.CheckDurations(
				cli.Duration("--backoff", backoff, 0, interlock.MaxDelay),
				cli.Duration("--max-backoff", maxBackoff, 0, interlock.MaxDelay),
			); err != nil {
				return err
			}
			body.Backoff, body.MaxBackoff = backoff.Milliseconds(), maxBackoff.Milliseconds()
			if err := s.Fill(&body.Sender, &body.Work); err != nil {
				return err
			}
			r := cli.Request{
				Method: http.MethodPost, Path: "/v1/tasks", Body: &body, ID: s.ID, Again: true, Header: cli.Traceparent(),
			}
			return follow.Begin(cmd.Context(), a, r, &s.Caller, &body.Wait)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&keys, "key", nil, "a `key` that it needs; may be repeated")
	f.BoolVar(&shared, "shared", false, "it shares those keys with other readers (default: exclusive, or a permit)")
	f.Var(
		&claims, "claim",
		"a key with a mode or a number of permits of its own, `KEY=WHAT`, such as ledger:2026=shared or org:acme/runs=2; may be repeated",
	)
	f.StringVar(&kind, "kind", "", "the kind, where a queue has tasks of several kinds")
	f.StringVar(&group, "group", "", "the `group`, such as a tenant, for the queue's turns and caps")
	cli.DurationVar(
		f, &backoff, "backoff", 0,
		"the pause after a first failure is up to this, and doubles with each one (default: the queue's)",
	)
	cli.DurationVar(f, &maxBackoff, "max-backoff", 0, "up to this (default: the queue's)")
	s.Define(cmd)
	follow.Define(cmd, 0)
	return cmd
}

func newTaskWait(a *cli.App) *cobra.Command {
	var c Caller
	var follow FollowFlags
	cmd := &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait until a task is done, and print its result",
		Long: `Wait until a task is done, and print its result. A message is a task, and its reply the
result.

` + FollowExits,
		Example: `  interlock task wait --wait 10m "$id" > result.json`,
		Args:    cli.OneArg("a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.TaskArg(args[0])
			if err != nil {
				return err
			}
			if err := c.check(); err != nil {
				return err
			}
			if follow.Wait == 0 {
				return cli.Usagef("--wait 0: to wait for something takes a while; `interlock task get` shows how it stands")
			}
			return follow.follow(cmd.Context(), a, id, &c)
		},
	}
	follow.Define(cmd, cli.Forever)
	c.flags(cmd)
	return cmd
}

// tasksArgs is for commands that take one task or more.
func tasksArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("name a task: %s", cli.UseLine(cmd))
	}
	for _, id := range args {
		if _, err := view.TaskArg(id); err != nil {
			return err
		}
	}
	return nil
}

// changing makes a command that changes tasks, each by itself. act is what it does to the
// resource.
func changing(a *cli.App,
	verb, act, short, long, example string, flags func(*cobra.Command) (fill func(body *api.ChangeTaskRequest) error),
) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " TASK...", Short: short, Long: long, Example: example, Args: tasksArgs}
	fill := flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := &api.ChangeTaskRequest{}
		if err := fill(body); err != nil {
			return err
		}
		var failed []error
		for _, id := range args {
			var got api.TaskAnswer
			r := cli.Request{
				Method: http.MethodPost, Path: view.TaskPath(id, act), Body: body, ID: cli.FreshID(), Again: true,
			}
			err := a.Call(cmd.Context(), r, &got, func() error {
				if act == "discard" {
					a.Say("%s  deleted\n", id)
					return nil
				}
				a.Say("%s  %s\n", id, view.TaskOf(&got.Task).Stands())
				return nil
			})
			if err != nil && len(args) > 1 && !a.JSON() {
				a.Complain("%s: %s", id, a.Sentence(err))
				err = cli.ExitWith(cli.ExitCode(err), nil)
			}
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	}
	return cmd
}

// withReason adds --reason.
func withReason(cmd *cobra.Command) func(body *api.ChangeTaskRequest) error {
	reason := cmd.Flags().String("reason", "", "why, for others to read")
	return func(body *api.ChangeTaskRequest) error {
		body.Reason = *reason
		return nil
	}
}

// withDelay adds --in.
func withDelay(cmd *cobra.Command) func(body *api.ChangeTaskRequest) error {
	var delay time.Duration
	cli.DurationVar(cmd.Flags(), &delay, "in", 0, "after which time it may run (default: at once)")
	reason := withReason(cmd)
	return func(body *api.ChangeTaskRequest) error {
		if err := cli.CheckDurations(cli.Duration("--in", delay, 0, interlock.MaxDelay)); err != nil {
			return err
		}
		body.Delay = delay.Milliseconds()
		return reason(body)
	}
}

func newTaskCancel(a *cli.App) *cobra.Command {
	return changing(a, "cancel", "cancel", "Cancel tasks that do not run",
		`Cancel tasks that do not run. To cancel a running task, first take its key from the worker
with "interlock lease revoke".`, `  interlock task cancel "$id" --reason "the customer has paid"`, withReason)
}

func newTaskReschedule(a *cli.App) *cobra.Command {
	return changing(a, "reschedule", "reschedule", "Run tasks at another time",
		`Make tasks that do not run due at once, or after --in, regardless of their schedule.`,
		`  interlock task reschedule "$id" --in 1h`, withDelay)
}

func newTaskReplay(a *cli.App) *cobra.Command {
	return changing(a, "replay", "replay", "Replay dead or cancelled tasks",
		`Replay dead or cancelled tasks. Each has all its attempts again.`,
		`  interlock task replay "$id"
  interlock task list --queue billing --state dead --ids | xargs interlock task replay`, withDelay)
}

func newTaskDelete(a *cli.App) *cobra.Command {
	return changing(a, "delete", "discard", "Delete tasks that are done, dead or cancelled",
		`Delete tasks that are done, dead or cancelled, with their payloads and results.`,
		`  interlock task list --queue billing --state dead --ids | xargs interlock task delete`, withReason)
}
