package main

import (
	"net/url"

	"github.com/spf13/cobra"
)

func newWhy(a *app) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "why KEY | --agent AGENT",
		Short: "Explain why a key or an agent is stuck, and what to do",
		Example: `  interlock why account:12345
  interlock why --agent billing-7`,
		Args:              atMostOneArg,
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == cmd.Flags().Changed("agent") {
				return usage("name one key, or one agent: %s", useLine(cmd))
			}
			query := url.Values{}
			if len(args) == 1 {
				query.Set("key", args[0])
			} else {
				query.Set("agent", agent)
			}
			var why whyAnswer
			return a.get(cmd.Context(), "/v1/why", query, &why, func() error { return a.showWhy(&why) })
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the waiting `agent`")
	return cmd
}

func (a *app) showWhy(why *whyAnswer) error {
	a.say("%s\n", clean(why.Text))
	if len(why.Waits) == 0 {
		a.showChain(why.Chain)
	}
	for _, wait := range why.Waits {
		a.showChain(wait.Chain)
	}
	if next := asFlags(clean(why.Advice.Message)); next != "" {
		a.say("\n%s %s\n", a.tint(bold, "Next:"), next)
	}
	return nil
}

func (a *app) showChain(chain []waitLink) {
	if len(chain) < 2 {
		return
	}
	a.say("\n")
	depth := 0
	for _, link := range chain {
		state := ""
		if link.Since > 0 {
			state = " for " + short(ms(link.Since))
		}
		what := "waits for " + clean(string(link.Key)) + " (" + clean(link.Mode) + ")"
		switch {
		case link.Awaits != "":
			what = "waits for the end of task " + clean(link.Awaits)
		case link.Key == "" && link.Task != "":
			continue // the link before has named it
		case link.Does == "holds" && link.Key == "":
			what = "is waited for, as that one declared"
		case link.Does == "holds":
			// The mode of such a link is the one that its waiter asked for.
			what = "holds " + clean(string(link.Key))
		case link.Key == "":
			what = "waits for another agent, as declared"
		}
		if liveness := clean(link.Liveness); liveness != "" {
			state += ", " + a.tint(livenessColour(link.Liveness), liveness)
		}
		depth++
		a.say("%*s%s %s%s\n", 2*depth, "", a.tint(bold, link.short()), what, state)
	}
}
