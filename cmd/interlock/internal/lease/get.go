package lease

import (
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "get [LEASE]",
		Short: "Show one of your leases",
		Long: `Show a lease as its holder sees it; without LEASE the one in $INTERLOCK_LEASE: the rest of
its time, what would end it or has ended it, the agents that ask for it, whether it is
parked, and its parts of a partitioned key. It is not renewed. Exit code 79 means that the
lease is lost.`,
		Example: `  interlock lease get
  interlock lease get -o json | jq .lease.yield`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := view.LeaseArg(args)
			if err != nil {
				return err
			}
			var got view.LeaseAnswer
			r := cli.Request{Method: http.MethodGet, Path: view.LeasePath(id, "")}
			return a.Call(cmd.Context(), r, &got, func() error { return showLease(a, &got.Lease) })
		},
	}
}

func showLease(a *cli.App, l *api.Lease) error {
	what := cli.Clean(view.JoinKeys(view.ClaimedKeys(l.Claims), ", "))
	a.Say("%s  %s, fence %s\n", a.Tint(cli.Bold, what), cli.Clean(l.State), l.Fence)
	fact := func(name, value string) {
		if value != "" {
			a.Say("  %-11s %s\n", name, value)
		}
	}
	after := func(name string, n int64) {
		if n > 0 {
			fact(name, cli.ShortMillis(n))
		}
	}
	for i := range l.Claims {
		fact("claims", cli.Clean(string(l.Claims[i].Key))+" ("+view.ClaimText(&l.Claims[i])+")")
	}
	fact("holder", cli.FullName(l.Holder))
	fact("purpose", cli.Clean(l.Purpose))
	fact("group", cli.Clean(l.Group))
	after("ends in", l.ExpiresIn)
	after("max hold", l.MaxHoldIn)
	after("stall in", l.StallIn)
	after("lock delay", l.LockDelay)
	fact("ended by", cli.Clean(l.EndedBy))
	if l.Generation > 0 {
		fact("generation", strconv.FormatUint(l.Generation, 10))
	}
	if l.Parking != nil {
		fact("parked", parkingText(l.Parking))
		fact("answer", view.DecisionText(l.Decision))
	}
	if l.Yield != nil {
		fact("asked", cli.YieldText(l.Yield, what)+", "+cli.ShortMillis(l.Yield.Since)+" ago")
	}
	if len(l.Parts) == 0 {
		return nil
	}
	a.Say("\n")
	t := a.Table("PART", "FENCE", "STATE")
	for i := range l.Parts {
		p := &l.Parts[i]
		state := "held"
		if p.Stop {
			state = "to be given up"
			if p.Left > 0 {
				state += " within " + cli.ShortMillis(p.Left)
			}
		}
		t.Row(cli.Clean(string(p.Key)), p.Fence, state)
	}
	return t.Write(a.Out)
}
