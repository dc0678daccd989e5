package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// NewAgents returns the short form of "agent list".
func NewAgents(a *cli.App) *cobra.Command {
	cmd := newAgentList(a)
	cmd.Use, cmd.Hidden = "agents", true
	return cmd
}

func newAgentList(a *cli.App) *cobra.Command {
	var principal string
	var holding, waiting bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list [AGENT]",
		Short: "List the sessions of agents",
		Long: `List the sessions of AGENT, or of all agents, in the order in which they were opened: the age
of each, its last heartbeat, and the keys that it holds and waits for. Only "interlock lease
list" shows leases without a session.`,
		Example: `  interlock agent list
  interlock agent list --waiting
  interlock agents -o json | jq -r '.sessions[].agent'`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			switch {
			case limit < 1:
				return cli.Usagef("--limit %d: want at least 1", limit)
			case holding && waiting:
				return cli.Usagef("--holding and --waiting: use one of them")
			case holding:
				query.Set("state", "holding")
			case waiting:
				query.Set("state", "waiting")
			}
			if len(args) == 1 {
				query.Set("agent", args[0])
			}
			if principal != "" {
				query.Set("principal", principal)
			}
			return listAgents(cmd.Context(), a, query, limit)
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", "only those that this credential's `name` opened")
	cmd.Flags().BoolVar(&holding, "holding", false, "only those with a lease")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only those with a wait")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many to list at most")
	return cmd
}

func listAgents(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("AGENT", "SESSION", "OPEN", "HEARD", "HOLDS", "WAITS FOR", "PROGRESS")
	shown := 0
	more, err := a.Pages(ctx, "/v1/sessions", query, limit, func(answer []byte) (int, string, error) {
		var page api.SessionList
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		for i := range page.Sessions {
			s := &page.Sessions[i]
			t.Row(
				cli.Clean(s.Agent), cli.Clean(s.Name), cli.ShortMillis(s.Open), cli.ShortMillis(s.HeartbeatAge),
				claimsText(s.Holds, s.Leases), claimsText(s.WaitsFor, s.Waits), cli.Clean(s.Progress),
			)
		}
		shown += len(page.Sessions)
		return len(page.Sessions), page.Cursor, nil
	})
	if err != nil || a.JSON() {
		return err
	}
	if shown == 0 {
		a.Complain("no sessions")
		return nil
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if more {
		a.Complain("there are more than %d sessions: narrow the list, or raise --limit", shown)
	}
	return nil
}

// claimsText names the first keys of some leases or waits.
func claimsText(claims []api.Claim, count int) string {
	const most = 2
	if count == 0 {
		return "-"
	}
	if len(claims) == 0 {
		return "another agent" // as it declared
	}
	var keys []string
	for _, c := range claims[:min(most, len(claims))] {
		keys = append(keys, cli.Clean(string(c.Key)))
	}
	text := strings.Join(keys, ", ")
	if more := max(count, len(claims)) - len(keys); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
