package lease

import (
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newPark(a *cli.App) *cobra.Command {
	var keep, free bool
	var limit time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "park [LEASE]",
		Short: "Put a lease aside while a person decides",
		Long: `Put a lease aside while a person decides; without LEASE the one in $INTERLOCK_LEASE. It
needs no renewal any more and belongs to no session: any caller with its id may resume it,
within --for. With --free others may hold the keys meanwhile; with --keep they may not.
Without either the key pattern decides, else the keys are kept.

With --reason it asks a person: "interlock approval list" shows it, and the answer resumes
it. "interlock lease resume" waits for that, resumes the lease and reports what may have
changed.`,
		Example: `  interlock lease park --free --for 8h --reason "refund of 1200.00: approve?"
  interlock approval approve FENCE     # by another person
  eval "$(interlock lease resume --wait 10m)" || exit`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			if keep && free {
				return cli.Usagef("--keep and --free: use one of them")
			}
			if err := cli.CheckDurations(cli.Duration("--for", limit, 0, interlock.MaxPark)); err != nil {
				return err
			}
			body := api.ParkRequest{Reason: reason, For: limit.Milliseconds()}
			switch {
			case keep:
				body.Keys = "keep"
			case free:
				body.Keys = "free"
			}
			var got api.Parked
			r := cli.Request{
				Method: http.MethodPost, Path: view.LeasePath(id, "park"), Body: &body, ID: cli.FreshID(), Again: true,
			}
			return a.Call(cmd.Context(), r, &got, func() error {
				a.Say("parked %s\n", parkingText(got.Lease.Parking))
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&keep, "keep", false, "others may not hold the keys meanwhile")
	f.BoolVar(&free, "free", false, "others may hold the keys meanwhile")
	cli.DurationVar(
		f, &limit, "for", 0,
		"how long it may be parked before it ends (default: the key pattern's, else "+interlock.DefaultPark.String()+")",
	)
	f.StringVar(&reason, "reason", "", "what a person is asked: the lease then waits for an answer")
	return cmd
}

// parkingText describes a parked lease in half a sentence.
func parkingText(p *api.Parking) string {
	if p == nil {
		return "" // an answer without it would be a server's mistake
	}
	text := "for at most " + cli.ShortMillis(p.Left)
	switch p.Keys {
	case "kept":
		text += ", its keys are kept"
	case "freed":
		text += ", its keys are free meanwhile"
	}
	if reason := cli.Clean(p.Reason); reason != "" {
		text += ": " + reason
	}
	return text
}

func newResume(a *cli.App) *cobra.Command {
	var q cli.WaitFlags
	var preempt, unapproved bool
	cmd := &cobra.Command{
		Use:   "resume [LEASE]",
		Short: "Resume a parked lease",
		Long: `Resume a parked lease; without LEASE the one in $INTERLOCK_LEASE. If its keys were freed it
stands in line at its old place. The variables are printed again, since the fence may be a
new one, and the keys that others may have changed meanwhile are listed: read those again
before you act on the decision.

A lease that asks a person, because it was parked with --reason, is resumed by the answer:
--wait bounds that wait, too. After a denial the lease stays parked, for you to release it.
With --unapproved it is resumed without an answer, which withdraws the question, or in spite
of a denial, to do something else under it.

When --wait is over or you are interrupted, the place in line is kept for two minutes,
during which another resume continues to wait. With --wait 0 the lease stays parked. A lease
that is held already is simply shown.

Exit codes: 0 held again, 75 not in time, 77 denied, 79 the lease is lost, 69 no server
answered.`,
		Example: `  eval "$(interlock lease resume --wait 10m)" || exit
  interlock lease resume l_0123456789abcdef0123456789abcdef -o json | jq .lease.moved`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			w := acquire.ClaimFlags{WaitFlags: q, Preempt: preempt}
			if err := w.Check(); err != nil {
				return err
			}
			body := &api.ResumeRequest{Unapproved: unapproved}
			body.OnConflict, body.Wait, body.MaxWait = w.Conflict()
			s := &longPollRequest{
				asks: true, a: a, api: a.API(), wait: q.Wait, ticket: "t_" + strings.TrimPrefix(id, "l_"),
				again: "interlock lease resume", late: lateFor,
				ask: cli.Request{Method: http.MethodPost, Path: view.LeasePath(id, "resume"), Body: body, ID: cli.FreshID()},
			}
			return s.stand(cmd.Context(), "resumed")
		},
	}
	q.Define(cmd)
	cmd.Flags().BoolVar(&preempt, "preempt", false, "ask the present holders of the keys to yield")
	cmd.Flags().BoolVar(&unapproved, "unapproved", false, "resume without an answer, or in spite of a denial")
	return cmd
}
