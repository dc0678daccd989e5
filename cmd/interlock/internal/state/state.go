package state

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command state.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"state", "Read and change the documents at keys, by version",
		`The guarded state of a key is a document, JSON or any bytes, with a version. A change names
the version that was read: if the document has changed since, nothing is written, and the
answer describes the changes and their authors, in words for a prompt.

"interlock state commit" changes several keys at once, all or none.`,
		newStateGet(a), newStateVersion(a), newStateList(a), newStateHistory(a), newStateWatch(a),
		newStateSet(a), newStateMerge(a), newStateAdd(a), newStateDelete(a), newCommit(a),
	)
}

// documents reads some keys as of one moment.
func documents(
	ctx context.Context, a *cli.App, keys []string, query url.Values, show func(*api.Documents) error,
) error {
	query["key"] = keys
	var got api.Documents
	return a.Get(ctx, "/v1/state", query, &got, func() error { return show(&got) })
}

func newStateGet(a *cli.App) *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print a document",
		Long: `Print the document at KEY, byte for byte as it is, on standard output, and its version and
author on standard error. --version prints an earlier one, as far as the history is kept.
With -o json the output is the server's answer, with the document as one field.

Exit code 1 means that there is no document at the key.`,
		Example: `  interlock state get account:12345 > account.json
  interlock state get account:12345 -o json | jq -r '.documents[0].version'`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.JSON() {
				return envelope(cmd.Context(), a, args[0], version)
			}
			return printDocument(cmd.Context(), a, args[0], version)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "print the document as it was at this `version` of the namespace")
	return cmd
}

// printDocument prints a document's bytes, as they are or as they were at a version.
func printDocument(ctx context.Context, a *cli.App, key, version string) error {
	query := url.Values{}
	if version != "" {
		query.Set("version", version)
	}
	answer, err := a.API().Whole(ctx, cli.Request{Method: http.MethodGet, Path: statePath(key), Query: query})
	if err != nil {
		return err
	}
	tellWriter(ctx, a, key, answer.Header.Get("Interlock-Version"))
	return a.Content(answer.Body)
}

// tellWriter prints the author of a version of a document. That is in the key's history, as far as
// it is kept: with the document's bytes comes only its version.
func tellWriter(ctx context.Context, a *cli.App, key, version string) {
	var got api.History
	if _, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: historyPath(key)}); err == nil &&
		json.Unmarshal(answer, &got) == nil {
		for i := range got.Versions {
			if d := &got.Versions[i]; d.Version.String() == version {
				a.Complain("version %s %s", d.Version, view.Written(&d.DocumentInfo, d.Age))
				return
			}
		}
	}
	a.Complain("version %s", cli.Clean(version))
}

// envelope prints a document with all that is known of it, as the server tells it.
func envelope(ctx context.Context, a *cli.App, key, version string) error {
	if version != "" {
		return cli.Usagef(
			"--version prints the document itself: leave -o json out, or read `interlock state history %s -o json`",
			cli.Quote(cli.Clean(key)),
		)
	}
	_, answer, err := a.API().Do(
		ctx, cli.Request{Method: http.MethodGet, Path: "/v1/state", Query: url.Values{"key": {key}, "values": {"true"}}},
	)
	if answer != nil {
		err = errors.Join(err, a.Raw(answer))
	}
	if err != nil {
		return err
	}
	var got api.Documents
	if json.Unmarshal(answer, &got) == nil && len(got.Documents) > 0 && got.Documents[0].Absent {
		return cli.ExitWith(cli.ExitFailure, nil)
	}
	return nil
}

// statePath is the path of a key's document.
func statePath(key string) string { return cli.ResourcePath("state", key) }

func newStateVersion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version KEY",
		Short: "Print the version of a document, and nothing else",
		Long: `Print the version of the document at KEY, for --if-version. Read it before the
document, so that a change between the two is noticed.`,
		Example: `  v=$(interlock state version account:12345)
  interlock state get account:12345 | ./think > new.json
  interlock state set account:12345 --if-version "$v" < new.json`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return documents(cmd.Context(), a, args, url.Values{}, func(got *api.Documents) error {
				var v interlock.Version
				if len(got.Documents) > 0 {
					v = got.Documents[0].Version
				}
				a.Say("%s\n", v)
				return nil
			})
		},
	}
}

func newStateList(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the documents with their versions",
		Example: `  interlock state list account:
  interlock state list -o json | jq -r '.documents[].key'`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			query := url.Values{"prefix": {""}}
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			t := a.Table("KEY", "VERSION", "TYPE", "SIZE", "CHANGED", "BY", "NOTE")
			more, err := a.Pages(
				cmd.Context(), "/v1/state", query, limit, func(answer []byte) (shown int, cursor string, err error) {
					var page api.Documents
					if err := json.Unmarshal(answer, &page); err != nil {
						return 0, "", err
					}
					for i := range page.Documents {
						d := &page.Documents[i]
						t.Row(
							cli.Clean(string(d.Key)), d.Version.String(), cli.OrDash(cli.Clean(d.ContentType)),
							cli.Bytes(view.Size(&d.DocumentInfo)), view.Ago(d.Age), view.Writer(&d.DocumentInfo), cli.Clean(d.Note),
						)
					}
					return len(page.Documents), page.Cursor, nil
				},
			)
			if more {
				a.Complain("there are more: --limit lists them")
			}
			if err != nil || a.JSON() {
				return err
			}
			return t.Write(a.Out)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many documents to list at most")
	return cmd
}

func historyPath(key string) string {
	return cli.ResourcePath("history", key)
}

func newStateHistory(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "history KEY",
		Short: "List the versions of a document that are kept, the newest first",
		Example: `  interlock state history account:12345
  interlock state get account:12345 --version 41`,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.History
			return a.Get(cmd.Context(), historyPath(args[0]), nil, &got, func() error {
				t := a.Table("VERSION", "WHAT", "TYPE", "SIZE", "WHEN", "BY", "NOTE")
				for i := range got.Versions {
					d := &got.Versions[i]
					t.Row(
						d.Version.String(), cli.OrDash(cli.Clean(d.Op)), cli.OrDash(cli.Clean(d.ContentType)),
						cli.Bytes(view.Size(&d.DocumentInfo)), view.Ago(d.Age), view.Writer(&d.DocumentInfo), cli.Clean(d.Note),
					)
				}
				if err := t.Write(a.Out); err != nil {
					return err
				}
				if got.Trimmed {
					a.Complain("earlier versions are no longer kept")
				}
				return nil
			})
		},
	}
}
