package trace

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/archive"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/otlp"
	"github.com/interlockdev/interlock/internal/spans"
)

// New returns the command trace.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"trace", "Export waits, holds and tasks as traces of OpenTelemetry",
		`Export what the journal has about waits, holds and tasks as spans of OpenTelemetry, which show in
the traces of the agents that asked. docs/traces.md has the spans and their attributes.`,
		newExport(a),
	)
}

func newExport(a *cli.App) *cobra.Command {
	var since, until, key, agent, endpoint, dir string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write spans of a time, or send them to a collector",
		Long: `Write the spans of waits, holds, tasks and refused commits that ended within a time: as lines of
OTLP in JSON, 512 spans each, or to the collector at --endpoint. What still goes on has no span
yet. Ids are computed from the journal, so an export that is repeated has the same spans, and
consecutive times have each span once.

A request with a traceparent becomes a part of its caller's trace. "interlock run", "task create"
and "message send" take it from the environment variable TRACEPARENT.

The variables OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TRACES_HEADERS,
OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME count as OpenTelemetry has them.`,
		Example: `  interlock trace export --since 12h > spans.jsonl
  interlock trace export --since 12h --endpoint http://127.0.0.1:4318
  interlock trace export --since 2026-01-02T22:00:00Z --until 2026-01-03T06:00:00Z --key account:12345
  interlock trace export --since 2026-01-02T22:00:00Z --data-dir ./copy`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e := &export{app: a, key: key, agent: agent}
			var err error
			if e.since, err = moment("since", since); err != nil {
				return err
			}
			if e.until, err = moment("until", until); err != nil {
				return err
			}
			if !e.until.IsZero() && !e.until.After(e.since) {
				return cli.Usagef("--until %s: want a time after --since", cli.Clean(until))
			}
			headers, resource, err := otlp.Environment("TRACES", cli.Version())
			if err != nil {
				return cli.Usagef("%w", err)
			}
			e.resource = spans.Resource{Attributes: resource, Version: cli.Version()}
			if endpoint != "" {
				url, err := otlp.ParseEndpoint(endpoint, otlp.TracesPath)
				if err != nil {
					return cli.Usagef("--endpoint: %w", err)
				}
				e.sender, e.endpoint = otlp.NewSender(url, headers, cli.Version(), nil), endpoint
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if dir != "" {
				if err := archive.Use(ctx, a, dir); err != nil {
					return err
				}
			}
			return e.run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "1h", "what ended since this `time`: how long ago, such as 12h, or in RFC 3339")
	flags.StringVar(&until, "until", "", "and before this `time` (default: now)")
	flags.StringVar(&key, "key", "", "only of this `key` and the keys below it")
	flags.StringVar(&agent, "agent", "", "only of this `agent`")
	flags.StringVar(&endpoint, "endpoint", "", "send them to the collector at this `URL`, by default to its /v1/traces")
	flags.StringVar(&dir, "data-dir", "", "read the journal in this `directory` instead of asking a server")
	return cmd
}

// moment reads the time of a flag, in milliseconds as the server's answers have it.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.Truncate(time.Millisecond), nil
	}
	ago, err := cli.ParseDuration(text)
	if err != nil {
		return time.Time{}, cli.Usagef(
			"--%s %s: want how long ago, such as 12h or 7d, or a time such as 2026-01-02T03:04:05Z", flag,
			cli.Clean(text),
		)
	}
	return time.Now().Add(-ago).Truncate(time.Millisecond), nil
}
