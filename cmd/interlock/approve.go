package main

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
	"github.com/interlockdev/interlock/internal/prose"
)

func newApprove(a *app) *cobra.Command {
	var yes, no bool
	var reason, by string
	var limit int
	cmd := &cobra.Command{
		Use:   "approve [TASK|FENCE]",
		Short: "Answer questions of tasks and parked leases, or list them",
		Long: `Without TASK or FENCE, list the pending approvals: the question, the asker, the purpose, and
the changes since the asker read. A lease that was parked with a reason asks, too; its fence
identifies it. With TASK or FENCE and --yes or --no, answer under your name and with a
reason; the journal records both beside the credential that answers. The submitter of the
task, its asker, its worker, and the holder of the lease cannot answer. An approved task is
handed out again in its old place; a denied one is dead. An approved lease is resumed by a
waiting or a later "interlock resume"; a denied one stays parked. A server without
credentials cannot tell people apart: there an approval is a courtesy.`,
		Example: `  interlock approve
  interlock approve q_0123456789abcdef0123456789abcdef --yes --reason "checked with the customer"
  interlock approve q_0123456789abcdef0123456789abcdef --no --reason "over budget" --by ada`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if yes || no {
					return usage("name the task: `interlock approve` lists those that wait for an answer")
				}
				return a.listApprovals(cmd.Context(), limit)
			}
			id, fence, err := "", "", error(nil)
			if n, wrong := strconv.ParseUint(args[0], 10, 64); wrong == nil && n > 0 {
				fence = strconv.FormatUint(n, 10)
			} else {
				id, err = taskArg(args[0])
			}
			switch {
			case err != nil:
				return err
			case yes && no:
				return usage("--yes and --no: use one of them")
			case !yes && !no && fence != "":
				return usage("fence %s: answer with --yes or --no; `interlock approve` shows the question", fence)
			case !yes && !no:
				var got taskAnswer
				return a.get(cmd.Context(), taskPath(id, ""), nil, &got, func() error {
					a.showAsking(&got.Task)
					return nil
				})
			}
			verdict := interlock.Approved
			if no {
				verdict = interlock.Denied
			}
			if by == "" {
				by, _, _ = strings.Cut(ownName(), ":")
			}
			body := map[string]any{"verdict": verdict.String(), "by": by}
			if reason != "" {
				body["reason"] = reason
			}
			r := request{
				Method: http.MethodPost, Path: "/v1/approvals/" + url.PathEscape(id+fence), Body: body, ID: freshID(), Again: true,
			}
			if fence != "" {
				var got leaseVerdict
				return a.call(cmd.Context(), r, &got, func() error {
					how := verdict.String() + " by " + clean(by)
					if q := got.Lease; q != nil && q.Decision != nil {
						how = decisionText(q.Decision)
					}
					rest := "the lease is resumed by a waiting or a later resume"
					if verdict == interlock.Denied {
						rest = "the lease stays parked until its holder releases it"
					}
					a.say("%s; %s\n", how, rest)
					a.warn(got.Warnings)
					return nil
				})
			}
			var got taskAnswer
			return a.call(cmd.Context(), r, &got, func() error {
				how := got.Task.place()
				if got.Task.settled() {
					how = "is " + clean(got.Task.State)
				}
				who := clean(by)
				if p := got.Task.Approval; p != nil {
					who = interlock.Answerer(clean(p.Name), clean(p.By))
					if n := len(p.Given); p.Verdict == "" && n > 0 {
						last := p.Given[n-1]
						who = interlock.Answerer(clean(last.Name), clean(last.By))
						how += fmt.Sprintf(": it has %d of %d approvals and misses %d", n, p.Needed, p.Needed-n)
					}
				}
				done := verdict.String()
				if got.Outcome == "counted" {
					done = "counted, given"
				}
				a.say("%s by %s: the task %s\n", done, who, how)
				a.warn(got.Warnings)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "approve")
	f.BoolVar(&no, "no", false, "deny")
	f.StringVar(&reason, "reason", "", "why, for the asker and for others to read")
	f.StringVar(&by, "by", "", "the `name` that you claim (default: user@host)")
	f.IntVar(&limit, "limit", 50, "how many to list at most")
	return cmd
}

func (a *app) listApprovals(ctx context.Context, limit int) error {
	if limit < 1 {
		return usage("--limit %d: want at least 1", limit)
	}
	shown, leases := 0, false
	more, err := a.pages(ctx, "/v1/approvals", url.Values{}, limit, func(answer []byte) (int, string, error) {
		var page struct {
			Tasks  []task
			Leases []leaseQuestion
			Cursor string
		}
		if err := json.Unmarshal(answer, &page); err != nil || a.json() {
			return len(page.Tasks), page.Cursor, err
		}
		for i := range page.Leases {
			if shown++; shown > 1 {
				a.say("\n")
			}
			a.showLeaseQuestion(&page.Leases[i])
			leases = true
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			var whole taskAnswer // a listing does not say what has changed
			if _, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: taskPath(t.ID, "")}); err == nil &&
				json.Unmarshal(answer, &whole) == nil {
				t = &whole.Task
			}
			if shown++; shown > 1 {
				a.say("\n")
			}
			a.showAsking(t)
		}
		return len(page.Tasks), page.Cursor, nil
	})
	switch {
	case err != nil || a.json():
		return err
	case shown == 0:
		a.complain("no pending approvals")
	case more:
		a.complain("there are more than %d: --limit lists them", shown)
	default:
		a.complain(
			"answer with `interlock approve TASK --yes` or `--no`, and --reason%s",
			map[bool]string{true: "; a lease by its fence"}[leases],
		)
	}
	return nil
}

// leaseVerdict is the result of an answer about a parked lease.
type leaseVerdict struct {
	Lease    *leaseQuestion `json:"lease"`
	Warnings []string       `json:"warnings"`
}

// showLeaseQuestion prints what a person is asked about a parked lease.
func (a *app) showLeaseQuestion(q *leaseQuestion) {
	a.say("%s  a parked lease\n", a.tint(bold, clean(q.Fence)))
	for line := range strings.SplitSeq(strings.TrimSpace(cleanLines(q.Question)), "\n") {
		a.say("  | %s\n", line)
	}
	a.fact("asked", fmt.Sprintf("%s ago, the lease ends in %s", short(ms(q.Asked)), short(ms(q.Left))))
	a.fact("asker", asPrincipal(party{Agent: q.Agent}.name(), q.Principal))
	keys := make([]string, len(q.Claims))
	for i, c := range q.Claims {
		keys[i] = clean(string(c.Key))
	}
	what := strings.Join(keys, ", ") + " (" + clean(q.Keys) + ")"
	if purpose := clean(q.Purpose); purpose != "" {
		what = purpose + ", " + what
	}
	a.fact("for", what)
}

// showAsking prints a question to a person. Text of others is set off from ours.
func (a *app) showAsking(t *task) {
	state := ""
	if !t.is(interlock.TaskAsking) {
		state = "  " + t.stands()
	}
	a.say("%s%s\n", a.tint(bold, clean(t.ID)), state)
	if t.Approval != nil {
		a.showApproval(t.Approval)
	}
	a.fact("asker", t.asker())
	a.fact("for", t.what())
	a.fact("payload", cut(clean(string(t.Payload)), factWidth))
	if t.Attempt > 0 {
		a.fact("attempt", t.tries())
	}
}

// asker is the party that asks a person: the worker at the task, or the submitter.
func (t *task) asker() string {
	if t.Approval == nil || t.Approval.Agent == "" || t.Approval.Agent == t.Agent {
		return asPrincipal(t.name(), t.Principal)
	}
	return clean(t.Approval.Agent) + ", at a task of " + asPrincipal(t.name(), t.Principal)
}

// asPrincipal is the name that an agent uses, with the credential that it has, if the two differ.
func asPrincipal(name, principal string) string {
	if principal := clean(principal); principal != "" && principal != name {
		return name + ", as " + principal
	}
	return name
}

// showApproval prints a question and its answer.
func (a *app) showApproval(p *approval) {
	for line := range strings.SplitSeq(strings.TrimSpace(cleanLines(p.Question)), "\n") {
		a.say("  | %s\n", line)
	}
	when := short(ms(p.Asked)) + " ago"
	if p.Left > 0 {
		when += ", " + clean(p.OnLimit) + " in " + short(ms(p.Left)) + " without an answer"
	}
	a.fact("asked", when)
	for _, x := range p.Given {
		text := interlock.Answerer(clean(x.Name), clean(x.By))
		if reason := clean(x.Reason); reason != "" {
			text += ": " + reason
		}
		a.fact("approved", text)
	}
	if p.Needed > 1 {
		a.fact("needs", fmt.Sprintf("%d of %d approvals", p.Needed-len(p.Given), p.Needed))
	}
	a.fact("answer", p.answer())
	if p.Packet == nil {
		return
	}
	for i := range p.Packet.Stale {
		c := &p.Packet.Stale[i]
		how := "is at version " + c.Now.Version.String() + ", " + c.Now.writer()
		if c.Now.Absent {
			how = "was removed " + c.Now.writer()
		}
		a.fact("changed", fmt.Sprintf("%s was read at version %s and %s", clean(string(c.Key)), c.Then.Version, how))
		if c.Left > 0 {
			a.fact("before", fmt.Sprintf("%d writes that are not shown", c.Left))
		}
		for i := range c.Between {
			b := &c.Between[i]
			fact := "version " + b.Version.String() + ", " + b.writer()
			if b.Absent {
				fact = "version " + b.Version.String() + ", removed " + b.writer()
			}
			a.fact("before", fact)
		}
		text := string(c.Diff.Patch)
		if text == "" {
			text = c.Diff.Text
		}
		for line := range strings.SplitSeq(strings.TrimSpace(cleanLines(text)), "\n") {
			if line != "" {
				a.say("  | %s\n", cut(line, tableWidth-4))
			}
		}
	}
}

// answer is the verdict in half a sentence, or nothing while it is open.
func (p *approval) answer() string {
	if p.Verdict == "" {
		return ""
	}
	return prose.Verdict(p.Verdict, p.Name, p.By, p.Reason)
}

// tellApproval prints to standard error what a person has answered, and what has changed since the
// question.
func (a *app) tellApproval(p *approval) {
	if p == nil {
		return
	}
	if answer := p.answer(); answer != "" {
		a.complain("%s", answer)
	}
	if p.Packet != nil {
		a.tellPacket(p.Packet.packet)
	}
}
