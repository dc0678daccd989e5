package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
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
)

// worker is one use of task work.
//
//	            ┌──────────── slots ◄────────────┐
//	            ▼                                │
//	pull ──► handed ──► command ──► ack or nack ─┘
//	            └─► renew ── lost: the command is ended, and nothing is said
type worker struct {
	a           *cli.App
	queue       string
	concurrency int
	ttl         time.Duration
	drain       time.Duration
	later       time.Duration
	laterGiven  bool
	dead        int // the exit code for a dead task; 0: none
	idle        cli.Wait
	agent       string
	quiet       bool
	argv        []string
	path        string // of the command
	pass        []string

	api      *cli.API
	presence *link.Presence
	around   *acquire.Neighbours // the lease that the worker runs under, nil for none
	blocked  map[string]bool     // the reported tasks that wait for it
	failed   chan error          // the worker cannot go on
	hurry    context.Context
	stop     context.CancelCauseFunc // of hurry: commands that still run are ended

	mu   sync.Mutex // protects what is printed, and busy
	busy time.Time  // when there was something to do last
}

const (
	exitLater = 75 // of the command: not now (EX_TEMPFAIL)

	// patientFor is how long a worker waits for its commands before it prints that.
	patientFor = 50 * time.Millisecond
	// lookAgain is how long a worker under a lease waits for tasks before it looks whether some wait for that lease.
	lookAgain = 20 * time.Second
	// pullAgain bounds the pause of a worker while its server is away.
	pullAgain = 10 * time.Second
)

// errStopped ends the commands of a worker that is to stop.
var errStopped = errors.New("the worker was stopped")

func newTaskWork(a *cli.App) *cobra.Command {
	w := &worker{a: a, failed: make(chan error, 1)}
	cmd := &cobra.Command{
		Use:                   "work [FLAGS] QUEUE -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command for each task of a queue",
		Long: `Work for QUEUE: take tasks as they can run, and run the command for each of them. It has the
payload on standard input, and in its environment

  INTERLOCK_TASK      the task's id           INTERLOCK_ATTEMPT  which attempt it is
  INTERLOCK_KIND      its kind                INTERLOCK_KEYS     its keys, one a line
  INTERLOCK_LEASE     the lease's id, which is a secret
  INTERLOCK_FENCE     the fence: pass it along wherever the command writes
  INTERLOCK_AS_OF     the version of the namespace to read state at
  INTERLOCK_APPROVAL  approved, if a person was asked
  INTERLOCK_APPROVAL_USED_IN  the earlier attempt that has used the approval, if any: what
                      it was given for may have been done
  INTERLOCK_SESSION, INTERLOCK_FLOW, INTERLOCK_AGENT, INTERLOCK_URL, INTERLOCK_NAMESPACE
                      as with interlock run: clients in the command are the same agent
  TRACEPARENT         the trace of the submitter, if it sent one

Its standard output is the result: JSON, or text. With exit code 0 the task is done. With
any other, or by a signal, the attempt has failed, and its last line on standard error is
the reason: the task is tried again after its backoff; with 75 after --later; with the code
of --dead-exit never. The command may also settle the task itself, by "interlock task ack",
which can write documents with it, "nack" or "ask"; then its output and its exit code do not
count.

The lease is renewed meanwhile. When it is lost, the command and all of its process group
get SIGTERM, and when the lease's grace is nearly over SIGKILL: the task passes to another
worker. When the worker itself is killed, they get SIGKILL at once.

At SIGTERM or SIGINT the worker takes no new tasks and ends when its commands have; after
--drain, or at a second signal, they are ended, and their tasks continue elsewhere at once.

With -o json each event is one line of JSON on standard output.

Exit codes: 0 stopped as asked, or idle for --idle; 1 there is no such queue; 126 or 127
when the command cannot be run; 69 no server answered; 77 not allowed; 2 wrong flags.`,
		Example: `  interlock task work billing -- ./charge
  interlock task work mail --concurrency 8 --later 60s -- ./send
  interlock task work accounts -- sh -c 'interlock task ack "$(./decide)" --put "$INTERLOCK_KEYS=$(cat new.json)"'
  interlock task work nightly --idle 0 -- ./report`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			w.queue, w.argv, err = cli.OneAndCommand(cmd, "queue", args)
			return err
		},
		ValidArgsFunction: view.CompleteQueues(a),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.concurrency < 1 || w.concurrency > interlock.MaxPull {
				return cli.Usagef("--concurrency %d: want a number from 1 to %d", w.concurrency, interlock.MaxPull)
			}
			if w.dead < 0 || w.dead > 255 || w.dead == exitLater {
				return cli.Usagef("--dead-exit %d: want an exit code from 1 to 255, other than %d", w.dead, exitLater)
			}
			if err := cli.CheckDurations(
				cli.Duration("--ttl", cmp.Or(w.ttl, interlock.MinTTL), interlock.MinTTL, interlock.MaxTTL),
				cli.Duration("--later", w.later, 0, interlock.MaxDelay),
				cli.Duration("--drain", w.drain, 0, 24*time.Hour),
			); err != nil {
				return err
			}
			w.laterGiven = cmd.Flags().Changed("later")
			w.pass = link.Repeated(cmd.InheritedFlags())
			return w.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&w.concurrency, "concurrency", 1, "how many commands run at once")
	cli.TTLVar(f, &w.ttl, "a lease", "the queue's, else the key pattern's")
	cli.DurationVar(
		f, &w.later, "later", 0,
		"the pause after a command that ended with 75, such as 60s (default: the queue's backoff)",
	)
	f.IntVar(&w.dead, "dead-exit", 0, "the command's exit `code` that means no other attempt can help (default: none)")
	cli.DurationVar(f, &w.drain, "drain", 30*time.Second, "how long commands may run on when the worker stops")
	w.idle = cli.Forever
	f.Var(&w.idle, "idle", "end after this time without a task: a `duration`, 0, or forever")
	cli.AgentVar(f, &w.agent, "your `name`, for others to read")
	f.BoolVarP(&w.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

func (w *worker) run(ctx context.Context) (err error) {
	if w.path, err = exec.LookPath(w.argv[0]); err != nil {
		return job.CannotRun(w.argv[0], err)
	}
	if w.agent == "" {
		w.agent = cli.OwnName()
	}
	w.api = w.a.API()
	w.presence = &link.Presence{API: w.api, Agent: w.agent, TTL: w.ttl}
	signals := make(chan os.Signal, 2)
	cli.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	pulling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.hurry, w.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	defer w.stop(nil)
	taken := cli.CancelBySignal(signals, cancel)
	defer taken()

	if _, err := w.presence.Open(pulling); err != nil {
		return err
	}
	defer w.presence.Close()
	if w.around = acquire.Around(w.a); w.around != nil {
		// A request of a command for a key there would wait for ever.
		defer w.around.Await(w.presence.Name, func(error) {})()
	}
	beating, quiet := context.WithCancel(context.WithoutCancel(ctx))
	defer quiet()
	go w.presence.Beat(beating)

	var running sync.WaitGroup
	err = w.take(pulling, &running)
	if taken() != nil {
		err = nil
	}
	w.end(&running, signals)
	select {
	case failed := <-w.failed:
		err = failed
	default:
	}
	return err
}

// end waits for the commands that still run, and ends them when they take too long or a second
// signal comes.
func (w *worker) end(running *sync.WaitGroup, signals <-chan os.Signal) {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(patientFor):
		w.say("no new tasks are taken; running ones have %s to end, or until a second signal", w.drain)
	}
	limit := time.NewTimer(w.drain)
	defer limit.Stop()
	select {
	case <-done:
		return
	case <-limit.C:
	case <-signals:
	}
	w.stop(errStopped)
	<-done
}

// take takes tasks and has them worked on, until ctx ends, or nothing is left for it.
func (w *worker) take(ctx context.Context, running *sync.WaitGroup) error {
	slots := make(chan struct{}, w.concurrency)
	p := &pullFlags{api: w.api, queue: w.queue}
	pace := client.Backoff{Least: 250 * time.Millisecond, Most: pullAgain}
	w.touch()
	if cli.IsTerminal(os.Stderr) {
		w.say("waiting for tasks of queue %s", cli.Clean(w.queue))
	}
	for {
		select {
		case slots <- struct{}{}:
		case err := <-w.failed:
			return err
		case <-ctx.Done():
			return nil
		}
		session, err := w.presence.Open(ctx)
		var list []api.Assignment
		if err == nil {
			p.body = api.PullRequest{
				Session: session, TTL: w.ttl.Milliseconds(), Max: 1 + w.concurrency - len(slots),
			}
			if p.id == "" {
				p.id = cli.FreshID()
			}
			w.tellBlocked(ctx)
			list, _, err = p.pull(ctx, w.patience())
			if err == nil || cli.ExitCode(err) != cli.ExitUnreachable {
				p.id = ""
			}
		}
		switch refusal, refused := errors.AsType[*interlock.Error](err); {
		case err == nil:
			pace = client.Backoff{Least: pace.Least, Most: pace.Most}
		case ctx.Err() != nil:
			return nil
		case refused && cli.ExitForCode(refusal.Code) == cli.ExitLost:
			w.presence.Forget(session)
		case refused && !refusal.Code.Retryable():
			return err
		default:
			w.a.Complain("%s", w.a.Sentence(err))
			if pace.Wait(ctx, cli.RetryAfter(err)) != nil {
				return nil
			}
		}
		<-slots
		for i := range list {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				defer w.touch()
				w.attempt((*assignment)(&list[i]), session)
			})
		}
		switch {
		case len(list) > 0 || len(slots) > 0:
			w.touch()
		case err == nil && w.idle != cli.Forever && w.sinceBusy() >= time.Duration(w.idle):
			w.say("nothing to do")
			return nil
		}
	}
}

// touch signals that there is something to do.
func (w *worker) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = time.Now()
}

func (w *worker) sinceBusy() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.busy)
}

// patience is how long the worker may wait for a task within a call.
func (w *worker) patience() time.Duration {
	most := interlock.MaxLongPoll
	if w.around != nil {
		most = lookAgain
	}
	if w.idle == cli.Forever {
		return most
	}
	return min(most, max(0, time.Duration(w.idle)-w.sinceBusy()))
}

// tellBlocked reports, once, each task that waits for the lease under which the worker runs: no worker gets it before
// this one has ended.
func (w *worker) tellBlocked(ctx context.Context) {
	if w.around == nil {
		return
	}
	query := url.Values{"queue": {w.queue}, "state": {interlock.TaskWaiting.String()}, "limit": {"100"}}
	_, answer, err := w.api.Do(ctx, cli.Request{Method: http.MethodGet, Path: "/v1/tasks", Query: query})
	var list api.TaskList
	if err != nil || json.Unmarshal(answer, &list) != nil {
		return // the pull tells what is wrong
	}
	for i := range list.Tasks {
		t := view.TaskOf(&list.Tasks[i])
		if key := w.around.Overlaps(t.Keys()); key != "" && !w.blocked[t.ID] {
			if w.blocked == nil {
				w.blocked = map[string]bool{}
			}
			w.blocked[t.ID] = true
			w.a.Complain(
				"%s waits for %s, which your own lease has, under which this worker runs: "+
					"start the worker without it, or on other keys", cli.Clean(t.ID), cli.Clean(string(key)),
			)
		}
	}
}

// fail ends the worker; the first reason counts.
func (w *worker) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// report tells of an attempt that begins or ends.
func (w *worker) report(h *assignment, event, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.a.JSON() {
		_ = json.NewEncoder(w.a.Out).Encode(struct {
			Event   string          `json:"event"`
			Task    string          `json:"task"`
			Attempt int             `json:"attempt"`
			Fence   interlock.Fence `json:"fence,string"`
			Detail  string          `json:"detail,omitempty"`
		}{event, h.Task.ID, h.Task.Attempt, h.Lease.Fence, detail})
		return
	}
	text := cli.Clean(h.Task.ID) + " " + event
	if detail != "" {
		text += ": " + detail
	}
	w.say("%s", text)
}

func (w *worker) say(format string, args ...any) {
	if !w.quiet && !w.a.JSON() {
		w.a.Complain(format, args...)
	}
}
