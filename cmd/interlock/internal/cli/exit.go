package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// The exit codes. Scripts rely on them, so a number keeps its meaning; those above
// 63 are, where one fits, the ones of sysexits.h.
const (
	ExitOK      = 0
	ExitFailure = 1 // anything that has no number of its own
	ExitUsage   = 2 // the command line or the request is wrong; repeating it cannot help

	// Of serve and of journal.
	ExitDamaged = 3  // the journal is damaged
	ExitLocked  = 4  // another server holds the journal, or has taken it over
	ExitNewer   = 5  // a newer version wrote the journal
	ExitClock   = 6  // the clock is far ahead of the journal
	ExitFilling = 7  // a restore or a migration into the journal has not ended
	ExitDisk    = 70 // the disk failed, or has no room for so much as the start

	// Of run and of the other commands that talk to a server.
	ExitConflict    = 65 // version conflict or stale fence
	ExitUnreachable = 69 // no server answered
	ExitDeadlock    = 73 // chosen as the victim of a deadlock
	ExitNotAcquired = 75 // not acquired in time, or a limit or a quota was met
	ExitForbidden   = 77 // no credential, the wrong one, or one that may not claim the key so
	ExitLost        = 79 // the lease was lost

	// As a shell has them.
	ExitCannotRun = 126
	ExitNotFound  = 127
	ExitSignal    = 128 // plus the number of the signal
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error // nil: there is nothing more to be said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// ExitWith adds an exit code to err.
func ExitWith(code int, err error) error { return &exitError{code: code, err: err} }

// Usagef is an error in how the command was typed.
func Usagef(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code of the process.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if own, ok := errors.AsType[*exitError](err); ok {
		return own.code
	}
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return ExitForCode(refusal.Code)
	}
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return ExitDamaged
	case errors.Is(err, journal.ErrLocked), errors.Is(err, journal.ErrFenced):
		return ExitLocked
	case errors.Is(err, journal.ErrNewer), errors.Is(err, record.ErrNewer):
		return ExitNewer
	case errors.Is(err, journal.ErrFailed), errors.Is(err, journal.ErrNoSpace):
		return ExitDisk
	case errors.Is(err, client.ErrUnreachable):
		return ExitUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return ExitNotAcquired
	}
	return ExitFailure
}

// ExitForCode returns the exit code of a refusal.
func ExitForCode(code interlock.Code) int {
	switch code {
	case interlock.CodeFenced, interlock.CodeStale, interlock.CodeEffectUnknown, interlock.CodeEffectDone:
		return ExitConflict
	case interlock.CodeDeadlock:
		return ExitDeadlock
	case interlock.CodeHeld, interlock.CodeAtCapacity, interlock.CodeTooManyRuns, interlock.CodeRateLimited, interlock.CodeBroken, interlock.CodeWaitLimit,
		interlock.CodeLeft, interlock.CodeOfferLapsed, interlock.CodeUnknownTicket,
		interlock.CodeTooManyWaiters, interlock.CodeTooManySessions, interlock.CodeTooManyLeases, interlock.CodeTooManyStreams,
		interlock.CodeTooManyNamespaces, interlock.CodeTooManyKeys, interlock.CodeTooManyPatterns, interlock.CodeQuota, interlock.CodeNoSpace,
		interlock.CodeOutOfBounds, interlock.CodeEffectClaimed, interlock.CodeTooManyDocuments, interlock.CodeTooMuchState, interlock.CodeTooManyEffects,
		interlock.CodeTooManyQueues, interlock.CodeTooManyTasks, interlock.CodeQueueDraining,
		interlock.CodeTooManyWebhooks:
		return ExitNotAcquired
	case interlock.CodeUnauthenticated, interlock.CodeForbidden, interlock.CodeForeignHost, interlock.CodeModeForbidden,
		interlock.CodeWriterOnly, interlock.CodeLeaseRequired, interlock.CodeForeignFence, interlock.CodeInvalidStatement,
		interlock.CodeDenied:
		return ExitForbidden
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodePreempted, interlock.CodeReleased, interlock.CodeSessionEnded,
		interlock.CodeUnknownLease, interlock.CodeUnknownSession, interlock.CodeInGrace, interlock.CodeTaskMoved:
		return ExitLost
	case interlock.CodeNotOwner, interlock.CodeMoving, interlock.CodeShuttingDown, interlock.CodeOverloaded,
		interlock.CodeUnreachable, interlock.CodeOutcomeUnknown:
		return ExitUnreachable
	case interlock.CodeInternal, interlock.CodeHistoryUnreadable, interlock.CodeNotFound, interlock.CodeMethodNotAllowed, interlock.CodeHistoryTrimmed, interlock.CodeUnknownPattern, interlock.CodeUnknownRevision,
		interlock.CodeUnknownDocument, interlock.CodeUnknownFile, interlock.CodeUnknownEffect, interlock.CodeUnknownTask, interlock.CodeUnknownQueue,
		interlock.CodeUnknownWebhook,
		interlock.CodeTaskSettled, interlock.CodeTaskNotSettled, interlock.CodeQueueInUse, interlock.CodeNamespaceInUse, interlock.CodeAlreadyReplied, interlock.CodeNotAsking, interlock.CodeNoWriter, interlock.CodeNoWaiter:
		return ExitFailure
	}
	return ExitUsage
}
