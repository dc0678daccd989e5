package main

import (
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

func newShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [LEASE]",
		Short: "Show one of your leases",
		Long: `Show a lease as its holder sees it; without LEASE the one in $INTERLOCK_LEASE: the rest of
its time, what would end it or has ended it, the agents that ask for it, whether it is
parked, and its parts of a partitioned key. It is not renewed. Exit code 79 means that the
lease is lost.`,
		Example: `  interlock show
  interlock show -o json | jq .lease.yield`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			var got leaseAnswer
			r := request{Method: http.MethodGet, Path: leasePath(id, "")}
			return a.call(cmd.Context(), r, &got, func() error { return a.showLease(&got.Lease) })
		},
	}
}

func (a *app) showLease(l *lease) error {
	a.say("%s  %s, fence %s\n", a.tint(bold, l.what()), clean(l.State), l.Fence)
	fact := func(name, value string) {
		if value != "" {
			a.say("  %-11s %s\n", name, value)
		}
	}
	after := func(name string, n int64) {
		if n > 0 {
			fact(name, short(ms(n)))
		}
	}
	for i := range l.Claims {
		fact("claims", clean(string(l.Claims[i].Key))+" ("+l.Claims[i].what()+")")
	}
	fact("holder", l.Holder.full())
	fact("purpose", clean(l.Purpose))
	fact("group", clean(l.Group))
	after("ends in", l.ExpiresIn)
	after("max hold", l.MaxHoldIn)
	after("stall in", l.StallIn)
	after("lock delay", l.LockDelay)
	fact("ended by", clean(l.EndedBy))
	if l.Generation > 0 {
		fact("generation", strconv.FormatUint(l.Generation, 10))
	}
	if l.Parking != nil {
		fact("parked", parkingText(l.Parking))
		fact("answer", decisionText(l.Decision))
	}
	if l.Yield != nil {
		fact("asked", l.Yield.text(l.what())+", "+short(ms(l.Yield.Since))+" ago")
	}
	if len(l.Parts) == 0 {
		return nil
	}
	a.say("\n")
	t := a.table("PART", "FENCE", "STATE")
	for i := range l.Parts {
		p := &l.Parts[i]
		state := "held"
		if p.Stop {
			state = "to be given up"
			if p.Left > 0 {
				state += " within " + short(ms(p.Left))
			}
		}
		t.row(clean(string(p.Key)), p.Fence, state)
	}
	return t.write(a.out)
}
