package lease

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newList(a *cli.App) *cobra.Command {
	var agent, session, principal, liveness string
	var waiting bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List leases, or the requests that wait for one",
		Long: `List the leases with a key that begins with PREFIX, or all of them, in the order in which
they were requested: the holder, its keys, and how long it has held them. With --waiting it
lists the requests in line instead. The flags choose among them. No id is shown: an id is
the right to act on a lease.`,
		Example: `  interlock lease list
  interlock lease list account: --agent billing-7
  interlock lease list --waiting`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			if waiting && liveness != "" {
				return cli.Usagef("--waiting and --liveness: use one of them")
			}
			query := url.Values{}
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			for name, value := range map[string]string{
				"agent": agent, "session": session, "principal": principal, "liveness": liveness,
			} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if waiting {
				return listTickets(cmd.Context(), a, query, limit)
			}
			return listLeases(cmd.Context(), a, query, limit)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only those of this `agent`")
	cmd.Flags().StringVar(&session, "session", "", "only those of the session with this public `name`")
	cmd.Flags().StringVar(&principal, "principal", "", "only those of this credential's `name`")
	cmd.Flags().StringVar(
		&liveness, "liveness", "", "only leases that are live, suspect, soft, grace, offered, parked or closed",
	)
	cmd.Flags().BoolVar(&waiting, "waiting", false, "requests in line instead of leases")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many to list at most")
	return cmd
}

// claimRows adds a row for each claim, with the rest on the first of them.
func claimRows(t *cli.Table, claims []api.Claim, rest ...any) {
	if len(claims) == 0 {
		t.Row(append([]any{"-", "-"}, rest...)...)
	}
	for i := range claims {
		c := &claims[i]
		t.Row(append([]any{cli.Clean(string(c.Key)), view.ClaimText(c)}, rest...)...)
		rest = nil
	}
}

func listLeases(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("KEY", "MODE", "HOLDER", "LIVENESS", "HELD", "EXPIRES", "FENCE", "PURPOSE")
	return listPages(ctx, a, t, "leases", query, limit, func(answer []byte) (int, string, error) {
		var page api.LeaseList
		err := json.Unmarshal(answer, &page)
		for i := range page.Leases {
			l := &page.Leases[i]
			claimRows(
				t, l.Claims, cli.AgentName(l.Name), cli.LivenessCell(l.Liveness),
				cli.ShortMillis(l.Held), cli.ShortMillis(l.ExpiresIn), l.Fence, cli.Clean(l.Purpose),
			)
		}
		return len(page.Leases), page.Cursor, err
	})
}

func listTickets(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("KEY", "MODE", "WAITER", "POSITION", "LENGTH", "WAITED", "EXPECTED", "PURPOSE")
	return listPages(ctx, a, t, "tickets", query, limit, func(answer []byte) (int, string, error) {
		var page api.TicketList
		err := json.Unmarshal(answer, &page)
		for i := range page.Tickets {
			w := &page.Tickets[i]
			position := any(w.Position)
			if w.Offered {
				position = "offered"
			}
			claimRows(
				t, w.Claims, cli.AgentName(w.Name), position, w.Length, cli.ShortMillis(w.Waited),
				cli.ShortMillis(w.ETA), cli.Clean(w.Purpose),
			)
		}
		return len(page.Tickets), page.Cursor, err
	})
}

// listPages writes a table of GET /v1/KIND; rows adds those of a page.
func listPages(
	ctx context.Context, a *cli.App, t *cli.Table, kind string, query url.Values, limit int,
	rows func(answer []byte) (shown int, cursor string, err error),
) error {
	shown := 0
	more, err := a.Pages(ctx, "/v1/"+kind, query, limit, func(answer []byte) (int, string, error) {
		n, cursor, err := rows(answer)
		shown += n
		return n, cursor, err
	})
	if err != nil || a.JSON() {
		return err
	}
	if shown == 0 {
		a.Complain("no %s", kind)
		return nil
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if more {
		a.Complain("there are more than %d %s: narrow the list, or raise --limit", shown, kind)
	}
	return nil
}
