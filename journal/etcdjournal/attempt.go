package etcdjournal

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How long a request may take. A member of the cluster that stands still sends nothing, so an
// attempt is given up early and the next one goes to another member. Attempts become longer,
// for the sake of a slow network.
const (
	defaultPatience = 8 * time.Second
	firstAttempt    = time.Second
	firstPause      = 20 * time.Millisecond
	longestPause    = 500 * time.Millisecond
)

// attempts makes a request until it is answered, or patience ends. Everything that this package
// sends may be sent twice. unsure reports that an attempt was given up before the last one: it
// may still be carried out, at any time.
func (s *Store) attempts(ctx context.Context, request func(context.Context) error) (unsure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	limit, pause := firstAttempt, firstPause
	for {
		attempt, done := context.WithTimeout(ctx, limit)
		err = request(attempt)
		done()
		if err == nil || decided(err) {
			return unsure, err
		}
		unsure = true
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return unsure, err
		}
		limit, pause = 2*limit, min(2*pause, longestPause)
	}
}

// read makes a request that changes nothing.
func (s *Store) read(ctx context.Context, request func(context.Context) error) error {
	_, err := s.attempts(ctx, request)
	return err
}

// decided reports whether an error is an answer: asking again would bring the same one.
func decided(err error) bool {
	if noSpace(err) {
		return true
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated,
		codes.NotFound, codes.OutOfRange, codes.Unimplemented, codes.DataLoss:
		return true
	}
	return false
}

func noSpace(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

func compacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }

func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}
