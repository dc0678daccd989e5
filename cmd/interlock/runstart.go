package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/api"
)

// admission is which run is to be started.
type admission struct {
	org, workflow string
	wait          time.Duration
	id            string
}

func newRunStart(a *app) *cobra.Command {
	r := &runInvocation{a: a}
	var start admission
	cmd := &cobra.Command{
		Use:                   "start --org ORG [FLAGS] [-- COMMAND [ARGUMENT...]]",
		DisableFlagsInUseLine: true,
		Short:                 "Start a run of a workflow, if the caps allow",
		Long: `Start a run of a workflow: a lease on one permit of org:ORG/runs and one of
org:ORG/workflow:WORKFLOW/runs, if key patterns set a capacity for them. When the caps are
reached it stands in line for --wait, and then exits with 75.

With a command, the run lasts as long as the command, as with "interlock run". Without
one the run is printed as variables for a shell: it lives by "interlock renew", and
"interlock run end" ends it. --id makes a start repeatable, also from another process:
the same id gets the same run as long as it lives, and a start that was refused is
asked for anew.`,
		Example: `  interlock run start --org acme --workflow triage -- ./triage
  eval "$(interlock run start --org acme --workflow triage --id ticket-4711)" || exit
  interlock run end --outcome done`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case start.org == "":
				return usage("name the organisation of the run with --org: %s", useLine(cmd))
			case dash > 0 || dash < 0 && len(args) > 0:
				return usage("put -- before the command: %s", useLine(cmd))
			case dash == 0 && len(args) == 0:
				return usage("name a command after the --: %s", useLine(cmd))
			case dash == 0 && start.id != "":
				return usage("--id is for a run that outlives this process: leave it out, or the command")
			}
			return checkDurations(
				duration{"--wait", start.wait, 0, interlock.MaxLongPoll},
				duration{"--max-hold", r.q.MaxHold, 0, interlock.MaxMaxHold},
				duration{"--ttl", cmp.Or(r.q.TTL, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL},
			)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.startRun(cmd.Context(), &start, &r.q)
			}
			r.argv, r.killAsGrace, r.pass = args, true, repeated(cmd.InheritedFlags())
			r.q.TTL, r.q.Wait = cmp.Or(r.q.TTL, interlock.DefaultTTL), forever // the server knows when the wait is over
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
	f.DurationVar(
		&start.wait, "wait", interlock.DefaultRunWait,
		"how long to stand in line when the caps are reached, 0 to fail at once",
	)
	f.StringVar(&start.id, "id", "", "the same `id`, the same run")
	f.DurationVar(
		&r.q.TTL, "ttl", 0,
		"how long the run outlives the last sign of life (default: the key pattern's, else "+interlock.DefaultTTL.String()+
			")",
	)
	f.DurationVar(&r.q.MaxHold, "max-hold", 0, "how long it may last at all (default: the key pattern's, else no limit)")
	f.IntVar(&r.q.Priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	f.StringVar(&r.q.Purpose, "purpose", "", "its purpose, for others to read")
	f.StringVar(&r.q.Agent, "agent", "", "your `name`, for others to read (default: user@host:pid)")
	bind(f, "agent", "")
	f.StringVar(&r.note, "note", "", "a note for the next run")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

// startRun starts a run that a script is to end.
func (a *app) startRun(ctx context.Context, start *admission, q *leaseFlags) error {
	body := map[string]any{
		"org": start.org, "workflow": start.workflow, "wait_ms": start.wait.Milliseconds(), "purpose": q.Purpose,
		"priority": q.Priority,
		"ttl_ms":   q.TTL.Milliseconds(), "max_hold_ms": q.MaxHold.Milliseconds(), "agent": cmp.Or(q.Agent, ownName()),
	}
	r := request{
		Method: http.MethodPost, Path: "/v1/runs", Body: body, ID: cmp.Or(start.id, freshID()), Again: true,
		Wait: start.wait,
	}
	var got struct {
		Run struct {
			Lease lease `json:"lease"`
		} `json:"run"`
		Notes    []api.Note `json:"notes"`
		Warnings []string   `json:"warnings"`
	}
	return a.call(ctx, r, &got, func() error {
		a.tellLease("started", &leaseAnswer{Lease: got.Run.Lease, Notes: got.Notes, Warnings: got.Warnings})
		return nil
	})
}

func newRunEnd(a *app) *cobra.Command {
	var outcome, note string
	cmd := &cobra.Command{
		Use:   "end [RUN]",
		Short: "End a run",
		Long: `End a run; without RUN the one in $INTERLOCK_LEASE. Exit code 79 means that it had ended
before, so that another one may have taken its place.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			body := map[string]string{"outcome": outcome, "note": note}
			r := request{
				Method: http.MethodPost, Path: "/v1/runs/" + url.PathEscape(id) + "/end", Body: body, ID: freshID(), Again: true,
			}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("ended\n")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "done", "the outcome, in a word")
	cmd.Flags().StringVar(&note, "note", "", "a note for the next run")
	return cmd
}

func newRunLs(a *app) *cobra.Command {
	var org string
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the runs that have not ended",
		Example: `  interlock run ls --org acme`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got struct {
				Runs []struct {
					Org      string `json:"org"`
					Workflow string `json:"workflow"`
					Holder   holder `json:"holder"`
				} `json:"runs"`
				Cursor string `json:"cursor"`
			}
			query := url.Values{"limit": {"1000"}}
			if org != "" {
				query.Set("org", org)
			}
			return a.get(cmd.Context(), "/v1/runs", query, &got, func() error {
				if len(got.Runs) == 0 {
					a.complain("nothing runs")
					return nil
				}
				t := a.table("ORG", "WORKFLOW", "AGENT", "LIVENESS", "RUNS FOR", "PURPOSE")
				for i := range got.Runs {
					r := &got.Runs[i]
					t.row(
						clean(r.Org), orDash(clean(r.Workflow)), r.Holder.name(), r.Holder.Liveness, short(ms(r.Holder.Held)),
						orDash(clean(r.Holder.Purpose)),
					)
				}
				if err := t.write(a.out); err != nil || got.Cursor == "" {
					return err
				}
				a.complain("there are more")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&org, "org", "", "only those of this organisation")
	return cmd
}
