package remote

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock/journal"
)

// How long an attempt may take. A member of an engine that stands still sends nothing, so an
// attempt is given up early and the next one goes to another member. Attempts become longer,
// for the sake of a slow network.
const (
	firstAttempt = time.Second
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// attempts makes a request until it is answered, or patience ends. Everything that this package
// sends may be sent twice. unsure reports that an attempt was given up before the last one: it
// may still be carried out, at any time.
func (s *Store) attempts(ctx context.Context, request func(context.Context) error) (unsure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	limit, wait := firstAttempt, firstPause
	for {
		attempt, done := context.WithTimeout(ctx, limit)
		before := err
		err = request(attempt)
		done()
		if before != nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			return true, before // it explains more than that time was too short for another attempt
		}
		if err == nil || decided(err) {
			return unsure, err
		}
		unsure = true
		if !s.around.Pause(ctx, wait) {
			return unsure, err
		}
		limit, wait = 2*limit, min(2*wait, longestPause)
	}
}

// read makes a request that changes nothing.
func (s *Store) read(ctx context.Context, request func(context.Context) error) error {
	_, err := s.attempts(ctx, request)
	return err
}

// decided reports whether an error is an answer: asking again would bring the same one.
func decided(err error) bool {
	_, final := errors.AsType[*finalError](err)
	_, damaged := errors.AsType[*journal.DamageError](err)
	return final || damaged || noSpace(err) || errors.Is(err, journal.ErrNewer)
}

func noSpace(err error) bool { return errors.Is(err, journal.ErrNoSpace) }
