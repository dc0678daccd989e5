package lease

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
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

// leaseRow is a lease or a request in line.
type leaseRow struct {
	cli.Party
	Claims    []view.Claim `json:"claims"`
	Purpose   string       `json:"purpose"`
	Fence     string       `json:"fence"`
	Liveness  string       `json:"liveness"`
	Held      int64        `json:"held_ms"`
	ExpiresIn int64        `json:"expires_in_ms"`
	Position  int          `json:"position"`
	Length    int          `json:"length"`
	Waited    int64        `json:"waited_ms"`
	ETA       int64        `json:"eta_ms"`
	Offered   bool         `json:"offered"`
}

// rows adds a line for each claim, with the rest on the first of them.
func (l *leaseRow) rows(t *cli.Table, rest ...any) {
	if len(l.Claims) == 0 {
		t.Row(append([]any{"-", "-"}, rest...)...)
	}
	for i := range l.Claims {
		c := &l.Claims[i]
		t.Row(append([]any{cli.Clean(string(c.Key)), c.What()}, rest...)...)
		rest = nil
	}
}

func listLeases(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("KEY", "MODE", "HOLDER", "LIVENESS", "HELD", "EXPIRES", "FENCE", "PURPOSE")
	return listPages(ctx, a, t, "leases", query, limit, func(l *leaseRow) {
		l.rows(
			t, l.Name(), cli.Coloured(cli.Clean(l.Liveness), cli.LivenessColour(l.Liveness)),
			cli.Short(cli.Millis(l.Held)), cli.Short(cli.Millis(l.ExpiresIn)), cli.Clean(l.Fence), cli.Clean(l.Purpose),
		)
	})
}

func listTickets(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("KEY", "MODE", "WAITER", "POSITION", "LENGTH", "WAITED", "EXPECTED", "PURPOSE")
	return listPages(ctx, a, t, "tickets", query, limit, func(l *leaseRow) {
		position := any(l.Position)
		if l.Offered {
			position = "offered"
		}
		l.rows(
			t, l.Name(), position, l.Length, cli.Short(cli.Millis(l.Waited)), cli.Short(cli.Millis(l.ETA)),
			cli.Clean(l.Purpose),
		)
	})
}

// listPages writes a table of the rows of GET /v1/KIND.
func listPages(
	ctx context.Context, a *cli.App, t *cli.Table, kind string, query url.Values, limit int, row func(*leaseRow),
) error {
	shown := 0
	more, err := a.Pages(ctx, "/v1/"+kind, query, limit, func(answer []byte) (int, string, error) {
		var page struct {
			Leases, Tickets []leaseRow
			Cursor          string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		all := append(page.Leases, page.Tickets...)
		for i := range all {
			row(&all[i])
		}
		shown += len(all)
		return len(all), page.Cursor, nil
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
