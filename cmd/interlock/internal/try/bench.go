package try

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/bench"
)

// NewBench returns the command bench.
func NewBench(a *cli.App) *cobra.Command {
	var (
		cfg        bench.Config
		transports []string
		journals   []string
	)
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure what a lease costs on this machine",
		Long: `Put load on a server and print the results. Without a scenario a short selection runs, about
a minute and a half: ` + strings.Join(bench.Short, ", ") + `; "all" runs everything.

` + scenarioList() + `
Every run has a server of its own, in a process of its own with its journal in a temporary
directory, which is removed afterwards; every answer of it is durable. Agents and server
share this machine, so other load on it distorts every figure. Use --url or --grpc-addr on
the command line to measure a running server, with the scenarios that change only keys that
begin with "bench"; the others report that they cannot.

Repetitions alternate between the compared targets. A figure is their median, with the
minimum and maximum in brackets. Figures of different machines are not comparable.`,
		Example: `  interlock bench
  interlock bench cycle --transport stream --agents 256 --duration 10s
  interlock bench cycle --journal postgres://interlock@db.internal/interlock?journal=bench
  interlock bench scale --journal postgres://interlock@db.internal/interlock?journal=bench --leases 100000
  interlock bench replay --trace code --speed 10 --entities 200
  interlock bench merge --files 50000 --submissions 300 --check 1s --runners 8
  interlock bench all -o json`,
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{},
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case len(names) == 0:
				names = bench.Short
			case slices.Contains(names, "all"):
				names = nil
				for _, s := range bench.Scenarios {
					names = append(names, s.Name)
				}
			}
			scenarios, err := bench.Named(names)
			if err == nil {
				err = cfg.Check()
			}
			if err != nil {
				return cli.Usagef("%w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = runBench(ctx, a, cmd, cfg, scenarios, transports, journals)
			if err != nil && ctx.Err() != nil {
				return cli.ExitWith(
					cli.ExitSignal+int(syscall.SIGINT), errors.New("the measurement was interrupted; its servers have ended"),
				)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(
		&cfg.Agents, "agents", nil,
		"how `many` agents; several numbers are run one after the other (default: the scenario's own)",
	)
	f.IntSliceVar(
		&cfg.Leases, "leases", nil,
		"how `many` leases, for keepalive, memory, growth, viewers, restart and scale (default: the scenario's own)",
	)
	f.IntVar(
		&cfg.Sessions, "sessions", 0, "how `many` sessions hold the leases of scale (default a tenth of the leases)",
	)
	f.IntVar(
		&cfg.Servers, "servers", 0, "how `many` servers share the journal of scale (default 3; over a directory 1)",
	)
	f.IntVar(&cfg.Viewers, "viewers", 0, "how `many` viewers follow the overview in viewers (default 50)")
	f.IntVar(&cfg.Shards, "shards", 0, "how `many` shards the journal of scale is made with (default 16)")
	cli.DurationVar(
		f, &cfg.Duration, "duration", 0,
		"how long each run takes (default 1s; keepalive, viewers and scale 30s; replay all of the trace)",
	)
	f.IntVar(
		&cfg.Repeat, "repeat", 0,
		"how many `runs` each case has (default 3; keepalive, memory, viewers, restart, scale, replay and merge 1)",
	)
	f.StringSliceVar(
		&transports, "transport", nil,
		"which `transports`: stream (all agents on one), connections (one each), grpc (all agents on one gRPC stream), http (default: the scenario's own)",
	)
	f.StringArrayVar(
		&journals, "journal", nil,
		"a `URL` as for serve --journal, which nothing else has: for cycle, beside a directory by turns, and for scale",
	)
	f.StringVar(
		&cfg.Replay.Trace, "trace", "conversation",
		"which hour is replayed: conversation, code, or a `file` with the columns TIMESTAMP,ContextTokens,GeneratedTokens",
	)
	f.Float64Var(&cfg.Replay.Speed, "speed", 20, "how many times faster than recorded")
	f.IntVar(&cfg.Replay.Entities, "entities", 1000, "how `many` entities the replayed agents share")
	f.Float64Var(&cfg.Replay.Skew, "skew", 0.5, "how unevenly they choose them: 0 uniformly, 1 by Zipf's law")
	f.IntVar(&cfg.Merge.Files, "files", 2000, "how `many` files the target of merge has")
	f.IntVar(&cfg.Merge.Submissions, "submissions", 100, "how `many` submissions wait for merge")
	f.Float64Var(&cfg.Merge.Conflicts, "conflicts", 0.05, "the `share` of them that conflict with an earlier one")
	f.Float64Var(&cfg.Merge.Bad, "bad", 0.02, "the `share` of them that fail only together with an earlier one")
	cli.DurationVar(
		f, &cfg.Merge.Check, "check", time.Second, "how long a check of merge waits before it looks at the tree",
	)
	f.IntVar(&cfg.Merge.Runners, "runners", 8, "how `many` checks of merge run at a time, and agents push")
	cmd.AddCommand(newBenchEcho(a))
	return cmd
}

// scenarioList is a line for each scenario.
func scenarioList() string {
	var b strings.Builder
	for _, s := range bench.Scenarios {
		fmt.Fprintf(&b, "  %-10s %s\n", s.Name, s.Short)
	}
	return b.String()
}

// runBench runs scenarios and prints what each gave.
func runBench(
	ctx context.Context, a *cli.App, cmd *cobra.Command, cfg bench.Config, scenarios []bench.Scenario,
	transports, journals []string,
) error {
	if err := refuse(runtime.GOOS); err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	progress := newBenchProgress(a.Err)
	cfg.Progress = progress.say
	report := bench.Report{
		Machine: bench.ThisMachine(built()), Command: append([]string{"interlock"}, a.Args...), Figures: []bench.Figure{},
		Server: "a server of our own for each run, every answer synced to its disk",
	}
	var running *bench.Address
	if namesServer(a, cmd) {
		if err := oneServer(a, cmd); err != nil {
			return err
		}
		running = &bench.Address{
			HTTP: api.HostPort(a.Server.Bases[0]), GRPC: a.Server.Sessions[0], TLS: a.Server.TLS,
			Credential: a.Server.Credential, Namespace: a.Server.Tenant(),
		}
		report.Server = "the server at " + a.Server.Bases[0].String() + ", with the journal and whatever else it has"
	}
	targets := make([][]bench.Target, len(scenarios))
	for i, s := range scenarios {
		if targets[i], err = benchTargets(s, transports, journals, binary, running); err != nil {
			return err
		}
		if err := s.Check(cfg, targets[i]); err != nil {
			return err
		}
	}
	if !a.JSON() {
		if err := report.WriteHead(a.Out); err != nil {
			return err
		}
	}
	for i, s := range scenarios {
		figures, err := s.Run(ctx, cfg, targets[i])
		progress.clear()
		report.Figures = append(report.Figures, figures...)
		if !a.JSON() && len(figures) > 0 {
			err = errors.Join(err, bench.WriteTable(a.Out, s, figures))
		}
		if err != nil {
			return err
		}
	}
	if a.JSON() {
		return report.WriteJSON(a.Out)
	}
	return nil
}

// benchProgress tells what is under way: on a terminal in one line, which goes again.
type benchProgress struct {
	w     io.Writer
	begin string
	end   string
}

func newBenchProgress(w io.Writer) *benchProgress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &benchProgress{w: w, begin: "\r\x1b[K"}
	}
	return &benchProgress{w: w, end: "\n"}
}

func (p *benchProgress) say(text string) { fmt.Fprint(p.w, p.begin, text, p.end) }

func (p *benchProgress) clear() { fmt.Fprint(p.w, p.begin) }

// built is the commit from which this program was built, with a + when files had changed.
func built() string {
	id, dirty := cli.Commit()
	switch {
	case id == "":
		return "unknown"
	case dirty:
		return id[:min(len(id), 12)] + "+"
	}
	return id[:min(len(id), 12)]
}

// benchTargets are Interlock through each of the transports, and the yardstick where
// there is one: that is the network alone, or HTTP if the server is on this machine, too.
func benchTargets(
	s bench.Scenario, transports, journals []string, binary string, running *bench.Address,
) (targets []bench.Target, err error) {
	if s.Own && running != nil {
		return nil, cli.Usagef(
			"bench %s stops its server, or sets rules: leave the server out, and it starts one of its own", s.Name,
		)
	}
	if len(journals) > 0 && (s.Name != "cycle" && !s.Engine || running != nil) {
		return nil, cli.Usagef("--journal is for interlock bench cycle or scale with servers of its own")
	}
	through := s.Transports
	if len(journals) > 0 {
		through = []bench.Transport{bench.Stream}
	}
	if len(transports) > 0 && len(s.Transports) > 0 {
		through = nil
		for _, name := range transports {
			transport := bench.Transport(name)
			if !slices.Contains(bench.Transports, transport) {
				return nil, cli.Usagef("--transport %s: want stream, connections or http", cli.Clean(name))
			}
			through = append(through, transport)
		}
	}
	for _, transport := range through {
		if len(journals) == 0 || !s.Engine {
			targets = append(targets, bench.Interlock{Transport: transport, Binary: binary, Running: running})
		}
		for _, journal := range journals {
			if _, err := datadir.ParsePlace(journal, true); err != nil {
				return nil, cli.Usagef("--journal %s: %w", datadir.Shown(journal), err)
			}
			targets = append(targets, bench.Interlock{Transport: transport, Binary: binary, Journal: journal})
		}
	}
	if s.Yardstick && (len(through) == 0 || running == nil && slices.Contains(through, bench.HTTP)) {
		targets = append(targets, bench.Echo{Command: []string{binary, "bench", "echo"}})
	}
	return targets, nil
}

// newBenchEcho is the yardstick of the HTTP transport, in a process of its own.
func newBenchEcho(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:         "echo",
		Short:       "A bare net/http server that echoes its requests",
		Hidden:      true,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		Args:        cli.NoArgs,
		RunE:        func(*cobra.Command, []string) error { return bench.ServeEcho(a.In, a.Out) },
	}
}
