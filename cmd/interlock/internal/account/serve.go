package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/writer/account"
)

// serveAccounts is the flags of account serve.
type serveAccounts struct {
	policy, ledger string
	after          []string
	gaps           bool
	agent          string
	concurrency    int
	ttl, drain     time.Duration
}

func newAccountServe(a *cli.App) *cobra.Command {
	var s serveAccounts
	cmd := &cobra.Command{
		Use:   "serve --policy FILE",
		Short: "Run a writer of the accounts in a policy file",
		Long: `Decide the commands that agents send to accounts, by the policies of a file; "interlock
account check" explains a file. Money never moves twice or half: state, reply and messages
to other accounts are one entry of the journal. The process may be killed at any time, and
any number may run: each message is decided by one.

The queue and the pattern of the accounts must match the file, with only the writers on the
queue's pull list. "interlock account setup" sets them up with an operator's credential;
this command needs a worker's of the queue.

With --ledger it keeps the ledger of "interlock account export" in a file. It decides no
message before all earlier decisions on the account are in that file, on disk: so no
acknowledged decision is ever missing from it. Each process needs a file of its own, which
gets the decisions of the others, too.

When it works, it prints one line on standard output, "ready queue=NAME"; with -o json that
line and the log are JSON. At SIGHUP it reads the policy file again; if the file is refused,
the policies stay as they are. At SIGTERM it accepts no new messages and ends when the
running ones are done, or after --drain.

Exit codes: 0 stopped as asked; 1 the server does not match the file, or the ledger has a
gap; 2 wrong flags or policies; 69 no server answered; 70 the ledger cannot be written; 77
not allowed.`,
		Example: `  interlock account serve --policy accounts.json --ledger ledger.ndjson`,
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringVar(&s.policy, "policy", "", "the policy `file`")
	f.StringVar(&s.ledger, "ledger", "", "keep the ledger in this `file`, after what it has")
	f.StringArrayVar(&s.after, "after", nil, "the ledger continues that of this `file`; may be repeated, oldest first")
	f.BoolVar(
		&s.gaps, "accept-gaps", false, "continue where the server has forgotten entries, and record the gap in the ledger",
	)
	f.IntVar(&s.concurrency, "concurrency", 4, "how many accounts are worked on at once")
	cli.TTLVar(f, &s.ttl, "a lease", "the queue's")
	cli.DurationVar(f, &s.drain, "drain", 30*time.Second, "how long commands may run on after SIGTERM")
	cli.AgentVar(f, &s.agent, "your `name`, for others to read")
	return cmd
}

func (s *serveAccounts) run(ctx context.Context, a *cli.App) error {
	if s.concurrency < 1 || s.concurrency > interlock.MaxPull {
		return cli.Usagef("--concurrency %d: want a number from 1 to %d", s.concurrency, interlock.MaxPull)
	}
	if err := cli.CheckDurations(
		cli.Duration("--ttl", cmp.Or(s.ttl, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL),
		cli.Duration("--drain", s.drain, 0, 24*time.Hour),
	); err != nil {
		return err
	}
	if len(s.after) > 0 && s.ledger == "" {
		return cli.Usagef("--after is for a ledger in a file: name it with --ledger")
	}
	f, err := readPolicies(s.policy)
	if err != nil {
		return err
	}
	if err := checkWriters(a, f); err != nil {
		return err
	}
	signals := cli.WatchSignals()
	defer signals.Stop()
	ctx = signals.Context(ctx)
	log := slog.New(slog.NewTextHandler(a.Err, nil))
	if a.JSON() {
		log = slog.New(slog.NewJSONHandler(a.Err, nil))
	}

	c, err := link.Dial(ctx, a, s.agent, s.ttl)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	if err := mayWork(ctx, a); err != nil {
		return err
	}
	if err := checkSetup(ctx, a, f, s.policy); err != nil {
		return err
	}
	policies := &atomic.Pointer[account.File]{}
	policies.Store(f)
	agent := &account.Agent{
		Client: c, Queue: f.Queue, Concurrency: s.concurrency, TTL: s.ttl, Drain: s.drain,
		Policy: func(key interlock.Key) (account.Policy, error) { return policies.Load().Policy(key) },
		OnError: func(job *client.Job, err error) {
			task := job.Task()
			if q, asks := client.QuestionOf(err); asks {
				log.Info(
					"a message waits for a person's answer", "message", task.ID, "account", task.Claims[0].Key, "question", q.Text,
				)
				return
			}
			log.Warn(
				"a message was not decided, and is handed out again", "message", task.ID, "account", task.Claims[0].Key, "attempt",
				job.Attempt(), "error", err,
			)
		},
	}
	go s.reload(ctx, a, signals, policies, log)
	err = s.work(ctx, a, agent, log)
	if ctx.Err() != nil && signals.Asked() {
		log.Info("stopped", "signal", signals.Name(), "error", err)
		if agent.Ledger != nil && agent.Ledger.Err() != nil {
			return ledgerError(agent.Ledger.Err())
		}
		return nil
	}
	return err
}

// work runs the agent, with its ledger if there is to be one, until ctx ends.
func (s *serveAccounts) work(ctx context.Context, a *cli.App, agent *account.Agent, log *slog.Logger) error {
	begin := func() {
		log.Info("deciding commands", "queue", agent.Queue, "policy", s.policy, "ledger", s.ledger)
		ready := fmt.Sprintf("ready queue=%s\n", agent.Queue)
		if a.JSON() {
			ready = fmt.Sprintf("{\"event\":\"ready\",\"queue\":%q}\n", agent.Queue)
		}
		if _, err := io.WriteString(a.Out, ready); err != nil {
			log.Warn("standard output is closed", "error", err)
		}
	}
	if s.ledger == "" {
		begin()
		return agent.Run(ctx)
	}
	l, file, err := openLedger("--ledger", s.ledger, s.after)
	if err != nil {
		return err
	}
	defer file.Close()
	log.Info("ledger opened", "file", s.ledger, "lines", l.Lines())
	wire(a, l, s.gaps)
	agent.Ledger = l
	k, err := keepLedger(ctx, a, agent.Queue, l)
	if err != nil {
		return err
	}
	// Two goroutines: one that follows and one that decides. The first to end ends the
	// other; what is under way is still decided, as long as the ledger takes it.
	working, stop := context.WithCancel(ctx)
	defer stop()
	following, quiet := context.WithCancel(context.WithoutCancel(ctx))
	defer quiet()
	ready, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer stop()
		followed <- k.follow(following, func() { close(ready) })
	}()
	var decided error
	select {
	case <-ready:
		begin()
		go func() {
			select {
			case <-l.Failed():
				stop()
			case <-working.Done():
			}
		}()
		decided = agent.Run(working)
	case <-working.Done():
	}
	quiet()
	err = <-followed
	if l.Err() != nil {
		return ledgerError(l.Err())
	}
	return errors.Join(decided, err)
}

// reload reads the policy file again at each SIGHUP.
func (s *serveAccounts) reload(
	ctx context.Context, a *cli.App, signals *cli.Signals, policies *atomic.Pointer[account.File], log *slog.Logger,
) {
	for {
		select {
		case <-signals.Reload:
		case <-ctx.Done():
			return
		}
		if signals.Hangup {
			signals.StopNow("SIGHUP")
			return
		}
		f, err := readPolicies(s.policy)
		if err == nil {
			if old := policies.Load(); f.Queue != old.Queue || f.Pattern != old.Pattern || f.Shape != old.Shape {
				err = errors.New("queue, pattern and shape are those of the start: start again to change them")
			}
		}
		if err == nil {
			err = checkSetup(ctx, a, f, s.policy)
		}
		if err != nil {
			log.Error("the policies stay as they were", "error", err)
			continue
		}
		policies.Store(f)
		log.Info("policies read again", "policy", s.policy)
	}
}

// mayWork refuses a credential that is no worker's before the first wait: it makes a request
// that only workers may make, and that changes nothing.
func mayWork(ctx context.Context, a *cli.App) error {
	path := "/v1/leases/" + interlock.LeaseID{}.String() + "/nack"
	_, _, err := a.API().Do(
		ctx, cli.Request{Method: http.MethodPost, Path: path, Body: map[string]any{}, ID: cli.FreshID()},
	)
	if err != nil && cli.ExitCode(err) == cli.ExitForbidden {
		return err
	}
	return nil
}

// checkSetup refuses a server that is not set up like the file.
func checkSetup(ctx context.Context, a *cli.App, f *account.File, path string) error {
	setup, err := lookUpSetup(ctx, a, f)
	if err != nil {
		return err
	}
	if lacks := setup.lacks(f); len(lacks) > 0 {
		return fmt.Errorf("the server does not match %s: %s; with an operator's credential: interlock account setup --policy %s",
			cli.Clean(path), cli.Clean(strings.Join(lacks, "; ")), cli.Quote(cli.Clean(path)))
	}
	return nil
}
