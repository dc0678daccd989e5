package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

func newList(a *cli.App) *cobra.Command {
	var held, waiting, parked bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the keys that are held or waited for",
		Long: `List the keys that are held or waited for, with their holders: all of them, or
those that begin with PREFIX.

LIVENESS comes from heartbeats, never from the age of a lease: live, suspect (heartbeats are
missing), soft (nearly --max-hold is over), grace (ended, about to pass on), offered (to a
waiter that has not answered yet), parked (kept while a person decides), closed (its holder
died, and the key opens when its lock delay is over).

With --parked it lists parked leases instead, the longest parked first: those that freed
their keys are at no key, and their holder may come back for them.`,
		Example: `  interlock key list
  interlock key list --parked
  interlock key list account: --waiting
  interlock key list -o json | jq -r '.keys[].key'`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case held && waiting:
				return cli.Usagef("--held and --waiting: use one of them")
			case parked && (held || waiting || len(args) > 0):
				return cli.Usagef("--parked lists leases: leave out --held, --waiting and the prefix")
			}
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			if parked {
				return listParked(cmd.Context(), a, limit)
			}
			query := url.Values{}
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			switch {
			case held:
				query.Set("state", "held")
			case waiting:
				query.Set("state", "waiting")
			}
			return list(cmd.Context(), a, query, limit)
		},
	}
	cmd.Flags().BoolVar(&held, "held", false, "only keys with holders")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only keys with waiters")
	cmd.Flags().BoolVar(&parked, "parked", false, "parked leases, with those that freed their keys")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many to list at most")
	return cmd
}

// listParked lists parked leases.
func listParked(ctx context.Context, a *cli.App, limit int) error {
	t := a.Table("KEY", "MODE", "HOLDER", "KEYS", "PARKED", "ENDS", "FENCE", "REASON")
	shown := 0
	more, err := a.Pages(ctx, "/v1/parked", url.Values{}, limit, func(answer []byte) (int, string, error) {
		var page api.ParkedList
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		for i := range page.Leases {
			parkedRow(t, &page.Leases[i])
		}
		shown += len(page.Leases)
		return len(page.Leases), page.Cursor, nil
	})
	if err != nil || a.JSON() {
		return err
	}
	if shown == 0 {
		a.Complain("no lease is parked")
		return nil
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if more {
		a.Complain("there are more than %d parked leases: raise --limit", shown)
	}
	return nil
}

// parkedRow adds a lease: a line for each of its keys, and the rest on the first of them.
func parkedRow(t *cli.Table, l *api.ParkedLease) {
	rest := []any{
		cli.AgentName(api.Name{Agent: l.Agent}), l.Parking.Keys, cli.ShortMillis(l.Parking.Since),
		cli.ShortMillis(l.Parking.Left), l.Fence.String(), cli.Clean(l.Parking.Reason),
	}
	for i := range l.Claims {
		c := &l.Claims[i]
		t.Row(append([]any{cli.Clean(string(c.Key)), view.ClaimText(c)}, rest...)...)
		rest = nil
	}
}

// list lists keys.
func list(ctx context.Context, a *cli.App, query url.Values, limit int) error {
	t := a.Table("KEY", "MODE", "HOLDER", "LIVENESS", "HELD", "EXPIRES", "WAITING")
	shown := 0
	more, err := a.Pages(ctx, "/v1/keys", query, limit, func(answer []byte) (int, string, error) {
		var page api.KeyList
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		keyRows(t, &page)
		shown += len(page.Keys)
		return len(page.Keys), page.Cursor, nil
	})
	if err != nil || a.JSON() {
		return err
	}
	if shown == 0 {
		a.Complain("nothing is held or waited for%s", beginning(query.Get("prefix")))
		return nil
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	if more {
		a.Complain("there are more than %d keys: narrow the prefix, or raise --limit", shown)
	}
	return nil
}

func beginning(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " that begins with " + cli.Quote(cli.Clean(prefix))
}

// keyRows adds a page: a line for each holder, and the key on the first of them.
func keyRows(t *cli.Table, page *api.KeyList) {
	for i := range page.Keys {
		k := &page.Keys[i]
		key, waiting := cli.Clean(string(k.Key)), "-"
		if k.Length > 0 {
			waiting = strconv.Itoa(k.Length)
		}
		if len(k.Holders) == 0 {
			t.Row(key, "-", "-", "-", "-", "-", waiting)
		}
		for j := range k.Holders {
			h := &k.Holders[j]
			t.Row(
				key, cli.ModeText(h.Mode, h.Count), cli.AgentName(h.Name), cli.LivenessCell(h.Liveness),
				cli.ShortMillis(h.Held),
				cli.ShortMillis(h.ExpiresIn), waiting,
			)
			key, waiting = "", ""
		}
		if k.More > 0 {
			t.Row("", "", fmt.Sprintf("and %d more", k.More))
		}
	}
}
