package lease

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newRequestYield(a *cli.App) *cobra.Command {
	var fence uint64
	var reason string
	cmd := &cobra.Command{
		Use:   "request-yield KEY",
		Short: "Ask a holder to yield to the first waiter",
		Long: `Ask the holder of a key to yield to the first request that waits for it, as an agent does with
--preempt. The holder learns of it at once, and keeps the lease until it releases it: nothing is
taken from it. The fence identifies the lease; without --fence it is the present holder's, if
there is only one. A repetition counts once.

The journal has the caller and the reason.`,
		Example:           `  interlock lease request-yield account:12345 --reason "support waits for a customer"`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			meant, err := meant(cmd.Context(), a, args[0], interlock.Fence(fence))
			if err != nil {
				return err
			}
			body := &api.YieldRequest{Key: meant.Key, Fence: meant.Fence, Reason: reason}
			return a.Call(
				cmd.Context(),
				cli.Request{Method: http.MethodPost, Path: "/v1/yield-requests", Body: body, ID: cli.FreshID(), Again: true},
				&struct{}{}, func() error {
					a.Say(
						"asked: %s was asked to yield %s (fence %s)\n", cli.AgentName(meant.Name), cli.Clean(string(meant.Key)),
						meant.Fence,
					)
					return nil
				},
			)
		},
	}
	cmd.Flags().Uint64Var(&fence, "fence", 0, "the `fence` of the lease that is meant")
	cli.ReasonVar(cmd.Flags(), &reason)
	return cmd
}
