package webhook

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command webhook.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"webhook", "Send messages about events to HTTP endpoints",
		`A webhook sends a signed message to a URL at events such as a requested approval, an expired
lease, a deadlock or a dead letter. Messages are retried until the receiver accepts them,
also after a restart of the server.

docs/webhooks.md lists the events and shows how to verify a signature.`,
		newSet(a), newList(a), newGet(a), newRotate(a), newTest(a), newDelete(a),
	)
}

func path(name, verb string) string {
	p := "/v1/webhooks/" + url.PathEscape(name)
	if verb != "" {
		p += "/" + verb
	}
	return p
}

func newSet(a *cli.App) *cobra.Command {
	var body api.WebhookRequest
	cmd := &cobra.Command{
		Use:   "set NAME URL",
		Short: "Set a webhook, or replace its settings",
		Long: `Set a webhook, or replace its settings. The secret of a new one is written to standard
output, once. A webhook that exists keeps its secret and continues where it is.

With --approve-links, messages about questions contain a link. A credential with the roles operator
and approver confirms the receiver by that: its readers may answer by the link, and their answers count
as acts of that credential. Set by another operator, a link shows the question, and its reader logs in.`,
		Example: `  interlock webhook set ops https://hooks.example.com/x --events approval_requested,dead_letter
  interlock webhook set chat https://hooks.slack.com/services/T0/B0/X --events '*' --format slack`,
		Args: cli.TwoArgs("a webhook", "its URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body.URL = args[1]
			return change(cmd, a, http.MethodPut, path(args[0], ""), &body, "set")
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&body.Events, "events", nil, "the `types` of events, with commas between, or *")
	f.StringVar(
		&body.Key, "key", "",
		"only events about keys that fit this `pattern`, such as account:{id}; without variables a key and all below it",
	)
	f.StringVar(&body.Format, "format", "", "the `form` of the body: standard or slack (default standard)")
	f.BoolVar(&body.Paused, "paused", false, "send nothing for now; the messages wait")
	f.BoolVar(
		&body.ApproveLinks, "approve-links", false,
		"put a link into messages about questions; the server needs --public-url",
	)
	return cmd
}

// change sends a command and shows the secret of its answer, if that has one.
func change(cmd *cobra.Command, a *cli.App, method, path string, body any, done string) error {
	var got api.WebhookChange
	r := cli.Request{Method: method, Path: path, Body: body, ID: cli.FreshID(), Again: true}
	return a.Call(cmd.Context(), r, &got, func() error {
		name := cli.Clean(got.Webhook.Name)
		a.Complain("%s: webhook %s; `interlock webhook test %s` tries it", done, name, cli.Quote(name))
		if got.Secret != "" {
			a.Say("%s\n", got.Secret)
			a.Complain("this is its secret, and is shown once: give it to the receiver")
		}
		return nil
	})
}

func newList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the webhooks, with the state of their deliveries",
		Example: "  interlock webhook list",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.WebhookList
			return a.Get(cmd.Context(), "/v1/webhooks", nil, &got, func() error {
				if len(got.Webhooks) == 0 {
					a.Complain("there is no webhook: `interlock webhook set NAME URL --events EVENT,...` makes one")
					return nil
				}
				t := a.Table("WEBHOOK", "STATE", "DELIVERED", "GIVEN UP", "EVENTS")
				for i := range got.Webhooks {
					w := &got.Webhooks[i]
					t.Row(cli.Clean(w.Name), state(w), w.Delivered, w.GivenUp, strings.Join(w.Events, ","))
				}
				return t.Write(a.Out)
			})
		},
	}
}

// state describes in a few words whether messages arrive.
func state(w *api.Webhook) string {
	switch {
	case w.Gone:
		return "gone"
	case w.Paused:
		return "paused"
	case w.Delivery != nil && w.Delivery.Failures > 0:
		return fmt.Sprintf("failing, next attempt in %s", cli.ShortMillis(w.Delivery.Next))
	}
	return "ok"
}

func newGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a webhook, with the state of its deliveries",
		Example: "  interlock webhook get ops",
		Args:    cli.OneArg("a webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.WebhookView
			return a.Get(cmd.Context(), path(args[0], ""), nil, &got, func() error {
				w := &got.Webhook
				a.Say("%s  %s\n", a.Tint(cli.Bold, cli.Clean(w.Name)), state(w))
				for _, fact := range facts(w) {
					a.Say("  %-14s %s\n", fact[0], fact[1])
				}
				return nil
			})
		},
	}
}

func facts(w *api.Webhook) (list [][2]string) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, cli.Clean(value)})
		}
	}
	add("url", w.URL)
	add("events", strings.Join(w.Events, ", "))
	add("key", w.Key)
	add("format", w.Format)
	switch {
	case w.Confirmed != "":
		add("approve links", "answer, confirmed by "+w.Confirmed)
	case w.ApproveLinks:
		add("approve links", "show the question; with credentials a reader logs in to answer")
	}
	add("delivered", fmt.Sprint(w.Delivered))
	if w.GivenUp > 0 {
		add("given up", fmt.Sprint(w.GivenUp))
	}
	if w.FormerFor > 0 {
		add("former secret", "signs for "+cli.ShortMillis(w.FormerFor))
	}
	if d := w.Delivery; d != nil {
		add("last attempt", d.Attempted.UTC().Format(time.RFC3339))
		add("failure", d.Problem)
	}
	return list
}

func newRotate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace the secret of a webhook",
		Long: `Replace the secret of a webhook. The new one is written to standard output, once; the former
one signs as well for 24 hours. Links in earlier messages become invalid.`,
		Example: "  interlock webhook rotate ops",
		Args:    cli.OneArg("a webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, a, http.MethodPost, path(args[0], "rotate"), struct{}{}, "rotated")
		},
	}
}

func newTest(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "test NAME",
		Short:   "Send a ping now, and show what the receiver answered",
		Example: "  interlock webhook test ops",
		Args:    cli.OneArg("a webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.WebhookTest
			r := cli.Request{Method: http.MethodPost, Path: path(args[0], "test"), Body: struct{}{}}
			return a.Call(cmd.Context(), r, &got, func() error {
				if got.Outcome != "delivered" {
					return cli.ExitWith(cli.ExitFailure, fmt.Errorf("not delivered: %s", cli.Clean(got.Problem)))
				}
				a.Say("delivered: the receiver answered %d\n", got.Status)
				return nil
			})
		},
	}
}

func newDelete(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a webhook, with the messages that it has not delivered",
		Example: "  interlock webhook delete ops",
		Args:    cli.OneArg("a webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{Method: http.MethodDelete, Path: path(args[0], ""), ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("deleted: webhook %s\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
}
