package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// FollowExits is the part of a help text about exit codes after a wait for a task.
const FollowExits = `Exit codes: 0 done, 1 dead or cancelled, 75 not in time (the task continues), 73 the wait
would never end, 69 no server answered, 77 not allowed, 2 wrong flags.`

// FollowFlags holds how to wait for a task's end.
type FollowFlags struct {
	Wait cli.Wait
	told string // of how it stands

	a      *cli.App
	caller *Caller
}

// Define adds the flags to a command; normal is the default of --wait.
func (w *FollowFlags) Define(cmd *cobra.Command, normal cli.Wait) {
	w.Wait = normal
	cmd.Flags().Var(&w.Wait, "wait", "how long to wait for its end: a `duration`, 0, or forever")
}

// followResult is the part of an answer about a task, or about a message, which is one.
type followResult struct {
	api.TaskAnswer
	Message *api.Task       `json:"message"`
	Reply   json.RawMessage `json:"reply"`
}

func (f *followResult) task() *view.Task {
	if f.Message == nil {
		return view.TaskOf(&f.Task)
	}
	if len(f.Reply) > 0 {
		f.Message.Result = f.Reply
	}
	return view.TaskOf(f.Message)
}

// Begin submits r, and waits as long as is asked for; wait is the member of r's body for the time to
// wait within the call.
func (w *FollowFlags) Begin(ctx context.Context, a *cli.App, r cli.Request, c *Caller, wait *api.Milliseconds) error {
	if w.Wait == 0 {
		var got followResult
		return a.Call(ctx, r, &got, func() error {
			t := placed(ctx, a, got.task())
			a.Say("%s\n", cli.Clean(t.ID))
			a.Warn(got.Warnings)
			text := t.Stands()
			if next := t.Next(); next != "" {
				text += ": " + next
			}
			a.Complain("%s", text)
			return nil
		})
	}
	return w.run(ctx, a, c, func(ctx context.Context, left time.Duration) (string, []byte, error) {
		*wait, r.Wait = left.Milliseconds(), left
		_, answer, err := a.API().Insist(ctx, r, false)
		var got followResult
		if json.Unmarshal(answer, &got) != nil {
			return "", answer, err
		}
		return got.task().ID, answer, err
	})
}

// follow waits for the end of a task that is there.
func (w *FollowFlags) follow(ctx context.Context, a *cli.App, id string, c *Caller) error {
	return w.run(ctx, a, c, func(ctx context.Context, left time.Duration) (string, []byte, error) {
		answer, err := w.look(ctx, id, left)
		return id, answer, err
	})
}

// look asks after a task until it is settled, or for as long as left.
func (w *FollowFlags) look(ctx context.Context, id string, left time.Duration) ([]byte, error) {
	query := url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}}
	if w.caller.session != "" {
		query.Set("session", w.caller.session)
		if w.caller.flow != "" {
			query.Set("flow", w.caller.flow)
		}
	}
	_, answer, err := w.a.API().Insist(
		ctx, cli.Request{Method: http.MethodGet, Path: view.TaskPath(id, ""), Query: query, Wait: left}, true,
	)
	return answer, err
}

// run asks once by first, and then polls the task that it names.
func (w *FollowFlags) run(
	ctx context.Context, a *cli.App, c *Caller,
	first func(ctx context.Context, left time.Duration) (id string, answer []byte, err error),
) error {
	w.a, w.caller = a, c
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	cli.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	defer cli.CancelBySignal(signals, cancel)()

	const poll = 20 * time.Second // so that the output does not get old
	deadline := w.Wait.Deadline()
	left := func() time.Duration {
		if deadline.IsZero() {
			return poll
		}
		return min(poll, time.Until(deadline))
	}
	id, answer, err := first(ctx, left())
	for {
		var got followResult
		if broken := cli.Decode(answer, &got); broken != nil && err == nil {
			err = broken
		}
		t := got.task()
		by, interrupted := errors.AsType[*cli.SignalError](context.Cause(ctx))
		switch {
		case interrupted:
			return cli.ExitWith(cli.ExitSignal+int(by.Signal), errors.New("interrupted: "+goesOn(id)))
		case t.IsSettled():
			return w.end(t, answer)
		case err != nil:
			if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeDeadlock {
				err = w.deadlocked(cmp.Or(id, t.ID), err)
			}
			return errors.Join(w.raw(answer), err)
		case left() <= 0:
			return errors.Join(w.raw(answer), cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf(
				"it was not done within %s (%s); %s", time.Duration(w.Wait), placed(context.WithoutCancel(ctx), a, t).Stands(),
				goesOn(id),
			)))
		}
		w.tell(placed(ctx, a, t))
		answer, err = w.look(ctx, id, left())
	}
}

// placed is a task with its place in line, which only a look returns.
func placed(ctx context.Context, a *cli.App, t *view.Task) *view.Task {
	if a.JSON() || !t.Is(interlock.TaskWaiting) {
		return t
	}
	var got api.TaskView
	if _, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: view.TaskPath(t.ID, "")}); err != nil ||
		json.Unmarshal(answer, &got) != nil {
		return t
	}
	return view.TaskOf(&got.Task)
}

// goesOn returns how to come back to a task.
func goesOn(id string) string {
	if id == "" {
		return "the task may have been submitted: `interlock task list` shows it"
	}
	return "it continues, and `interlock task wait " + cli.Clean(id) + "` waits for it"
}

// tell prints the task's state when that is news.
func (w *FollowFlags) tell(t *view.Task) {
	news := t.State + string(t.Blocker) + t.Tries()
	if w.told == news {
		return
	}
	if w.told == "" {
		w.a.Complain("%s", cli.Clean(t.ID))
	}
	w.told = news
	w.a.Complain("%s", t.Stands())
}

// raw prints an answer with -o json.
func (w *FollowFlags) raw(answer []byte) error {
	if !w.a.JSON() || answer == nil {
		return nil
	}
	return w.a.Raw(answer)
}

// deadlocked reports that only the wait is over.
func (w *FollowFlags) deadlocked(id string, err error) error {
	if id == "" {
		return err
	}
	w.a.Complain("%s", w.a.Sentence(err))
	return cli.ExitWith(
		cli.ExitCode(err), fmt.Errorf("the task continues: `interlock task wait %s` waits for it", cli.Clean(id)),
	)
}

// end prints what came of a task that is settled.
func (w *FollowFlags) end(t *view.Task, answer []byte) error {
	if t.Is(interlock.TaskDone) {
		if w.a.JSON() {
			return w.a.Raw(answer)
		}
		return w.a.PrintResult(t.Result)
	}
	text := cli.Clean(t.ID) + " is " + t.Stands()
	if next := t.Next(); next != "" {
		text += ": " + next
	}
	return errors.Join(w.raw(answer), cli.ExitWith(cli.ExitFailure, errors.New(text)))
}
