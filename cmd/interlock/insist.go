package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// insist repeats a call under its id while it is not known what became of it, or while the server
// is on its way out: what was carried out is not carried out again. A server that is not there at
// all ends it at once, unless the call is about a place in line, which is kept for a while, or was
// sent before: then its outcome is unknown, and that is the answer in the end.
func (c *api) insist(ctx context.Context, r request, inLine bool) (status int, answer []byte, err error) {
	const tries = 8 // half a minute of pauses
	began := time.Now()
	pace := client.Backoff{Least: 100 * time.Millisecond, Most: 12 * time.Second}
	var unknown error // of the last try that may have been carried out
	for try := 1; ; try++ {
		status, answer, err = c.do(ctx, r)
		if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeOutcomeUnknown {
			unknown = err
		}
		switch {
		case err == nil || !worthRepeating(err, inLine || unknown != nil):
			return status, answer, err
		case try >= tries && !(inLine && time.Since(began) < interlock.BareTicketTTL),
			pace.Wait(ctx, estimate(err)) != nil:
			if unknown != nil && exitCode(err) == exitUnreachable {
				return 0, nil, unknown
			}
			return status, answer, err
		}
	}
}

// estimate is after how long the server advised to ask again.
func estimate(err error) time.Duration {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Advice.RetryAfter
	}
	return 0
}

func worthRepeating(err error, inLine bool) bool {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		switch refusal.Code {
		case interlock.CodeOutcomeUnknown, interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeOverloaded:
			return true
		}
		return false
	}
	return inLine && exitCode(err) == exitUnreachable
}
