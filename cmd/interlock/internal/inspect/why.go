package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// NewWhy returns the command why.
func NewWhy(a *cli.App) *cobra.Command {
	var key, agent string
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain why a key or an agent is stuck, and what to do",
		Long: `Explain why the key NAME is not free; if it is, the wait of the agent NAME. The answer has
the chain of blockers, down to the last one, and the next step. --key and --agent restrict
the search to a key or to an agent.`,
		Example: `  interlock why account:12345
  interlock why billing-7
  interlock why --agent billing-7 -o json | jq .chain`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			named := args
			for _, name := range []string{key, agent} {
				if name != "" {
					named = append(named, name)
				}
			}
			if len(named) != 1 {
				return cli.Usagef("name one key, or one agent: %s", cli.UseLine(cmd))
			}
			if len(args) == 1 {
				return whyName(cmd.Context(), a, args[0])
			}
			query := url.Values{"key": {key}}
			if agent != "" {
				query = url.Values{"agent": {agent}}
			}
			var why api.Why
			return a.Get(cmd.Context(), "/v1/why", query, &why, func() error { return showWhy(a, &why) })
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the `key`")
	cmd.Flags().StringVar(&agent, "agent", "", "the `agent`")
	return cmd
}

// whyName explains a key, or the agent of that name when the key is free.
func whyName(ctx context.Context, a *cli.App, name string) error {
	ask := func(what string) (answer []byte, err error) {
		_, answer, err = a.API().Do(ctx, cli.Request{
			Method: http.MethodGet, Path: "/v1/why", Query: url.Values{what: {name}},
		})
		return answer, err
	}
	answer, err := ask("key")
	if err == nil && isIdle(answer) || cli.IsRefused(err, interlock.CodeInvalidKey) {
		if other, failed := ask("agent"); failed == nil && !isIdle(other) {
			answer, err = other, nil
		}
	}
	if shown, err := a.RawAnswer(answer, err); shown || err != nil {
		return err
	}
	var why api.Why
	if err := cli.Decode(answer, &why); err != nil {
		return err
	}
	return showWhy(a, &why)
}

// isIdle reports whether an answer is about a key that is free, or about an agent that does nothing.
func isIdle(answer []byte) bool {
	var why api.Why
	return json.Unmarshal(answer, &why) == nil && why.Advice.Action == interlock.ActRetry
}

func showWhy(a *cli.App, why *api.Why) error {
	a.Say("%s\n", cli.AsFlags(cli.Clean(why.Text)))
	if len(why.Waits) == 0 {
		showChain(a, why.Chain)
	}
	for _, wait := range why.Waits {
		showChain(a, wait.Chain)
	}
	if next := cli.Next(&why.Advice); next != "" {
		a.Say("\n%s %s\n", a.Tint(cli.Bold, "Next:"), next)
	}
	return nil
}

func showChain(a *cli.App, chain []api.WaitLink) {
	if len(chain) < 2 {
		return
	}
	a.Say("\n")
	depth := 0
	for i, link := range chain {
		last := i == len(chain)-1
		state := ""
		if link.Since > 0 {
			state = " for " + cli.ShortMillis(link.Since)
		}
		what := "waits for " + cli.Clean(link.Key) + " (" + cli.Clean(link.Mode) + ")"
		switch {
		case link.End != "":
			what = "waits for the end of task " + cli.Clean(link.End)
		case link.Key == "" && link.Task != "":
			continue // the link before has named it
		case link.Does == "awaited" && !last:
			continue // likewise
		case link.Does == "awaited":
			what = "is awaited"
		case link.Does == "holds":
			// The mode of such a link is the one that its waiter asked for.
			what = "holds " + cli.Clean(link.Key)
		case link.Key == "" && !last:
			what = "waits for " + linkName(&chain[i+1]) + ", as it declared,"
		case link.Key == "":
			what = "waits for another agent, as it declared,"
		}
		if liveness := cli.Clean(link.Liveness); liveness != "" {
			state += ", " + a.Tint(cli.LivenessColour(link.Liveness), liveness)
		}
		depth++
		a.Say("%*s%s %s%s\n", 2*depth, "", a.Tint(cli.Bold, linkName(&link)), what, state)
	}
}

// linkName returns the name of a link's party: the task in line, or the agent.
func linkName(l *api.WaitLink) string {
	if l.Task != "" {
		return "task " + cli.Clean(l.Task)
	}
	return cli.AgentName(l.Name)
}
