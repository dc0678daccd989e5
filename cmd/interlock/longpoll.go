package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/prose"
)

// longPollRequest is a request over HTTP that may have to stand in line: for a lease, for
// its conversion, at a barrier.
type longPollRequest struct {
	a    *app
	api  *httpAPI
	ask  request
	wait wait
	// parties are how many a barrier waits for that a lease is asked for at.
	parties countFlag
	// ticket is that of a lease which may stand in line to be resumed.
	ticket string
	// undo releases what was got when it is not wanted any more. nil: the place in line stays, and
	// the command that takes it up again is named by again.
	undo  func(c *httpAPI, ask request, got *leaseAnswer)
	again string
	// around is the flow that waits while this waits, nil if there is none; own is the
	// session that the request then waits in.
	around *neighbours
	own    *presence
	// asks means that the request is a resumption, which may have to wait for an answer first.
	asks bool
	// late is the message when the time was over; the holder follows it.
	late func(got *leaseAnswer) string
}

// stand polls until the request is granted, refused, or not wanted any more. how is the word
// for a grant.
func (s *longPollRequest) stand(ctx context.Context, how string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	taken := cancelBySignal(signals, cancel)
	defer taken()

	got, answer, err := s.follow(ctx, cancel)
	if s.around != nil && got.Outcome != "granted" {
		defer s.own.close()
	}
	var by *signalError
	switch {
	case errors.As(context.Cause(ctx), &by):
		return exitWith(exitSignal+int(by.signal), errors.New("interrupted: "+s.giveUp(got)))
	case deadlocked(context.Cause(ctx)) != nil:
		s.giveUp(got)
		return context.Cause(ctx)
	case errors.Is(err, errInTime):
		text := fmt.Sprintf("%s within %s%s", s.late(got), time.Duration(s.wait), heldBy(got.Holders))
		if kept := s.giveUp(got); s.undo == nil {
			text += "; " + kept
		}
		return exitWith(exitNotAcquired, errors.New(text))
	case err != nil:
		if s.a.json() && answer != nil {
			return errors.Join(err, s.a.raw(answer))
		}
		return err
	case s.a.json():
		return s.a.raw(answer)
	}
	s.a.tellLease(how, got)
	return nil
}

// giveUp ends a request without a waiter, and reports what has become of its place in line.
func (s *longPollRequest) giveUp(got *leaseAnswer) string {
	if s.asks && got.Ticket.ID == "" {
		return "the lease stays parked: " + s.again + " continues to wait"
	}
	if s.undo == nil {
		return "the place in line is kept for " + short(interlock.BareTicketTTL) + ": " + s.again + " continues to wait"
	}
	s.undo(s.api, s.ask, got)
	return "the place in line was given up"
}

// follow polls the request while it stands in line. lost is called on a deadlock that ends the
// wait of the flow around this command.
func (s *longPollRequest) follow(
	ctx context.Context, lost context.CancelCauseFunc,
) (got *leaseAnswer, answer []byte, err error) {
	deadline := s.wait.deadline()
	got = &leaseAnswer{}
	if s.around == nil {
		_, answer, err = s.begin(ctx)
		if s.asks && isUnanswered(err) {
			answer, err = s.answered(ctx, deadline)
		}
	} else {
		answer, err = s.beginInside(ctx)
	}
	var shown *waitLine
	for {
		if err == nil {
			*got = leaseAnswer{}
			err = json.Unmarshal(answer, got)
		}
		if err != nil || got.Outcome != "queued" {
			break
		}
		if shown == nil {
			s.a.warn(got.Warnings)
			if s.around != nil {
				defer s.around.awaits(s.own.name, lost)()
				beating, stop := context.WithCancel(ctx)
				defer stop()
				go s.own.beat(beating)
			}
			shown = s.a.waitLine(got.Key, s.parties, deadline)
			defer shown.end()
		}
		shown.queued(got.Ticket.Position, got.Ticket.Length, ms(got.Ticket.ETA), got.Holders)
		answer, err = s.api.follow(ctx, got.Ticket.ID, deadline)
	}
	return got, answer, err
}

// answered resumes a lease when a person has approved what it asks.
func (s *longPollRequest) answered(ctx context.Context, deadline time.Time) (answer []byte, err error) {
	if s.wait == 0 {
		return nil, exitWith(exitNotAcquired, errors.New("the parked lease's question has no answer yet"))
	}
	s.a.complain("waiting for a person to answer the lease's question")
	for {
		left := 20 * time.Second // so that a server that restarts is noticed
		if !deadline.IsZero() {
			left = min(left, time.Until(deadline))
		}
		if left <= 0 {
			return nil, exitWith(exitNotAcquired, fmt.Errorf(
				"the lease's question got no answer within %s; it stays parked: %s continues to wait", time.Duration(s.wait),
				s.again,
			))
		}
		ask := s.ask
		body := maps.Clone(ask.Body.(map[string]any))
		milliseconds(body, "wait_ms", max(left, time.Millisecond))
		ask.Body, ask.ID, ask.Wait = body, freshID(), left
		if _, answer, err = s.api.insist(ctx, ask, true); !isUnanswered(err) {
			return answer, err
		}
	}
}

// isUnanswered reports whether err means that the question of a parked lease has no answer.
func isUnanswered(err error) bool {
	refusal, refused := errors.AsType[*interlock.Error](err)
	return refused && refusal.Code == interlock.CodeParked
}

// begin makes the request, or takes it up again where it stands in line already.
func (s *longPollRequest) begin(ctx context.Context) (status int, answer []byte, err error) {
	status, answer, err = s.api.insist(ctx, s.ask, false)
	refusal, refused := errors.AsType[*interlock.Error](err)
	if refused && refusal.Code == interlock.CodeNotParked {
		r := request{Method: http.MethodGet, Path: "/v1/tickets/" + url.PathEscape(s.ticket)}
		if status, standing, failed := s.api.insist(ctx, r, true); failed == nil {
			return status, standing, nil
		}
	}
	return status, answer, err
}

// beginInside is begin with a flow around this command. A request that is granted at once needs
// no session; one that has to wait gets one, which lives as long as the lease.
func (s *longPollRequest) beginInside(ctx context.Context) (answer []byte, err error) {
	wait := s.ask
	body := maps.Clone(wait.Body.(map[string]any))
	body["on_conflict"] = interlock.Fail.String()
	delete(body, "wait_ms")
	s.ask.Body, s.ask.ID = body, freshID()
	_, answer, err = s.begin(ctx)
	if _, refused := errors.AsType[*interlock.Error](err); !refused || exitCode(err) != exitNotAcquired {
		return answer, err
	}
	body = maps.Clone(wait.Body.(map[string]any))
	delete(body, "agent")
	if body["session"], err = s.own.open(ctx); err != nil {
		return nil, err
	}
	s.ask = wait
	s.ask.Body = body
	_, answer, err = s.begin(ctx)
	return answer, err
}

// warn passes on what the server found odd about a request.
func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		a.complain("%s", clean(w))
	}
}

func heldBy(holders []holder) string {
	if len(holders) == 0 {
		return ""
	}
	return prose.HeldBy(holders[0].name(), holders[0].Purpose)
}

// errInTime reports that the time for waiting is over.
var errInTime = errors.New("not in time")

// follow asks after a ticket until there is news, or until deadline (zero: for ever).
func (c *httpAPI) follow(ctx context.Context, ticket string, deadline time.Time) (answer []byte, err error) {
	const poll = 20 * time.Second // so that what is shown does not get old
	left := poll
	if !deadline.IsZero() {
		if left = min(left, time.Until(deadline)); left <= 0 {
			return nil, errInTime
		}
		// The server's answer comes first; this is for when there is no server.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(time.Second))
		defer cancel()
	}
	_, answer, err = c.insist(ctx, request{
		Method: http.MethodGet, Path: "/v1/tickets/" + url.PathEscape(ticket), Wait: left,
		Query: url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}},
	}, true)
	if err != nil && ctx.Err() != nil && !deadline.IsZero() {
		err = errInTime
	}
	return answer, err
}

// undoAcquire releases the result of a request for a lease. An answer may have been lost, so a
// request without one is repeated, and a ticket is tried as the lease that it may have become:
// they share their digits. Leases that cannot be released end by themselves.
func undoAcquire(c *httpAPI, ask request, got *leaseAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if !c.found(ctx, ask, got) || c.leave(ctx, got) {
		return
	}
	id := got.Lease.ID
	if digits, ok := strings.CutPrefix(got.Ticket.ID, "t_"); ok {
		id = "l_" + digits
	}
	if id != "" {
		_, _, _ = c.do(ctx, request{Method: http.MethodPost, Path: leasePath(id, "release"), Body: struct{}{}, ID: freshID()})
	}
}

// undoTurn leaves the line and touches nothing else: the lease was there before.
func undoTurn(c *httpAPI, ask request, got *leaseAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if c.found(ctx, ask, got) {
		c.leave(ctx, got)
	}
}

// found makes sure that it is known what a request has got.
func (c *httpAPI) found(ctx context.Context, ask request, got *leaseAnswer) bool {
	if got.Outcome != "" {
		return true
	}
	_, answer, err := c.do(ctx, ask)
	return err == nil && json.Unmarshal(answer, got) == nil
}

func (c *httpAPI) leave(ctx context.Context, got *leaseAnswer) (left bool) {
	if got.Ticket.ID == "" {
		return false
	}
	_, _, err := c.do(
		ctx, request{Method: http.MethodDelete, Path: "/v1/tickets/" + url.PathEscape(got.Ticket.ID), ID: freshID()},
	)
	return err == nil
}

// leasePath is where something is done with a lease, or without an action the lease.
func leasePath(id, action string) string {
	path := "/v1/leases/" + url.PathEscape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// lateFor returns the message for keys that were not free in time.
func lateFor(got *leaseAnswer) string { return clean(got.Key) + " was not free" }
