package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

func newQueue(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Manage task queues",
		Long: `A queue is where tasks of one kind wait for their keys and for a worker. Its settings are
the number of attempts, the pauses between them, the number of tasks that run at once, and
the shares of groups, such as tenants.

docs/tasks.md shows how queues are used.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQueueSet(a), newQueueLs(a), newQueueShow(a),
		a.changingQueue("pause", "Stop handing out the tasks of a queue", `Stop handing out the tasks of a queue until it is resumed. Running tasks continue, and new
ones are accepted.`, "paused"),
		a.changingQueue(
			"drain", "Stop accepting tasks into a queue",
			`Stop accepting tasks into a queue until it is resumed. Its present tasks are handed out.`, "draining",
		),
		a.changingQueue(
			"resume", "Resume a queue that was paused or drained", `Resume a queue that was paused or drained.`, "open",
		),
		newQueueRm(a))
	return cmd
}

// queueFlags is the flags of queue set. Only those that were given become fields.
type queueFlags struct {
	counts    map[string]*int           // by flag
	durations map[string]*time.Duration // by flag
	groups    queueTurns
	lists     queueSettings // its access lists
	approvers []string
}

// The flags of queue set with their usage; the field of each is the flag's name, of a
// duration with _ms.
var (
	queueCounts = []struct{ flag, usage string }{
		{"max-attempts", fmt.Sprintf("the attempts of a task that sets none (default %d)", interlock.DefaultAttempts)},
		{"max-running", "how many tasks run at once (default any number)"},
		{"max-tasks", "how many tasks it has at most that are not settled"},
		{"min-approvals", "how many principals must approve a task that asks a person (default 1)"},
	}
	queueDurations = []struct{ flag, usage string }{
		{
			"backoff",
			"the pause after a first failure is up to this, and doubles with each one (default " +
				interlock.DefaultBackoff.String() + ")",
		},
		{"max-backoff", "up to this (default " + interlock.DefaultMaxBackoff.String() + ")"},
		{"ttl", "how long a worker's lease outlives the last sign of life (default " + interlock.DefaultTTL.String() + ")"},
		{"grace", "time to finish after a lease has ended (default " + interlock.DefaultGrace.String() + ")"},
		{"max-hold", "how long an attempt may take at all (default no limit)"},
		{"stall", "how long an attempt lives without news of progress (default no limit)"},
	}
)

func (q *queueFlags) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	q.counts, q.durations = map[string]*int{}, map[string]*time.Duration{}
	for _, c := range queueCounts {
		q.counts[c.flag] = f.Int(c.flag, 0, c.usage)
	}
	for _, d := range queueDurations {
		q.durations[d.flag] = f.Duration(d.flag, 0, d.usage)
	}
	f.Var(
		&q.groups, "group",
		"the turns of a group and how many of its tasks run at once, `NAME=WEIGHT..MAX` such as acme=2..10, acme=2 or acme=..10; may be repeated",
	)
	for _, list := range q.lists.access() {
		f.StringSliceVar(list.entries, list.flag, nil, list.usage)
	}
	f.StringSliceVar(
		&q.approvers, "approvers", nil,
		"the `names` of credentials that may approve its tasks, group:NAME for those of a group, * for all (default all with the role)",
	)
}

// into writes what the flags that were given say over the fields of a queue.
func (q *queueFlags) into(fields map[string]any, f *pflag.FlagSet) {
	name := func(flag string) string { return strings.ReplaceAll(flag, "-", "_") }
	for flag, n := range q.counts {
		if f.Changed(flag) {
			fields[name(flag)] = *n
		}
	}
	for flag, d := range q.durations {
		if f.Changed(flag) {
			fields[name(flag)+"_ms"] = d.Milliseconds()
		}
	}
	if f.Changed("group") {
		fields["groups"] = listed(q.groups)
	}
	for _, list := range q.lists.access() {
		if f.Changed(list.flag) {
			fields[list.flag] = listed(slices.DeleteFunc(*list.entries, func(entry string) bool { return entry == "" }))
		}
	}
	if f.Changed("approvers") {
		fields["approvers"] = append([]string{}, q.approvers...)
	}
}

func newQueueSet(a *app) *cobra.Command {
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
		Args:              oneArg("a queue"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			var old struct{ Queue queueAnswer }
			_, answer, err := a.api().do(cmd.Context(), request{Method: http.MethodGet, Path: queuePath(args[0], "")})
			refusal, refused := errors.AsType[*interlock.Error](err)
			switch {
			case err == nil:
				err = json.Unmarshal(answer, &old)
			case refused && refusal.Code == interlock.CodeNoSuchQueue:
				err = nil
			}
			if err != nil {
				return err
			}
			body, err := json.Marshal(old.Queue.queueSettings)
			if err != nil {
				return err
			}
			fields := map[string]any{}
			if err := decodeNumbers(body, &fields); err != nil {
				return err
			}
			q.into(fields, cmd.Flags())
			r := request{Method: http.MethodPut, Path: queuePath(args[0], ""), Body: fields, ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("set: queue %s\n", clean(args[0]))
				if f := cmd.Flags(); f.Changed("approvers") || f.Changed("min-approvals") {
					var set queueSettings
					if body, err := json.Marshal(fields); err == nil && json.Unmarshal(body, &set) == nil {
						a.tellLimits(&set)
					}
				}
				if refused {
					a.complain(
						"it is new: `interlock task submit %s` brings it tasks, `interlock task work %s -- COMMAND` does them",
						quote(clean(args[0])), quote(clean(args[0])),
					)
				}
				return nil
			})
		},
	}
	q.flags(cmd.Flags())
	return cmd
}

// queuePath is the path of a queue, or of something that is done with it.
func queuePath(name, action string) string {
	path := "/v1/queues/" + url.PathEscape(name)
	if action != "" {
		path += "/" + action
	}
	return path
}

type queuesAnswer struct {
	Queues []queueAnswer `json:"queues"`
}

func newQueueLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the queues, with their numbers of tasks by state",
		Example: `  interlock queue ls
  interlock queue ls -o json | jq '.queues[] | select(.dead > 0)'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got queuesAnswer
			return a.get(cmd.Context(), "/v1/queues", nil, &got, func() error {
				if len(got.Queues) == 0 {
					a.complain("there is no queue: `interlock queue set NAME` makes one")
					return nil
				}
				t := a.table("QUEUE", "MODE", "WAITING", "OLDEST", "RUNNING", "SCHEDULED", "ASKING", "DEAD", "IDLE")
				for i := range got.Queues {
					q := &got.Queues[i]
					oldest := "-"
					if q.Oldest > 0 {
						oldest = short(ms(q.Oldest))
					}
					dead := cell{text: fmt.Sprint(q.Tasks.Dead)}
					if q.Tasks.Dead > 0 {
						dead.colour = red
					}
					t.row(
						clean(q.Name), q.mode(), q.Tasks.Waiting, oldest, q.Tasks.Running, q.Tasks.Scheduled, q.Tasks.Asking, dead,
						q.Idle,
					)
				}
				return t.write(a.out)
			})
		},
	}
}

func newQueueShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show QUEUE",
		Short:             "Show a queue: its state and its settings",
		Example:           "  interlock queue show billing",
		Args:              oneArg("a queue"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			var got struct{ Queue queueAnswer }
			return a.get(cmd.Context(), queuePath(args[0], ""), nil, &got, func() error {
				q := &got.Queue
				mode, name := q.mode(), quote(clean(q.Name))
				a.say("%s  %s: %s\n", a.tint(bold, clean(q.Name)), a.tint(mode.colour, mode.text), q.counts())
				for _, fact := range q.facts() {
					a.say("  %-12s %s\n", fact[0], fact[1])
				}
				a.tellLimits(&q.queueSettings)
				switch {
				case q.Paused || q.Drain:
					a.complain("`interlock queue resume %s` resumes it", name)
				case q.Tasks.Dead > 0:
					a.complain("`interlock task ls --queue %s --state dead` lists its dead letters", name)
				case q.Tasks.Waiting > 0 && q.Tasks.Running+q.Idle == 0:
					a.complain("it has no worker: start one with `interlock task work %s -- COMMAND`", name)
				}
				return nil
			})
		},
	}
}

// changingQueue makes a command that changes what a queue does.
func (a *app) changingQueue(verb, brief, long, does string) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " QUEUE",
		Short:             brief,
		Long:              long,
		Example:           "  interlock queue " + verb + " billing",
		Args:              oneArg("a queue"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := request{Method: http.MethodPost, Path: queuePath(args[0], verb), Body: struct{}{}, ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("%s: queue %s\n", does, clean(args[0]))
				return nil
			})
		},
	}
}

func newQueueRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm QUEUE",
		Short: "Forget a queue that has no tasks",
		Long: `Forget a queue. One with tasks that are not settled stays: drain it, or cancel them,
first.`,
		Example:           "  interlock queue drain billing && interlock queue rm billing",
		Args:              oneArg("a queue"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := request{Method: http.MethodDelete, Path: queuePath(args[0], ""), ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("removed: queue %s\n", clean(args[0]))
				return nil
			})
		},
	}
}

// completeQueues completes the name of a queue.
func (a *app) completeQueues(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var got queuesAnswer
	if len(args) > 0 || !a.lookUp(cmd, "/v1/queues", nil, &got) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range got.Queues {
		q := &got.Queues[i]
		if clean(q.Name) == q.Name && strings.HasPrefix(q.Name, prefix) {
			names = append(names, q.Name+"\t"+q.mode().text+", "+count(q.Tasks.Waiting, "task waits", "tasks wait"))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
