package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// invocation is one use of run.
type invocation struct {
	a      *cli.App
	q      acquire.Flags
	claims []interlock.Claim // empty with --any-prefix
	argv   []string
	path   string // of the command

	skip      bool
	note      string
	killAfter time.Duration
	quiet     bool
	seat      string   // a file; "" for none
	documents bool     // the command gets those at the keys
	pass      []string // variables for the command that repeat flags

	killAsGrace bool // the lease's grace is the time between SIGTERM and SIGKILL

	// obtain asks for the lease in place of an Acquire, if it is set.
	obtain func(context.Context, *client.Client, client.Request) (*client.Lease, error)

	under *Under // the command of another topic, if it is one

	around   *acquire.Neighbours // the flow that waits for this, nil for none
	declared func()              // ends the declaration of that; nil before

	granted time.Time
	waited  time.Duration
	signals chan os.Signal // those that end a wait, and are passed on to the command later
}

// New returns the command run.
func New(a *cli.App) *cobra.Command {
	r := &invocation{a: a}
	cmd := &cobra.Command{
		Use:                   "run [FLAGS] KEY... -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command while holding a lease",
		Long: `Acquire a lease on all of the keys, run the command, and release the lease when it has
ended. Heartbeats run meanwhile. When the lease is lost, because the server cannot be
reached for longer than --ttl, or an operator revoked it, or --max-hold has passed, the
command and all of its process group get SIGTERM, and after --kill-after SIGKILL. Processes
that the command leaves behind in its group are ended too, before the lease is released; a
daemon that is to survive leaves the group by setsid. When run itself is killed, a watcher
process sends the group SIGKILL at once.

With -o json the last line on standard error is the result, also of a lease that is refused;
standard output is the command's.

Signals are passed on to the command, and on a terminal it has the terminal. Its environment
has

  INTERLOCK_LEASE    the lease's id, which is a secret; INTERLOCK_OUTER has those of runs
                     around this one
  INTERLOCK_FENCE    the fence: pass it along wherever the command writes
  INTERLOCK_KEYS     the keys, one a line
  INTERLOCK_SESSION  the session's id, a secret too; INTERLOCK_FLOW is the flow in it
  INTERLOCK_AGENT    the agent's name
  INTERLOCK_URL      the server; INTERLOCK_NAMESPACE is the namespace, unless it is the
                     credential's

Clients, hooks and "interlock mcp" in the command join the session by these: they are the same
agent, and have the keys of the lease already.

With --documents it also has the documents at the keys, read in the same step as the lease
was granted:

  INTERLOCK_DOCUMENTS  the path of a JSON file that only you can read, which is removed
                       when the command has ended: "documents" and "as_of", as
                       "interlock lock --documents -o json" has them
  INTERLOCK_AS_OF      the version of the namespace that they were read at, for
                       "interlock state commit --as-of"

Messages on standard error report that another agent asks for the keys, that the lease is
about to end, and why it ended. With --stall the command must report its progress, by
"interlock lease renew --progress TEXT".

"interlock workflow start" starts runs of workflows under an organisation's cap.

A run inside another run, or inside the work at a task, has a session of its own, and the
session around it counts as waiting for that. It is refused at once when it asks for a key that
the session around it holds.

Exit codes: the command's own, 128+n when it was ended by signal n, 126 or 127 when
it cannot be run, and of run itself: 65 version conflict or stale fence, 69 no server
answered, 73 victim of a deadlock, 75 not acquired in time, 77 not allowed, 79 the
lease was lost (and the command was ended), 2 wrong flags or keys.`,
		Example: `  interlock run account:12345 -- ./charge --late-fee
  interlock run --wait 30s repo:web/src repo:web/test -- make test
  interlock run --shared --purpose "nightly report" ledger:2026 -- ./report
  interlock run --skip job:backup -- ./backup
  interlock run --permits 2 --group batch org:acme/runs -- ./train
  interlock run --any-prefix gpu: -- sh -c './train --device "$INTERLOCK_KEYS"'
  interlock run --preempt --priority 10 --purpose "hotfix" repo:web -- ./deploy
  interlock run --parties 3 build:42 -- ./step
  interlock run --documents account:12345 -- sh -c 'jq .documents[0].value "$INTERLOCK_DOCUMENTS"'`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0:
				return cli.Usagef("put -- between the keys and the command: %s", cli.UseLine(cmd))
			case dash == 0 && len(r.q.Claims) == 0 && r.q.AnyPrefix == "":
				return cli.Usagef("name one key or more before the --: %s", cli.UseLine(cmd))
			case dash == len(args):
				return cli.Usagef("name a command after the --: %s", cli.UseLine(cmd))
			}
			return nil
		},
		ValidArgsFunction: view.CompleteKeys(a, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := r.q.Check(cmd); err != nil {
				return err
			}
			dash := cmd.ArgsLenAtDash()
			if r.claims, err = r.q.Wanted(args[:dash]); err != nil {
				return err
			}
			r.argv = args[dash:]
			r.killAsGrace = !cmd.Flags().Changed("kill-after")
			if r.killAfter < 0 {
				return cli.Usagef("--kill-after %s: want a duration of 0 or more", r.killAfter)
			}
			if r.skip && (r.q.Preempt || cmd.Flags().Changed("wait") && r.q.Wait != 0) {
				return cli.Usagef("--skip leaves the keys to their holder: leave --wait and --preempt out")
			}
			r.pass = link.Repeated(cmd.InheritedFlags())
			return r.run(cmd.Context())
		},
	}
	r.q.Define(cmd, 0)
	f := cmd.Flags()
	f.BoolVar(&r.skip, "skip", false, "when the keys are held already, do nothing and exit with 0")
	f.StringVar(&r.note, "note", "", "a `text` for the next holder")
	f.StringVar(
		&r.seat, "seat", "",
		"a `file` that stands for this run across restarts: if it is killed, the next one takes its lease over at once",
	)
	f.BoolVar(&r.documents, "documents", false, "hand the documents at the keys to the command, in a file")
	cli.DurationVar(
		f, &r.killAfter, "kill-after", 0,
		"time between SIGTERM and SIGKILL when the lease is lost (default: the lease's grace)",
	)
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

func (r *invocation) run(ctx context.Context) error {
	r.around = acquire.Around(r.a)
	if r.under == nil {
		if err := r.find(); err != nil {
			return err
		}
	}
	// From here on no signal gets lost between the wait and the command.
	r.signals = make(chan os.Signal, 16)
	cli.Notify(r.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(r.signals)
	c, err := link.DialSeat(ctx, r.a, r.q.Agent, r.q.TTL, r.seat)
	if err != nil {
		return err
	}
	lease, err := r.acquire(ctx, c)
	if r.declared == nil && r.around != nil && err == nil {
		// What is around waits while the command runs: a request of the command for a key there would wait for ever.
		r.declared = r.around.Await(c.SessionName(), func(error) {})
	}
	if r.declared != nil {
		defer r.declared()
	}
	if err != nil {
		link.HangUp(c)
		if errors.Is(err, client.ErrSkipped) {
			r.say("%s", skippedText(err))
			return nil
		}
		if r.a.JSON() {
			return r.reportRefusal(err)
		}
		return err
	}
	if err := r.prepare(ctx, c); err != nil {
		r.giveBack(lease, "not run")
		link.HangUp(c)
		return err
	}
	result, err := r.work(c, lease)
	if err != nil {
		r.giveBack(lease, "not run")
		link.HangUp(c)
		if _, boxed := errors.AsType[*sandbox.Error](err); boxed {
			return err
		}
		return job.CannotRun(r.argv[0], err)
	}
	err = r.finish(c, lease, result)
	if r.a.JSON() {
		err = errors.Join(err, r.report(lease, err))
	}
	return err
}

// reportRefusal prints one line to standard error about a lease that was not granted.
func (r *invocation) reportRefusal(err error) error {
	code := cli.ExitCode(err)
	out := struct {
		Keys      []interlock.Key `json:"keys,omitempty"`
		AnyPrefix string          `json:"any_prefix,omitempty"`
		Refused   bool            `json:"refused"`
		Code      interlock.Code  `json:"code,omitempty"`
		Detail    string          `json:"detail"`
		Holders   []api.Holder    `json:"holders,omitempty"`
		Length    int             `json:"queue_length,omitempty"`
		Advice    *api.Advice     `json:"advice,omitempty"`
		ExitCode  int             `json:"exit_code"`
	}{
		Keys: view.KeysOf(r.claims), AnyPrefix: r.q.AnyPrefix, Refused: true, Detail: r.a.Sentence(err), ExitCode: code,
	}
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		out.Code, out.Detail = refusal.Code, refusal.Message
		for i := range refusal.Holders {
			out.Holders = append(out.Holders, cli.HolderOf(&refusal.Holders[i]))
		}
		if refusal.Line != nil {
			out.Length = refusal.Line.Length
		}
		out.Advice = &api.Advice{
			Action: refusal.Advice.Action, RetryAfter: refusal.Advice.RetryAfter.Milliseconds(),
			Message: cli.AsFlags(refusal.Advice.Message),
		}
	}
	return errors.Join(cli.ExitWith(code, nil), json.NewEncoder(r.a.Err).Encode(out))
}

// report prints one line to standard error about how it went: standard output is the command's.
func (r *invocation) report(lease *client.Lease, result error) error {
	code := cli.ExitCode(result)
	return json.NewEncoder(r.a.Err).Encode(struct {
		Keys     []interlock.Key `json:"keys"`
		Fence    interlock.Fence `json:"fence,string"`
		Waited   int64           `json:"waited_ms"`
		Held     int64           `json:"held_ms"`
		Lost     bool            `json:"lost"`
		EndedBy  string          `json:"ended_by,omitempty"`
		ExitCode int             `json:"exit_code"`
	}{
		view.KeysOf(lease.Claims()), lease.Fence(), r.waited.Milliseconds(), time.Since(r.granted).Milliseconds(),
		code == cli.ExitLost, endedBy(lease), code,
	})
}

// find makes sure that the command exists before any wait for it.
func (r *invocation) find() (err error) {
	if r.path, err = exec.LookPath(r.argv[0]); err != nil {
		return job.CannotRun(r.argv[0], err)
	}
	return nil
}

// prepare lets another topic make ready what its command needs.
func (r *invocation) prepare(ctx context.Context, c *client.Client) error {
	if r.under == nil {
		return nil
	}
	if r.under.Prepare != nil {
		if err := r.under.Prepare(ctx, c, r.under); err != nil {
			return err
		}
	}
	r.argv = r.under.Argv
	if r.under.Box != nil {
		return nil // the command is looked up inside
	}
	return r.find()
}

// acquire stands in line until the lease is there, the time is over, or a signal interrupts.
func (r *invocation) acquire(ctx context.Context, c *client.Client) (*client.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taken := cli.CancelBySignal(r.signals, cancel)
	defer taken()

	req := r.request()
	deadline := r.q.Wait.Deadline()
	if !deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadlineCause(ctx, deadline, cli.ErrInTime)
		defer done()
	}
	line := &waiterRow{r: r, c: c, deadline: deadline, cancel: cancel}
	defer line.end()
	req.OnQueued = line.queued
	began := time.Now()
	obtain := r.obtain
	if obtain == nil {
		obtain = func(ctx context.Context, c *client.Client, req client.Request) (*client.Lease, error) {
			return c.Acquire(ctx, req)
		}
	}
	lease, err := obtain(ctx, c, req)
	line.end()
	if err != nil {
		return nil, r.notAcquired(ctx, err, line)
	}
	if s := taken(); s != nil {
		r.signals <- s // it came too late to end the wait: the command gets it
	}
	r.granted = time.Now()
	r.waited = r.granted.Sub(began)
	info := lease.Info()
	if line.shown != nil {
		r.say("granted after %s under fence %s", cli.Short(time.Since(began)), info.Fence)
	}
	r.a.Warn(lease.Warnings())
	if !r.quiet {
		var what *api.Packet
		if p := lease.Packet(); p != nil {
			what = &api.Packet{Message: p.Message}
		}
		view.TellNotes(r.a, info.Changed, what, notesOf(info.Notes))
	}
	return lease, nil
}

// request returns the request to the server.
func (r *invocation) request() client.Request {
	req := client.Request{
		Claims: r.claims, Any: r.q.Any, Prefix: r.q.AnyPrefix, Terms: r.q.Terms, OnConflict: r.q.OnConflict(),
		Flow: client.SharedFlow, Purpose: r.q.Purpose, Trace: os.Getenv("TRACEPARENT"),

		Priority: r.q.Priority, AsOf: interlock.Version(r.q.AsOf), Documents: r.documents,
	}
	req.MaxWait = r.q.WaitFlags.MaxWait
	if r.q.GraceGiven && req.Grace == 0 {
		req.Grace = client.NoGrace
	}
	if r.skip {
		req.OnConflict = interlock.Skip
	}
	if req.Purpose == "" {
		// The arguments may be confidential.
		req.Purpose = "run " + filepath.Base(r.argv[0])
	}
	return req
}

// wanted describes the request in words.
func (r *invocation) wanted() string {
	switch keys := cli.Clean(view.JoinKeys(view.KeysOf(r.claims), ", ")); {
	case r.q.AnyPrefix != "":
		return "one of " + cli.Clean(r.q.AnyPrefix)
	case r.q.Any:
		return "one of " + keys
	default:
		return keys
	}
}

// notAcquired returns why there is no lease.
func (r *invocation) notAcquired(ctx context.Context, err error, line *waiterRow) error {
	cause := context.Cause(ctx)
	var by *cli.SignalError
	switch {
	case errors.As(cause, &by):
		return cli.ExitWith(cli.ExitSignal+int(by.Signal), errors.New("interrupted: the place in line was given up"))
	case errors.Is(cause, acquire.ErrOwnLease):
		return cause
	case acquire.Deadlocked(cause) != nil:
		return cause
	case errors.Is(err, client.ErrUnreachable):
		return err
	case errors.Is(cause, cli.ErrInTime):
		return cli.ExitWith(
			cli.ExitNotAcquired,
			fmt.Errorf("%s was not free within %s%s", r.wanted(), time.Duration(r.q.Wait), acquire.HeldBy(line.holders())),
		)
	}
	return err
}

// work runs the command under the lease.
func (r *invocation) work(c *client.Client, lease *client.Lease) (job.Result, error) {
	if r.killAsGrace {
		r.killAfter = max(lease.Info().Grace, 0)
	}
	documents, remove, err := r.handDocuments(lease)
	if err != nil {
		return job.Result{}, fmt.Errorf("the documents for it could not be written: %v", err)
	}
	defer remove()
	if r.under != nil {
		documents = append(documents, r.under.Env...)
	}
	env := link.Environment(r.a, r.q.Agent, c.SessionID().String(), client.SharedFlow, r.pass, append(documents,
		"INTERLOCK_LEASE="+lease.ID().String(), "INTERLOCK_FENCE="+lease.Fence().String(),
		"INTERLOCK_KEYS="+view.JoinKeys(view.KeysOf(lease.Claims()), "\n"))...)
	j := &job.Job{
		Path: r.path, Argv: r.argv, Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		KillAfter: r.killAfter, Lost: lease.Context().Done(), TTL: lease.Info().TTL,
		Tell: r.a.Complain, Signals: r.signals,
	}
	if r.under != nil && r.under.Files != nil {
		j.Files = r.under.Files
	}
	end := func(_ int, err error) error { return err }
	if r.under != nil && r.under.Box != nil {
		if end, err = r.under.box(r.a, j); err != nil {
			return job.Result{}, BoxError(err)
		}
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(lease, ended) })
	result, err := j.Run()
	close(ended)
	watching.Wait() // its output comes before that about the end
	return result, end(result.Code(), err)
}

// finish releases the lease and reports how the whole ended.
func (r *invocation) finish(c *client.Client, lease *client.Lease, result job.Result) error {
	if result.Ended {
		link.HangUp(c)
		return cli.ExitWith(cli.ExitLost, nil) // the reason was printed when it happened
	}
	outcome := "done"
	switch code := result.Code(); {
	case result.Status.Signaled():
		outcome = "ended by " + cli.SignalName(result.Status.Signal())
	case code != 0:
		outcome = fmt.Sprintf("exit code %d", code)
	}
	if r.isParked(lease) {
		link.HangUp(c)
		r.say("the command has parked the lease: run interlock lease resume with its id, the INTERLOCK_LEASE of the command")
		return exitAs(result)
	}
	err := r.giveBack(lease, outcome)
	link.HangUp(c)
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case refused && cli.ExitForCode(refusal.Code) == cli.ExitLost:
		return cli.ExitWith(
			cli.ExitLost,
			fmt.Errorf(
				"the command ended (%s) after its lease was lost, so another holder may have worked on the keys: %s", outcome,
				cli.RefusalText(refusal),
			),
		)
	case err != nil:
		r.say("the lease could not be released and ends by itself within %s: %v", lease.Info().TTL, err)
	}
	return exitAs(result)
}

// exitAs ends with the command's own exit code.
func exitAs(result job.Result) error {
	if code := result.Code(); code != 0 {
		return cli.ExitWith(code, nil)
	}
	return nil
}

// isParked reports whether the command has parked the lease, which must then not be released.
// The command does so over HTTP, and the stream does not learn it.
func (r *invocation) isParked(lease *client.Lease) bool {
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaveTimeout)
	defer cancel()
	_, answer, err := r.a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: view.LeasePath(lease.ID().String(), "")})
	var got view.LeaseAnswer
	return err == nil && json.Unmarshal(answer, &got) == nil && got.Lease.Parking != nil
}

func (r *invocation) giveBack(lease *client.Lease, outcome string) error {
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaveTimeout)
	defer cancel()
	return lease.Release(ctx, client.Outcome{Outcome: outcome, Note: r.note})
}

func (r *invocation) say(format string, args ...any) {
	if !r.quiet {
		r.a.Complain(format, args...)
	}
}
