package run

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// admission is which run is to be started.
type admission struct {
	org, workflow string
	wait          time.Duration
	id            string
}

// NewWorkflow returns the command workflow.
func NewWorkflow(a *cli.App) *cobra.Command {
	return cli.Group(
		"workflow", "Run workflows under an organisation's caps",
		`A run of a workflow is a lease on one permit of org:ORG/runs and one of
org:ORG/workflow:WORKFLOW/runs. Key patterns set their capacities: how many run at once.

docs/admission.md is a guide.`,
		newStart(a), newEnd(a), newList(a),
	)
}

func newStart(a *cli.App) *cobra.Command {
	r := &invocation{a: a}
	var start admission
	cmd := &cobra.Command{
		Use:                   "start --org ORG [FLAGS] [-- COMMAND [ARGUMENT...]]",
		DisableFlagsInUseLine: true,
		Short:                 "Start a run of a workflow, if the caps allow",
		Long: `Start a run of a workflow: a lease on one permit of org:ORG/runs and one of
org:ORG/workflow:WORKFLOW/runs, if key patterns set a capacity for them. When the caps are
reached it stands in line for --wait, and then exits with 75.

With a command, the run lasts as long as the command, as with "interlock run". Without
one the run is printed as variables for a shell: it lives by "interlock lease renew", and
"interlock workflow end" ends it. --id makes a start repeatable, also from another process:
the same id gets the same run as long as it lives, and repeats a start that was refused.`,
		Example: `  interlock workflow start --org acme --workflow triage -- ./triage
  eval "$(interlock workflow start --org acme --workflow triage --id ticket-4711)" || exit
  interlock workflow end --outcome done`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case start.org == "":
				return cli.Usagef("name the organisation of the run with --org: %s", cli.UseLine(cmd))
			case dash > 0 || dash < 0 && len(args) > 0:
				return cli.Usagef("put -- before the command: %s", cli.UseLine(cmd))
			case dash == 0 && len(args) == 0:
				return cli.Usagef("name a command after the --: %s", cli.UseLine(cmd))
			case dash == 0 && start.id != "":
				return cli.Usagef("--id is for a run that outlives this process: leave it out, or the command")
			}
			return cli.CheckDurations(
				cli.Duration("--wait", start.wait, 0, interlock.MaxLongPoll),
				cli.Duration("--max-hold", r.q.MaxHold, 0, interlock.MaxMaxHold),
				cli.Duration("--ttl", cmp.Or(r.q.TTL, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL),
			)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return startRun(cmd.Context(), a, &start, &r.q)
			}
			r.argv, r.killAsGrace, r.pass = args, true, link.Repeated(cmd.InheritedFlags())
			r.q.Wait = cli.Forever // the server knows when the wait is over
			r.obtain = func(ctx context.Context, c *client.Client, q client.Request) (*client.Lease, error) {
				wait := start.wait
				if wait == 0 {
					wait = -1
				}
				return c.StartRun(ctx, client.RunRequest{
					Org: start.org, Workflow: start.workflow, Purpose: q.Purpose, Priority: q.Priority, TTL: q.TTL,
					MaxHold: q.MaxHold, MaxWait: wait,
				})
			}
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&start.org, "org", "", "the organisation that it counts towards")
	f.StringVar(&start.workflow, "workflow", "", "the workflow that it counts towards")
	cli.DurationVar(
		f, &start.wait, "wait", interlock.DefaultRunWait,
		"how long to stand in line when the caps are reached, 0 to fail at once",
	)
	f.StringVar(&start.id, "id", "", "the same `id`, the same run")
	cli.TTLVar(f, &r.q.TTL, "the run", "the key pattern's")
	cli.DurationVar(
		f, &r.q.MaxHold, "max-hold", 0, "how long it may last (default: the key pattern's, else no limit)",
	)
	f.IntVar(&r.q.Priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	f.StringVar(&r.q.Purpose, "purpose", "", "its purpose, for others to read")
	cli.AgentVar(f, &r.q.Agent, "your `name`, for others to read")
	f.StringVar(&r.note, "note", "", "a `text` for the next run")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

// startRun starts a run that a script is to end.
func startRun(ctx context.Context, a *cli.App, start *admission, q *acquire.Flags) error {
	body := &api.RunRequest{
		Org: start.org, Workflow: start.workflow, MaxWait: new(start.wait.Milliseconds()), Purpose: q.Purpose,
		Priority: q.Priority, TTL: q.TTL.Milliseconds(), MaxHold: q.MaxHold.Milliseconds(),
		Agent: cmp.Or(q.Agent, cli.OwnName()),
	}
	r := cli.Request{
		Method: http.MethodPost, Path: "/v1/runs", Body: body, ID: cmp.Or(start.id, cli.FreshID()), Again: true,
		Wait: start.wait,
	}
	var got api.RunAnswer
	return a.Call(ctx, r, &got, func() error {
		acquire.Tell(a, "started", &view.LeaseAnswer{
			Granted: api.Granted{Lease: got.Run.Lease, Notes: got.Notes, Warnings: got.Warnings},
		})
		return nil
	})
}

func newEnd(a *cli.App) *cobra.Command {
	var outcome, note string
	cmd := &cobra.Command{
		Use:   "end [RUN]",
		Short: "End a run",
		Long: `End a run; without RUN the one in $INTERLOCK_LEASE. Exit code 79 means that it had ended
before, so that another one may have taken its place.`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			body := &api.ReleaseRequest{Outcome: outcome, Note: note}
			r := cli.Request{
				Method: http.MethodPost, Path: "/v1/runs/" + url.PathEscape(id) + "/end", Body: body, ID: cli.FreshID(),
				Again: true,
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("ended\n")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "done", "the outcome, in a word")
	cmd.Flags().StringVar(&note, "note", "", "a `text` for the next run")
	return cmd
}

func newList(a *cli.App) *cobra.Command {
	var org string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the runs that have not ended",
		Example: `  interlock workflow list --org acme`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.Runs
			query := url.Values{"limit": {"1000"}}
			if org != "" {
				query.Set("org", org)
			}
			return a.Get(cmd.Context(), "/v1/runs", query, &got, func() error {
				if len(got.Runs) == 0 {
					a.Complain("nothing runs")
					return nil
				}
				t := a.Table("ORG", "WORKFLOW", "AGENT", "LIVENESS", "RUNS FOR", "PURPOSE")
				for i := range got.Runs {
					r := &got.Runs[i]
					t.Row(
						cli.Clean(r.Org), cli.OrDash(cli.Clean(r.Workflow)), cli.AgentName(r.Holder.Name), r.Holder.Liveness,
						cli.ShortMillis(r.Holder.Held),
						cli.OrDash(cli.Clean(r.Holder.Purpose)),
					)
				}
				if err := t.Write(a.Out); err != nil || got.Cursor == "" {
					return err
				}
				a.Complain("there are more")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&org, "org", "", "only those of this organisation")
	return cmd
}
