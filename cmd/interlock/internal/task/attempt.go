package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// attempt runs the command for a task that was handed to a session, and reports what came of it.
func (w *worker) attempt(h *assignment, session string) {
	w.report(h, "begun", h.text())
	view.TellApproval(w.a, h.Task.Approval)
	ctx, cancel := context.WithCancelCause(w.hurry)
	defer cancel(nil)
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(h, cancel, ended) })
	c := &taskCommand{output: job.Output{To: w.a.Out}, complaints: lastLine{to: w.a.Err}}
	result, err := c.run(w, h, session, ctx.Done())
	close(ended)
	renewing.Wait()

	cause := context.Cause(ctx)
	switch {
	case err != nil:
		broken := job.CannotRun(w.argv[0], err)
		w.nack(h, "the worker cannot run its command", atOnce)
		w.fail(broken)
	case result.Ended && errors.Is(cause, errStopped):
		w.nack(h, errStopped.Error(), atOnce)
	case result.Ended:
		w.report(h, "lost", w.a.Sentence(cause))
	case result.Code() == 0:
		w.ack(h, c.result(w.a))
	default:
		how := fmt.Sprintf("exit code %d", result.Code())
		if result.Status.Signaled() {
			how = "ended by " + cli.SignalName(result.Status.Signal())
		}
		if last := c.complaints.line(); last != "" {
			how += ": " + last
		}
		w.nack(h, how, w.retry(result))
	}
}

// atOnce asks for the next attempt without a pause.
var atOnce = api.NackRequest{Delay: new(api.Milliseconds)}

// retry returns what the command's exit code means for the next attempt; the zero value leaves it to
// the task's backoff.
func (w *worker) retry(result job.Result) (next api.NackRequest) {
	switch code := result.Code(); {
	case result.Status.Signaled():
	case code == exitLater && w.laterGiven:
		next.Delay = new(w.later.Milliseconds())
	case code == w.dead:
		next.Dead = true
	}
	return next
}

// renew keeps the lease of an attempt, until the command has ended. When it is lost, it
// cancels; when the command has settled the task itself, there is nothing left to keep.
func (w *worker) renew(h *assignment, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	ttl := cli.Millis(h.Lease.TTL)
	tick := time.NewTicker(w.api.BeatAfter(ttl))
	defer tick.Stop()
	heard := time.Now()
	said := ""
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		got, err := w.look(h)
		refusal, refused := errors.AsType[*interlock.Error](err)
		switch {
		case err == nil:
			heard = time.Now()
			if advice := cli.Next(got.Advice); advice != "" && advice != said {
				said = advice
				w.say("%s: %s", cli.Clean(h.Task.ID), advice)
			}
		case refused && refusal.Code == interlock.CodeReleased:
			return
		case refused && cli.ExitForCode(refusal.Code) == cli.ExitLost:
			cancel(refusal)
			return
		case time.Since(heard) >= ttl:
			cancel(fmt.Errorf("no answer from the server for %s, so the lease is over", cli.Short(ttl)))
			return
		}
	}
}

// look renews the lease of an attempt, and with it the session.
func (w *worker) look(h *assignment) (got view.LeaseAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), cli.Millis(h.Lease.TTL)/3)
	defer cancel()
	_, answer, err := w.api.Do(
		ctx, cli.Request{Method: http.MethodPost, Path: view.LeasePath(h.Lease.ID, "renew"), Body: struct{}{}, Again: true},
	)
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	return got, err
}

// ack reports that the task is done. The command has done its work: a result that the server does not take has nothing
// repeated.
func (w *worker) ack(h *assignment, result json.RawMessage) {
	_, err := w.settle(h, acknowledgement(h.Lease.ID, &api.AckRequest{Result: result}))
	refusal, refused := errors.AsType[*interlock.Error](err)
	if refused && refusal.Advice.Action == interlock.ActFixRequest && result != nil {
		w.say("%s: the result is not stored: %s", cli.Clean(h.Task.ID), cli.Clean(refusal.Message))
		result = job.NotStored(refusal.Message)
		_, err = w.settle(h, acknowledgement(h.Lease.ID, &api.AckRequest{Result: result}))
		refusal, refused = errors.AsType[*interlock.Error](err)
	}
	switch {
	case err == nil:
		w.report(h, "done", cli.Cut(cli.Clean(string(result)), 60))
	case refused && refusal.Code == interlock.CodeTaskMoved, cli.ExitCode(err) == cli.ExitUnreachable:
		w.over(h, err)
	default:
		w.nack(h, w.a.Sentence(err), api.NackRequest{Dead: refused && refusal.Advice.Action == interlock.ActFixRequest})
	}
}

// nack reports that the attempt has failed.
func (w *worker) nack(h *assignment, reason string, body api.NackRequest) {
	body.Reason = cli.Clip(reason, interlock.MaxReasonBytes)
	r := cli.Request{
		Method: http.MethodPost, Path: view.LeasePath(h.Lease.ID, "nack"), Body: &body, ID: cli.FreshID(), Again: true,
	}
	answer, err := w.settle(h, r)
	var got api.TaskAnswer
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	if err != nil {
		w.over(h, err)
		return
	}
	t := view.TaskOf(&got.Task)
	how := t.Place()
	if t.Is(interlock.TaskDead) {
		how = "dead after " + cli.Count(t.Attempt, "attempt", "attempts")
	}
	w.report(h, "failed", reason+"; "+how)
}

// settle reports what came of an attempt until the server has received it, or the worker is to
// stop: the lease lives as long as the worker's session, so no other worker would get the task
// meanwhile.
func (w *worker) settle(h *assignment, r cli.Request) (answer []byte, err error) {
	pace := client.Backoff{Least: 250 * time.Millisecond, Most: pullAgain}
	for {
		_, answer, err = w.api.Insist(context.WithoutCancel(w.hurry), r, false)
		if err == nil || cli.ExitCode(err) != cli.ExitUnreachable {
			return answer, err
		}
		if w.hurry.Err() == nil {
			w.a.Complain("%s: the outcome is reported when the server is back: %s", cli.Clean(h.Task.ID), w.a.Sentence(err))
		}
		if pace.Wait(w.hurry, cli.RetryAfter(err)) != nil {
			return answer, err
		}
	}
}

// over tells of an attempt that ended otherwise than by our word: the command has
// settled it, or it is lost.
func (w *worker) over(h *assignment, why error) {
	_, err := w.look(h)
	if refusal, refused := errors.AsType[*interlock.Error](err); !refused || refusal.Code != interlock.CodeReleased {
		w.report(h, "lost", w.a.Sentence(why))
		return
	}
	var got api.TaskView
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaveTimeout)
	defer cancel()
	_, answer, err := w.api.Do(ctx, cli.Request{Method: http.MethodGet, Path: view.TaskPath(h.Task.ID, "")})
	if err == nil && json.Unmarshal(answer, &got) == nil {
		w.report(h, "settled by the command", view.TaskOf(&got.Task).Stands())
		return
	}
	w.report(h, "settled by the command", "")
}

// taskCommand is the command of one attempt.
type taskCommand struct {
	output     job.Output
	complaints lastLine
}

// run runs it, until it ends or lost is closed.
func (c *taskCommand) run(
	w *worker, h *assignment, session string, lost <-chan struct{},
) (result job.Result, err error) {
	var copying sync.WaitGroup
	in, out, complaints := &pipe{}, &pipe{}, &pipe{}
	defer in.close()
	defer out.close()
	defer complaints.close()
	for _, p := range []*pipe{in, out, complaints} {
		if err := p.open(); err != nil {
			return result, err
		}
	}
	copying.Go(func() {
		_, _ = in.write.Write(h.Task.Payload) // a command need not read it
		_ = in.write.Close()
	})
	copying.Go(func() { _, _ = io.Copy(&c.output, out.read) })
	copying.Go(func() { _, _ = io.Copy(&c.complaints, complaints.read) })

	own := make([]string, 0, 10)
	for _, v := range h.variables() {
		own = append(own, v[0]+"="+v[1])
	}
	j := &job.Job{
		Path: w.path, Argv: w.argv, Files: []*os.File{in.read, out.write, complaints.write}, Background: true,
		Env:       link.Environment(w.a, w.agent, session, h.Task.ID, w.pass, own...),
		KillAfter: cli.Millis(h.Lease.Grace) - cli.Millis(h.Lease.Grace)/5, Lost: lost,
		Tell: func(format string, args ...any) {
			w.a.Complain("%s: "+format, append([]any{cli.Clean(h.Task.ID)}, args...)...)
		},
	}
	result, err = j.Run()
	_ = in.read.Close()
	_ = out.write.Close()
	_ = complaints.write.Close()
	limit := time.Now().Add(job.LeftoversWithin) // a daemon may keep them open
	_ = out.read.SetReadDeadline(limit)
	_ = complaints.read.SetReadDeadline(limit)
	copying.Wait()
	return result, err
}

// result returns the command's output, nil if it is empty, or no result.
func (c *taskCommand) result(a *cli.App) json.RawMessage {
	if !c.output.Passes && len(bytes.TrimSpace(c.output.Kept)) == 0 {
		return nil
	}
	result := c.output.Result()
	if c.output.Passes {
		a.Complain(
			"the command's output is longer than %s or not text, so it is not kept as the result",
			cli.Bytes(interlock.MaxResultBytes),
		)
		_ = c.output.Pass()
		return job.NotStored("the output is longer than " + cli.Bytes(interlock.MaxResultBytes) + " or not text")
	}
	encoded, _ := json.Marshal(result) // of JSON or a text
	return encoded
}

// pipe is one between us and a command.
type pipe struct{ read, write *os.File }

func (p *pipe) open() (err error) {
	p.read, p.write, err = os.Pipe()
	return err
}

// close closes what is still open.
func (p *pipe) close() {
	for _, f := range []*os.File{p.read, p.write} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// lastLine passes on what a command complains of, and keeps the last line of it.
type lastLine struct {
	to   io.Writer
	tail []byte
}

func (l *lastLine) Write(b []byte) (int, error) {
	const most = 4 * interlock.MaxReasonBytes
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - most; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return l.to.Write(b)
}

// line is the last one that is not empty.
func (l *lastLine) line() string {
	lines := strings.Split(strings.TrimSpace(cli.CleanLines(string(l.tail))), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
