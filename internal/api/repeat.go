package api

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
)

// Pace waits between the tries of a request, at least for about as long as the server
// advised; client.Backoff is one. Its error ends the tries.
type Pace interface {
	Wait(ctx context.Context, advised time.Duration) error
}

// A request is sent so often, which takes half a minute with the pauses of the command line; or for so
// long where Do itself tries several servers.
const (
	tries     = 8
	repeatFor = 30 * time.Second
)

// Repeat is Do for a request with an ID. It sends the request again while its outcome is
// unknown, or while the server is shutting down or overloaded: what was carried out is not
// carried out again. That no server is there ends it at once, unless the request was sent
// before, or is about a place in line, which the server keeps for interlock.BareTicketTTL. If
// no answer comes in the end and the request was sent, the error is the *Unanswered of that
// try.
func (c *Client) Repeat(ctx context.Context, r Request, inLine bool, pace Pace) (answer *Answer, err error) {
	began := time.Now()
	var unknown error // of the last try that may have been carried out
	for try := 1; ; try++ {
		answer, err = c.Do(ctx, r)
		if outcomeUnknown(err) {
			unknown = err
		}
		if err == nil || ctx.Err() != nil || !Passing(err) && !(isUnanswered(err) && (inLine || unknown != nil)) {
			return answer, err
		}
		enough := try >= tries || c.several() && time.Since(began) >= repeatFor
		if enough && !(inLine && time.Since(began) < interlock.BareTicketTTL) || pace.Wait(ctx, advised(err)) != nil {
			if unknown != nil && isUnanswered(err) {
				return nil, unknown
			}
			return answer, err
		}
	}
}

// Passing reports whether a request that failed with err can be sent again as it is, under
// its ID: its outcome is unknown, or the server had no time for it.
func Passing(err error) bool {
	problem, ok := errors.AsType[*Problem](err)
	return ok && (problem.Code.Transient() || problem.Code == interlock.CodeOutcomeUnknown) || outcomeUnknown(err)
}

func outcomeUnknown(err error) bool {
	if failed, ok := errors.AsType[*Unanswered](err); ok {
		return failed.Sent()
	}
	problem, ok := errors.AsType[*Problem](err)
	return ok && problem.Code == interlock.CodeOutcomeUnknown
}

func isUnanswered(err error) bool {
	_, ok := errors.AsType[*Unanswered](err)
	return ok
}

func advised(err error) time.Duration {
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem.Advice.RetryAfter
	}
	return 0
}
