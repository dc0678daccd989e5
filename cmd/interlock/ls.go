package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

const pageSize = 1000 // as many as the server returns at once

func newLs(a *app) *cobra.Command {
	var held, waiting, parked bool
	var limit int
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the keys that are held or waited for",
		Long: `List the keys that are held or waited for, with their holders: all of them, or
those that begin with PREFIX.

LIVENESS comes from heartbeats, never from the age of a lease: live, suspect (heartbeats are
missing), soft (max_hold comes near), grace (over, about to pass on), offered (to a waiter
that has not answered yet), parked (kept while a person decides), closed (its holder died,
and the key opens when the lock_delay is over).

With --parked it lists parked leases instead, the longest parked first: those that freed
their keys are at no key, and their holder may come back for them.`,
		Example: `  interlock ls
  interlock ls --parked
  interlock ls account: --waiting
  interlock ls -o json | jq -r '.keys[].key'`,
		Args:              atMostOneArg,
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case held && waiting:
				return usage("--held and --waiting: use one of them")
			case parked && (held || waiting || len(args) > 0):
				return usage("--parked lists leases: leave out --held, --waiting and the prefix")
			}
			if limit < 1 {
				return usage("--limit %d: want at least 1", limit)
			}
			if parked {
				return a.lsParked(cmd.Context(), limit)
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
			return a.ls(cmd.Context(), query, limit)
		},
	}
	cmd.Flags().BoolVar(&held, "held", false, "only keys with holders")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only keys with waiters")
	cmd.Flags().BoolVar(&parked, "parked", false, "parked leases, with those that freed their keys")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many to list at most")
	return cmd
}

// lsParked lists parked leases.
func (a *app) lsParked(ctx context.Context, limit int) error {
	t := a.table("KEY", "MODE", "HOLDER", "KEYS", "PARKED", "ENDS", "FENCE", "REASON")
	shown := 0
	more, err := a.pages(ctx, "/v1/parked", url.Values{}, limit, func(answer []byte) (int, string, error) {
		var page struct {
			Leases []parkedLease
			Cursor string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		for i := range page.Leases {
			t.parked(&page.Leases[i])
		}
		shown += len(page.Leases)
		return len(page.Leases), page.Cursor, nil
	})
	if err != nil || a.json() {
		return err
	}
	if shown == 0 {
		a.complain("no lease is parked")
		return nil
	}
	if err := t.write(a.out); err != nil {
		return err
	}
	if more {
		a.complain("there are more than %d parked leases: raise --limit", shown)
	}
	return nil
}

// parked adds a lease: a line for each of its keys, and the rest on the first of them.
func (t *table) parked(l *parkedLease) {
	rest := []any{
		l.name(), l.Parking.Keys, short(ms(l.Parking.Since)), short(ms(l.Parking.Left)), l.Fence.String(),
		clean(l.Parking.Reason),
	}
	for i := range l.Claims {
		c := &l.Claims[i]
		t.row(append([]any{clean(string(c.Key)), c.what()}, rest...)...)
		rest = nil
	}
}

// ls lists keys.
func (a *app) ls(ctx context.Context, query url.Values, limit int) error {
	t := a.table("KEY", "MODE", "HOLDER", "LIVENESS", "HELD", "EXPIRES", "WAITING")
	shown := 0
	more, err := a.pages(ctx, "/v1/keys", query, limit, func(answer []byte) (int, string, error) {
		var page keysAnswer
		if err := json.Unmarshal(answer, &page); err != nil {
			return 0, "", err
		}
		t.keys(&page)
		shown += len(page.Keys)
		return len(page.Keys), page.Cursor, nil
	})
	if err != nil || a.json() {
		return err
	}
	if shown == 0 {
		a.complain("nothing is held or waited for%s", beginning(query.Get("prefix")))
		return nil
	}
	if err := t.write(a.out); err != nil {
		return err
	}
	if more {
		a.complain("there are more than %d keys: narrow the prefix, or raise --limit", shown)
	}
	return nil
}

// pages reads a listing page after page, up to limit rows, and reports whether there are
// more. With -o json each page is printed as it came.
func (a *app) pages(
	ctx context.Context, path string, query url.Values, limit int,
	read func(answer []byte) (shown int, cursor string, err error),
) (more bool, err error) {
	client := a.api()
	for left := limit; left > 0; {
		query.Set("limit", strconv.Itoa(min(pageSize, left)))
		_, answer, err := client.do(ctx, request{Method: http.MethodGet, Path: path, Query: query})
		if a.json() && answer != nil {
			if printed := a.raw(answer); printed != nil && err == nil {
				err = printed
			}
		}
		if err != nil {
			return false, err
		}
		shown, cursor, err := read(answer)
		if err != nil {
			return false, fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", err)
		}
		left -= shown
		if cursor == "" {
			return false, nil
		}
		query.Set("cursor", cursor)
	}
	return true, nil
}

func beginning(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " that begins with " + quote(clean(prefix))
}

// keys adds a page: a line for each holder, and the key on the first of them.
func (t *table) keys(page *keysAnswer) {
	for i := range page.Keys {
		k := &page.Keys[i]
		key, waiting := clean(string(k.Key)), "-"
		if k.Length > 0 {
			waiting = strconv.Itoa(k.Length)
		}
		if len(k.Holders) == 0 {
			t.row(key, "-", "-", "-", "-", "-", waiting)
		}
		for j := range k.Holders {
			h := &k.Holders[j]
			t.row(
				key, h.what(h.Mode), h.name(), cell{clean(h.Liveness), livenessColour(h.Liveness)}, short(ms(h.Held)),
				short(ms(h.ExpiresIn)), waiting,
			)
			key, waiting = "", ""
		}
		if k.More > 0 {
			t.row("", "", fmt.Sprintf("and %d more", k.More))
		}
	}
}
