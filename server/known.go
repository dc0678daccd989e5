package server

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/interlockdev/interlock"
)

// A long operation, such as a stream, a reader of events or a wait, runs in the name of a
// credential, and ends with it.

// whileKnown returns ctx for an operation in the name of a principal. It ends, with the refusal
// as its cause, when the credentials have changed since the principal was authenticated. stop
// must be called.
func (s *Server) whileKnown(ctx context.Context, id Identity) (known context.Context, stop context.CancelFunc) {
	if s.credentials == nil {
		return context.WithCancel(ctx)
	}
	known, end := context.WithCancelCause(ctx)
	go func() {
		for {
			changed := s.credentials.changed.next()
			if !s.credentials.holds(id) {
				end(&interlock.Error{
					Code:    interlock.CodeUnauthenticated,
					Message: "the credential was revoked or changed by the operator: connect again with a valid credential",
				})
				return
			}
			select {
			case <-changed:
			case <-known.Done():
				return
			}
		}
	}()
	return known, func() { end(nil) }
}

// takenBack is why a context of whileKnown ended, or nil when that was for another
// reason.
func takenBack(known context.Context) *interlock.Error {
	refusal, _ := errors.AsType[*interlock.Error](context.Cause(known))
	return refusal
}

// holds reports whether a principal would be let in again as the same.
func (c *Credentials) holds(id Identity) bool {
	for _, line := range (*c.table.Load())[[8]byte(id.digest[:8])] {
		if subtle.ConstantTimeCompare(line.digest[:], id.digest[:]) == 1 {
			return line.equal(&id)
		}
	}
	return false
}
