package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

const (
	statusPath = "/v1/status"
	statusLine = "%-11s %s\n" // a name and what is known of it
)

// NewStatus returns the command status.
func NewStatus(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of the server and the namespace",
		Long: `Show the server's uptime and version, the sizes of the namespace, and warnings. The sizes of
the whole server, its journal and its disk are shown to the roles server and metrics, and to
every caller of a server without credentials.

A standby names the active server, and the exit code is 69.`,
		Example: `  interlock status
  interlock status -o json | jq -r '.warnings[]?'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s api.ServerStatus
			err := a.Get(cmd.Context(), statusPath, nil, &s, func() error {
				showStatus(a, &s)
				return nil
			})
			if !a.JSON() && cli.IsRefused(err, interlock.CodeNotOwner) {
				return standbyStatus(cmd.Context(), a)
			}
			return err
		},
	}
}

// standbyStatus prints which server is active, as the refusal of a standby names it.
func standbyStatus(ctx context.Context, a *cli.App) error {
	active := "no server is active at the moment"
	_, err := a.API().Client.Do(ctx, cli.Request{Method: http.MethodGet, Path: statusPath})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Active != nil {
		active = "active server is " + cli.Clean(p.Active.HTTP)
	}
	a.Say(statusLine, "server", "standby, "+active)
	return cli.ExitWith(cli.ExitUnreachable, nil)
}

func showStatus(a *cli.App, s *api.ServerStatus) {
	line := func(name, format string, args ...any) {
		a.Say(statusLine, name, fmt.Sprintf(format, args...))
	}
	line(
		"server", "%s, version %s, up %s, since %s", cli.Clean(s.Role), cli.Clean(s.Version), cli.ShortMillis(s.Up),
		s.Started.Local().Format(time.RFC3339),
	)
	n := &s.Namespace
	line("namespace", "%s: %s", cli.Clean(n.Namespace), sizes(n.Leases, n.Waiters, n.Sessions, n.Keys))
	line("state", "%s, %s", cli.Count(n.Documents, "document", "documents"), cli.Bytes(int64(n.StateBytes)))
	line(
		"work", "%s, %s, %s", cli.Count(n.Tasks, "task", "tasks"), cli.Count(n.DeadLetters, "dead letter", "dead letters"),
		cli.Count(n.Approvals, "pending approval", "pending approvals"),
	)
	if w := s.Server; w != nil {
		line(
			"all", "%s: %s", cli.Count(w.Namespaces, "namespace", "namespaces"),
			sizes(w.Leases, w.Waiters, w.Sessions, w.Keys),
		)
		j := &w.Journal
		kind := ""
		if j.Kind != "" {
			kind = cli.Clean(j.Kind) + ", "
		}
		line("journal", "%sentries %s to %s, snapshot at %s", kind, j.First, j.Index, j.Snapshot)
		if j.Bytes > 0 {
			line("disk", "%s used by the journal, %s free", cli.Bytes(int64(j.Bytes)), cli.Bytes(int64(j.FreeBytes)))
		}
	}
	if len(s.Warnings) == 0 {
		line("warnings", "none")
	}
	for _, w := range s.Warnings {
		line("warning", "%s", a.Tint(cli.Yellow, cli.Clean(w)))
	}
}

// sizes reads: 1 lease, 2 waiters, 1 session, 3 keys.
func sizes(leases, waiters, sessions, keys int) string {
	return strings.Join([]string{
		cli.Count(leases, "lease", "leases"), cli.Count(waiters, "waiter", "waiters"),
		cli.Count(sessions, "session", "sessions"), cli.Count(keys, "key", "keys"),
	}, ", ")
}
