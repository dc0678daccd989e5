package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// attempt runs the command for a task that was handed to a session, and reports what came of it.
func (w *worker) attempt(h *assignment, session string) {
	w.report(h, "begun", h.text())
	w.a.tellApproval(h.Task.Approval)
	ctx, cancel := context.WithCancelCause(w.hurry)
	defer cancel(nil)
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(h, cancel, ended) })
	c := &taskCommand{output: resultOutput{to: w.a.out}, complaints: lastLine{to: w.a.err}}
	result, err := c.run(w, h, session, ctx.Done())
	close(ended)
	renewing.Wait()

	cause := context.Cause(ctx)
	switch {
	case err != nil:
		broken := cannotRun(w.argv[0], err)
		w.nack(h, "the worker cannot run its command", atOnce)
		w.fail(broken)
	case result.ended && errors.Is(cause, errStopped):
		w.nack(h, errStopped.Error(), atOnce)
	case result.ended:
		w.report(h, "lost", w.a.sentence(cause))
	case result.code() == 0:
		w.ack(h, c.result(w.a))
	default:
		how := fmt.Sprintf("exit code %d", result.code())
		if result.status.Signaled() {
			how = "ended by " + signalName(result.status.Signal())
		}
		if last := c.complaints.line(); last != "" {
			how += ": " + last
		}
		w.nack(h, how, w.retry(result))
	}
}

// A worker's word on a task's next attempt; nil leaves it to the task's backoff.
type retry map[string]any

var atOnce = retry{"delay_ms": 0}

// retry returns what the command's exit code means for the next attempt.
func (w *worker) retry(result jobResult) retry {
	switch code := result.code(); {
	case result.status.Signaled():
	case code == exitLater && w.laterGiven:
		return retry{"delay_ms": w.later.Milliseconds()}
	case code == w.dead:
		return retry{"dead": true}
	}
	return nil
}

// renew keeps the lease of an attempt, until the command has ended. When it is lost, it
// cancels; when the command has settled the task itself, there is nothing left to keep.
func (w *worker) renew(h *assignment, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	ttl := ms(h.Lease.TTL)
	tick := time.NewTicker(ttl / 3)
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
			if advice := asFlags(clean(got.Advice.Message)); advice != "" && advice != said {
				said = advice
				w.say("%s: %s", clean(h.Task.ID), advice)
			}
		case refused && refusal.Code == interlock.CodeReleased:
			return
		case refused && exitForCode(refusal.Code) == exitLost:
			cancel(refusal)
			return
		case time.Since(heard) >= ttl:
			cancel(fmt.Errorf("no answer from the server for %s, so the lease is over", short(ttl)))
			return
		}
	}
}

// look renews the lease of an attempt, and with it the session.
func (w *worker) look(h *assignment) (got leaseAnswer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), ms(h.Lease.TTL)/3)
	defer cancel()
	_, answer, err := w.api.do(
		ctx, request{Method: http.MethodPost, Path: leasePath(h.Lease.ID, "renew"), Body: struct{}{}},
	)
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	return got, err
}

// ack reports that the task is done.
func (w *worker) ack(h *assignment, result json.RawMessage) {
	body := map[string]any{}
	if result != nil {
		body["result"] = result
	}
	_, err := w.settle(h, acknowledgement(h.Lease.ID, body))
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case err == nil:
		w.report(h, "done", cut(clean(string(result)), 60))
	case refused && refusal.Code == interlock.CodeTaskMoved, exitCode(err) == exitUnreachable:
		w.over(h, err)
	default:
		// The result is not one that the server takes. Another attempt may have a better one.
		w.nack(h, w.a.sentence(err), nil)
	}
}

// nack reports that the attempt has failed.
func (w *worker) nack(h *assignment, reason string, next retry) {
	body := map[string]any{"reason": clip(reason, interlock.MaxReasonBytes)}
	maps.Copy(body, next)
	r := request{Method: http.MethodPost, Path: leasePath(h.Lease.ID, "nack"), Body: body, ID: freshID(), Again: true}
	answer, err := w.settle(h, r)
	var got taskAnswer
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	if err != nil {
		w.over(h, err)
		return
	}
	how := got.Task.place()
	if got.Task.is(interlock.TaskDead) {
		how = "dead after " + count(got.Task.Attempt, "attempt", "attempts")
	}
	w.report(h, "failed", reason+"; "+how)
}

// settle reports what came of an attempt until the server has received it, or the worker is to
// stop: the lease lives as long as the worker's session, so no other worker would get the task
// meanwhile.
func (w *worker) settle(h *assignment, r request) (answer []byte, err error) {
	pace := client.Backoff{Least: 250 * time.Millisecond, Most: pullAgain}
	for {
		_, answer, err = w.api.insist(context.WithoutCancel(w.hurry), r, false)
		if err == nil || exitCode(err) != exitUnreachable {
			return answer, err
		}
		if w.hurry.Err() == nil {
			w.a.complain("%s: the outcome is reported when the server is back: %s", clean(h.Task.ID), w.a.sentence(err))
		}
		if pace.Wait(w.hurry, estimate(err)) != nil {
			return answer, err
		}
	}
}

// over tells of an attempt that ended otherwise than by our word: the command has
// settled it, or it is lost.
func (w *worker) over(h *assignment, why error) {
	_, err := w.look(h)
	if refusal, refused := errors.AsType[*interlock.Error](err); !refused || refusal.Code != interlock.CodeReleased {
		w.report(h, "lost", w.a.sentence(why))
		return
	}
	var got taskAnswer
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_, answer, err := w.api.do(ctx, request{Method: http.MethodGet, Path: taskPath(h.Task.ID, "")})
	if err == nil && json.Unmarshal(answer, &got) == nil {
		w.report(h, "settled by the command", got.Task.stands())
		return
	}
	w.report(h, "settled by the command", "")
}

// taskCommand is the command of one attempt.
type taskCommand struct {
	output     resultOutput
	complaints lastLine
}

// run runs it, until it ends or lost is closed.
func (c *taskCommand) run(
	w *worker, h *assignment, session string, lost <-chan struct{},
) (result jobResult, err error) {
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
	j := &job{
		path: w.path, argv: w.argv, files: []*os.File{in.read, out.write, complaints.write}, background: true,
		env:       w.a.environment(session, h.Task.ID, w.pass, own...),
		killAfter: ms(h.Lease.Grace) - ms(h.Lease.Grace)/5, lost: lost,
		tell: func(format string, args ...any) {
			w.a.complain("%s: "+format, append([]any{clean(h.Task.ID)}, args...)...)
		},
	}
	result, err = j.run()
	_ = in.read.Close()
	_ = out.write.Close()
	_ = complaints.write.Close()
	limit := time.Now().Add(leftoversWithin) // a daemon may keep them open
	_ = out.read.SetReadDeadline(limit)
	_ = complaints.read.SetReadDeadline(limit)
	copying.Wait()
	return result, err
}

// result returns the command's output, nil if it is empty, or no result.
func (c *taskCommand) result(a *app) json.RawMessage {
	if !c.output.passes && len(bytes.TrimSpace(c.output.kept)) == 0 {
		return nil
	}
	result := c.output.result()
	if c.output.passes {
		a.complain(
			"the command's output is longer than %s or not text, so it is not kept as the result",
			bytesText(interlock.MaxResultBytes),
		)
		_ = c.output.pass()
		return nil
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return nil
	}
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
	lines := strings.Split(strings.TrimSpace(cleanLines(string(l.tail))), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
