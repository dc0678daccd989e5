package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/run"
	"github.com/interlockdev/interlock/workspace"
)

// portPool is the prefix of the pool of ports.
const portPool = "port:"

// visit is one use of run.
type visit struct {
	a *cli.App
	place
	q      acquire.Flags
	quiet  bool
	folder string
}

func newRun(a *cli.App) *cobra.Command {
	v := &visit{a: a}
	cmd := &cobra.Command{
		Use:                   "run [FLAGS] NAME -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command in a workspace, under its lease",
		Long: `Run a command in the folder of a workspace, and hold the lease workspace:REPO/NAME meanwhile,
as "interlock run" does: when the lease is lost the command is ended, with exit code 79. An
overlay is mounted if it has to be.

For each --port of "workspace new" it claims one key of the pool port:, which an administrator
makes with interlock pattern set port 'port:{n:int}' --member 'port:{20000..20099}'.

The command's environment has the variables of "interlock run", and

  INTERLOCK_WORKSPACE         REPO/NAME
  INTERLOCK_WORKSPACE_PATH    the path of the files
  INTERLOCK_WORKSPACE_TARGET  the branch that the work is for
  INTERLOCK_PORT_WEB          the port of the name web; PORT, too, where there is one alone

Within it "interlock workspace sync", "diff" and "submit" need no name, and use this lease.

Exit codes: the command's own, and those of "interlock run".`,
		Example: `  interlock workspace run fix-login -- claude -p "rename login to signIn"
  interlock workspace run --wait 0 fix-login -- make test`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, _, err := cli.OneAndCommand(cmd, "workspace", args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, w, err := v.find(cmd.Context(), args[:1])
			if err != nil {
				return exit(err)
			}
			if err := v.q.WaitFlags.Check(); err != nil {
				return err
			}
			if err := cli.CheckDurations(cli.Duration("--ttl", v.q.TTL, interlock.MinTTL, interlock.MaxTTL)); err != nil {
				return err
			}
			return v.run(cmd.Context(), w, args[1:], link.Repeated(cmd.InheritedFlags()))
		},
	}
	v.define(cmd)
	f := cmd.Flags()
	v.q.WaitFlags.Define(cmd)
	cli.DurationVar(f, &v.q.TTL, "ttl", interlock.DefaultTTL, "how long the lease outlives the last sign of life")
	f.StringVar(&v.q.Purpose, "purpose", "", "its purpose, for others to read (default: that of the workspace)")
	f.StringVar(&v.folder, "dir", ".", "the `folder` to run it in, relative to the workspace")
	cli.AgentVar(f, &v.q.Agent, "your `name`, for others to read")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

func (v *visit) run(ctx context.Context, w *workspace.Workspace, argv, pass []string) error {
	if !filepath.IsLocal(v.folder) {
		return cli.Usagef("--dir %s: want a folder below the workspace", v.folder)
	}
	if around(w.Key()) != "" {
		return cli.ExitWith(cli.ExitDeadlock, fmt.Errorf(
			"this command runs in workspace %s/%s already, under its lease: leave interlock workspace run out", w.Repo, w.Name,
		))
	}
	v.q.Purpose = cmp.Or(v.q.Purpose, w.Purpose, "run "+filepath.Base(argv[0]))
	u := &run.Under{
		Claims: []interlock.Claim{{Key: interlock.Key(w.Key()), Mode: interlock.Exclusive}},
		Flags:  v.q, Argv: argv, Env: variables(w), Pass: pass, Quiet: v.quiet,
		Prepare: func(ctx context.Context, c *client.Client, u *run.Under) error {
			return exit(v.prepare(ctx, c, u, w))
		},
	}
	return u.Run(ctx, v.a)
}

// prepare mounts the tree, claims the ports, and goes to the folder.
func (v *visit) prepare(ctx context.Context, c *client.Client, u *run.Under, w *workspace.Workspace) error {
	prefix, err := w.Enter(ctx, v.folder)
	if err != nil {
		return err
	}
	for _, name := range w.Ports {
		number, err := claimPort(ctx, c, name)
		if err != nil {
			return err
		}
		u.Env = append(u.Env, "INTERLOCK_PORT_"+variable(name)+"="+number)
		if len(w.Ports) == 1 {
			u.Env = append(u.Env, "PORT="+number)
		}
	}
	u.Argv = append(prefix, u.Argv...)
	if len(prefix) > 0 {
		return nil
	}
	if err := os.Chdir(filepath.Join(w.Path(), v.folder)); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return os.Setenv("PWD", filepath.Join(w.Path(), v.folder))
}

// claimPort takes a port of the pool. The lease ends with the session.
func claimPort(ctx context.Context, c *client.Client, name string) (string, error) {
	lease, err := c.Acquire(ctx, client.Request{Prefix: portPool, Flow: client.SharedFlow, Purpose: "port " + name})
	if err != nil {
		return "", fmt.Errorf("no port for %s: %w", name, err)
	}
	key := string(lease.Key())
	return key[strings.LastIndexAny(key, ":/")+1:], nil
}

// variable is a name as a part of a variable's.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}
