package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/serve"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/mcp"
)

// New returns the command mcp.
func New(a *cli.App) *cobra.Command {
	var name, dir string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve one agent that speaks MCP, over standard input and output",
		Long: `Serve one agent that speaks the Model Context Protocol over standard input and output, against
the server of the context. Coding agents start it by themselves; docs/mcp.md shows their settings.

The agent has one session, which this process keeps alive. When standard input ends, the
session ends, and all its leases are released at once.

With --embedded DIR, and no --url, variable or context that names a server, it starts a server
of its own in this process, with the journal in DIR. One process at a time can use DIR, so agents that
share keys need "interlock serve" instead.`,
		Example: `  claude mcp add interlock -- interlock mcp
  interlock mcp --agent reviewer --namespace team`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if dir != "" && cmd.Flag("url").Changed {
				log.Warn("no server is started in this process: another one is configured", "url", a.Server.URL)
				dir = ""
			}
			return run(cmd.Context(), a, name, dir, log)
		},
	}
	cmd.Flags().StringVar(
		&name, "agent", "", "the agent's `name` for others to read (default: the client's name, the host and four digits)",
	)
	cli.Bind(cmd.Flags(), "agent", "")
	cmd.Flags().StringVar(
		&dir, "embedded", "", "start a server in this process with its journal in `DIR`, if no server is configured",
	)
	cli.Bind(cmd.Flags(), "embedded", "INTERLOCK_MCP_EMBEDDED")
	return cmd
}

// run serves the agent until its input ends or a signal comes.
func run(ctx context.Context, a *cli.App, name, dir string, log *slog.Logger) error {
	signals := cli.WatchSignals()
	defer signals.Stop()
	ctx = signals.Context(ctx)
	cfg := mcp.StdioConfig{API: a.API().Client, Agent: name, Version: cli.Version(), Log: log}
	if dir == "" {
		return mcp.ServeStdio(ctx, cfg, a.In, a.Out)
	}
	embedded, err := serve.Embed(ctx, dir, log)
	if err != nil {
		return err
	}
	cfg.API = api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "localhost"}}, Transport: agent.Local(embedded.HTTPHandler()),
		Namespace: a.Server.Tenant(), UserAgent: "interlock-mcp",
	})
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-embedded.Failed():
			stop()
		case <-serving.Done():
		}
	}()
	err = mcp.ServeStdio(serving, cfg, a.In, a.Out)
	if failed := embedded.Err(); failed != nil {
		return failed
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(err, embedded.Close(last))
}

// closeTime bounds the end of an embedded server.
const closeTime = 10 * time.Second
