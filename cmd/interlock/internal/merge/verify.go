package merge

import (
	"context"
	"errors"
	"fmt"
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

// open opens a boundary that writes nothing into the repository, and returns where the branch is.
func (b *branch) open(ctx context.Context) (*merge.Boundary, git.Repository, merge.Position, error) {
	repo, err := repository(ctx, b.repo)
	if err != nil {
		return nil, repo, merge.Position{}, err
	}
	if err := git.CheckRef(b.ref); err != nil {
		return nil, repo, merge.Position{}, cli.Usagef("--ref: %w", err)
	}
	at, err := (&merge.Target{Repository: repo, Ref: b.ref}).Read(ctx)
	if err != nil {
		return nil, repo, at, err
	}
	profile, err := b.profile(ctx)
	if err != nil {
		return nil, repo, at, err
	}
	boundary, err := merge.Open(ctx, merge.Config{Repository: repo.Dir, Profile: profile, Discard: true})
	return boundary, repo, at, err
}

func newVerify(a *cli.App) *cobra.Command {
	var b branch
	var keys signers
	cmd := &cobra.Command{
		Use:   "verify [REPO/TARGET]",
		Short: "Compute every landing of a branch again",
		Long: `Compute every landing of a branch again, from the repository alone, and compare: each must have
the tree and the commit that its submission makes of the landing before, and leave alone what
the submission does not touch. A branch that was rewound behind its last landing is named. It
writes nothing, and asks no server unless REPO/TARGET is named: then it also prints which check has
passed each landing, and which credential has reported that.
The server keeps this of the last 1,000 landings. With REPO/TARGET, --ref is that of the target.

Signatures are read with your gpg keys, and without the configuration of git. The key of each is
printed, and a bad one is damage. With --signed-by each landing must have a good one of such a key,
so that a landing which another program has made is found.

Repeat the --renumber of "merge serve" here; a landing that was renumbered by another command is
named, with both digests.

Exit codes: 0 all is as it should be, or cannot be judged here: another git or command made it,
or a submission is gone; 1 a landing is not what the boundary makes, or the server knows of no
check that it has passed; 69 no server answered.`,
		Example: `  interlock merge verify --repo /srv/git/web.git --ref refs/heads/main
  interlock merge verify web/main --repo /srv/git/web.git`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 1 {
				return b.verifyChecked(ctx, a, args[0], keys.keys)
			}
			boundary, _, at, err := b.open(ctx)
			if err != nil {
				return err
			}
			defer boundary.Close()
			report, err := boundary.Verify(ctx, at.Head, b.from, nil)
			if err != nil {
				return err
			}
			if err := boundary.VerifyFence(ctx, &report, at.Head, at.Fence); err != nil {
				return err
			}
			if err := boundary.VerifySignatures(ctx, &report, at.Head, b.from, keys.keys); err != nil {
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
				text := ""
				if report.Requests > 0 {
					text = fmt.Sprintf(", %d through requests", report.Requests)
				}
				a.Say("%s, %d as computed again%s\n", cli.Count(report.Landings, "landing", "landings"), report.Same, text)
				if text := summary(report.Signatures); text != "" {
					a.Say("%s\n", text)
				}
			}
			if report.Damaged() {
				return errNotOurs
			}
			return nil
		},
	}
	b.define(cmd)
	keys.define(cmd)
	return cmd
}

// verifyChecked is verify with what the server knows of the checks.
func (b *branch) verifyChecked(ctx context.Context, a *cli.App, target string, keys []string) error {
	n, err := nameArg(target)
	if err != nil {
		return err
	}
	b.ref = n.Ref()
	r, err := b.audit(ctx, a, n, keys)
	if err != nil {
		return err
	}
	if a.JSON() {
		if err := a.Print(r); err != nil {
			return err
		}
	} else {
		for i := range r.Landings {
			l := &r.Landings[i]
			text := "no check is known to have passed"
			for j, v := range l.Checks {
				if text += ", "; j == 0 {
					text = ""
				}
				text += fmt.Sprintf("%s passed by %s (%s)", v.Name, cli.OrDash(cli.Clean(v.Principal)), v.Task)
			}
			a.Say("landing %d %.12s: %s\n", l.Sequence, l.Commit, text)
		}
		for _, f := range r.Findings {
			a.Say("%s %.12s: %s\n", f.Kind, f.Commit, cli.Clean(f.Detail))
		}
		s := &r.Summary
		a.Say(
			"%s, %d as computed again, %d without a check\n", cli.Count(s.Landings, "landing", "landings"), s.Verified,
			s.Unchecked,
		)
		if text := summary(r.signatures); text != "" {
			a.Say("%s\n", text)
		}
	}
	return r.verdict()
}

// errNotOurs is that a branch has other commits than the boundary makes.
var errNotOurs = errors.New("the branch is not what the merge boundary makes of its submissions")

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
			boundary, repo, at, err := b.open(ctx)
			if err != nil {
				return err
			}
			defer boundary.Close()
			head := at.Head
			turns, err := boundary.Turns(ctx, head, b.from)
			if err != nil {
				return err
			}
			got, err := replay(ctx, repo, to, b.ref, boundary.Profile(), turns, head)
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
	ctx context.Context, from git.Repository, to, ref string, profile merge.Profile, turns []merge.Turn, end string,
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
	if head != end && boundary.Carry(ctx, from, end, head) == nil { // the last landings came by a request
		head = end
	}
	_, err = again.Output(ctx, "update-ref", ref, head)
	return head, err
}
