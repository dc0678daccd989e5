package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// longPollRequest is a request over HTTP that may have to stand in line: for a lease, for
// its conversion, at a barrier.
type longPollRequest struct {
	a    *cli.App
	api  *cli.API
	ask  cli.Request
	wait cli.Wait
	// parties are how many a barrier waits for that a lease is asked for at.
	parties cli.CountFlag
	// ticket is that of a lease which may stand in line to be resumed.
	ticket string
	// undo releases what was got when it is not wanted any more. nil: the place in line stays, and
	// the command that takes it up again is named by again.
	undo  func(c *cli.API, ask cli.Request, got *view.LeaseAnswer)
	again string
	// around is the flow that waits while this waits, nil if there is none; own is the
	// session that the request then waits in.
	around *acquire.Neighbours
	own    *link.Presence
	// asks means that the request is a resumption, which may have to wait for an answer first.
	asks bool
	// late is the message when the time was over; the holder follows it.
	late func(got *view.LeaseAnswer) string
}

// stand polls until the request is granted, refused, or not wanted any more. how is the word
// for a grant.
func (s *longPollRequest) stand(ctx context.Context, how string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	cli.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	taken := cli.CancelBySignal(signals, cancel)
	defer taken()

	got, answer, err := s.follow(ctx, cancel)
	if s.around != nil && got.Outcome != "granted" {
		defer s.own.Close()
	}
	var by *cli.SignalError
	switch {
	case errors.As(context.Cause(ctx), &by):
		return cli.ExitWith(cli.ExitSignal+int(by.Signal), errors.New("interrupted: "+s.giveUp(got)))
	case acquire.Deadlocked(context.Cause(ctx)) != nil:
		s.giveUp(got)
		return context.Cause(ctx)
	case errors.Is(err, cli.ErrInTime):
		text := fmt.Sprintf("%s within %s%s", s.late(got), time.Duration(s.wait), acquire.HeldBy(got.Holders))
		if kept := s.giveUp(got); s.undo == nil {
			text += "; " + kept
		}
		return cli.ExitWith(cli.ExitNotAcquired, errors.New(text))
	case err != nil:
		if s.a.JSON() && answer != nil {
			return errors.Join(err, s.a.Raw(answer))
		}
		return err
	case s.a.JSON():
		return s.a.Raw(answer)
	}
	acquire.Tell(s.a, how, got)
	return nil
}

// giveUp ends a request without a waiter, and reports what has become of its place in line.
func (s *longPollRequest) giveUp(got *view.LeaseAnswer) string {
	if s.asks && got.Ticket.ID == "" {
		return "the lease stays parked: " + s.again + " continues to wait"
	}
	if s.undo == nil {
		return "the place in line is kept for " + cli.Short(interlock.BareTicketTTL) + ": " + s.again + " continues to wait"
	}
	s.undo(s.api, s.ask, got)
	return "the place in line was given up"
}

// follow polls the request while it stands in line. lost is called on a deadlock that ends the
// wait of the flow around this command.
func (s *longPollRequest) follow(
	ctx context.Context, lost context.CancelCauseFunc,
) (got *view.LeaseAnswer, answer []byte, err error) {
	deadline := s.wait.Deadline()
	got = &view.LeaseAnswer{}
	if s.around == nil {
		_, answer, err = s.begin(ctx)
		if s.asks && isUnanswered(err) {
			answer, err = s.answered(ctx, deadline)
		}
	} else {
		answer, err = s.beginInside(ctx)
	}
	var shown *acquire.Line
	for {
		if err == nil {
			*got = view.LeaseAnswer{}
			err = json.Unmarshal(answer, got)
		}
		if err != nil || got.Outcome != "queued" {
			break
		}
		if shown == nil {
			s.a.Warn(got.Warnings)
			if s.around != nil {
				defer s.around.Await(s.own.Name, lost)()
				beating, stop := context.WithCancel(ctx)
				defer stop()
				go s.own.Beat(beating)
			}
			shown = acquire.NewLine(s.a, string(got.Key), s.parties, deadline)
			defer shown.End()
		}
		shown.Queued(got.Ticket.Position, got.Ticket.Length, cli.Millis(got.Ticket.ETA), got.Holders)
		answer, err = acquire.Follow(ctx, s.api, got.Ticket.ID, deadline)
	}
	return got, answer, err
}

// answered resumes a lease when a person has approved what it asks.
func (s *longPollRequest) answered(ctx context.Context, deadline time.Time) (answer []byte, err error) {
	if s.wait == 0 {
		return nil, cli.ExitWith(cli.ExitNotAcquired, errors.New("the parked lease's question has no answer yet"))
	}
	s.a.Complain("waiting for a person to answer the lease's question")
	for {
		left := 20 * time.Second // so that a server that restarts is noticed
		if !deadline.IsZero() {
			left = min(left, time.Until(deadline))
		}
		if left <= 0 {
			return nil, cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf(
				"the lease's question got no answer within %s; it stays parked: %s continues to wait", time.Duration(s.wait),
				s.again,
			))
		}
		ask, body := s.ask, *s.ask.Body.(*api.ResumeRequest)
		body.Wait = new(max(left, time.Millisecond).Milliseconds())
		ask.Body, ask.ID, ask.Wait = &body, cli.FreshID(), left
		if _, answer, err = s.api.Insist(ctx, ask, true); !isUnanswered(err) {
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
	status, answer, err = s.api.Insist(ctx, s.ask, false)
	refusal, refused := errors.AsType[*interlock.Error](err)
	if refused && refusal.Code == interlock.CodeNotParked {
		r := cli.Request{Method: http.MethodGet, Path: "/v1/tickets/" + url.PathEscape(s.ticket)}
		if status, standing, failed := s.api.Insist(ctx, r, true); failed == nil {
			return status, standing, nil
		}
	}
	return status, answer, err
}

// beginInside is begin with a flow around this command. A request that is granted at once needs
// no session; one that has to wait gets one, which lives as long as the lease.
func (s *longPollRequest) beginInside(ctx context.Context) (answer []byte, err error) {
	wait := s.ask
	body := *wait.Body.(*api.AcquireRequest)
	inLine := body
	body.OnConflict, body.Wait = interlock.Fail.String(), nil
	s.ask.Body, s.ask.ID = &body, cli.FreshID()
	_, answer, err = s.begin(ctx)
	if _, refused := errors.AsType[*interlock.Error](err); !refused || cli.ExitCode(err) != cli.ExitNotAcquired {
		return answer, err
	}
	var blocked api.ProblemDocument
	if json.Unmarshal(answer, &blocked) == nil {
		if own := acquire.OwnLease(blocked.Holders, acquire.ChoiceOf(&inLine)); own != nil {
			return nil, own
		}
	}
	inLine.Agent = ""
	if inLine.Session, err = s.own.Open(ctx); err != nil {
		return nil, err
	}
	s.ask = wait
	s.ask.Body = &inLine
	_, answer, err = s.begin(ctx)
	return answer, err
}

// lateFor returns the message for keys that were not free in time.
func lateFor(got *view.LeaseAnswer) string { return cli.Clean(string(got.Key)) + " was not free" }
