package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command queue.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"queue", "Manage task queues",
		`A queue is where tasks of one kind wait for their keys and for a worker. Its settings are
the number of attempts, the pauses between them, the number of tasks that run at once, and
the shares of groups, such as tenants.

docs/tasks.md shows how queues are used.`,
		newQueueSet(a), newQueueList(a), newQueueGet(a),
		changingQueue(a, "pause", "Stop handing out the tasks of a queue",
			`Stop handing out the tasks of a queue until it is resumed. Running tasks continue, and new
ones are accepted.`, "paused"),
		changingQueue(
			a,
			"drain", "Stop accepting tasks into a queue",
			`Stop accepting tasks into a queue until it is resumed. Its present tasks are handed out.`, "draining",
		),
		changingQueue(
			a,
			"resume", "Resume a queue that was paused or drained", `Resume a queue that was paused or drained.`, "open",
		),
		newQueueDelete(a),
	)
}

// queueFlags is the flags of queue set. Only those that were given become fields.
type queueFlags struct {
	counts    map[string]*int           // by flag
	durations map[string]*time.Duration // by flag
	groups    view.QueueTurns
	lists     api.QueueRequest // its access lists
	approvers []string
	approval  cli.Choice
}

// The flags of queue set with their usage.
var (
	queueCounts = []struct{ flag, usage string }{
		{"max-attempts", fmt.Sprintf("the attempts of a task that sets none (default %d)", interlock.DefaultAttempts)},
		{"max-running", "how many tasks run at once (default any number)"},
		{"max-tasks", "the maximum of open tasks"},
		{"min-approvals", "how many principals must approve a task that asks a person (default 1)"},
	}
	queueDurations = []struct{ flag, usage string }{
		{
			"backoff",
			"the pause after a first failure is up to this, and doubles with each one (default " +
				interlock.DefaultBackoff.String() + ")",
		},
		{"max-backoff", "up to this (default " + interlock.DefaultMaxBackoff.String() + ")"},
		{
			"ttl",
			"how long the lease of a worker that asks for no ttl outlives the last sign of life " +
				"(default: the key pattern's, else " + interlock.DefaultTTL.String() + ")",
		},
		{"grace", "time to finish after a lease has ended (default " + interlock.DefaultGrace.String() + ")"},
		{"max-hold", "the maximum duration of an attempt (default no limit)"},
		{"stall", "how long an attempt lives without new progress (default no limit)"},
	}
)

func (q *queueFlags) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	q.counts, q.durations = map[string]*int{}, map[string]*time.Duration{}
	for _, c := range queueCounts {
		q.counts[c.flag] = f.Int(c.flag, 0, c.usage)
	}
	for _, d := range queueDurations {
		q.durations[d.flag] = new(time.Duration)
		cli.DurationVar(f, q.durations[d.flag], d.flag, 0, d.usage)
	}
	f.Var(
		&q.groups, "group",
		"the turns of a group and how many of its tasks run at once, `NAME=WEIGHT..MAX` such as acme=2..10, acme=2 or acme=..10; may be repeated",
	)
	for _, list := range view.QueueAccess(&q.lists) {
		f.StringSliceVar(list.Entries, list.Flag, nil, list.Usage)
	}
	f.StringSliceVar(
		&q.approvers, "approvers", nil,
		"the `names` of credentials that may approve its tasks, group:NAME for those of a group, * for all (default all with the role)",
	)
}

// into writes the flags that were given over the settings of a queue.
func (q *queueFlags) into(r *api.QueueRequest, f *pflag.FlagSet) {
	for flag, to := range map[string]*int{
		"max-attempts": &r.MaxAttempts, "max-running": &r.MaxRunning, "max-tasks": &r.MaxTasks,
		"min-approvals": &r.MinApprovals,
	} {
		if f.Changed(flag) {
			*to = *q.counts[flag]
		}
	}
	for flag, to := range map[string]*api.Milliseconds{
		"backoff": &r.Backoff, "max-backoff": &r.MaxBackoff, "ttl": &r.TTL, "grace": &r.Grace, "max-hold": &r.MaxHold,
		"stall": &r.Stall,
	} {
		if f.Changed(flag) {
			*to = q.durations[flag].Milliseconds()
		}
	}
	if f.Changed("group") {
		r.Groups = cli.Listed(q.groups)
	}
	to := view.QueueAccess(r)
	for i, list := range view.QueueAccess(&q.lists) {
		if f.Changed(list.Flag) {
			*to[i].Entries = slices.DeleteFunc(*list.Entries, func(entry string) bool { return entry == "" })
		}
	}
	if f.Changed("approvers") {
		r.Approvers = q.approvers
	}
	if f.Changed("approval") {
		r.Approval = q.approval.Value
	}
}

func newQueueSet(a *cli.App) *cobra.Command {
	var q queueFlags
	cmd := &cobra.Command{
		Use:   "set QUEUE",
		Short: "Register a queue, or change one",
		Long: `Register the queue QUEUE, or change it: settings without a flag stay as they are, and have
their defaults in a new queue. A 0 restores a default, --group "" removes the groups; the
groups are replaced as a whole, as are the lists of --pull, --submit and --admin.

When several groups have tasks that could run, they take turns: a group of weight 2 gets two
turns for each turn of a group of weight 1. Groups that are not listed have weight 1.`,
		Example: `  interlock queue set billing --max-attempts 8 --backoff 2s --max-backoff 10m
  interlock queue set mail --max-running 20 --group acme=2..10 --group trial=..1
  interlock queue set bank --pull teller --submit group:support,billing --admin lead`,
		Args:              cli.OneArg("a queue"),
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			var old api.QueueView
			_, answer, err := a.API().Do(cmd.Context(), cli.Request{Method: http.MethodGet, Path: view.QueuePath(args[0], "")})
			refusal, refused := errors.AsType[*interlock.Error](err)
			switch {
			case err == nil:
				err = json.Unmarshal(answer, &old)
			case refused && refusal.Code == interlock.CodeUnknownQueue:
				err = nil
			}
			if err != nil {
				return err
			}
			body := &old.Queue.QueueRequest
			q.into(body, cmd.Flags())
			r := cli.Request{
				Method: http.MethodPut, Path: view.QueuePath(args[0], ""), Body: body, ID: cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				view.SaySet(a, "set: queue "+cli.Clean(args[0]), view.QueueFacts(body))
				if f := cmd.Flags(); f.Changed("approvers") || f.Changed("min-approvals") {
					view.TellLimits(a, body)
				}
				if refused {
					a.Complain(
						"it is new: `interlock task create %s` brings it tasks, `interlock task work %s -- COMMAND` does them",
						cli.Quote(cli.Clean(args[0])), cli.Quote(cli.Clean(args[0])),
					)
				}
				return nil
			})
		},
	}
	q.flags(cmd.Flags())
	q.approval.Among(
		cmd, "approval", "how often an approval counts; with once a replay asks again",
		cli.Words[interlock.ApprovalPolicy]()...,
	)
	return cmd
}

func newQueueList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues, with their numbers of tasks by state",
		Example: `  interlock queue list
  interlock queue list -o json | jq '.queues[] | select(.dead > 0)'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.QueueList
			return a.Get(cmd.Context(), "/v1/queues", nil, &got, func() error {
				if len(got.Queues) == 0 {
					a.Complain("there is no queue: `interlock queue set NAME` makes one")
					return nil
				}
				t := a.Table("QUEUE", "MODE", "WAITING", "OLDEST", "RUNNING", "SCHEDULED", "ASKING", "DEAD", "IDLE")
				for i := range got.Queues {
					q := &got.Queues[i]
					oldest := "-"
					if q.Oldest > 0 {
						oldest = cli.ShortMillis(q.Oldest)
					}
					dead := cli.Cell{Text: fmt.Sprint(q.Tasks.Dead)}
					if q.Tasks.Dead > 0 {
						dead.Colour = cli.Red
					}
					t.Row(
						cli.Clean(q.Name), view.QueueMode(q), q.Tasks.Waiting, oldest, q.Tasks.Running, q.Tasks.Scheduled,
						q.Tasks.Asking, dead, q.Idle,
					)
				}
				return t.Write(a.Out)
			})
		},
	}
}

func newQueueGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "get QUEUE",
		Short:             "Show a queue: its state and its settings",
		Example:           "  interlock queue get billing",
		Args:              cli.OneArg("a queue"),
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.QueueView
			return a.Get(cmd.Context(), view.QueuePath(args[0], ""), nil, &got, func() error {
				q := &got.Queue
				mode, name := view.QueueMode(q), cli.Quote(cli.Clean(q.Name))
				a.Say("%s  %s: %s\n", a.Tint(cli.Bold, cli.Clean(q.Name)), a.Tint(mode.Colour, mode.Text), view.QueueCounts(q))
				for _, fact := range view.QueueFacts(&q.QueueRequest) {
					a.Say("  %-12s %s\n", fact[0], fact[1])
				}
				view.TellLimits(a, &q.QueueRequest)
				switch {
				case q.Paused || q.Drain:
					a.Complain("`interlock queue resume %s` resumes it", name)
				case q.Tasks.Dead > 0:
					a.Complain("`interlock task list --queue %s --state dead` lists its dead letters", name)
				case q.Tasks.Waiting > 0 && q.Tasks.Running+q.Idle == 0:
					a.Complain("it has no worker: start one with `interlock task work %s -- COMMAND`", name)
				}
				return nil
			})
		},
	}
}

// changingQueue makes a command that changes what a queue does.
func changingQueue(a *cli.App, verb, brief, long, does string) *cobra.Command {
	var body api.ReasonRequest
	cmd := &cobra.Command{
		Use:               verb + " QUEUE",
		Short:             brief,
		Long:              long,
		Example:           "  interlock queue " + verb + " billing",
		Args:              cli.OneArg("a queue"),
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{
				Method: http.MethodPost, Path: view.QueuePath(args[0], verb), Body: &body, ID: cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("%s: queue %s\n", does, cli.Clean(args[0]))
				return nil
			})
		},
	}
	cli.ReasonVar(cmd.Flags(), &body.Reason)
	return cmd
}

func newQueueDelete(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "delete QUEUE",
		Short: "Delete a queue that has no tasks",
		Long: `Delete a queue. One with tasks that are not settled stays: drain it, or cancel them,
first.`,
		Example:           "  interlock queue drain billing && interlock queue delete billing",
		Args:              cli.OneArg("a queue"),
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{Method: http.MethodDelete, Path: view.QueuePath(args[0], ""), ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("deleted: queue %s\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
}
