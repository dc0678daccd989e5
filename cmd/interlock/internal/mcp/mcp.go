package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/serve"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/mcp"
)

// New returns the command mcp.
func New(a *cli.App) *cobra.Command {
	var name, dir string
	var idle time.Duration
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve one agent that speaks MCP, over standard input and output",
		Long: `Serve one agent that speaks the Model Context Protocol over standard input and output, against
the server of the context. Coding agents start it by themselves; docs/mcp.md shows their settings.

The agent has one session, which this process keeps alive. When standard input or the program that started
this process ends, the session ends, and all its leases are released at once. So are those of an agent
that makes no call for --idle. A process that is killed leaves its leases for 30 s to the one that its
program starts instead. Inside "interlock run" or the work at a
task the agent is the same one: it works in the session there, has its keys, and releases at
the end what it acquired itself. With another --agent it has a session of its own, and is
refused at once what the lease around it holds.

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
			return run(cmd.Context(), a, name, dir, idle, log)
		},
	}
	cmd.Flags().StringVar(
		&name, "agent", "", "the agent's `name` for others to read (default: the client's name, the host and four digits)",
	)
	cli.Bind(cmd.Flags(), "agent", "")
	cli.DurationVar(
		cmd.Flags(), &idle, "idle", mcp.DefaultIdle, "release the leases of an agent so long after its last call (0: never)",
	)
	cli.Bind(cmd.Flags(), "idle", "INTERLOCK_MCP_IDLE")
	cmd.Flags().StringVar(
		&dir, "embedded", "", "start a server in this process with its journal in `DIR`, if no server is configured",
	)
	cli.Bind(cmd.Flags(), "embedded", "INTERLOCK_MCP_EMBEDDED")
	return cmd
}

// run serves the agent until its input ends or a signal comes.
func run(ctx context.Context, a *cli.App, name, dir string, idle time.Duration, log *slog.Logger) error {
	signals := cli.WatchSignals()
	defer signals.Stop()
	ctx, cancel := context.WithCancel(withParent(signals.Context(ctx)))
	defer cancel()
	cfg := mcp.StdioConfig{API: a.API().Client, Agent: name, Idle: idle, Version: cli.Version(), Log: log}
	if s := ownSeat(a, name, dir); s != nil {
		cfg.Key, cfg.Resume = s.key, s.resumed
		defer s.leave()
		go s.keep(ctx)
	}
	if dir == "" {
		cfg.Join = around(a, name)
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

// ownSeat is the seat of this process, nil for none.
func ownSeat(a *cli.App, name, dir string) *seat {
	cache, err := os.UserCacheDir()
	here, no := os.Getwd()
	if parent := os.Getppid(); err == nil && no == nil && parent > 1 {
		return takeSeat(
			filepath.Join(cache, "interlock", "mcp"), strconv.Itoa(parent), strings.Join(a.Server.URLs(), ","),
			string(a.Server.Tenant()), name, dir, here,
		)
	}
	return nil
}

// around is what this process runs in: the session and the lease of an interlock run, or of a task.
func around(a *cli.App, name string) (j mcp.Join) {
	session, flow, ok := link.Around(a)
	if !ok {
		return j
	}
	j.Keys = strings.Split(os.Getenv("INTERLOCK_KEYS"), "\n")
	fence, _ := strconv.ParseUint(os.Getenv("INTERLOCK_FENCE"), 10, 64) // 0 where there is no lease
	j.Fence = interlock.Fence(fence)
	if name == os.Getenv("INTERLOCK_AGENT") {
		j.Session, j.Flow = session, flow
	}
	return j
}

// closeTime bounds the end of an embedded server.
const closeTime = 10 * time.Second
