package main

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

func newTaskLs(a *app) *cobra.Command {
	var queue, state, group, key string
	var ids bool
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List tasks, the oldest first",
		Long: `List tasks in the order in which they were submitted. Those that are settled are listed
as long as they are remembered. TRY is the attempt and how many there are at most.`,
		Example: `  interlock task ls --queue billing --state dead
  interlock task ls --key account:12345
  interlock task ls --state dead --ids | xargs interlock task replay`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage("--limit %d: want at least 1", limit)
			}
			if _, ok := interlock.ParseTaskState(state); state != "" && !ok {
				return usage("--state %s: want scheduled, waiting, running, asking, done, dead or cancelled", clean(state))
			}
			query := url.Values{}
			for name, value := range map[string]string{"queue": queue, "state": state, "group": group, "key": key} {
				if value == "" && cmd.Flags().Changed(name) { // a variable of a script that is not set
					return usage("--%s is empty: name one, or leave it out for all", name)
				}
				if value != "" {
					query.Set(name, value)
				}
			}
			return a.listTasks(cmd.Context(), query, limit, ids)
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
			return a.completeQueues(cmd, nil, prefix)
		},
	)
	return cmd
}

func (a *app) listTasks(ctx context.Context, query url.Values, limit int, ids bool) error {
	t := a.table("TASK", "STATE", "TRY", "AGE", "QUEUE", "FOR")
	shown := 0
	more, err := a.pages(ctx, "/v1/tasks", query, limit, func(answer []byte) (int, string, error) {
		var page struct {
			Tasks  []task
			Cursor string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		for i := range page.Tasks {
			k := &page.Tasks[i]
			if ids && !a.json() {
				a.say("%s\n", clean(k.ID))
				continue
			}
			t.row(clean(k.ID), cell{clean(k.State), k.stateColour()}, k.tries(), short(ms(k.Age)), clean(k.Queue), k.what())
		}
		shown += len(page.Tasks)
		return len(page.Tasks), page.Cursor, nil
	})
	switch {
	case err != nil || a.json():
		return err
	case shown == 0:
		a.complain("there is no such task")
		return nil
	case !ids:
		t.fit(tableWidth)
		err = t.write(a.out)
	}
	if more {
		a.complain("there are more than %d tasks: narrow them down, or raise --limit", shown)
	}
	return err
}

func newTaskShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show TASK",
		Short: "Show a task: its state, its attempts, its result",
		Example: `  interlock task show "$id"
  interlock task show "$id" -o json | jq .task.payload`,
		Args: oneArg("a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := taskArg(args[0])
			if err != nil {
				return err
			}
			var got taskAnswer
			return a.get(cmd.Context(), taskPath(id, ""), nil, &got, func() error { return a.showTask(&got.Task) })
		},
	}
}

// showTask prints all details of a task. Text of others is set off from ours.
func (a *app) showTask(t *task) error {
	a.say("%s  %s\n", a.tint(bold, clean(t.ID)), a.tint(t.stateColour(), t.stands()))
	from := t.name() + ", " + short(ms(t.Age)) + " ago"
	if t.Principal != "" && clean(t.Principal) != t.name() {
		from += ", as " + clean(t.Principal)
	}
	deadline := ""
	if t.Deadline > 0 {
		deadline = "in " + short(ms(t.Deadline))
	}
	a.fact("queue", clean(t.Queue))
	a.fact("kind", clean(t.Kind))
	for i := range t.Claims {
		a.fact("key", clean(string(t.Claims[i].Key))+" ("+t.Claims[i].what()+")")
	}
	a.fact("purpose", clean(t.Purpose))
	a.fact("group", clean(t.Group))
	a.fact("from", from)
	a.fact("deadline", deadline)
	a.fact("payload", cut(clean(string(t.Payload)), factWidth))
	a.fact("result", cut(clean(string(t.Result)), factWidth))
	if t.Approval != nil {
		a.showApproval(t.Approval)
	}
	if len(t.Attempts) > 0 {
		a.say("\n")
		table := a.table("ATTEMPT", "WORKER", "FENCE", "TOOK", "ENDED", "BY", "REASON")
		for i := range t.Attempts {
			x := &t.Attempts[i]
			table.row(
				x.Number, x.name(), x.Fence, short(ms(x.Held)), short(ms(x.Age))+" ago", orDash(clean(x.EndedBy)),
				orDash(clean(x.Reason)),
			)
		}
		table.fit(tableWidth)
		if err := table.write(a.out); err != nil {
			return err
		}
	}
	if next := t.next(); next != "" {
		a.complain("%s", next)
	}
	return nil
}

// fact prints what is known of something under its name, unless it is nothing.
func (a *app) fact(name, value string) {
	if value != "" {
		a.say("  %-9s %s\n", name, value)
	}
}

// factWidth is the rest of a line behind a fact's name.
const factWidth = tableWidth - 12
