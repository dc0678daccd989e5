package task

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newTaskList(a *cli.App) *cobra.Command {
	var queue, state, group, key string
	var ids bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the oldest first",
		Long: `List tasks in the order in which they were submitted. Settled tasks are listed as long as
they are remembered. TRY is the attempt, and the maximum of attempts.`,
		Example: `  interlock task list --queue billing --state dead
  interlock task list --key account:12345
  interlock task list --state dead --ids | xargs interlock task replay`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			if _, ok := interlock.ParseTaskState(state); state != "" && !ok {
				return cli.Usagef("--state %s: want scheduled, waiting, running, asking, done, dead or cancelled", cli.Clean(state))
			}
			query := url.Values{}
			for name, value := range map[string]string{"queue": queue, "state": state, "group": group, "key": key} {
				if value == "" && cmd.Flags().Changed(name) { // a variable of a script that is not set
					return cli.Usagef("--%s is empty: name one, or leave it out for all", name)
				}
				if value != "" {
					query.Set(name, value)
				}
			}
			return listTasks(cmd.Context(), a, query, limit, ids)
		},
	}
	f := cmd.Flags()
	f.StringVar(&queue, "queue", "", "only those of this `queue`")
	f.StringVar(&state, "state", "", "only those that are scheduled, waiting, running, asking, done, dead or cancelled")
	f.StringVar(&group, "group", "", "only those of this `group`")
	f.StringVar(&key, "key", "", "only those that claim this `key`")
	f.BoolVar(&ids, "ids", false, "print their ids and nothing else")
	f.IntVar(&limit, "limit", 10_000, "how many to list at most")
	_ = cmd.RegisterFlagCompletionFunc(
		"queue", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return view.CompleteQueues(a)(cmd, nil, prefix)
		},
	)
	return cmd
}

func listTasks(ctx context.Context, a *cli.App, query url.Values, limit int, ids bool) error {
	t := a.Table("TASK", "STATE", "TRY", "AGE", "QUEUE", "FOR")
	shown := 0
	more, err := a.Pages(ctx, "/v1/tasks", query, limit, func(answer []byte) (int, string, error) {
		var page api.TaskList
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		for i := range page.Tasks {
			k := view.TaskOf(&page.Tasks[i])
			if ids && !a.JSON() {
				a.Say("%s\n", cli.Clean(k.ID))
				continue
			}
			t.Row(
				cli.Clean(k.ID), cli.Coloured(cli.Clean(k.State), k.StateColour()), k.Tries(), cli.ShortMillis(k.Age),
				cli.Clean(k.Queue), k.What(),
			)
		}
		shown += len(page.Tasks)
		return len(page.Tasks), page.Cursor, nil
	})
	switch {
	case err != nil || a.JSON():
		return err
	case shown == 0:
		a.Complain("no tasks")
		return nil
	case !ids:
		t.Fit(cli.TableWidth)
		err = t.Write(a.Out)
	}
	if more {
		a.Complain("there are more than %d tasks: narrow them down, or raise --limit", shown)
	}
	return err
}

func newTaskGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "get TASK",
		Short: "Show a task: its state, its attempts, its result",
		Example: `  interlock task get "$id"
  interlock task get "$id" -o json | jq .task.payload`,
		Args: cli.OneArg("a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.TaskArg(args[0])
			if err != nil {
				return err
			}
			var got api.TaskView
			return a.Get(cmd.Context(), view.TaskPath(id, ""), nil, &got, func() error {
				return showTask(a, view.TaskOf(&got.Task))
			})
		},
	}
}

// showTask prints all details of a task. Text of others is set off from ours.
func showTask(a *cli.App, t *view.Task) error {
	a.Say("%s  %s\n", a.Tint(cli.Bold, cli.Clean(t.ID)), a.Tint(t.StateColour(), t.Stands()))
	from := t.Submitter() + ", " + cli.ShortMillis(t.Age) + " ago"
	if t.Principal != "" && cli.Clean(t.Principal) != t.Submitter() {
		from += ", as " + cli.Clean(t.Principal)
	}
	deadline := ""
	if t.Deadline > 0 {
		deadline = "in " + cli.ShortMillis(t.Deadline)
	}
	view.Fact(a, "queue", cli.Clean(t.Queue))
	view.Fact(a, "kind", cli.Clean(t.Kind))
	for i := range t.Claims {
		view.Fact(a, "key", cli.Clean(string(t.Claims[i].Key))+" ("+view.ClaimText(&t.Claims[i])+")")
	}
	view.Fact(a, "purpose", cli.Clean(t.Purpose))
	view.Fact(a, "group", cli.Clean(t.Group))
	view.Fact(a, "from", from)
	view.Fact(a, "deadline", deadline)
	view.Fact(a, "payload", cli.Cut(cli.Clean(string(t.Payload)), view.FactWidth))
	view.Fact(a, "result", cli.Cut(cli.Clean(string(t.Result)), view.FactWidth))
	if t.Approval != nil {
		view.ShowApproval(a, t.Approval)
	}
	if len(t.Attempts) > 0 {
		a.Say("\n")
		table := a.Table("ATTEMPT", "WORKER", "FENCE", "TOOK", "ENDED", "BY", "REASON")
		for i := range t.Attempts {
			x := &t.Attempts[i]
			table.Row(
				x.Number, cli.AgentName(api.Name{Agent: x.Agent, Session: x.Session}), x.Fence, cli.ShortMillis(x.Held),
				cli.ShortMillis(x.Age)+" ago", cli.OrDash(cli.Clean(x.EndedBy)), cli.OrDash(cli.Clean(x.Reason)),
			)
		}
		table.Fit(cli.TableWidth)
		if err := table.Write(a.Out); err != nil {
			return err
		}
	}
	if next := t.Next(); next != "" {
		a.Complain("%s", next)
	}
	return nil
}
