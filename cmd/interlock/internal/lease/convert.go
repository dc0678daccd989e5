package lease

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newConvert(a *cli.App) *cobra.Command {
	var q acquire.ClaimFlags
	var held string
	cmd := &cobra.Command{
		Use:   "convert KEY...",
		Short: "Change the claims of a lease: upgrade, downgrade, add or drop keys",
		Long: `Change the claims of the lease in $INTERLOCK_LEASE to exactly these keys. A conversion that
only drops claims is granted at once. One that asks for more waits in line while the lease
stays as it is: an upgrade is ahead of all new requests, additional keys are waited for like
any others. When two readers upgrade, the second is refused at once because it would wait
for ever.

The lease keeps its id and gets a new fence, so the variables are printed again, as by
"interlock lock". When the wait ends without a grant, the lease stays as it was.

Exit codes: 0 converted, 73 victim of a deadlock, 75 not in time, 79 the lease is
lost, 69 no server answered, 77 not allowed, 2 wrong flags or keys.`,
		Example: `  eval "$(interlock lock --shared ledger:2026)"
  eval "$(interlock lease convert ledger:2026 --wait 30s)"            # upgrade to write
  eval "$(interlock lease convert --shared ledger:2026)"              # downgrade again
  eval "$(interlock lease convert ledger:2026 --claim org:acme/runs=2)"`,
		ValidArgsFunction: view.CompleteKeys(a, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseFlag(held)
			if err != nil {
				return err
			}
			if err := q.Check(); err != nil {
				return err
			}
			list, err := q.Wanted(args)
			if err != nil {
				return err
			}
			body := &api.ConvertRequest{Claims: view.ClaimsOf(list)}
			body.OnConflict, body.Wait, body.MaxWait = q.Conflict()
			s := &longPollRequest{
				a: a, api: a.API(), wait: q.Wait, undo: acquire.LeaveLine, late: lateFor,
				ask: cli.Request{Method: http.MethodPost, Path: view.LeasePath(id, "convert"), Body: body, ID: cli.FreshID()},
			}
			return s.stand(cmd.Context(), "converted")
		},
	}
	q.Define(cmd)
	cmd.Flags().StringVar(&held, "lease", "", "the `lease` (default: $INTERLOCK_LEASE)")
	return cmd
}

// NewBarrier returns the command barrier.
func NewBarrier(a *cli.App) *cobra.Command {
	return cli.Group(
		"barrier", "Wait at a barrier until all parties have arrived",
		`A barrier is a key that a number of parties acquire together, by "interlock run --parties N"
or "interlock lock --parties N": each is granted when all have come.`,
		newArrive(a),
	)
}

func newArrive(a *cli.App) *cobra.Command {
	var q cli.WaitFlags
	cmd := &cobra.Command{
		Use:   "arrive [LEASE]",
		Short: "Arrive at a barrier again, and wait for the other parties",
		Long: `Arrive at the barrier again, and wait until all other parties have; without LEASE it is the
one in $INTERLOCK_LEASE, set by "interlock run --parties" or "interlock lock --parties".
Then the barrier opens for the next generation, and the lease has a new fence: the variables
are printed again.

When a party dies, leaves or stops waiting, the barrier is broken and can never open again.
All waiting parties are refused at once: release the lease, and begin anew together.

Exit codes: 0 open, 75 broken or not in time, 79 the lease is lost, 69 no server
answered.`,
		Example: `  interlock run --parties 3 build:42 -- ./phases
  # in ./phases, between one phase and the next
  eval "$(interlock barrier arrive --wait 10m)" || exit`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			if err := q.Check(); err != nil {
				return err
			}
			if q.Wait == 0 {
				return cli.Usagef("--wait 0: a party at a barrier waits for the others")
			}
			body := &api.ArriveRequest{MaxWait: q.MaxWait.Milliseconds()}
			s := &longPollRequest{
				a: a, api: a.API(), wait: q.Wait, undo: acquire.LeaveLine,
				late: func(got *view.LeaseAnswer) string { return "not all parties came to " + cli.Clean(string(got.Key)) },
				ask:  cli.Request{Method: http.MethodPost, Path: view.LeasePath(id, "arrive"), Body: body, ID: cli.FreshID()},
			}
			return s.stand(cmd.Context(), "arrived")
		},
	}
	q.Define(cmd)
	return cmd
}
