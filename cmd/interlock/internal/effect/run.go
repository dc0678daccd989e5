package effect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/internal/api"
)

// effectRun is one use of effect run.
type effectRun struct {
	a       *cli.App
	x       effectFlags
	wait    cli.Wait
	notDone int // the exit code with that meaning; 0: none
	agent   string
	quiet   bool
	argv    []string
	path    string   // of the command
	pass    []string // variables for the command that repeat flags

	c       *client.Client
	signals chan os.Signal   // those that end a wait, and are passed on to the command later
	taken   func() os.Signal // ends the wait for signals

	ran     bool   // or was about to
	digest  string // of the action
	output  job.Output
	failure error // what the server receives: that it is not done, or unknown
	verdict error // what this command ends with

	unreported error // the server has not confirmed the report
}

func newEffectRun(a *cli.App) *cobra.Command {
	r := &effectRun{a: a}
	cmd := &cobra.Command{
		Use:                   "run --tool TOOL --target TARGET [FLAGS] -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command that must not happen twice",
		Long: `Run the command, unless any claimer has done the effect before: then print its result and run
nothing. While another claimer performs the effect, this command waits.

The command's standard output is the effect's result: JSON, or text, of up to 64 KiB. It is
printed when the command has ended, in the same form as for later claimers: text as it is,
JSON on one line; with -o json always as JSON.

When the command ends with exit code 0, the effect was done. With the exit code of
--not-done-exit it was certainly not done, and the next claimer may do it. With any other,
or by a signal, or when this process or its machine dies, the outcome is unknown: the effect
cannot be claimed again until "interlock effect reconcile" settles it.

The command finds in its environment

  INTERLOCK_EFFECT_ACTION  the digest of the action: an idempotency key, if the target
                           takes one
  INTERLOCK_SESSION and the others that a client joins by, as with interlock run

Exit codes: 0 it is done, now or before; 65 the outcome is unknown; that of --not-done-exit
as it is; 75 another claimer was about to do it for longer than --wait; 126 or 127 when the
command cannot be run; 69 no server answered; 77 not allowed; 2 wrong flags.`,
		Example: `  interlock effect run --tool stripe.charge --target customer:12 --args '{"invoice": 7, "amount": "12.00"}' -- ./charge
  id=$(interlock effect run --tool mail --target ada --args '{"letter": 3}' --not-done-exit 10 -- ./send)`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash != 0:
				return cli.Usagef("put -- between the flags and the command: %s", cli.UseLine(cmd))
			case len(args) == 0:
				return cli.Usagef("name a command after the --: %s", cli.UseLine(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.notDone < 0 || r.notDone > 255 {
				return cli.Usagef("--not-done-exit %d: want an exit code from 1 to 255", r.notDone)
			}
			if err := r.x.check(); err != nil {
				return err
			}
			r.argv = args
			r.pass = link.Repeated(cmd.InheritedFlags())
			return r.run(cmd.Context())
		},
	}
	r.x.flags(cmd)
	f := cmd.Flags()
	r.wait = cli.Forever
	f.Var(&r.wait, "wait", "how long to wait for another claimer: a `duration`, 0, or forever")
	f.IntVar(
		&r.notDone, "not-done-exit", 0, "the command's exit `code` that means it has certainly done nothing (default: none)",
	)
	cli.AgentVar(f, &r.agent, "your `name`, for others to read")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

func (r *effectRun) run(ctx context.Context) (err error) {
	r.output.To = r.a.Out
	if r.path, err = exec.LookPath(r.argv[0]); err != nil {
		return job.CannotRun(r.argv[0], err)
	}
	// From here on no signal gets lost between the wait and the command.
	r.signals = make(chan os.Signal, 16)
	cli.Notify(r.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(r.signals)
	if r.c, err = link.Dial(ctx, r.a, r.agent, 0); err != nil {
		return err
	}
	defer link.HangUp(r.c)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.taken = cli.CancelBySignal(r.signals, cancel)
	defer r.taken()
	if r.wait > 0 {
		limit := time.AfterFunc(time.Duration(r.wait), func() { cancel(cli.ErrInTime) })
		defer limit.Stop()
	}
	action := client.Action{Tool: r.x.tool, Target: r.x.target, Arguments: json.RawMessage(r.x.arguments)}
	action.OnTaken = func(other interlock.Effect) {
		if r.wait == 0 {
			cancel(cli.ErrInTime)
			return
		}
		r.say("waiting for %s, which is about to do it", claimer(&other))
	}
	action.OnUnreported = func(err error) { r.unreported = err }
	result, err := r.c.Do(ctx, action, r.act)
	if !r.ran {
		return r.notRun(ctx, result, err)
	}
	return r.finish(result)
}

// act runs the command, and reports what became of the effect.
func (r *effectRun) act(ctx context.Context, e interlock.Effect) (any, error) {
	r.ran, r.digest = true, hex.EncodeToString(e.Digest[:])
	if r.taken() != nil {
		r.verdict = notBegun(ctx)
		r.failure = client.NotDone(r.verdict)
		return nil, r.failure
	}
	result, err := r.command()
	code := result.Code()
	switch {
	case err != nil:
		r.verdict = job.CannotRun(r.argv[0], err)
		r.failure = client.NotDone(r.verdict)
	case code == 0:
	case code == r.notDone && !result.Status.Signaled():
		r.verdict = cli.ExitWith(code, nil)
		r.failure = client.NotDone(r.verdict)
	default:
		how := fmt.Sprintf("the command ended with exit code %d", code)
		if result.Status.Signaled() {
			how = "the command was ended by " + cli.SignalName(result.Status.Signal())
		}
		r.verdict = cli.ExitWith(
			cli.ExitConflict, fmt.Errorf("%s, so the outcome is unknown: %s", how, findOut(r.x.target, r.digest)),
		)
		r.failure = errors.New(how)
	}
	return r.output.Result(), r.failure
}

// command runs the command, and takes what it writes to standard output.
func (r *effectRun) command() (result job.Result, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return result, err
	}
	defer read.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&r.output, read)
	}()
	// The command holds what is around it, and an effect holds no key.
	session, flow, ok := link.Around(r.a)
	if !ok {
		session, flow = r.c.SessionID().String(), client.SharedFlow
	}
	j := &job.Job{
		Path: r.path, Argv: r.argv, Files: []*os.File{os.Stdin, write, os.Stderr},
		Env:       link.Environment(r.a, r.agent, session, flow, r.pass, "INTERLOCK_EFFECT_ACTION="+r.digest),
		KillAfter: job.LeftoversWithin, Tell: r.a.Complain, Signals: r.signals,
	}
	result, err = j.Run()
	_ = write.Close()
	_ = read.SetReadDeadline(time.Now().Add(job.LeftoversWithin)) // a daemon may keep it open
	<-copied
	return result, err
}

// notRun returns how it went without the command.
func (r *effectRun) notRun(ctx context.Context, result json.RawMessage, err error) error {
	other, refused := errors.AsType[*client.EffectError](err)
	switch cause := context.Cause(ctx); {
	case err == nil:
		r.say("it was done before, so nothing was run")
		return r.a.PrintResult(result)
	case errors.Is(cause, cli.ErrInTime) && refused:
		return cli.ExitWith(
			cli.ExitNotAcquired, fmt.Errorf("%s is about to do it, so nothing was run", claimer(&other.Effect)),
		)
	case errors.Is(cause, cli.ErrInTime):
		return cli.ExitWith(
			cli.ExitNotAcquired, fmt.Errorf("the outcome was not reported within %s, so nothing was run", time.Duration(r.wait)),
		)
	case cause != nil:
		return notBegun(ctx)
	case refused && other.Refusal.Code == interlock.CodeEffectUnknown:
		r.digest = hex.EncodeToString(other.Effect.Digest[:])
		how := claimer(&other.Effect) + " set out to do it"
		if reason := cli.Clean(other.Effect.Reason); reason != "" {
			how += fmt.Sprintf(" (%q)", reason)
		}
		return cli.ExitWith(
			cli.ExitConflict,
			fmt.Errorf("%s; the outcome is unknown, so nothing was run: %s", how, findOut(r.x.target, r.digest)),
		)
	}
	return err
}

// finish returns how it went with the command.
func (r *effectRun) finish(result json.RawMessage) error {
	switch {
	case r.unreported == nil:
	case r.failure == nil:
		r.verdict = cli.ExitWith(cli.ExitConflict, fmt.Errorf(
			"it was done, and reporting it to the server failed: %s: settle it with `interlock effect reconcile %s --happened`",
			r.a.Sentence(r.unreported), r.digest,
		))
	default:
		r.a.Complain("reporting it to the server failed: %s", r.a.Sentence(r.unreported))
	}
	if r.failure == nil && r.output.Passes {
		r.a.Complain(
			"its output is longer than %s or not text, so it is not kept as the result", cli.Bytes(interlock.MaxResultBytes),
		)
	}
	if r.failure != nil || r.output.Passes {
		return errors.Join(r.verdict, r.output.Pass())
	}
	return errors.Join(r.verdict, r.a.PrintResult(result))
}

// notBegun reports that a signal ended the wait.
func notBegun(ctx context.Context) error {
	code := cli.ExitFailure
	if by, ok := errors.AsType[*cli.SignalError](context.Cause(ctx)); ok {
		code = cli.ExitSignal + int(by.Signal)
	}
	return cli.ExitWith(code, errors.New("interrupted: nothing was run"))
}

func claimer(e *interlock.Effect) string {
	return cli.AgentName(api.Name{Agent: e.Agent, Session: e.Session, Flow: e.Flow})
}

func (r *effectRun) say(format string, args ...any) {
	if !r.quiet {
		r.a.Complain(format, args...)
	}
}
