package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

// partition is one use of the command: a member of a set that shares a key out.
type partition struct {
	a    *cli.App
	key  string
	argv []string
	path string // of the command

	parts     cli.CountFlag
	divide    cli.Choice
	ttl       time.Duration
	grace     time.Duration
	purpose   string
	agent     string
	quiet     bool
	pass      []string // variables for the command that repeat flags
	c         *client.Client
	null      *os.File
	failed    chan error // the first command that failed
	reporting sync.Mutex
}

// NewPool returns the command pool.
func NewPool(a *cli.App) *cobra.Command {
	return cli.Group(
		"pool", "Share the parts of a key out among members",
		`A partitioned key has parts, KEY/0, KEY/1 and so on, which its members share out among
themselves. "interlock key get KEY" shows the members.`,
		newJoin(a),
	)
}

func newJoin(a *cli.App) *cobra.Command {
	p := &partition{a: a, failed: make(chan error, 1)}
	cmd := &cobra.Command{
		Use:                   "join [FLAGS] KEY --parts N -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Join a partitioned key, and run a command for each assigned part",
		Long: `Become one of the members that share the parts KEY/0, KEY/1, ... of a key, and run the
command once for each part that is assigned to this member. Parts move when members come,
leave or die. The command of a part that moves to another member gets SIGTERM, and four
fifths of --grace later SIGKILL; the part is released only when all of its processes have
ended, so no two members ever work on one part. Assignments are reported on standard error,
with -o json as lines of JSON.

A command that ends with exit code 0 is not started again, and its part stays with this
member. When one fails, the member leaves, so that others get its parts, and ends with
that exit code. SIGINT, SIGTERM and SIGHUP make it leave.

Each command has an empty standard input, and finds in its environment

  INTERLOCK_PART     the part's number, from 0
  INTERLOCK_KEYS     the part's key
  INTERLOCK_FENCE    its fence: pass it along wherever the command writes

and the variables of "interlock run", except a lease.

Exit codes: 128+n after signal n, a failed command's own, 126 or 127 when it cannot be run,
69 no server answered, 77 not allowed, 79 the membership was lost, 2 wrong flags, or the
members divide the key into another number of parts.`,
		Example: `  interlock pool join queue:orders --parts 16 -- ./consume
  interlock pool join logs --parts 8 --divide range -- sh -c './index --shard "$INTERLOCK_PART"'`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			p.key, p.argv, err = cli.OneAndCommand(cmd, "key", args)
			return err
		},
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.parts < 1 || p.parts > interlock.MaxParts {
				return cli.Usagef(
					"set --parts, the number of parts of the key: from 1 to %d, the same for all members", interlock.MaxParts,
				)
			}
			if err := cli.CheckDurations(
				cli.Duration("--ttl", cmp.Or(p.ttl, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL),
				cli.Duration("--grace", p.grace, 0, interlock.MaxGrace),
			); err != nil {
				return err
			}
			if p.grace == 0 && cmd.Flags().Changed("grace") {
				p.grace = client.NoGrace
			}
			p.pass = link.Repeated(cmd.InheritedFlags())
			return p.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.Var(&p.parts, "parts", "the `number` of parts of the key")
	p.divide.Among(
		cmd, "divide", "how parts are assigned to members; the first member decides", cli.Words[interlock.Division]()...,
	)
	cli.TTLVar(f, &p.ttl, "the membership", "the key pattern's")
	cli.DurationVar(
		f, &p.grace, "grace", 0,
		"how long stopping the command of a part may take (default: the key pattern's, else "+
			interlock.DefaultGrace.String()+")",
	)
	f.StringVar(&p.purpose, "purpose", "", "its purpose, for others to read")
	cli.AgentVar(f, &p.agent, "your `name`, for others to read")
	f.BoolVarP(&p.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

func (p *partition) run(ctx context.Context) (err error) {
	if p.path, err = exec.LookPath(p.argv[0]); err != nil {
		return job.CannotRun(p.argv[0], err)
	}
	if p.null, err = os.Open(os.DevNull); err != nil {
		return err
	}
	defer p.null.Close()
	signals := make(chan os.Signal, 1)
	cli.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cli.CancelBySignal(signals, cancel)()

	if p.c, err = link.Dial(ctx, p.a, p.agent, p.ttl); err != nil {
		return err
	}
	defer link.HangUp(p.c)
	m, err := p.c.Join(ctx, p.membership())
	if err != nil {
		return interrupted(ctx, err)
	}
	p.say("a member of %s", cli.Clean(p.key))
	select {
	case <-ctx.Done():
		err = interrupted(ctx, nil)
	case err = <-p.failed:
	case <-m.Context().Done():
		err = cli.ExitWith(
			cli.ExitLost,
			fmt.Errorf("the membership of %s is lost: %s", cli.Clean(p.key), p.a.Sentence(context.Cause(m.Context()))),
		)
	}
	// Whatever runs on is killed after the grace, so it cannot take much longer.
	limit, stop := context.WithTimeout(context.Background(), m.Info().Grace+job.KilledWithin+link.LeaveTimeout)
	defer stop()
	if left := m.Leave(limit); left != nil && cli.ExitCode(err) != cli.ExitLost {
		p.a.Complain("the parts could not be released and end by themselves within %s: %s", m.Info().TTL, p.a.Sentence(left))
	}
	return err
}

// interrupted is how a command ends that a signal has ended; else with err.
func interrupted(ctx context.Context, err error) error {
	var by *cli.SignalError
	if errors.As(context.Cause(ctx), &by) {
		return cli.ExitWith(cli.ExitSignal+int(by.Signal), nil)
	}
	return err
}

func (p *partition) membership() client.Membership {
	division, _ := interlock.ParseDivision(p.divide.Value) // without the flag: by hash
	as := client.Membership{
		Key: interlock.Key(p.key), Parts: int(p.parts), Division: division, Flow: client.SharedFlow,
		Purpose: p.purpose, TTL: p.ttl, Grace: p.grace, Work: p.work,
	}
	if as.Purpose == "" {
		as.Purpose = "run " + filepath.Base(p.argv[0])
	}
	return as
}

// work runs the command for a part, until the part must be given away.
func (p *partition) work(ctx context.Context, part client.Part) {
	p.report(part, "begun", "")
	name := cli.Clean(string(part.Key))
	j := &job.Job{
		Path: p.path, Argv: p.argv, Files: []*os.File{p.null, os.Stdout, os.Stderr}, Background: true,
		// The commands of two parts exclude each other, so each is a flow.
		Env: link.Environment(p.a, p.agent, p.c.SessionID().String(), partFlow(part), p.pass,
			"INTERLOCK_PART="+strconv.Itoa(part.Index), "INTERLOCK_KEYS="+string(part.Key),
			"INTERLOCK_FENCE="+part.Fence.String(), "INTERLOCK_LEASE="),
		KillAfter: part.Grace - part.Grace/5, Lost: ctx.Done(),
		Tell: func(format string, args ...any) { p.a.Complain("%s: "+format, append([]any{name}, args...)...) },
	}
	result, err := j.Run()
	switch {
	case err != nil:
		p.fail(job.CannotRun(p.argv[0], err))
	case result.Ended:
		p.report(part, "stopped", "")
	case result.Code() != 0:
		p.report(part, "failed", fmt.Sprintf("exit code %d", result.Code()))
		p.fail(cli.ExitWith(
			result.Code(), fmt.Errorf("the command for %s failed (exit code %d): this member leaves", name, result.Code()),
		))
	default:
		p.report(part, "done", "")
	}
}

// partFlow is the flow that the command for a part works in.
func partFlow(part client.Part) string { return client.SharedFlow + "-" + strconv.Itoa(part.Index) }

// fail makes the member leave; the first reason counts.
func (p *partition) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// report tells of a part that comes or goes.
func (p *partition) report(part client.Part, event, detail string) {
	if !p.a.JSON() {
		text := cli.Clean(string(part.Key)) + ": " + event + ", fence " + part.Fence.String()
		if detail != "" {
			text += ", " + detail
		}
		p.say("%s", text)
		return
	}
	p.reporting.Lock()
	defer p.reporting.Unlock()
	_ = json.NewEncoder(p.a.Err).Encode(struct {
		Event  string          `json:"event"`
		Key    interlock.Key   `json:"key"`
		Part   int             `json:"part"`
		Fence  interlock.Fence `json:"fence,string"`
		Detail string          `json:"detail,omitempty"`
	}{event, part.Key, part.Index, part.Fence, detail})
}

func (p *partition) say(format string, args ...any) {
	if !p.quiet && !p.a.JSON() {
		p.a.Complain(format, args...)
	}
}
