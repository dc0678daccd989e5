package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/confine"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/run"
	"github.com/interlockdev/interlock/workspace"
	"github.com/interlockdev/interlock/workspace/sandbox"
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
	files  []*os.File // of the command, nil for those of this process

	confine confine.Flags
	boxed   bool   // there is to be a sandbox
	db      *clone // of the workspace, nil if it has none
	ports   []*client.Lease
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

A workspace with a database clone has DATABASE_URL, PGDATABASE and so on, too.

With --sandbox, --net, --limit, --read or --write the command runs in a sandbox: it can write to
the workspace, read the system directories, and see little else: no home directory, no other
workspace. --net loopback leaves the server and the clone in reach. "interlock workspace sandbox"
shows what is enforced. A limit that cannot be enforced is refused. What submits or syncs runs
outside, because it writes to the repository.

Without a sandbox "interlock workspace sync", "diff" and "submit" need no name, and use this lease.

Exit codes: the command's own, 124 if the time of --limit was over, and those of "interlock run".`,
		Example: `  interlock workspace run fix-login -- claude -p "rename login to signIn"
  interlock workspace run --wait 0 fix-login -- make test
  interlock workspace run fix-login --net loopback --limit memory=4G,time=30m -- make test`,
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
			ttl := cli.Duration("--ttl", cmp.Or(v.q.TTL, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL)
			if err := cli.CheckDurations(ttl); err != nil {
				return err
			}
			if v.boxed, err = v.confine.Check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), w, args[1:], link.Repeated(cmd.InheritedFlags()))
		},
	}
	v.define(cmd)
	v.confine.Define(cmd)
	f := cmd.Flags()
	v.q.WaitFlags.Define(cmd)
	cli.TTLVar(f, &v.q.TTL, "the lease", "the key pattern's")
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
		Flags:  v.q, Argv: argv, Env: variables(w), Pass: pass, Quiet: v.quiet, Files: v.files,
		Prepare: func(ctx context.Context, c *client.Client, u *run.Under) error {
			return exit(v.prepare(ctx, c, u, w))
		},
	}
	if v.boxed {
		u.Box = func(argv, env []string) (*sandbox.Sandbox, error) { return v.box(ctx, w, argv, env) }
		u.Reached = v.confine.Reached
	}
	return u.Run(ctx, v.a)
}

// prepare mounts the tree, claims the ports, and goes to the folder.
func (v *visit) prepare(ctx context.Context, c *client.Client, u *run.Under, w *workspace.Workspace) error {
	if err := w.Use(); err != nil {
		return err
	}
	var prefix []string
	if !v.boxed || !w.Rootless { // the sandbox mounts the overlay of an ordinary user itself
		var err error
		if prefix, err = w.Enter(ctx, v.folder); err != nil {
			return err
		}
	}
	if err := v.prepareDatabase(u, w); err != nil {
		return err
	}
	for _, name := range w.Ports {
		number, err := v.claimPort(ctx, c, name)
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
	if v.boxed {
		u.Env = append(u.Env, "PWD="+filepath.Join(w.Path(), v.folder))
		return nil
	}
	if err := os.Chdir(filepath.Join(w.Path(), v.folder)); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return os.Setenv("PWD", filepath.Join(w.Path(), v.folder))
}

// prepareDatabase adds the variables of the clone.
func (v *visit) prepareDatabase(u *run.Under, w *workspace.Workspace) (err error) {
	if v.db, err = cloneOf(w); err != nil || v.db == nil {
		return err
	}
	host := ""
	if v.boxed && v.confine.Net() == sandbox.NetLoopback {
		if host, err = v.db.hostInside(); err != nil {
			return err
		}
	}
	env, err := v.db.environ(host)
	u.Env = append(u.Env, env...)
	return err
}

// claimPort takes a port of the pool, in a flow of its own: one flow would get the same port again. The
// lease ends with the session.
func (v *visit) claimPort(ctx context.Context, c *client.Client, name string) (string, error) {
	lease, err := c.Acquire(ctx, client.Request{Prefix: portPool, Flow: "port-" + name, Purpose: "port " + name})
	if refused, ok := errors.AsType[*interlock.Error](err); ok && refused.Code == interlock.CodeUnmatchedKey {
		return "", cli.ExitWith(cli.ExitCode(err), fmt.Errorf(
			"no port for %s: there is no pool of ports; an administrator makes one by "+
				"interlock pattern set port 'port:{n:int}' --member 'port:{20000..20099}'", name,
		))
	}
	if err != nil {
		return "", cli.ExitWith(cli.ExitCode(err), fmt.Errorf("no port for %s: %s", name, v.a.Sentence(err)))
	}
	v.ports = append(v.ports, lease)
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
