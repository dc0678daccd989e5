package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/confine"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/merge/train"
)

// serve is the flags of merge serve.
type serve struct {
	a        *cli.App
	repo     string
	name     merger.Name
	adopt    bool
	checks   []string
	runners  int
	within   time.Duration
	batch    int
	lanes    bool
	maxTries int
	prior    []string
	agent    string
	ttl      time.Duration

	push        string
	pushOptions []string
	sign        string
	committer   string
	signer      *merge.Signer // from sign
	confine     confine.Flags
	box         *confine.Flags // confine, if a check is to run in a sandbox
	forgeFlags
	rules
	demands
	guards
	impacts
}

func newServe(a *cli.App) *cobra.Command {
	s := &serve{a: a}
	cmd := &cobra.Command{
		Use:   "serve REPO/TARGET --repo PATH --check NAME=COMMAND",
		Short: "Run a merger of a target, and runners of its checks",
		Long: `Merge the submissions of a target into a branch of a git directory. A tree lands only if every
check has passed on it. Any number of mergers may run for a target: one has the seat, and the
next one ends what a dead one has begun. TARGET is the branch's name, such as main or
release/1.0, or the full name of another ref.

Where the server asks for credentials, the merger's has the role merger: "interlock credential
create NAME --role merger". No other role writes what a merger decides by. REPO stands for the
first repository that a merger was started with under that name. Another one is refused, as is a
branch without its last landing: name it otherwise, or take it over with --adopt.

A check NAME=COMMAND runs here, in a folder with the files of the merged tree, by the shell;
exit code 0 means that the tree passes. INTERLOCK_COMMIT, INTERLOCK_TREE and INTERLOCK_CHECK
are set. A check "NAME=" has its runners elsewhere: they take the queue check.REPO.NAME with
the role checker, for example by "interlock task work check.web.unit -- ./check". A command here runs with the rights of
this process, unless --sandbox, --net, --limit, --read or --write put it into a sandbox: it can
write to its folder, and --net off leaves it no network.

With --push the branch is that of a remote repository, moved by atomic pushes that git refuses
while another merger has a higher fence. The branch in --repo follows it. git finds the way there
by SSH_AUTH_SOCK, GIT_ASKPASS and the like, and asks nothing.

With --request, too, each landing is merged by a request of the forge, where that forbids pushes to
the branch: --request github=URL, gitea=URL (also Forgejo) or gitlab=URL, with the URL of the
repository in the API. The merger pushes the landing to interlock/land/TARGET/COMMIT, and has the forge
open and merge the request in a merge commit. It counts when the branch itself has that commit, with
the tree that was checked. Squashes and rebases do not. The token is that of --request-token:
file:PATH, or env:NAME, which is then removed from the environment. Checks without a sandbox run with
the rights of this process, and can read both.

With --sign each landing is signed, so that it is known as the merger's:
  --sign ssh:FILE        by ssh-keygen; the file is a private key, or the public one of a key in an agent
  --sign openpgp:KEY     by gpg, with the key of that id or fingerprint
  --sign x509:KEY        by gpgsm
  --sign git             as gpg.format, user.signingKey and gpg.*program of your own git say; the
                         configuration of --repo does not count
No person is asked: a key with a passphrase needs an agent that has it. A merger that cannot sign
lands nothing and returns nothing, and tells it as its own failure. Forges compare the key with
the address of the committer: --committer.

Where the server asks for credentials, only those that --priority-for names may submit with a
priority, and the merger's own.

Missing queues and the pattern of the target's keys are registered, which needs an operator's
credential the first time. When the merger works, it prints "ready target=REPO/TARGET".

A failure that belongs to one submission returns that one. At any other, such as a full disk or a
forge that cannot be reached, nothing is returned: the merger tries again, after a pause of up to a
minute, and "interlock merge why", "merge list" and "status" tell its words.

Exit codes: 0 stopped as asked; 1 the repository is no git directory, or not the one that the name
stands for; 69 no server answered; 77 not allowed; 2 wrong flags.`,
		Example: `  interlock merge serve web/main --repo /srv/git/web.git --check unit='go test ./...' --runners 2
  interlock merge serve web/main --repo /srv/git/web.git --check unit= --check lint= --runners 8`,
		Args: cli.OneArg("a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			boxed, err := s.confine.Check(cmd)
			if err != nil {
				return err
			}
			if boxed {
				s.box = &s.confine
			}
			return s.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.repo, "repo", "", "the git `directory` with the branch: a bare repository, or .git of another")
	f.BoolVar(
		&s.adopt, "adopt", false,
		"take the target over from another repository, or after its history was rewritten",
	)
	f.StringArrayVar(
		&s.checks, "check", nil, "a check, `NAME=COMMAND`, or NAME= for one with runners elsewhere; may be repeated",
	)
	f.StringVar(
		&s.push, "push", "",
		"the `URL` of a repository to which landings are pushed, such as a forge; the branch in --repo follows it",
	)
	f.StringArrayVar(
		&s.pushOptions, "push-option", nil, "an `option` of each push, for the hooks there; may be repeated",
	)
	f.StringVar(&s.sign, "sign", "", "sign landings with a `key`: ssh:FILE, openpgp:KEY, x509:KEY, or git")
	f.StringVar(
		&s.committer, "committer", "", "the `committer` of landings, NAME <EMAIL> (default interlock <interlock@localhost>)",
	)
	f.IntVar(&s.runners, "runners", 2, "how many trees are checked at a time")
	cli.DurationVar(
		f, &s.within, "check-within", time.Hour,
		"how long a check may take on a tree: then it is ended here, and counts as failed",
	)
	f.IntVar(&s.batch, "max-batch", 32, "how many submissions are checked together at most")
	f.BoolVar(&s.lanes, "lanes", false, "check submissions with disjoint impacts apart; they land without a common check")
	f.IntVar(&s.maxTries, "max-tries", 3, "after how many returns a person must approve another try")
	f.StringArrayVar(
		&s.prior, "priority-for", nil, "a `credential` that may submit with a priority, or *; may be repeated",
	)
	s.forgeFlags.define(cmd)
	s.rules.define(cmd)
	s.demands.define(cmd)
	s.guards.define(cmd)
	s.confine.Define(cmd)
	s.impacts.define(cmd)
	cli.TTLVar(f, &s.ttl, "the seat", "the key pattern's")
	cli.AgentVar(f, &s.agent, "your `name`, for others to read")
	return cmd
}

// check is a check, and its command if it runs here.
type check struct{ name, command string }

func (s *serve) parse() (list []check, err error) {
	for _, text := range s.checks {
		name, command, ok := strings.Cut(text, "=")
		if err := git.CheckName(name); !ok || err != nil {
			return nil, cli.Usagef("--check %s: want NAME=COMMAND, or NAME= for runners elsewhere", cli.Quote(text))
		}
		if slices.ContainsFunc(list, func(c check) bool { return c.name == name }) {
			return nil, cli.Usagef("--check: %s is named twice", name)
		}
		list = append(list, check{name, command})
	}
	if len(list) == 0 {
		return nil, cli.Usagef("--check is missing: without a check every tree would land; name one as NAME=COMMAND")
	}
	return list, nil
}

func (s *serve) run(ctx context.Context, target string) error {
	n, err := nameArg(target)
	if err != nil {
		return err
	}
	checks, err := s.parse()
	switch {
	case err != nil:
		return err
	case s.repo == "":
		return cli.Usagef("--repo is missing: name the git directory")
	case s.runners < 1 || s.runners > 64:
		return cli.Usagef("--runners %d: want a number from 1 to 64", s.runners)
	case s.within < time.Second:
		return cli.Usagef("--check-within %v: want at least 1s", s.within)
	case s.batch < 1 || s.batch > 60:
		return cli.Usagef("--max-batch %d: want a number from 1 to 60", s.batch)
	case s.maxTries < 1:
		return cli.Usagef("--max-tries %d: want at least 1", s.maxTries)
	}
	leases, err := s.demands.parse()
	if err != nil {
		return err
	}
	if err := s.impacts.check(); err != nil {
		return err
	}
	if err := s.guards.check(); err != nil {
		return err
	}
	if err := s.forgeFlags.check(s.push, n.Ref()); err != nil {
		return err
	}
	if s.committer != "" && !merge.IsPerson(s.committer) {
		return cli.Usagef("--committer %s: want NAME <EMAIL>", cli.Quote(s.committer))
	}
	s.name = n
	signals := cli.WatchSignals()
	defer signals.Stop()
	ctx = signals.Context(ctx)
	repo, err := repository(ctx, s.repo)
	if err != nil {
		return err
	}
	measure, err := s.impacts.measure(repo)
	if err != nil {
		return err
	}
	profile, err := s.profile(ctx)
	if err != nil {
		return err
	}
	if s.signer, err = signer(ctx, s.sign); err != nil {
		return err
	}
	boundary, err := merge.Open(ctx, merge.Config{Repository: repo.Dir, Profile: profile, Signer: s.signer})
	if err != nil {
		return err
	}
	defer boundary.Close()
	c, err := link.Dial(ctx, s.a, s.agent, s.ttl)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	log := slog.New(slog.NewTextHandler(s.a.Err, nil))
	if s.a.JSON() {
		log = slog.New(slog.NewJSONHandler(s.a.Err, nil))
	}
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	if err := s.tellChecks(ctx, log, checks); err != nil {
		return err
	}
	if err := s.tellCheckout(ctx, log, repo); err != nil {
		return err
	}
	if err := merger.Setup(ctx, c, n, names...); err != nil {
		return err
	}
	var elsewhere []string
	for _, k := range checks {
		if k.command == "" {
			elsewhere = append(elsewhere, k.name)
		}
	}
	// The merger's own limit comes first, and has more to tell.
	todo, err := merger.FreeWorkers(ctx, c, n, s.within+2*reportWithin, elsewhere...)
	if err != nil {
		return err
	}
	for _, text := range todo {
		log.Warn(text)
	}
	if err := s.demands.setUp(ctx, c, leases); err != nil {
		return err
	}
	bounded := repo
	bounded.Guard = merger.Limit(merger.DefaultGitWithin)
	at := s.target(bounded, log)
	if err := s.guards.tell(ctx, log, repo, at); err != nil {
		return err
	}
	m, err := merger.New(merger.Config{
		Client: c, Name: n, Boundary: boundary, Adopt: s.adopt, Target: at,
		Guards: s.guards.config(&requests{s.a.API()}, n),
		Files:  &merger.Repository{Git: bounded}, Fetch: s.fetch(bounded), Profile: profile.Digest(), Checks: names,
		Committer: s.committer, MoveWithin: s.forgeFlags.within,
		CheckWithin: s.within + reportWithin, MaxTries: s.maxTries, PriorityFor: s.prior, Log: log, Leases: leases,
		Resolver: s.resolver, ResolveWithin: s.resolveWithin,
		Impacts: measure,
		Train: train.Config{
			Runners: s.runners, MaxBatch: s.batch, Lanes: s.lanes || s.impacts.given(), WholeEvery: s.whole,
		},
	})
	if err != nil {
		return err
	}
	if err := m.Prepare(ctx); merger.Hopeless(err) {
		return err
	}
	ready := fmt.Sprintf("ready target=%s\n", n)
	if s.a.JSON() {
		ready = fmt.Sprintf("{\"event\":\"ready\",\"target\":%q}\n", n)
	}
	if _, err := io.WriteString(s.a.Out, ready); err != nil {
		log.Warn("standard output is closed", "error", err)
	}
	err = s.work(ctx, m, c, n, checks, repo, log)
	if signals.Asked() && (err == nil || ctx.Err() != nil) {
		return nil
	}
	return err
}

// tellChecks tells how much the checks that run here can reach, and fails if their sandbox cannot be made.
func (s *serve) tellChecks(ctx context.Context, log *slog.Logger, checks []check) error {
	if !slices.ContainsFunc(checks, func(c check) bool { return c.command != "" }) {
		return nil
	}
	if s.box == nil {
		log.Warn("checks run without a sandbox, with the rights of this process: --sandbox auto confines them")
		return nil
	}
	text, err := tryBox(ctx, s.box)
	if err != nil {
		return fmt.Errorf("no check can run in a sandbox here: %w", err)
	}
	log.Info("checks run in a sandbox", "sandbox", text)
	return nil
}

// tellCheckout warns if the branch is checked out somewhere. A landing moves the branch and leaves these files alone,
// so that the next commit there would take the landing back.
func (s *serve) tellCheckout(ctx context.Context, log *slog.Logger, repo git.Repository) error {
	list, err := repo.Output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	folder := ""
	for line := range strings.Lines(list) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "worktree":
			folder = value
		case name == "branch" && value == s.name.Ref():
			log.Warn(
				"the branch is checked out: a landing moves it and not the files there, so a commit there can undo landings; "+
					"run git switch --detach in that folder", "folder", folder,
			)
		}
	}
	return nil
}

// work runs the merger and the runners until one of them ends, or ctx does.
func (s *serve) work(
	ctx context.Context, m *merger.Merger, c *client.Client, n merger.Name, checks []check, repo git.Repository,
	log *slog.Logger,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stores, err := storesOf(ctx, repo)
	if err != nil {
		return err
	}
	ends := make(chan error, 1+len(checks))
	started := 1
	go func() { ends <- m.Run(ctx) }()
	for _, k := range checks {
		if k.command == "" {
			continue
		}
		started++
		r := &runner{
			repo: repo, ref: s.name.Ref(), command: k.command, box: s.box, stores: stores, within: s.within, log: log,
		}
		go func() {
			ends <- c.Work(ctx, client.Worker{
				Queue: n.CheckQueue(k.name), Concurrency: s.runners, Drain: time.Millisecond, Handle: r.handle,
			})
		}()
	}
	var first error
	var late <-chan time.Time
	over := ctx.Done()
	for left := started; left > 0; {
		select {
		case err := <-ends:
			left--
			if err != nil && first == nil && !errors.Is(err, context.Canceled) {
				first = err
			}
			cancel()
		case <-over:
			over, late = nil, time.After(stopWithin)
		case <-late:
			log.Warn("the server does not answer: the seat and the tasks are free after their ttl")
			return first
		}
	}
	return first
}

// reportWithin is how much longer than a check here its report may take, which has more to tell than the merger.
const reportWithin = time.Minute

// stopWithin is how long the end may take: a check has killAfter, and a server that is gone takes no goodbye.
const stopWithin = killAfter + time.Second

// repository opens a git directory, or the one of a folder with files.
func repository(ctx context.Context, path string) (git.Repository, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return git.Repository{}, err
	}
	for _, dir := range []string{path, filepath.Join(path, ".git")} {
		r := git.Repository{Dir: dir}
		if _, err := r.Output(ctx, "rev-parse", "--git-dir"); err == nil {
			return r, nil
		}
	}
	return git.Repository{}, fmt.Errorf("--repo: %s is no git directory", cli.Clean(path))
}
