package main

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
)

const followExits = `Exit codes: 0 done, 1 dead or cancelled, 75 not in time (the task continues), 73 the wait
would never end, 69 no server answered, 77 not allowed, 2 wrong flags.`

// followFlags holds how to wait for a task's end.
type followFlags struct {
	wait wait
	told string // of how it stands

	a      *app
	caller *caller
}

func (w *followFlags) flags(cmd *cobra.Command, normal wait) {
	w.wait = normal
	cmd.Flags().Var(&w.wait, "wait", "how long to wait for its end: a `duration`, 0, or forever")
}

// followResult is the part of an answer about a task, or about a message, which is one.
type followResult struct {
	Outcome string          `json:"outcome"`
	Task    task            `json:"task"`
	Message *task           `json:"message"`
	Reply   json.RawMessage `json:"reply"`

	Warnings []string `json:"warnings"`
}

func (f *followResult) task() *task {
	if f.Message == nil {
		return &f.Task
	}
	if len(f.Reply) > 0 {
		f.Message.Result = f.Reply
	}
	return f.Message
}

// begin submits r, and waits as long as is asked for.
func (w *followFlags) begin(ctx context.Context, a *app, r request, c *caller) error {
	body := r.Body.(map[string]any)
	if w.wait == 0 {
		var got followResult
		return a.call(ctx, r, &got, func() error {
			t := a.placed(ctx, got.task())
			a.say("%s\n", clean(t.ID))
			a.warn(got.Warnings)
			text := t.stands()
			if next := t.next(); next != "" {
				text += ": " + next
			}
			a.complain("%s", text)
			return nil
		})
	}
	return w.run(ctx, a, c, func(ctx context.Context, left time.Duration) (string, []byte, error) {
		body["wait_ms"] = left.Milliseconds()
		r.Wait = left
		_, answer, err := a.api().insist(ctx, r, false)
		var got followResult
		if json.Unmarshal(answer, &got) != nil {
			return "", answer, err
		}
		return got.task().ID, answer, err
	})
}

// follow waits for the end of a task that is there.
func (w *followFlags) follow(ctx context.Context, a *app, id string, c *caller) error {
	return w.run(ctx, a, c, func(ctx context.Context, left time.Duration) (string, []byte, error) {
		answer, err := w.look(ctx, id, left)
		return id, answer, err
	})
}

// look asks after a task until it is settled, or for as long as left.
func (w *followFlags) look(ctx context.Context, id string, left time.Duration) ([]byte, error) {
	query := url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}}
	if w.caller.session != "" {
		query.Set("session", w.caller.session)
		if w.caller.flow != "" {
			query.Set("flow", w.caller.flow)
		}
	}
	_, answer, err := w.a.api().insist(
		ctx, request{Method: http.MethodGet, Path: taskPath(id, ""), Query: query, Wait: left}, true,
	)
	return answer, err
}

// run asks once by first, and then polls the task that it names.
func (w *followFlags) run(
	ctx context.Context, a *app, c *caller,
	first func(ctx context.Context, left time.Duration) (id string, answer []byte, err error),
) error {
	w.a, w.caller = a, c
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	defer cancelBySignal(signals, cancel)()

	const poll = 20 * time.Second // so that the output does not get old
	deadline := w.wait.deadline()
	left := func() time.Duration {
		if deadline.IsZero() {
			return poll
		}
		return min(poll, time.Until(deadline))
	}
	id, answer, err := first(ctx, left())
	for {
		var got followResult
		if broken := json.Unmarshal(answer, &got); broken != nil && err == nil {
			err = fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", broken)
		}
		t := got.task()
		by, interrupted := errors.AsType[*signalError](context.Cause(ctx))
		switch {
		case interrupted:
			return exitWith(exitSignal+int(by.signal), errors.New("interrupted: "+goesOn(id)))
		case t.settled():
			return w.end(t, answer)
		case err != nil:
			if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeDeadlock {
				err = w.deadlocked(cmp.Or(id, t.ID), err)
			}
			return errors.Join(w.raw(answer), err)
		case left() <= 0:
			return errors.Join(w.raw(answer), exitWith(exitNotAcquired, fmt.Errorf(
				"it was not done within %s (%s); %s", time.Duration(w.wait), a.placed(context.WithoutCancel(ctx), t).stands(),
				goesOn(id),
			)))
		}
		w.tell(a.placed(ctx, t))
		answer, err = w.look(ctx, id, left())
	}
}

// placed is a task with its place in line, which only a look returns.
func (a *app) placed(ctx context.Context, t *task) *task {
	if a.json() || !t.is(interlock.TaskWaiting) {
		return t
	}
	var got taskAnswer
	if _, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: taskPath(t.ID, "")}); err != nil ||
		json.Unmarshal(answer, &got) != nil {
		return t
	}
	return &got.Task
}

// goesOn returns how to come back to a task.
func goesOn(id string) string {
	if id == "" {
		return "the task may have been submitted: `interlock task ls` shows it"
	}
	return "it continues, and `interlock task wait " + clean(id) + "` waits for it"
}

// tell prints the task's state when that is news.
func (w *followFlags) tell(t *task) {
	news := t.State + string(t.Blocker) + t.tries()
	if w.told == news {
		return
	}
	if w.told == "" {
		w.a.complain("%s", clean(t.ID))
	}
	w.told = news
	w.a.complain("%s", t.stands())
}

// raw prints an answer with -o json.
func (w *followFlags) raw(answer []byte) error {
	if !w.a.json() || answer == nil {
		return nil
	}
	return w.a.raw(answer)
}

// deadlocked reports that only the wait is over.
func (w *followFlags) deadlocked(id string, err error) error {
	if id == "" {
		return err
	}
	w.a.complain("%s", w.a.sentence(err))
	return exitWith(exitCode(err), fmt.Errorf("the task continues: `interlock task wait %s` waits for it", clean(id)))
}

// end prints what came of a task that is settled.
func (w *followFlags) end(t *task, answer []byte) error {
	if t.is(interlock.TaskDone) {
		if w.a.json() {
			return w.a.raw(answer)
		}
		return w.a.printResult(t.Result)
	}
	text := clean(t.ID) + " is " + t.stands()
	if next := t.next(); next != "" {
		text += ": " + next
	}
	return errors.Join(w.raw(answer), exitWith(exitFailure, errors.New(text)))
}

// printResult prints a result: text as it is, other JSON on one line.
func (a *app) printResult(result json.RawMessage) error {
	if len(result) == 0 {
		return nil
	}
	var text string
	if a.json() || json.Unmarshal(result, &text) != nil {
		return a.raw(result)
	}
	if text == "" {
		return nil
	}
	return a.content([]byte(text + "\n"))
}
