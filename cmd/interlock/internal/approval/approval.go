package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command approval.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"approval", "Answer questions of tasks and parked leases",
		`A task that asks a person waits for an answer, and so does a lease that was parked with a
reason; the task's id or the lease's fence identifies it. The submitter of the task, its
asker, its worker, and the holder of the lease cannot answer. A server without credentials
cannot tell people apart: there an approval is a courtesy.`,
		newList(a), newGet(a),
		newAnswer(
			a, interlock.Approved, "approve", "Approve what a task or a parked lease asks",
			`Approve under your name and with a reason; the journal records both beside the credential that
answers. An approved task is handed out again in its old place. An approved lease is resumed
by a waiting or a later "interlock lease resume".`,
			`  interlock approval approve q_0123456789abcdef0123456789abcdef --reason "checked with the customer"`,
		),
		newAnswer(
			a, interlock.Denied, "deny", "Deny what a task or a parked lease asks",
			`Deny under your name and with a reason; the journal records both beside the credential that
answers. A denied task is dead. A denied lease stays parked.`,
			`  interlock approval deny q_0123456789abcdef0123456789abcdef --reason "over budget" --by ada`,
		),
	)
}

func newList(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the questions that wait for a person's answer",
		Long: `List the pending approvals: the question, the asker, the purpose, and the changes since the
asker read.`,
		Example: `  interlock approval list
  interlock approval list -o json | jq -r '.tasks[].task'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listApprovals(cmd.Context(), a, limit) },
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many to list at most")
	return cmd
}

func newGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "get TASK",
		Short:   "Show the question of a task, and its answer",
		Example: `  interlock approval get q_0123456789abcdef0123456789abcdef`,
		Args:    cli.OneArg("a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			task, fence, err := askerArg(args[0])
			switch {
			case err != nil:
				return err
			case fence != "":
				return cli.Usagef("fence %s: `interlock approval list` shows the questions of parked leases", fence)
			}
			var got api.TaskView
			return a.Get(cmd.Context(), view.TaskPath(task, ""), nil, &got, func() error {
				showAsking(a, view.TaskOf(&got.Task))
				return nil
			})
		},
	}
}

// askerArg identifies the asker: a task by its id, or a parked lease by its fence.
func askerArg(arg string) (task, fence string, err error) {
	if n, wrong := strconv.ParseUint(arg, 10, 64); wrong == nil && n > 0 {
		return "", strconv.FormatUint(n, 10), nil
	}
	task, err = view.TaskArg(arg)
	return task, "", err
}

// newAnswer makes approve and deny.
func newAnswer(a *cli.App, verdict interlock.Verdict, use, short, long, example string) *cobra.Command {
	var reason, by string
	cmd := &cobra.Command{
		Use: use + " TASK|FENCE", Short: short, Long: long, Example: example,
		Args: cli.OneArg("the task, or the fence of the lease"),
		RunE: func(cmd *cobra.Command, args []string) error {
			task, fence, err := askerArg(args[0])
			if err != nil {
				return err
			}
			if by == "" {
				by = cli.Person()
			}
			body := &api.AnswerRequest{Verdict: verdict.String(), By: by, Reason: reason}
			r := cli.Request{
				Method: http.MethodPost, Path: "/v1/approvals/" + url.PathEscape(task+fence), Body: body, ID: cli.FreshID(),
				Again: true,
			}
			if fence != "" {
				return answerLease(cmd.Context(), a, r, verdict, by)
			}
			return answerTask(cmd.Context(), a, r, verdict, by)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the asker and for others to read")
	cmd.Flags().StringVar(&by, "by", "", "the `name` that you claim (default: user@host)")
	return cmd
}

func answerLease(ctx context.Context, a *cli.App, r cli.Request, verdict interlock.Verdict, by string) error {
	var got api.LeaseDecision
	return a.Call(ctx, r, &got, func() error {
		how := verdict.String() + " by " + cli.Clean(by)
		if q := got.Lease; q != nil && q.Decision != nil {
			how = view.DecisionText(q.Decision)
		}
		rest := "the lease is resumed by a waiting or a later resume"
		if verdict == interlock.Denied {
			rest = "the lease stays parked until its holder releases it"
		}
		a.Say("%s; %s\n", how, rest)
		a.Warn(got.Warnings)
		return nil
	})
}

func answerTask(ctx context.Context, a *cli.App, r cli.Request, verdict interlock.Verdict, by string) error {
	var got api.TaskAnswer
	return a.Call(ctx, r, &got, func() error {
		t := view.TaskOf(&got.Task)
		how := t.Place()
		if t.IsSettled() {
			how = "is " + cli.Clean(got.Task.State)
		}
		who := cli.Clean(by)
		if p := got.Task.Approval; p != nil {
			who = interlock.Answerer(cli.Clean(p.Principal), cli.Clean(p.By))
			if n := len(p.Approvals); p.Verdict == "" && n > 0 {
				last := p.Approvals[n-1]
				who = interlock.Answerer(cli.Clean(last.Principal), cli.Clean(last.By))
				how += fmt.Sprintf(": it has %d of %d approvals and misses %d", n, p.Needed, p.Needed-n)
			}
		}
		done := verdict.String()
		if got.Outcome == "counted" {
			done = "counted, given"
		}
		a.Say("%s by %s: the task %s\n", done, who, how)
		a.Warn(got.Warnings)
		return nil
	})
}

func listApprovals(ctx context.Context, a *cli.App, limit int) error {
	if limit < 1 {
		return cli.Usagef("--limit %d: want at least 1", limit)
	}
	shown, leases := 0, false
	more, err := a.Pages(ctx, "/v1/approvals", url.Values{}, limit, func(answer []byte) (int, string, error) {
		var page api.ApprovalList
		if err := json.Unmarshal(answer, &page); err != nil || a.JSON() {
			return len(page.Tasks), page.Cursor, err
		}
		for i := range page.Leases {
			if shown++; shown > 1 {
				a.Say("\n")
			}
			showLeaseQuestion(a, &page.Leases[i])
			leases = true
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			var whole api.TaskView // a listing does not say what has changed
			if _, answer, err := a.API().Do(
				ctx, cli.Request{Method: http.MethodGet, Path: view.TaskPath(t.ID, "")},
			); err == nil &&
				json.Unmarshal(answer, &whole) == nil {
				t = &whole.Task
			}
			if shown++; shown > 1 {
				a.Say("\n")
			}
			showAsking(a, view.TaskOf(t))
		}
		return len(page.Tasks), page.Cursor, nil
	})
	switch {
	case err != nil || a.JSON():
		return err
	case shown == 0:
		a.Complain("no pending approvals")
	case more:
		a.Complain("there are more than %d: --limit lists them", shown)
	default:
		a.Complain(
			"answer with `interlock approval approve TASK` or `interlock approval deny TASK`, and --reason%s",
			map[bool]string{true: "; a lease by its fence"}[leases],
		)
	}
	return nil
}

// showLeaseQuestion prints the question of a parked lease.
func showLeaseQuestion(a *cli.App, q *api.LeaseQuestion) {
	a.Say("%s  a parked lease\n", a.Tint(cli.Bold, q.Fence.String()))
	for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(q.Question)), "\n") {
		a.Say("  | %s\n", line)
	}
	view.Fact(
		a, "asked",
		fmt.Sprintf("%s ago, the lease ends in %s", cli.ShortMillis(q.Asked), cli.ShortMillis(q.Left)),
	)
	view.Fact(a, "asker", asPrincipal(cli.AgentName(api.Name{Agent: q.Agent}), q.Principal))
	what := cli.Clean(view.JoinKeys(view.ClaimedKeys(q.Claims), ", ")) + " (" + cli.Clean(q.Keys) + ")"
	if purpose := cli.Clean(q.Purpose); purpose != "" {
		what = purpose + ", " + what
	}
	view.Fact(a, "for", what)
}

// showAsking prints a question to a person. Text of others is set off from ours.
func showAsking(a *cli.App, t *view.Task) {
	state := ""
	if !t.Is(interlock.TaskAsking) {
		state = "  " + t.Stands()
	}
	a.Say("%s%s\n", a.Tint(cli.Bold, cli.Clean(t.ID)), state)
	if t.Approval != nil {
		view.ShowApproval(a, t.Approval)
	}
	view.Fact(a, "asker", askerOf(t))
	view.Fact(a, "for", t.What())
	view.Fact(a, "payload", cli.Cut(cli.Clean(string(t.Payload)), view.FactWidth))
	if t.Attempt > 0 {
		view.Fact(a, "attempt", t.Tries())
	}
}

// askerOf is the party that asks a person: the worker at the task, or the submitter.
func askerOf(t *view.Task) string {
	if t.Approval == nil || t.Approval.Agent == "" || t.Approval.Agent == t.Agent {
		return asPrincipal(t.Submitter(), t.Principal)
	}
	return cli.Clean(t.Approval.Agent) + ", at a task of " + asPrincipal(t.Submitter(), t.Principal)
}

// asPrincipal is the name that an agent uses, with the credential that it has, if the two differ.
func asPrincipal(name, principal string) string {
	if principal := cli.Clean(principal); principal != "" && principal != name {
		return name + ", as " + principal
	}
	return name
}
