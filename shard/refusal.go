package shard

import (
	"errors"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Refusal returns the meaning of a journal's error for the affected caller, or nil for any
// other error.
func Refusal(err error) *interlock.Error {
	for _, known := range []error{journal.ErrFenced, journal.ErrLost, journal.ErrNoSpace, journal.ErrFailed} {
		if errors.Is(err, known) {
			return refusalFor(err)
		}
	}
	return nil
}

// The meaning of a failed append for the callers of its commands.
func refusalFor(err error) *interlock.Error {
	switch {
	case errors.Is(err, journal.ErrNoFiles):
		return &interlock.Error{
			Code: interlock.CodeOverloaded,
			Message: "the server has no file descriptor left for its journal, and nothing was recorded; leases stay as they " +
				"are; repeat the request in a moment",
		}
	case errors.Is(err, journal.ErrNoSpace):
		return &interlock.Error{
			Code: interlock.CodeNoSpace,
			Message: "the server's disk, or the journal's engine, is full, and nothing was recorded; leases stay as they are; repeat " +
				"the request when an operator has freed space",
		}
	case errors.Is(err, journal.ErrFenced):
		return &interlock.Error{
			Code:    interlock.CodeNotOwner,
			Message: "another server has taken over; repeat the request with the same id there",
		}
	}
	return &interlock.Error{
		Code:    interlock.CodeOutcomeUnknown,
		Message: "the server's storage failed before the outcome was certain; repeat the request with the same id",
	}
}

// closedFor returns the answer to callers of commands that were never stepped.
func closedFor(err error) *interlock.Error {
	if errors.Is(err, journal.ErrFenced) {
		return refusalFor(err)
	}
	return &interlock.Error{
		Code:    interlock.CodeShuttingDown,
		Message: "the server answers for the shard no longer, and nothing was executed; repeat the request in a moment",
	}
}
