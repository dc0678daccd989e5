package lease

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command lease: what there is to do with a lease besides lock and unlock.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"lease", "List, show, renew, convert, park or revoke a lease",
		`The id of a lease that "interlock lock" took is a secret. Commands take it from the command
line, else from $INTERLOCK_LEASE. "interlock unlock" releases the lease.`,
		newList(a), newGet(a), newRenew(a), newConvert(a), newPark(a), newResume(a), newRevoke(a), newRequestYield(a),
	)
}

// NewLock returns the command lock.
func NewLock(a *cli.App) *cobra.Command {
	var q acquire.Flags
	var documents bool
	cmd := &cobra.Command{
		Use:   "lock KEY...",
		Short: "Take a lease for a script that renews and releases it",
		Long: `Take a lease on all of the keys, or on none, and print it as variables for a shell. Keep it
alive with "interlock lease renew": it ends when --ttl has passed since the last renewal.
Prefer "interlock run" if the work is one command.

With --documents the documents at the keys come with the lease, read in the same step:
with -o json as "documents", else in words on standard error. INTERLOCK_AS_OF is then the
version of the namespace that they were read at, for "interlock state commit --as-of".

Inside "interlock run" or the work at a task, the session around this command counts as
waiting while it stands in line.

Exit codes: 0 granted, 73 victim of a deadlock, 75 not acquired in time, 69 no server
answered, 77 not allowed, 2 wrong flags or keys.`,
		Example: `  eval "$(interlock lock account:12345 --wait 30s)" || exit
  ./charge --fence "$INTERLOCK_FENCE"
  interlock unlock --outcome done`,
		ValidArgsFunction: view.CompleteKeys(a, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.Check(cmd); err != nil {
				return err
			}
			return lock(cmd.Context(), a, args, &q, documents)
		},
	}
	q.Define(cmd, acquire.LockTTL)
	cmd.Flags().BoolVar(
		&documents, "documents", false, "also print the documents at the keys, with their versions, writers and notes",
	)
	return cmd
}

// lock stands in line for a lease.
func lock(ctx context.Context, a *cli.App, keys []string, q *acquire.Flags, documents bool) error {
	list, err := q.Wanted(keys)
	if err != nil {
		return err
	}
	body := q.Request(list)
	body.Documents = documents
	s := &longPollRequest{
		a: a, api: a.API(), wait: q.Wait, parties: q.Parties, undo: acquire.Undo, late: lateFor,
		ask: cli.Request{Method: http.MethodPost, Path: "/v1/leases", Body: body, ID: cli.FreshID()},
	}
	if q.Wait != 0 {
		s.around, s.own = acquire.Around(a), &link.Presence{API: s.api, Agent: body.Agent, TTL: q.TTL}
	}
	return s.stand(ctx, "granted")
}

func newRenew(a *cli.App) *cobra.Command {
	var progress string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "renew [LEASE]",
		Short: "Renew a lease taken by lock",
		Long: `Renew a lease of "interlock lock"; without LEASE the one in $INTERLOCK_LEASE. Exit code 79
means that the lease is lost: write nothing more.

With --progress it also reports the progress of the work, for others to read. A lease with
--stall ends when no new progress is reported for so long, whether it was taken by lock or
by run: the command of a run reports it with this command too.

With --ttl the lease lives for this long after each renewal from now on, such as before a
build in which no renewal is sent. A key pattern may bound it, and in a session the ttl of
the session does.`,
		Example: `  interlock lease renew --progress 3/5
  interlock lease renew --ttl 30m`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("ttl") {
				if err := cli.CheckDurations(cli.Duration("--ttl", ttl, interlock.MinTTL, interlock.MaxTTL)); err != nil {
					return err
				}
			}
			body := api.RenewRequest{TTL: ttl.Milliseconds()}
			if progress != "" {
				if body.Progress, err = json.Marshal(progress); err != nil {
					return err
				}
			}
			var got view.LeaseAnswer
			r := cli.Request{
				Method: http.MethodPost, Path: view.LeasePath(id, "renew"), Body: &body, ID: cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &got, func() error {
				a.Say("renewed: fence %s ends in %s\n", got.Lease.Fence, cli.ShortMillis(got.Lease.ExpiresIn))
				if next := cli.Next(got.Advice); next != "" {
					a.Complain("%s", next)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&progress, "progress", "", "how far the work has come, for others to read, such as 3/5")
	cli.DurationVar(cmd.Flags(), &ttl, "ttl", 0, "how long the lease outlives each renewal from now on (default: as before)")
	return cmd
}

// NewUnlock returns the command unlock.
func NewUnlock(a *cli.App) *cobra.Command {
	var outcome, note string
	cmd := &cobra.Command{
		Use:   "unlock [LEASE]",
		Short: "Release a lease, with a note for the next holder",
		Long: `Release a lease; without LEASE the one in $INTERLOCK_LEASE. Exit code 79 means that it was
lost before, so that another holder may have worked on the keys.`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			r := cli.Request{
				Method: http.MethodPost, Path: view.LeasePath(id, "release"),
				Body: &api.ReleaseRequest{Outcome: outcome, Note: note},
				ID:   cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("released\n")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "done", "the outcome, in a word")
	cmd.Flags().StringVar(&note, "note", "", "a `text` for the next holder")
	return cmd
}
