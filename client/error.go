package client

import (
	"errors"

	"github.com/interlockdev/interlock"
)

var (
	// ErrUnreachable says that no server answered, and that the request never left
	// this process. The error that wraps it says why.
	ErrUnreachable = errors.New("no server answered")

	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("client is closed")

	// ErrSkipped says that somebody else already does it. The error is a
	// *SkippedError.
	ErrSkipped = errors.New("somebody else already does it")
)

// SkippedError says who already does what was asked for with interlock.Skip.
type SkippedError struct {
	Key     interlock.Key
	Holders []interlock.Holder
	Advice  interlock.Advice
}

func (e *SkippedError) Error() string { return "skipped " + string(e.Key) + ": " + ErrSkipped.Error() }

// Is makes errors.Is(err, ErrSkipped) true.
func (e *SkippedError) Is(target error) bool { return target == ErrSkipped }
