package try

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/demo"
)

// NewDemo returns the command demo.
func NewDemo(a *cli.App) *cobra.Command {
	return cli.Group(
		"demo", "Show what Interlock is for", "",
		newDemoRace(a), newDemoStale(a), newDemoAccount(a), newDemoAgents(a), newDemoIsolate(a),
		newDemoAgent(a), newDemoWriter(a), newDemoBuild(a),
	)
}

func newDemoRace(a *cli.App) *cobra.Command {
	var cfg demo.Config
	cmd := scene(a, &cfg, demo.Race, "the accounts", 6, &cobra.Command{
		Use:   "race",
		Short: "50 agents on 6 accounts, first without leases, then with them",
		Long: `Fifty agents charge fees and grant credits on six accounts, which are plain files. First
they read, think and write as if they were alone. Then they do the same under leases, while
one of them is frozen and one is killed. Both runs are shown side by side, and the command
fails if a balance is wrong under leases.

It starts a server of its own for the time of the race. Use --url or --grpc-addr on the
command line for another one; its keys account:1001 and so on are held meanwhile.`,
		Example: `  interlock demo race
  interlock demo race --dir ./race --speed 3
  interlock demo race -o json`,
	})
	flags := cmd.Flags()
	flags.IntVar(&cfg.Agents, "agents", 50, "how many agents, from 8 to 500")
	flags.IntVar(&cfg.Accounts, "accounts", 6, "how many accounts, from 2 to a quarter of the agents")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "which minutes of the recorded requests are replayed")
	return cmd
}

func newDemoStale(a *cli.App) *cobra.Command {
	var cfg demo.Config
	return scene(a, &cfg, demo.Stale, "the files", 2, &cobra.Command{
		Use:   "stale",
		Short: "Two agents, one account, one file: what each strategy costs",
		Long: `One agent reads an account and a source file and thinks for six seconds; meanwhile another
one changes both. The scene is played unguarded, under leases, by versions, and by additions
and merges, all at once, and shown side by side: the lost changes, and how long the agents
waited and thought twice. The command fails if a strategy loses a change.

It starts a server of its own for the time of the scene. Use --url or --grpc-addr on the
command line for another one; its keys begin with stale: and stay there.`,
		Example: `  interlock demo stale
  interlock demo stale --speed 1 -o json`,
	})
}

func newDemoAccount(a *cli.App) *cobra.Command {
	var cfg demo.Config
	return scene(a, &cfg, demo.Account, "the journal", 0, &cobra.Command{
		Use:   "account",
		Short: "50 agents on one account that has a single writer",
		Long: `Fifty agents charge late fees and grant goodwill credits on one account. None of them
changes it: they send their commands to its writer, which decides them one after the other
by policy. Half-way the writer is killed with a command in progress, then the server; both
are started again. Meanwhile one agent tries to bypass the writer: it writes the account
itself, pulls from the writer's queue, sends under another's name. With the credentials of
the scene it is refused each time, with a code, the reason and the next step. The command
fails if one attempt is not refused, the balance is not exact, or the account's log does not
yield the same when it is decided again.

It starts a server of its own, and kills it.`,
		Example: `  interlock demo account
  interlock demo account -o json`,
	})
}

func newDemoAgents(a *cli.App) *cobra.Command {
	var cfg demo.Config
	cmd := scene(a, &cfg, demo.Agents, "the repositories", 1, &cobra.Command{
		Use:   "agents",
		Short: "Coding agents in one repository, first without hooks, then with them",
		Long: `Six coding agents add a feature each to one repository. They read a file, think, and write the
whole file, as coding agents do; no model is needed. First they work as if they were alone.
Then each of their events goes to the hook program, which asks a server: a second agent waits
for the file, reads it again, and writes. Lost edits, builds that failed and the time are
shown side by side, and the command fails if an edit is lost with hooks.

It starts a server of its own for the time of the scene, and needs git, and the program
interlock-hook beside this one.`,
		Example: `  interlock demo agents
  interlock demo agents --agents 12 -o json`,
	})
	cmd.Flags().IntVar(&cfg.Agents, "agents", 6, "how many agents, from 2 to 12")
	return cmd
}

func newDemoIsolate(a *cli.App) *cobra.Command {
	var cfg demo.Config
	return scene(a, &cfg, demo.Isolate, "the repositories", 1, &cobra.Command{
		Use:   "isolate",
		Short: "20 coding agents on one program: direct pushes, then a merge queue",
		Long: `Twenty coding agents change one program at the same time; no model is needed. Some change the
same lines, and one renames a function that two others begin to call: each of these changes
builds alone, and not together. First all agents pull, rebase and push, and keep their own
version in a conflict. Then each has a workspace and submits to a merge queue, which lands
only merged trees that build, and returns the others to their authors. Lost changes, commits
that do not build and the time are shown side by side; then "merge verify" computes all
landings again. The command fails if a change is lost or a commit does not build with the
merge queue.

Where PostgreSQL is installed, two more agents write migration 0042 for one database, in both
ways: the tool skips the second one without a word, or the merge queue returns it with the free
number. Checks and workspaces migrate copies of the database.

It starts servers of its own for the time of the scene, and needs git.`,
		Example: `  interlock demo isolate
  interlock demo isolate --dir ./isolate -o json`,
	})
}

// scene adds to a command of a scene what all scenes have in common. what is kept in its directory;
// speed is the default of --speed, 0: the scene has none.
func scene(
	a *cli.App, cfg *demo.Config, play func(context.Context, demo.Config) error, what string, speed int,
	cmd *cobra.Command,
) *cobra.Command {
	cmd.Args = cli.NoArgs
	var ui bool
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if ui && namesServer(a, cmd) {
			return cli.Usagef("--ui is for a server of the scene's own: open /ui/ of the one that you name yourself")
		}
		return runDemo(a, cmd, *cfg, ui, play)
	}
	flags := cmd.Flags()
	flags.StringVar(
		&cfg.Dir, "dir", "", "an empty or new `directory` for "+what+" (default: a temporary one, which stays)",
	)
	flags.BoolVar(
		&ui, "ui", false, "open the dashboard of the scene's own server, which then stays until Enter is pressed",
	)
	if speed > 0 {
		flags.IntVar(&cfg.Speed, "speed", speed, "how many times faster than life")
	}
	return cmd
}

// runDemo plays a scene.
func runDemo(
	a *cli.App, cmd *cobra.Command, cfg demo.Config, ui bool, play func(context.Context, demo.Config) error,
) error {
	if err := refuse(runtime.GOOS); err != nil {
		return err
	}
	if namesServer(a, cmd) {
		if err := oneServer(a, cmd); err != nil {
			return err
		}
		if a.Server.TLS != nil {
			return cli.Usagef("%s does not speak TLS: leave the server out, and it starts one of its own", cmd.CommandPath())
		}
		cfg.Server, cfg.Namespace, cfg.Credential = a.Server.Sessions[0], a.Server.Namespace, a.Server.Credential
	}
	cfg.Out, cfg.JSON = a.Out, a.Output == "json"
	if term.IsTerminal(int(os.Stderr.Fd())) {
		cfg.Progress = a.Err
	}
	// An interrupt of a scene ends the server and the agents too.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if ui {
		show(ctx, a, &cfg)
	}
	err := play(ctx, cfg)
	if err != nil && ctx.Err() != nil {
		return cli.ExitWith(
			cli.ExitSignal+int(syscall.SIGINT), errors.New("the scene was interrupted; its server and agents have ended"),
		)
	}
	return err
}

// namesServer reports whether the command line itself names a server. A variable in
// the environment is not enough: a demonstration must not land by accident where
// real agents work.
func namesServer(a *cli.App, cmd *cobra.Command) bool {
	for _, name := range []string{"url", "grpc-addr"} {
		if f := cmd.Flag(name); f != nil && f.Changed && !cli.Given(f) {
			return true
		}
	}
	return false
}

// oneServer refuses a list of servers, which would not be measured or shown alike.
func oneServer(a *cli.App, cmd *cobra.Command) error {
	if len(a.Server.Bases) > 1 || len(a.Server.Sessions) > 1 {
		return cli.Usagef("%s takes one server: name the active one", cmd.CommandPath())
	}
	return nil
}

// newDemoAgent is an agent of the race in a process of its own, because it will be
// frozen or killed.
func newDemoAgent(a *cli.App) *cobra.Command {
	return part("agent", "One agent of the race", func(ctx context.Context) error { return demo.Agent(ctx, a.In, a.Out) })
}

// newDemoWriter is the writer of the account scene, in a process of its own.
func newDemoWriter(a *cli.App) *cobra.Command {
	return part(
		"writer", "The writer of the account scene", func(ctx context.Context) error { return demo.Writer(ctx, a.In, a.Out) },
	)
}

// newDemoBuild is the check of the isolate scene's merge queue.
func newDemoBuild(*cli.App) *cobra.Command {
	return part("build", "The check of the isolate scene", func(context.Context) error { return demo.BuildHere() })
}

// part is a hidden command with which a scene starts a process.
func part(use, short string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:         use,
		Short:       short,
		Hidden:      true,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		Args:        cli.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
}
