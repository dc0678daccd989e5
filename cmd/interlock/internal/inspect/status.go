package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/merge"
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
		Long: `Show the server's uptime and version, the sizes of the namespace, and warnings: also of merge
queues with a merger that fails, dies or does not run while submissions wait. The sizes of
the whole server, its journal and its disk are shown to the roles server and metrics, and to
every caller of a server without credentials.

If no server answers for the namespace, it shows whether the asked server owns shards, and what is
known of the shard's owner; the exit code is then 69.`,
		Example: `  interlock status
  interlock status -o json | jq -r '.warnings[]?'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, answer, err := a.API().Do(cmd.Context(), cli.Request{Method: http.MethodGet, Path: statusPath})
			if !a.JSON() && cli.IsRefused(err, interlock.CodeNotOwner) {
				return withoutOwner(cmd.Context(), a)
			}
			if err == nil {
				answer, err = withTroubles(cmd.Context(), a, answer)
			}
			if shown, err := a.RawAnswer(answer, err); shown || err != nil {
				return err
			}
			var s api.ServerStatus
			if err := cli.Decode(answer, &s); err != nil {
				return err
			}
			showStatus(a, &s)
			return nil
		},
	}
}

// withTroubles adds the troubles of merge queues to the warnings of an answer. A caller that may not look at queues
// reads the rest.
func withTroubles(ctx context.Context, a *cli.App, answer []byte) ([]byte, error) {
	troubles, _ := merge.Troubles(ctx, a)
	if len(troubles) == 0 {
		return answer, nil
	}
	// Fields that this client does not know stay.
	var fields map[string]json.RawMessage
	var s api.ServerStatus
	if err := errors.Join(cli.Decode(answer, &fields), cli.Decode(answer, &s)); err != nil {
		return nil, err
	}
	list, err := json.Marshal(append(s.Warnings, troubles...))
	if err != nil {
		return nil, err
	}
	fields["warnings"] = list
	return json.Marshal(fields)
}

// withoutOwner prints what the server is that does not answer for the namespace, and the reason of its refusal.
func withoutOwner(ctx context.Context, a *cli.App) error {
	_, err := a.API().Client.Do(ctx, cli.Request{Method: http.MethodGet, Path: statusPath})
	refused, ok := errors.AsType[*api.Problem](err)
	if !ok {
		return cli.ExitWith(cli.ExitUnreachable, errors.New("a shard had no owner a moment ago: repeat the command"))
	}
	var health api.Status
	return a.Get(ctx, "/healthz", nil, &health, func() error {
		a.Say(statusLine, "server", cli.Clean(health.Role))
		a.Say(statusLine, "shard", cli.Clean(refused.Detail))
		return cli.ExitWith(cli.ExitUnreachable, nil)
	})
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
