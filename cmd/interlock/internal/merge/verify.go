package merge

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// branch is the flags that name a branch of a git directory.
type branch struct {
	repo, ref string
	from      uint64
	rules
}

func (b *branch) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.repo, "repo", ".", "the git `directory` with the branch")
	f.StringVar(&b.ref, "ref", "refs/heads/main", "the full name of the `branch`")
	b.rules.define(cmd)
	f.Uint64Var(&b.from, "from", 0, "begin at the landing with this `number` (default: the first)")
}

// open opens a boundary that writes nothing into the repository, and returns the branch's head.
func (b *branch) open(ctx context.Context) (*merge.Boundary, git.Repository, string, error) {
	repo, err := repository(ctx, b.repo)
	if err != nil {
		return nil, repo, "", err
	}
	if err := git.CheckRef(b.ref); err != nil {
		return nil, repo, "", cli.Usagef("--ref: %w", err)
	}
	at, err := (&merge.Target{Repository: repo, Ref: b.ref}).Read(ctx)
	if err != nil {
		return nil, repo, "", err
	}
	profile, err := b.profile(ctx)
	if err != nil {
		return nil, repo, "", err
	}
	boundary, err := merge.Open(ctx, merge.Config{Repository: repo.Dir, Profile: profile, Discard: true})
	return boundary, repo, at.Head, err
}

func newVerify(a *cli.App) *cobra.Command {
	var b branch
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compute every landing of a branch again",
		Long: `Compute every landing of a branch again, from the repository alone, and compare: each must have
the tree and the commit that its submission makes of the landing before, and leave alone what
the submission does not touch. It asks no server, and writes nothing.

Repeat the --renumber of "merge serve" here; a landing that was renumbered by another command is
named, with both digests.

Exit codes: 0 all is as it should be, or cannot be judged here: another git or command made it,
or a submission is gone; 1 a landing is not what the boundary makes.`,
		Example:     `  interlock merge verify --repo /srv/git/web.git --ref refs/heads/main`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			boundary, _, head, err := b.open(ctx)
			if err != nil {
				return err
			}
			defer boundary.Close()
			report, err := boundary.Verify(ctx, head, b.from, nil)
			if err != nil {
				return err
			}
			if a.JSON() {
				if err := a.Print(&report); err != nil {
					return err
				}
			} else {
				for _, f := range report.Findings {
					a.Say("%s %.12s: %s\n", f.Kind, f.Commit, cli.Clean(f.Detail))
				}
				a.Say("%s, %d as computed again\n", cli.Count(report.Landings, "landing", "landings"), report.Same)
			}
			if report.Damaged() {
				return errors.New("the branch is not what the merge boundary makes of its submissions")
			}
			return nil
		},
	}
	b.define(cmd)
	return cmd
}

func newReplay(a *cli.App) *cobra.Command {
	var b branch
	var to string
	cmd := &cobra.Command{
		Use:   "replay --to DIR",
		Short: "Build a branch again in an empty repository",
		Long: `Make a bare repository in a folder that does not exist yet, and land all submissions of a branch
in it again, in their order. The same git makes the same head; the command prints it, and
fails if it differs. It asks no server.`,
		Example:     `  interlock merge replay --repo /srv/git/web.git --to /tmp/again.git`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if to == "" {
				return cli.Usagef("--to is missing: name a folder that does not exist yet")
			}
			boundary, repo, head, err := b.open(ctx)
			if err != nil {
				return err
			}
			defer boundary.Close()
			turns, err := boundary.Turns(ctx, head, b.from)
			if err != nil {
				return err
			}
			got, err := replay(ctx, repo, to, b.ref, boundary.Profile(), turns)
			if err != nil {
				return err
			}
			if a.JSON() {
				err = a.Print(&struct {
					Landings int    `json:"landings"`
					Head     string `json:"head"`
				}{len(turns), got})
			} else {
				a.Say("%s, head %s\n", cli.Count(len(turns), "landing", "landings"), got)
			}
			if err == nil && got != head {
				return errors.New("the head of the branch is " + head + ": it is not what this git makes of its submissions")
			}
			return err
		},
	}
	b.define(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the `folder` of the new repository")
	return cmd
}

// replay lands turns in a new repository, and sets its branch.
func replay(
	ctx context.Context, from git.Repository, to, ref string, profile merge.Profile, turns []merge.Turn,
) (string, error) {
	if err := os.Mkdir(to, 0o777); errors.Is(err, fs.ErrExist) {
		return "", cli.Usagef("--to %s is there already: name a folder that replay makes", cli.Quote(to))
	} else if err != nil {
		return "", err
	}
	if _, err := new(git.Repository).Output(ctx, "init", "--quiet", "--bare", "--end-of-options", to); err != nil {
		return "", err
	}
	again, err := repository(ctx, to)
	if err != nil {
		return "", err
	}
	boundary, err := merge.Open(ctx, merge.Config{Repository: again.Dir, Profile: profile})
	if err != nil {
		return "", err
	}
	defer boundary.Close()
	head, err := merge.Replay(ctx, boundary, from, turns)
	if err != nil {
		return "", err
	}
	_, err = again.Output(ctx, "update-ref", ref, head)
	return head, err
}
