package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
)

// unusedFor is the default of prune: two weeks.
const unusedFor = 14 * 24 * time.Hour

func newPrune(a *cli.App) *cobra.Command {
	var p place
	var unused time.Duration
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune [REPO]",
		Short: "Delete workspaces that were not used for two weeks",
		Long: `Delete the workspaces on this host that were not used for two weeks. One with work that was not
submitted stays, and is named; so does one that a command uses, since each is deleted under its
lease. Used means a run, a sync, a submission, or a commit or checkout by anybody. As with
"delete", files that git ignores go, and a database clone is dropped.

Exit codes: 0 also if some stay; 69 no server answered, 77 not allowed, 2 wrong flags.`,
		Example: `  interlock workspace prune --dry-run
  interlock workspace prune web --unused 72h`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			repo := p.repo
			if len(args) == 1 {
				repo = args[0]
			}
			if unused < 0 {
				return cli.Usagef("--unused %v: want a duration of at least 0", unused)
			}
			h, err := p.host()
			if err != nil {
				return err
			}
			return prune(cmd.Context(), a, h, repo, unused, dry)
		},
	}
	p.define(cmd)
	cli.DurationVar(cmd.Flags(), &unused, "unused", unusedFor, "delete those that were not used for so long")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "name what would be deleted, and delete nothing")
	return cmd
}

// pruneRow is the fate of a workspace that was not used.
type pruneRow struct {
	Repo    string    `json:"repo"`
	Name    string    `json:"name"`
	LastUse time.Time `json:"last_use"`
	Deleted bool      `json:"deleted"`
	// Reason is why it stays.
	Reason string `json:"reason,omitempty"`
}

func prune(ctx context.Context, a *cli.App, h *workspace.Host, repo string, unused time.Duration, dry bool) error {
	all, err := h.List(repo)
	if err != nil {
		return err
	}
	for _, w := range all {
		last := w.LastUse()
		if time.Since(last) < unused {
			continue
		}
		done := pruneRow{Repo: w.Repo, Name: w.Name, LastUse: last.UTC()}
		if around(w.Key()) != "" {
			done.Reason = "this command runs in it"
		} else if dry {
			done.Reason, err = wouldStay(ctx, w)
		} else if _, err = erase(ctx, a, h, w, false, false); err == nil {
			done.Deleted = true
		} else if errors.Is(err, workspace.ErrUnsubmitted) || errors.Is(err, workspace.ErrBroken) ||
			cli.ExitCode(err) == cli.ExitNotAcquired {
			done.Reason, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
		if a.JSON() {
			if err := a.Print(done); err != nil {
				return err
			}
			continue
		}
		switch since := cli.Short(time.Since(last)); {
		case done.Deleted:
			a.Say("deleted %s/%s, not used for %s\n", w.Repo, w.Name, since)
		case done.Reason != "":
			a.Complain("kept %s/%s, not used for %s: %s", w.Repo, w.Name, since, cli.Clean(done.Reason))
		default:
			a.Say("would delete %s/%s, not used for %s\n", w.Repo, w.Name, since)
		}
	}
	return nil
}

// wouldStay returns why a workspace would not be deleted, or "".
func wouldStay(ctx context.Context, w *workspace.Workspace) (string, error) {
	if w.Phase != workspace.Ready {
		return "", nil
	}
	s, err := w.Work(ctx)
	if err != nil {
		return err.Error(), nil
	}
	if s.Unsubmitted() {
		return "it has " + s.String(), nil
	}
	return "", nil
}
