package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

func newState(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Read and change the documents at keys, by version",
		Long: `The guarded state of a key is a document, JSON or any bytes, with a version. A change names
the version that was read: if the document has changed since, nothing is written, and the
answer describes the changes and their authors, in words for a prompt.

"interlock commit" changes several keys at once, all or none.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newStateGet(a), newStateVersion(a), newStateLs(a), newStateHistory(a), newStateWatch(a),
		newStatePut(a), newStateMerge(a), newStateAdd(a), newStateRm(a),
	)
	return cmd
}

// document is guarded state in the form of the HTTP API.
type document struct {
	Key     interlock.Key     `json:"key"`
	Version interlock.Version `json:"version,string"`
	Absent  bool              `json:"absent"`
	Type    string            `json:"content_type"`
	Size    int64             `json:"size"`
	Value   json.RawMessage   `json:"value"`
	Text    *string           `json:"text"`
	Base64  *string           `json:"base64"`
	party
	Principal string          `json:"principal"`
	Fence     interlock.Fence `json:"fence,string"`
	Note      string          `json:"note"`
	Age       int64           `json:"age_ms"`
	Op        string          `json:"op"`

	Truncated bool       `json:"truncated"`
	Earlier   []document `json:"earlier"`
}

// body returns the document's bytes.
func (d *document) body() ([]byte, error) {
	switch {
	case d.Text != nil:
		return []byte(*d.Text), nil
	case d.Base64 != nil:
		return base64.StdEncoding.DecodeString(*d.Base64)
	}
	return d.Value, nil
}

// writer returns the author and the purpose, in half a sentence.
func (d *document) writer() string {
	name := d.name()
	if d.Agent == "" && d.Session == "" && d.Principal != "" {
		name = clean(d.Principal)
	}
	text := "by " + name + " " + short(ms(d.Age)) + " ago"
	if d.Fence > 0 {
		text += " under fence " + d.Fence.String()
	}
	if note := clean(d.Note); note != "" {
		text += ": " + note
	}
	return text
}

type documentsAnswer struct {
	Documents []document        `json:"documents"`
	AsOf      interlock.Version `json:"as_of,string"`
	Cursor    string            `json:"cursor"`
}

// documents reads some keys as of one moment.
func (a *app) documents(ctx context.Context, keys []string, query url.Values, show func(*documentsAnswer) error) error {
	query["key"] = keys
	var got documentsAnswer
	return a.get(ctx, "/v1/state", query, &got, func() error { return show(&got) })
}

func newStateGet(a *app) *cobra.Command {
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
		Args:              oneArg("a key"),
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json() {
				return a.envelope(cmd.Context(), args[0], version)
			}
			return a.printDocument(cmd.Context(), args[0], version)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "print the document as it was at this `version` of the namespace")
	return cmd
}

// printDocument prints a document's bytes, as they are or as they were at a version.
func (a *app) printDocument(ctx context.Context, key, version string) error {
	query := url.Values{}
	if version != "" {
		query.Set("version", version)
	}
	answer, err := a.api().whole(ctx, request{Method: http.MethodGet, Path: statePath(key), Query: query})
	if err != nil {
		return err
	}
	a.tellWriter(ctx, key, answer.Header.Get("Interlock-Version"))
	return a.content(answer.Body)
}

// tellWriter prints the author of a version of a document. That is in the key's history, as far as
// it is kept: with the document's bytes comes only its version.
func (a *app) tellWriter(ctx context.Context, key, version string) {
	var got historyAnswer
	if _, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: historyPath(key)}); err == nil &&
		json.Unmarshal(answer, &got) == nil {
		for i := range got.Versions {
			if d := &got.Versions[i]; d.Version.String() == version {
				a.complain("version %s %s", d.Version, d.writer())
				return
			}
		}
	}
	a.complain("version %s", clean(version))
}

// envelope prints a document with all that is known of it, as the server tells it.
func (a *app) envelope(ctx context.Context, key, version string) error {
	if version != "" {
		return usage(
			"--version prints the document itself: leave -o json out, or read `interlock state history %s -o json`",
			quote(clean(key)),
		)
	}
	_, answer, err := a.api().do(
		ctx, request{Method: http.MethodGet, Path: "/v1/state", Query: url.Values{"key": {key}, "values": {"true"}}},
	)
	if answer != nil {
		err = errors.Join(err, a.raw(answer))
	}
	if err != nil {
		return err
	}
	var got documentsAnswer
	if json.Unmarshal(answer, &got) == nil && len(got.Documents) > 0 && got.Documents[0].Absent {
		return exitWith(exitFailure, nil)
	}
	return nil
}

// statePath is the path of a key's document.
func statePath(key string) string { return resourcePath("state", key) }

func newStateVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version KEY",
		Short: "Print the version of a document, and nothing else",
		Long: `Print the version of the document at KEY, for --if-version. Read it before the
document, so that a change between the two is noticed.`,
		Example: `  v=$(interlock state version account:12345)
  interlock state get account:12345 | ./think > new.json
  interlock state put account:12345 --if-version "$v" < new.json`,
		Args:              oneArg("a key"),
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.documents(cmd.Context(), args, url.Values{}, func(got *documentsAnswer) error {
				var v interlock.Version
				if len(got.Documents) > 0 {
					v = got.Documents[0].Version
				}
				a.say("%s\n", v)
				return nil
			})
		},
	}
}

func newStateLs(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the documents with their versions",
		Example: `  interlock state ls account:
  interlock state ls -o json | jq -r '.documents[].key'`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("--limit %d: want at least 1", limit)
			}
			query := url.Values{"prefix": {""}}
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			t := a.table("KEY", "VERSION", "TYPE", "SIZE", "CHANGED", "BY", "NOTE")
			more, err := a.pages(
				cmd.Context(), "/v1/state", query, limit, func(answer []byte) (shown int, cursor string, err error) {
					var page documentsAnswer
					if err := json.Unmarshal(answer, &page); err != nil {
						return 0, "", err
					}
					for i := range page.Documents {
						d := &page.Documents[i]
						t.row(
							clean(string(d.Key)), d.Version.String(), orDash(clean(d.Type)), bytesText(d.Size), short(ms(d.Age))+" ago",
							d.name(), clean(d.Note),
						)
					}
					return len(page.Documents), page.Cursor, nil
				},
			)
			if more {
				a.complain("there are more: --limit lists them")
			}
			if err != nil || a.json() {
				return err
			}
			return t.write(a.out)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many documents to list at most")
	return cmd
}

type historyAnswer struct {
	Versions []document
	Trimmed  bool
}

func historyPath(key string) string {
	return resourcePath("history", key)
}

func newStateHistory(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "history KEY",
		Short: "List the versions of a document that are kept, the newest first",
		Example: `  interlock state history account:12345
  interlock state get account:12345 --version 41`,
		Args:              oneArg("a key"),
		ValidArgsFunction: a.completeKeys(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got historyAnswer
			return a.get(cmd.Context(), historyPath(args[0]), nil, &got, func() error {
				t := a.table("VERSION", "WHAT", "TYPE", "SIZE", "WHEN", "BY", "NOTE")
				for i := range got.Versions {
					d := &got.Versions[i]
					t.row(
						d.Version.String(), orDash(clean(d.Op)), orDash(clean(d.Type)), bytesText(d.Size), short(ms(d.Age))+" ago",
						d.name(), clean(d.Note),
					)
				}
				if err := t.write(a.out); err != nil {
					return err
				}
				if got.Trimmed {
					a.complain("earlier versions are no longer kept")
				}
				return nil
			})
		},
	}
}
