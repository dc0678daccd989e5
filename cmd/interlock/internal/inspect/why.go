package inspect

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

type whyAnswer struct {
	Text  string     `json:"text"`
	Chain []waitLink `json:"chain"`
	Waits []struct { // of an agent, if it waits
		Chain []waitLink `json:"chain"`
	} `json:"waits"`
	Advice cli.Advice `json:"advice"`
}

type waitLink struct {
	cli.Party
	Does     string        `json:"does"`
	Key      interlock.Key `json:"key"`
	Mode     string        `json:"mode"`
	Since    int64         `json:"since_ms"`
	Liveness string        `json:"liveness"`
	Awaits   string        `json:"awaits"` // a task
}

// NewWhy returns the command why.
func NewWhy(a *cli.App) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "why KEY | --agent AGENT",
		Short: "Explain why a key or an agent is stuck, and what to do",
		Example: `  interlock why account:12345
  interlock why --agent billing-7`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == cmd.Flags().Changed("agent") {
				return cli.Usagef("name one key, or one agent: %s", cli.UseLine(cmd))
			}
			query := url.Values{}
			if len(args) == 1 {
				query.Set("key", args[0])
			} else {
				query.Set("agent", agent)
			}
			var why whyAnswer
			return a.Get(cmd.Context(), "/v1/why", query, &why, func() error { return showWhy(a, &why) })
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the waiting `agent`")
	return cmd
}

func showWhy(a *cli.App, why *whyAnswer) error {
	a.Say("%s\n", cli.Clean(why.Text))
	if len(why.Waits) == 0 {
		showChain(a, why.Chain)
	}
	for _, wait := range why.Waits {
		showChain(a, wait.Chain)
	}
	if next := cli.AsFlags(cli.Clean(why.Advice.Message)); next != "" {
		a.Say("\n%s %s\n", a.Tint(cli.Bold, "Next:"), next)
	}
	return nil
}

func showChain(a *cli.App, chain []waitLink) {
	if len(chain) < 2 {
		return
	}
	a.Say("\n")
	depth := 0
	for _, link := range chain {
		state := ""
		if link.Since > 0 {
			state = " for " + cli.Short(cli.Millis(link.Since))
		}
		what := "waits for " + cli.Clean(string(link.Key)) + " (" + cli.Clean(link.Mode) + ")"
		switch {
		case link.Awaits != "":
			what = "waits for the end of task " + cli.Clean(link.Awaits)
		case link.Key == "" && link.Task != "":
			continue // the link before has named it
		case link.Does == "holds" && link.Key == "":
			what = "is waited for, as that one declared"
		case link.Does == "holds":
			// The mode of such a link is the one that its waiter asked for.
			what = "holds " + cli.Clean(string(link.Key))
		case link.Key == "":
			what = "waits for another agent, as declared"
		}
		if liveness := cli.Clean(link.Liveness); liveness != "" {
			state += ", " + a.Tint(cli.LivenessColour(link.Liveness), liveness)
		}
		depth++
		a.Say("%*s%s %s%s\n", 2*depth, "", a.Tint(cli.Bold, link.Short()), what, state)
	}
}
