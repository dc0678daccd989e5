package client

import (
	"errors"

	"github.com/interlockdev/interlock"
)

var (
	// ErrUnreachable reports that no server answered, and that the request never left this
	// process. The error that wraps it contains the reason.
	ErrUnreachable = errors.New("no server answered")

	// ErrClosed reports that the client was closed.
	ErrClosed = errors.New("client is closed")

	// ErrSkipped reports that another holder already does it. The error is a *SkippedError.
	ErrSkipped = errors.New("another caller is already doing it")
)

// SkippedError names the holder that made interlock.Skip skip the request.
type SkippedError struct {
	Key     interlock.Key
	Holders []interlock.Holder
	Advice  interlock.Advice
}

func (e *SkippedError) Error() string { return "skipped " + string(e.Key) + ": " + ErrSkipped.Error() }

// Is makes errors.Is(err, ErrSkipped) true.
func (e *SkippedError) Is(target error) bool { return target == ErrSkipped }
