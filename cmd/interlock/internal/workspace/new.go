package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/confine"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/workspace"
)

// creation is one use of new.
type creation struct {
	a *cli.App
	place
	o       workspace.Options
	kind    cli.Choice
	minFree int
	export  bool
	db      databaseFlags

	setup   string
	confine confine.Flags
	boxed   bool     // the setup command runs in a sandbox
	pass    []string // variables for it that repeat flags
}

func newNew(a *cli.App) *cobra.Command {
	c := &creation{a: a}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a workspace, and print its path",
		Long: `Make a workspace of the repository, at the target branch as it is now, and print the path of
its files. Standard error tells which kind was chosen, and why:

  overlay   mounted over a checkout that all workspaces at this commit share: nothing is copied.
            Only root may mount for all programs; as an ordinary user the files are visible to
            "interlock workspace run" only, so it has to be asked for.
  reflink   a copy that shares blocks, on Btrfs, XFS and APFS
  worktree  all files checked out
  sparse    the folders of --sparse checked out, and the files above and beside them
  auto      overlay as root, else reflink, else worktree

Stash, configuration, hooks and branches are the workspace's own. It has the user's name for
commits, and what the repository ignores. Files that .worktreeinclude at the top of the
repository matches, in the syntax of .gitignore, and that git ignores, are copied as well.

--setup runs a shell command in the new workspace, as "interlock workspace run" does; its output
goes to standard error. Without --setup it is interlock.setup of your configuration of git. With
--sandbox, --net, --limit, --read or --write it runs in a sandbox. If it fails, the workspace is
left, and --reuse runs it again.

--on starts from a submission that has not landed yet, in place of the target: name it, or the
workspace of this repository that submitted it last. "interlock workspace submit" then hands in what
builds on it, which lands after it: see its --on.

--reuse prints the path of the workspace of that name if there is one of the same repository and
target.

With --db it clones a database as well, and "interlock workspace run" leads to the clone by
DATABASE_URL and the variables of libpq. The clone is dropped with the workspace.

Exit codes: 1 the setup command failed; 75 too many workspaces or too little free disk, or another command has the
workspace; 69 no server answered, 77 not allowed, 79 the lease was lost, 2 wrong flags.`,
		Example: `  cd "$(interlock workspace new fix-login --purpose "rename login")"
  interlock workspace new fix-1 --repo ~/src/web --target main --include .env --share node_modules
  interlock workspace new fix-2 --setup "npm ci" --net host --read ~/.npm
  interlock workspace new fix-2 --db env:DATABASE_URL
  interlock workspace new fix-3 --on fix-1
  interlock workspace new docs-1 --sparse docs
  eval "$(interlock workspace new fix-2 --port web --export)"`,
		Args: cli.OneArg("the workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.o.Name, c.o.Kind, c.o.Repo = args[0], workspace.Kind(c.kind.Value), c.repo
			if cmd.Flags().Changed("setup") {
				c.o.Setup = &c.setup
			}
			var err error
			if c.boxed, err = c.confine.Check(cmd); err != nil {
				return err
			}
			c.pass = link.Repeated(cmd.InheritedFlags())
			return c.make(cmd.Context())
		},
	}
	c.define(cmd)
	f := cmd.Flags()
	f.StringVar(&c.o.Source, "repo", ".", "a `path` in the repository, or of a bare one")
	f.StringVar(&c.o.Target, "target", "", "the `branch` that the work is for (default: the one that is checked out)")
	f.StringVar(
		&c.o.Upstream, "upstream", "",
		"the `repository` of the merge queue, as a path or URL: submissions go there, and the target is taken from there "+
			"(default: --repo)",
	)
	f.StringVar(
		&c.o.On, "on", "", "the `submission` that the work builds on, or the workspace that has submitted it last",
	)
	c.kind.Value = string(workspace.Auto)
	c.kind.Among(
		cmd, "kind", "how the files come to be there",
		string(workspace.Auto), string(workspace.Overlay), string(workspace.Reflink), string(workspace.Worktree),
		string(workspace.Sparse),
	)
	f.StringArrayVar(&c.o.Include, "include", nil, "a `file` or folder that git ignores, to be copied; may be repeated")
	f.StringArrayVar(
		&c.o.Share, "share", nil,
		"a `folder` that git ignores, to be a link to the repository's, such as a build cache; may be repeated",
	)
	f.StringArrayVar(&c.o.Sparse, "sparse", nil, "a `folder` to check out alone, for kind sparse; may be repeated")
	f.StringArrayVar(
		&c.o.Ports, "port", nil,
		"the `name` of a network port: each run claims one of the pool port: for it; may be repeated",
	)
	f.BoolVar(&c.o.Reuse, "reuse", false, "take the workspace of that name if there is one")
	c.setupVar(cmd)
	c.confine.Define(cmd)
	f.StringVar(&c.o.Purpose, "purpose", "", "its purpose, for others to read, also in conflict markers")
	cli.AgentVar(f, &c.o.Agent, "the agent's `name`")
	c.minFreeVar(cmd)
	c.db.define(cmd)
	f.BoolVar(&c.export, "export", false, "print variables for a shell in place of the path")
	return cmd
}

const minFreeVariable = "INTERLOCK_MIN_FREE"

// minFreeVar defines the flag for the least free disk.
func (c *creation) minFreeVar(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&c.minFree, "min-free", workspace.DefaultMinFree, "how many `percent` of the disk must be free")
	cli.Bind(f, "min-free", minFreeVariable)
}

// setupVar defines the flag for the setup command.
func (c *creation) setupVar(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&c.setup, "setup", "",
		"a shell `command` that makes the workspace ready, such as npm ci (default: interlock.setup of git config)",
	)
}

// make makes the workspace, makes it ready, and prints it.
func (c *creation) make(ctx context.Context) error {
	w, err := c.create(ctx)
	if err != nil {
		return err
	}
	for _, note := range w.Notes {
		c.a.Complain("%s", cli.Clean(note))
	}
	if w.Setup != "" && !w.SetUp {
		if err := c.prepare(ctx, w); err != nil {
			return err
		}
	}
	return c.print(w)
}

// prepare runs the setup command in the workspace.
func (c *creation) prepare(ctx context.Context, w *workspace.Workspace) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	v := &visit{
		a: c.a, place: c.place, folder: ".", files: []*os.File{null, os.Stderr, os.Stderr},
		confine: c.confine, boxed: c.boxed,
	}
	v.q.Agent, v.q.Purpose = c.o.Agent, "set up the workspace"
	if err := v.run(ctx, w, []string{"sh", "-c", w.Setup}, c.pass); err != nil {
		why := fmt.Sprintf("exit code %d", cli.ExitCode(err))
		if text := c.a.Sentence(err); text != "" {
			why = text
		}
		return cli.ExitWith(cli.ExitFailure, fmt.Errorf(
			"the setup command of %s/%s failed (%s), and the workspace is left in %s: "+
				"run `interlock workspace new %s --reuse` to try again, or delete it", w.Repo, w.Name, why, w.Path(), w.Name,
		))
	}
	return w.Prepared()
}

// create makes the workspace under its lease.
func (c *creation) create(ctx context.Context) (w *workspace.Workspace, err error) {
	if c.minFree < 0 || c.minFree > 100 {
		return nil, cli.Usagef("--min-free %d: want a percentage from 0 to 100", c.minFree)
	}
	h, err := c.host()
	if err != nil {
		return nil, err
	}
	h.MinFree = c.minFree
	c.o.Agent = cmp.Or(c.o.Agent, cli.OwnName())
	plan, err := h.Prepare(ctx, c.o)
	if err != nil {
		return nil, exit(err)
	}
	if c.boxed && plan.Setup == "" {
		return nil, cli.Usagef("--sandbox is for the setup command: add --setup, or use it with interlock workspace run")
	}
	purpose := cmp.Or(c.o.Purpose, "create the workspace")
	err = holding(ctx, c.a, plan.Key(), c.o.Agent, purpose, func(ctx context.Context, held *hold) error {
		if w, err = h.Create(ctx, plan); err != nil {
			return err
		}
		if w.Reused {
			return nil
		}
		if err := c.db.create(ctx, w); err != nil {
			_, undone := h.Delete(context.WithoutCancel(ctx), w.Repo, w.Name, false)
			return errors.Join(err, undone)
		}
		return held.describe(ctx, w)
	})
	return w, err
}

func (c *creation) print(w *workspace.Workspace) error {
	if c.a.JSON() {
		return c.a.Print(&w.Record)
	}
	how := string(w.Kind)
	if w.Copied {
		how += ", with a copy of the objects, because the repository cannot be written"
	}
	if w.Reused {
		c.a.Complain("%s: it was there already, for %s", w.Key(), cli.Clean(w.Target))
	} else {
		of := cli.Clean(w.Target)
		if w.On != "" {
			of = "submission " + w.On + " for " + of
		}
		c.a.Complain("%s: %s at %s of %s (%s)", w.Key(), how, w.Start[:12], of, w.Why)
	}
	if !c.export {
		c.a.Say("%s\n", w.Path())
		return nil
	}
	for _, v := range variables(w) {
		name, value, _ := strings.Cut(v, "=")
		c.a.Say("export %s=%s\n", name, cli.Quote(value))
	}
	return nil
}

// variables are what a program in the workspace may want to know.
func variables(w *workspace.Workspace) []string {
	return []string{
		"INTERLOCK_WORKSPACE=" + w.Repo + "/" + w.Name,
		"INTERLOCK_WORKSPACE_PATH=" + w.Path(),
		fmt.Sprintf("INTERLOCK_WORKSPACE_TARGET=%s", w.Target),
	}
}
