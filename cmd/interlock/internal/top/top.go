package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// printedWidth is that of output that is no terminal, without COLUMNS.
const printedWidth = 120

// New returns the command top.
func New(a *cli.App) *cobra.Command {
	var shown, order cli.Choice
	var frames int
	m := &model{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the busiest keys, the waits and the agents",
		Long: `Watch a namespace on a terminal: a sentence about the worst wait, the keys by the time that is
lost at them, the waits as a tree, the agents, and what went wrong in the last hour. It
follows the server's stream of pictures, also across restarts and fail-overs.

Keys: j and k or the arrows select a row, Enter explains why its key is not free, s sorts, /
filters, w shows waits, a agents, t trouble, ? all keys, q quits. x revokes the lease at the
selected key: it asks first, and for a reason. No other key changes anything at the server.

With --frames, frames are printed one below the other: --frames 1 prints the present state once.
With -o json each picture is printed as it came. Agents and waits are those of the pictures,
which have at most 200 keys and 500 waits; the line of sums counts all.`,
		Example: `  interlock top
  interlock top --frames 1
  interlock top --frames 1 --view waits
  interlock top --filter account: --sort oldest`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if frames < 0 {
				return cli.Usagef("--frames %d: want a number of frames, or 0 for no end", frames)
			}
			m.view, m.order, m.namespace = shown.Value, order.Value, string(a.Server.Tenant())
			if m.view == "" {
				m.view = viewKeys
			}
			if m.order == "" {
				m.order = byLost
			}
			if m.namespace == "" {
				m.namespace = "default"
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			switch {
			case frames == 1:
				return once(ctx, a, m)
			case frames > 0 || a.JSON():
				return printed(ctx, a, m, frames)
			case !a.OnScreen() || !cli.IsTerminal(a.In) || os.Getenv("TERM") == "dumb":
				return cli.Usagef("no terminal to draw on: use --frames 1 to print the present state once")
			}
			return live(ctx, a, m)
		},
	}
	cmd.Flags().IntVar(&frames, "frames", 0, "print a `number` of frames, and end")
	cmd.Flags().StringVar(&m.filter, "filter", "", "show only rows with this `text`")
	shown.Among(cmd, "view", "what to show", views...)
	order.Among(cmd, "sort", "the order of the keys", orders...)
	return cmd
}

// once prints the present state.
func once(ctx context.Context, a *cli.App, m *model) error {
	var o api.Overview
	return a.Get(ctx, overviewPath, nil, &o, func() error { return m.print(ctx, a, &o) })
}

// print writes a frame with all its rows.
func (m *model) print(ctx context.Context, a *cli.App, o *api.Overview) (err error) {
	m.see(o)
	if m.view == viewTrouble {
		if m.events, err = readEvents(ctx, a); err != nil {
			return err
		}
	}
	width := printedWidth
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	} else if n, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && a.OnScreen() {
		width = n
	}
	var b strings.Builder
	for _, l := range m.whole(max(width, leastWidth)) {
		b.WriteString(strings.TrimRight(l.painted(a), " "))
		b.WriteByte('\n')
	}
	_, err = a.Out.Write([]byte(b.String()))
	return err
}

// painted is the line with its colours.
func (l line) painted(a *cli.App) string {
	var b strings.Builder
	for _, c := range l {
		b.WriteString(a.Tint(c.Colour, c.Text))
	}
	return b.String()
}

var errEnough = errors.New("enough frames")

// printed prints pictures as they come; frames 0 has no end.
func printed(ctx context.Context, a *cli.App, m *model, frames int) error {
	count := 0
	err := follow(ctx, a, func(raw []byte) error {
		if count++; a.JSON() {
			if err := a.Raw(raw); err != nil {
				return err
			}
		} else {
			if count > 1 {
				a.Say("\n")
			}
			o, err := decode(raw)
			if err != nil {
				return err
			}
			if err := m.print(ctx, a, o); err != nil {
				return err
			}
		}
		if count == frames {
			return errEnough
		}
		return nil
	}, func(why error) { a.Complain("%s, connecting again", a.Sentence(why)) })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func decode(raw []byte) (*api.Overview, error) {
	var o api.Overview
	err := cli.Decode(raw, &o)
	return &o, err
}

// readEvents reads the last hour's troubles.
func readEvents(ctx context.Context, a *cli.App) (list []view.Event, err error) {
	_, answer, err := a.API().Do(ctx, cli.Request{
		Method: http.MethodGet, Path: "/v1/events",
		Query: url.Values{"before": {"newest"}, "limit": {"100"}, "since": {"1h"}, "event": {troubles}},
	})
	if err != nil {
		return nil, err
	}
	for text := range bytes.SplitSeq(bytes.TrimSpace(answer), []byte("\n")) {
		var e view.Event
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("an event cannot be read (%w): is this client older than the server?", err)
		}
		list = append(list, e)
	}
	return list, nil
}

// perform carries out a request of the model, and returns what the model learns from it.
func perform(ctx context.Context, a *cli.App, r request) func(*model) {
	failed := func(err error) func(*model) {
		text := clean(a.Sentence(err))
		return func(m *model) { m.said = text }
	}
	switch r.kind {
	case whyAsked:
		var why api.Why
		_, answer, err := a.API().Do(ctx, cli.Request{
			Method: http.MethodGet, Path: "/v1/why", Query: url.Values{"key": {r.key}},
		})
		if err == nil {
			err = cli.Decode(answer, &why)
		}
		if err != nil {
			return failed(err)
		}
		return func(m *model) { m.explained(r.key, &why) }
	case eventsAsked:
		list, err := readEvents(ctx, a)
		if err != nil {
			return failed(err)
		}
		return func(m *model) { m.events = list }
	case revokeAsked:
		reason := r.reason
		if reason == "" {
			reason = "revoked by " + cli.Person()
		}
		_, _, err := a.API().Insist(ctx, cli.Request{
			Method: http.MethodPost, Path: "/v1/revocations", ID: cli.FreshID(), Again: true,
			Body: &api.RevokeRequest{Key: r.holder.Key, Fence: r.holder.Fence, Reason: reason},
		}, false)
		if err != nil {
			return failed(err)
		}
		text := fmt.Sprintf(
			"revoked: %s no longer holds %s (fence %s)", clean(cli.AgentName(r.holder.Name)), clean(string(r.holder.Key)),
			r.holder.Fence,
		)
		return func(m *model) { m.said = text }
	}
	return func(*model) {}
}
