package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
)

func newDiff(a *cli.App) *cobra.Command {
	var p place
	var merged, stat, names bool
	cmd := &cobra.Command{
		Use:   "diff [NAME]",
		Short: "Show what a workspace changed",
		Long: `Show what a workspace changed since it last took its target in, untracked files included. With
--merged, show what the target would become if it was submitted as it is now; files in
conflict are shown with markers, and named on standard error.

Without NAME it is the workspace of this folder. Exit codes: 65 with --merged, there are
conflicts; 2 wrong flags.`,
		Example: `  interlock workspace diff fix-login --stat
  interlock workspace diff fix-login --merged`,
		Args:        cli.AtMostOneArg,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, w, err := p.find(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			var more []string
			if stat {
				more = append(more, "--stat")
			}
			if names {
				more = append(more, "--name-status")
			}
			if !merged {
				return exit(w.Diff(cmd.Context(), a.Out, more...))
			}
			conflicts, err := w.Merged(cmd.Context(), a.Out, more...)
			if err == nil && len(conflicts) > 0 {
				err = cli.ExitWith(cli.ExitConflict, fmt.Errorf(
					"conflicts with %s in %s: `interlock workspace sync` takes it in", w.Target, strings.Join(conflicts, ", "),
				))
			}
			return exit(err)
		},
	}
	p.define(cmd)
	f := cmd.Flags()
	f.BoolVar(&merged, "merged", false, "against the target, as it would be merged now")
	f.BoolVar(&stat, "stat", false, "the lines changed in each file")
	f.BoolVar(&names, "names", false, "the changed files")
	return cmd
}

func newSync(a *cli.App) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "sync [NAME]",
		Short: "Take the target branch into a workspace",
		Long: `Merge the target branch, as it is now, into the workspace. Where both changed a file
differently it gets conflict markers, which tell the purposes of both sides. Resolve them, git
add the files, and submit.

Without NAME it is the workspace of this folder. Exit codes: 65 conflicts, 1 changed files
have to be committed first, 69 no server answered, 75 another command has the workspace,
79 the lease was lost.`,
		Example: `  interlock workspace sync fix-login`,
		Args:    cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, w, err := p.find(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			return holding(
				cmd.Context(), a, w.Key(), w.Agent, purposeOf(w, "take "+w.Target+" in"),
				func(ctx context.Context, held *hold) error {
					if err := w.Use(); err != nil {
						return err
					}
					done, err := w.Sync(ctx)
					if err != nil {
						return err
					}
					return errors.Join(synced(a, w, done), held.describe(ctx, w))
				},
			)
		},
	}
	p.define(cmd)
	return cmd
}

// synced reports what Sync did.
func synced(a *cli.App, w *workspace.Workspace, done *workspace.Synced) error {
	var err error
	if len(done.Conflicts) > 0 {
		err = cli.ExitWith(cli.ExitConflict, fmt.Errorf(
			"%s: resolve what is marked, git add the files, and submit --all",
			cli.Count(len(done.Conflicts), "conflict", "conflicts"),
		))
	}
	if a.JSON() {
		return errors.Join(err, a.Print(done))
	}
	switch {
	case done.Commits == 0:
		a.Say("%s has nothing new\n", cli.Clean(w.Target))
	default:
		a.Say("%s of %s\n", cli.Count(done.Commits, "commit", "commits"), cli.Clean(w.Target))
	}
	for _, c := range done.Conflicts {
		a.Complain("conflict: %s", cli.Clean(c.Path))
		for _, l := range c.Landed {
			a.Complain("  changed by %s: %s (%s)", cli.Clean(l.Author), cli.Clean(l.Purpose), l.Commit[:12])
		}
	}
	return err
}
