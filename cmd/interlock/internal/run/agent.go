package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// waitFor is one use of agent wait.
type waitFor struct {
	a    *cli.App
	on   api.PartyRequest // the target of the wait
	self api.Name         // the waiter; Session is a secret id here
	argv []string
	path string
	why  string
	q    cli.WaitFlags
}

// NewAgent returns the command agent.
func NewAgent(a *cli.App) *cobra.Command {
	return cli.Group("agent", "List agents, or wait for one", "", newAgentList(a), newWait(a))
}

func newWait(a *cli.App) *cobra.Command {
	d := &waitFor{a: a}
	cmd := &cobra.Command{
		Use:                   "wait [FLAGS] AGENT [-- COMMAND [ARGUMENT...]]",
		DisableFlagsInUseLine: true,
		Short:                 "Declare that you wait for another agent",
		Long: `Declare to the server that you wait for another agent: for an answer, a result, a tool call
that it serves. The server cannot see such a wait by itself. Once it is declared, deadlocks
through it are found: a request that would close a cycle is refused, with the cycle, instead
of waiting for ever.

With a COMMAND the wait lasts as long as the command, which is ended if the wait is a
deadlock's victim. Without one it lasts until the other's session is over, or --wait is.

The wait belongs to a session and blocks with its leases: inside "interlock run" that is the
run's session, elsewhere --session names one. AGENT is the other's name; if several agents
have it, --on-session selects one by the public name that "interlock key get" shows.

Exit codes: 0 the other is gone, or the command's own; 73 the wait would never end (and the
command was ended); 75 not in time; 1 there is no agent of that name; 69 no server answered;
2 wrong flags.`,
		Example: `  interlock run account:12345 -- sh -c 'interlock agent wait auditor -- ./ask-auditor 12345'
  interlock agent wait --wait 10m migrator`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, d.argv = args[:dash], args[dash:]
				if len(d.argv) == 0 {
					return cli.Usagef("name a command after the --: %s", cli.UseLine(cmd))
				}
			}
			switch {
			case len(names) > 1:
				return cli.Usagef("one agent at a time, and -- before the command: %s", cli.UseLine(cmd))
			case len(names) == 1:
				d.on.Agent = names[0]
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case (d.on.Agent == "") == (d.on.Session == ""):
				return cli.Usagef("name the agent that you wait for, or use --on-session: %s", cli.UseLine(cmd))
			case d.q.Wait == 0:
				return cli.Usagef("--wait 0: a wait for another agent needs time")
			case d.self.Session != "":
				if _, err := interlock.ParseSessionID(d.self.Session); err != nil {
					return cli.Usagef(
						"--session: not a session: want s_ and 32 hexadecimal digits, as in INTERLOCK_SESSION below `interlock run`",
					)
				}
			}
			if err := d.q.Check(); err != nil {
				return err
			}
			return d.run(cmd.Context())
		},
	}
	d.q.Define(cmd)
	f := cmd.Flags()
	f.StringVar(&d.on.Session, "on-session", "", "the public `name` of the session that is waited for, in place of AGENT")
	f.StringVar(&d.on.Flow, "on-flow", "", "the `flow` of it, when only that one is meant")
	f.StringVar(&d.self.Session, "session", "", "the `session` that waits")
	cli.Bind(f, "session", "")
	f.StringVar(&d.self.Flow, "flow", "", "the `flow` of that session which waits (default: main, as of interlock run)")
	cli.Bind(f, "flow", "")
	cli.AgentVar(f, &d.self.Agent, "your `name` when you have no session")
	f.StringVar(&d.why, "purpose", "", "the purpose of the wait, for others to read")
	return cmd
}

// name is the target of the wait.
func (d *waitFor) name() string {
	return cli.AgentName(api.Name{Agent: d.on.Agent, Session: d.on.Session})
}

func (d *waitFor) body() *api.DeclareRequest {
	body := &api.DeclareRequest{
		On: d.on, Purpose: d.why, Session: d.self.Session, Flow: d.self.Flow, MaxWait: d.q.MaxWait.Milliseconds(),
	}
	if body.Session == "" {
		body.Agent = cmp.Or(d.self.Agent, cli.OwnName())
	}
	if d.why == "" && len(d.argv) > 0 {
		body.Purpose = "run " + filepath.Base(d.argv[0])
	}
	return body
}

func (d *waitFor) run(ctx context.Context) (err error) {
	if len(d.argv) > 0 {
		if d.path, err = exec.LookPath(d.argv[0]); err != nil {
			return job.CannotRun(d.argv[0], err)
		}
	}
	signals := make(chan os.Signal, 16)
	cli.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	server := d.a.API()
	ask := cli.Request{Method: http.MethodPost, Path: "/v1/waits", Body: d.body(), ID: cli.FreshID()}
	deadline := d.q.Wait.Deadline()
	_, answer, err := server.Insist(ctx, ask, false)
	var got view.LeaseAnswer
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	if err != nil {
		return errors.Join(nobody(err), d.rawIfJSON(answer))
	}
	defer acquire.LeaveLine(server, ask, &got)
	d.a.Warn(got.Warnings)
	if len(d.argv) > 0 {
		return d.work(ctx, server, got.Ticket.ID, deadline, signals)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taken := cli.CancelBySignal(signals, cancel)
	defer taken()
	d.a.Complain("waiting for %s", d.name())
	answer, err = d.follow(ctx, server, got.Ticket.ID, deadline)
	var by *cli.SignalError
	if errors.As(context.Cause(ctx), &by) {
		return cli.ExitWith(cli.ExitSignal+int(by.Signal), errors.New("interrupted: the wait has ended"))
	}
	return errors.Join(d.over(err), d.rawIfJSON(answer))
}

// rawIfJSON prints an answer with -o json.
func (d *waitFor) rawIfJSON(answer []byte) error {
	if !d.a.JSON() || answer == nil {
		return nil
	}
	return d.a.Raw(answer)
}

// nobody reports that the target of a wait does not exist, as opposed to a lost lease.
func nobody(err error) error {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeUnknownSession {
		return cli.ExitWith(
			cli.ExitFailure,
			fmt.Errorf(
				"%s: there is nothing to wait for, or it has another name (`interlock key list` shows the holders of keys)",
				cli.Clean(refusal.Message),
			),
		)
	}
	return err
}

// follow waits for the end of the wait. It always ends with an error: nothing is ever granted.
func (d *waitFor) follow(
	ctx context.Context, server *cli.API, ticket string, deadline time.Time,
) (answer []byte, err error) {
	for err == nil {
		answer, err = acquire.Follow(ctx, server, ticket, deadline)
	}
	return answer, err
}

// over returns what the end of the wait means: nothing is wrong when the other is gone.
func (d *waitFor) over(err error) error {
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case errors.Is(err, cli.ErrInTime):
		return cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf("%s was not done within %s", d.name(), time.Duration(d.q.Wait)))
	case refused && refusal.Code == interlock.CodeSessionEnded:
		d.a.Complain("%s is gone: its session is over", d.name())
		return nil
	}
	return err
}

// work runs the command while the server knows of the wait.
func (d *waitFor) work(
	ctx context.Context, server *cli.API, ticket string, deadline time.Time, signals chan os.Signal,
) error {
	ctx, cancel := context.WithCancel(ctx)
	lost, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := d.follow(ctx, server, ticket, deadline)
		switch {
		case ctx.Err() != nil:
			err = nil
		case cli.ExitCode(err) == cli.ExitUnreachable:
			d.a.Complain("%s: the command continues, and no deadlock through it will be found", d.a.Sentence(err))
			err = nil
		}
		if err = d.over(err); err != nil {
			d.a.Complain("%s: the command is ended", d.a.Sentence(err))
			close(lost)
		}
		done <- err
	}()
	j := &job.Job{
		Path: d.path, Argv: d.argv, Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		KillAfter: interlock.DefaultGrace, Lost: lost, Tell: d.a.Complain, Signals: signals,
	}
	result, err := j.Run()
	cancel()
	never := <-done
	switch {
	case err != nil:
		return job.CannotRun(d.argv[0], err)
	case result.Ended:
		return cli.ExitWith(cli.ExitCode(never), nil) // the reason was printed when it happened
	case result.Code() != 0:
		return cli.ExitWith(result.Code(), nil)
	}
	return nil
}
