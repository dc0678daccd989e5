package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/git"
)

func newGuardGit(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "git",
		Short: "Refuse pushes of paths that others hold",
		Long: `Refuse pushes of paths that others hold: with a hook in a repository on the side of the
server, and for stock Git LFS clients with their locks kept as leases. Where no hook can be
installed, find changes without a lease in a range of commits. A path of a repository is a
key, repo:NAME/PATH unless --key sets another form.`,
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardGitPreReceive(a), newGuardGitVerify(a), newGuardGitLFS(a))
	return cmd
}

// repoKeys is the flags that say which key a path is.
type repoKeys struct{ repo, template string }

func (k *repoKeys) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&k.repo, "repo", "", "the repository's `name` in keys")
	f.StringVar(&k.template, "key", git.DefaultTemplate, "the key of a path, a `template` with {name} and {path}")
}

func (k *repoKeys) keys() (git.Keys, error) {
	if k.repo == "" {
		return git.Keys{}, cli.Usagef("--repo: name the repository as in keys")
	}
	keys, err := git.NewKeys(k.template, k.repo)
	if err != nil {
		return keys, cli.Usagef("%w", err)
	}
	return keys, nil
}

// preReceive is the flags of guard git pre-receive.
type preReceive struct {
	repoKeys
	require  cli.Choice
	refs     []string
	maxPaths int
	userEnv  string
	failOpen bool
}

func newGuardGitPreReceive(a *cli.App) *cobra.Command {
	var p preReceive
	cmd := &cobra.Command{
		Use:   "pre-receive --repo NAME",
		Short: "Run as a repository's pre-receive hook",
		Long: `Run as the pre-receive hook of a repository: read the refs that a push moves from standard
input, compute the paths that change, and refuse the push when another holder has one of
them, or a path above or below it, in a mode that keeps writers out. With --require lease
every path must be covered by a lease that the pusher shows.

A pusher shows a lease with git push -o interlock-lease=l_... (the repository needs
receive.advertisePushOptions), or in INTERLOCK_LEASE where git runs on its own machine.

The hook is a file hooks/pre-receive that can be executed:

  #!/bin/sh
  exec interlock guard git pre-receive --repo web --url http://127.0.0.1:7420

When Interlock cannot be reached the push is refused, unless --fail-open is set.`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), a) },
	}
	p.repoKeys.flags(cmd)
	p.require.Among(cmd, "require", "what a push needs", string(git.RequireNone), string(git.RequireLease))
	f := cmd.Flags()
	f.StringSliceVar(&p.refs, "refs", []string{"refs/heads/"}, "`prefixes` of the refs that are guarded")
	f.IntVar(&p.maxPaths, "max-paths", 10_000, "how many `paths` a push may change")
	f.StringVar(
		&p.userEnv, "user-env", "",
		"the `variable` with the git server's name for the pusher, such as REMOTE_USER; that user's Git LFS locks then count as its own",
	)
	f.BoolVar(&p.failOpen, "fail-open", false, "let pushes through while Interlock cannot be reached")
	return cmd
}

func (p *preReceive) run(ctx context.Context, a *cli.App) error {
	keys, err := p.keys()
	if err != nil {
		return err
	}
	if p.maxPaths < 1 {
		return cli.Usagef("--max-paths %d: want at least 1", p.maxPaths)
	}
	d, err := serverAPI(a)
	if err != nil {
		return err
	}
	hook := git.Hook{
		API: d, Keys: keys, Require: git.RequireNone, Refs: p.refs, MaxPaths: p.maxPaths, Leases: git.Shown(os.Getenv),
	}
	if p.require.Value != "" {
		hook.Require = git.Require(p.require.Value)
	}
	if p.userEnv != "" {
		hook.User = os.Getenv(p.userEnv)
	}
	err = hook.Check(ctx, a.In)
	if refused, ok := errors.AsType[*git.RefusedError](err); ok {
		for line := range strings.Lines(refused.Text) {
			fmt.Fprintln(a.Err, strings.TrimSuffix(line, "\n"))
		}
		return cli.ExitWith(cli.ExitForCode(refused.Code), nil)
	}
	if errors.Is(err, apiclient.ErrUnreachable) {
		if p.failOpen {
			a.Complain("the push is not checked: %v", err)
			return nil
		}
		return cli.ExitWith(cli.ExitUnreachable, err)
	}
	return err
}

// verify is the flags of guard git verify.
type verify struct {
	repoKeys
	commits  string
	within   time.Duration
	maxPaths int
}

func newGuardGitVerify(a *cli.App) *cobra.Command {
	var v verify
	cmd := &cobra.Command{
		Use:   "verify --repo NAME --range FROM..TO",
		Short: "Find changes that were made without a lease",
		Long: `Find changes in the commits of a range that were made without a lease, as a required check of
a hosted forge, where no hook can be installed. A changed path is covered if an exclusive
lease on it, or on a directory above it, was in force within the given time before the
commit's author date, also in another worktree or clone (repo:NAME@COPY/PATH). A merge changes
only the paths in which it differs from all of its parents.

It needs a credential that may read, and the history of the journal up to the oldest commit.
It shows that an agent held the path, not that the author did. Exit codes: 0 all changes are
covered, 77 some are not, 69 no server answers.`,
		Example: `  interlock guard git verify --repo web --range origin/main..HEAD
  interlock guard git verify --repo web --range "$BASE..$HEAD" --within 2h`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.run(cmd.Context(), a) },
	}
	v.repoKeys.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&v.commits, "range", "", "the `commits`, as git log takes them: FROM..TO")
	cli.DurationVar(f, &v.within, "within", 24*time.Hour, "the longest time from the end of a lease to the commit")
	f.IntVar(&v.maxPaths, "max-paths", 10_000, "how many `paths` the commits may change")
	return cmd
}

// clockSlack is by how much the clocks of authors and of the server may differ.
const clockSlack = 5 * time.Minute

func (v *verify) run(ctx context.Context, a *cli.App) error {
	keys, err := v.keys()
	if err != nil {
		return err
	}
	if strings.HasPrefix(v.commits, "-") || !strings.Contains(v.commits, "..") {
		return cli.Usagef("--range %q: want two commits, such as origin/main..HEAD", v.commits)
	}
	if v.maxPaths < 1 {
		return cli.Usagef("--max-paths %d: want at least 1", v.maxPaths)
	}
	d, err := serverAPI(a)
	if err != nil {
		return err
	}
	check := git.Verify{
		API: d, Keys: keys, Range: v.commits, Within: v.within, Slack: clockSlack, MaxPaths: v.maxPaths,
	}
	report, err := check.Check(ctx)
	if errors.Is(err, apiclient.ErrUnreachable) {
		return cli.ExitWith(cli.ExitUnreachable, err)
	}
	if err != nil {
		return err
	}
	if err := v.print(a, report); err != nil {
		return err
	}
	if len(report.Uncovered) > 0 {
		return cli.ExitWith(cli.ExitForCode(interlock.CodeLeaseRequired), nil)
	}
	return nil
}

// uncoveredChange is a change without a lease, as JSON.
type uncoveredChange struct {
	Commit  string    `json:"commit"`
	Path    string    `json:"path"`
	Author  string    `json:"author"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
}

func (v *verify) print(a *cli.App, report *git.Report) error {
	if a.JSON() {
		answer := struct {
			Commits   int               `json:"commits"`
			Changes   int               `json:"changes"`
			Uncovered []uncoveredChange `json:"uncovered"`
		}{report.Commits, report.Changes, []uncoveredChange{}}
		for _, c := range report.Uncovered {
			answer.Uncovered = append(answer.Uncovered, uncoveredChange{c.Commit, c.Path, c.Author, c.Subject, c.Time.UTC()})
		}
		return a.Print(answer)
	}
	fmt.Fprintf(
		a.Out, "checked %s in %s: %d without a lease\n", cli.Count(report.Changes, "change", "changes"),
		cli.Count(report.Commits, "commit", "commits"), len(report.Uncovered),
	)
	if len(report.Uncovered) == 0 {
		return nil
	}
	for _, c := range report.Uncovered[:min(len(report.Uncovered), git.MaxShown)] {
		fmt.Fprintf(a.Out, "  %s\n", c.Text())
	}
	if more := len(report.Uncovered) - git.MaxShown; more > 0 {
		fmt.Fprintf(a.Out, "  and %d more\n", more)
	}
	_, err := fmt.Fprintln(
		a.Out, "Look at them: another agent may have changed the same lines. With hooks (interlock init) edits take leases.",
	)
	return err
}
