package lease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newRevoke(a *cli.App) *cobra.Command {
	var fence uint64
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "revoke KEY",
		Short: "Revoke a lease from its holder",
		Long: `Revoke a lease. The fence identifies it, so that no other lease is hit when the key passes
on in the meantime; without --fence it is the present holder's, if there is only one. The
holder is notified, and every guard refuses its later writes.

On a terminal the command asks first, unless -y is set.`,
		Example: `  interlock lease revoke account:12345 --reason "stuck since noon"
  interlock lease revoke account:12345 --fence 17 -y`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := args[0]
			asks := !yes && term.IsTerminal(int(a.In.Fd()))
			if !asks && !yes {
				return cli.Usagef("no terminal for the question: use -y to revoke without it")
			}
			meant, err := meant(cmd.Context(), a, key, interlock.Fence(fence))
			if err != nil {
				return err
			}
			if asks {
				if err := confirm(cmd.Context(), a, meant); err != nil {
					return err
				}
			}
			body := &api.RevokeRequest{Key: meant.Key, Fence: meant.Fence, Reason: reason}
			return a.Call(
				cmd.Context(),
				cli.Request{Method: http.MethodPost, Path: "/v1/revocations", Body: body, ID: cli.FreshID(), Again: true},
				&struct{}{}, func() error {
					a.Say(
						"revoked: %s no longer holds %s (fence %s)\n", cli.AgentName(meant.Name), cli.Clean(string(meant.Key)),
						meant.Fence,
					)
					return nil
				},
			)
		},
	}
	cmd.Flags().Uint64Var(&fence, "fence", 0, "the `fence` of the lease that is meant")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for its holder and for the history (default: your name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.PreRun = func(*cobra.Command, []string) {
		if reason == "" {
			reason = "revoked by " + whoami()
		}
	}
	return cmd
}

// meant finds the holder of the lease to be revoked.
func meant(ctx context.Context, a *cli.App, key string, fence interlock.Fence) (*api.Holder, error) {
	_, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: cli.KeyPath(key)})
	if err != nil {
		return nil, err
	}
	var k api.KeyView
	if err := cli.Decode(answer, &k); err != nil {
		return nil, err
	}
	var list []string
	for i := range k.Holders {
		h := &k.Holders[i]
		if h.Fence == fence {
			return h, nil
		}
		list = append(list, fmt.Sprintf("%s with fence %s", cli.AgentName(h.Name), h.Fence))
	}
	switch {
	case fence != 0 && k.More > 0:
		return &api.Holder{Key: interlock.Key(key), Fence: fence}, nil
	case fence != 0 && len(list) == 0:
		return nil, cli.ExitWith(
			cli.ExitConflict, fmt.Errorf("fence %s holds nothing at %s any more: the key is free", fence, cli.Clean(key)),
		)
	case fence != 0:
		return nil, cli.ExitWith(
			cli.ExitConflict,
			fmt.Errorf("fence %s holds nothing at %s: its holders are %s", fence, cli.Clean(key), strings.Join(list, ", ")),
		)
	case len(list) == 0:
		return nil, fmt.Errorf("%s has no holder", cli.Clean(key))
	case len(list) > 1 || k.More > 0:
		return nil, cli.Usagef(
			"%s has %d holders: select one with --fence: %s", cli.Clean(key), len(list)+k.More, strings.Join(list, ", "),
		)
	}
	return &k.Holders[0], nil
}

var errNotConfirmed = errors.New("nothing was revoked")

// confirm asks the person at the terminal.
func confirm(ctx context.Context, a *cli.App, h *api.Holder) error {
	yes, err := a.Confirm(ctx, fmt.Sprintf(
		"%s is held by %s\nTake it back (fence %s)? What its holder has not written yet is lost.", cli.Clean(string(h.Key)),
		cli.HolderText(h), h.Fence,
	))
	if err == nil && !yes {
		err = errNotConfirmed
	}
	return err
}

// whoami is the person at the keyboard, for the history.
func whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "an operator"
}
