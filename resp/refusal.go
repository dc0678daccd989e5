package resp

import (
	"errors"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// usageError is a command that makes no sense, in words.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// wordError is an error that begins with a word for clients.
type wordError struct{ word, text string }

func (e *wordError) Error() string { return e.text }

var (
	errNoAuth = &wordError{
		"NOAUTH", "Authentication required: send AUTH CREDENTIAL, or connect to redis://NAME:CREDENTIAL@HOST:PORT",
	}
	errNoProto = &wordError{"NOPROTO", "unsupported protocol version: want 2 or 3"}
)

// noAuth returns the error for a client without a known credential.
func noAuth(err error) error {
	if codeOf(err) == interlock.CodeUnauthenticated {
		return errNoAuth
	}
	return err
}

// prefixes are the first words of errors that clients act upon; of others it is ERR. A client that reads
// READONLY or LOADING connects again, and may find another server.
var prefixes = map[interlock.Code]string{
	interlock.CodeUnauthenticated: "WRONGPASS",
	interlock.CodeForbidden:       "NOPERM",
	interlock.CodeModeForbidden:   "NOPERM",
	interlock.CodeNotOwner:        "READONLY",
	interlock.CodeMoving:          "LOADING",
	interlock.CodeShuttingDown:    "LOADING",
}

// errorLine returns an error as one line: the word for clients, the stable code, the sentence, the next step.
func errorLine(err error) string {
	if e, ok := errors.AsType[*wordError](err); ok {
		return e.word + " " + invisible.Line(e.text)
	}
	e, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return "ERR " + invisible.Line(err.Error())
	}
	prefix, known := prefixes[e.Code]
	if !known {
		prefix = "ERR"
	}
	line := prefix + " " + string(e.Code) + ": " + e.Message
	if e.Advice.Message != "" && !strings.Contains(e.Message, e.Advice.Message) {
		line += "; " + e.Advice.Message
	}
	return invisible.Line(line)
}

func codeOf(err error) interlock.Code {
	if e, ok := errors.AsType[*interlock.Error](err); ok {
		return e.Code
	}
	return ""
}

// isHeld reports whether an acquire was refused because the key is not free.
func isHeld(err error) bool {
	switch codeOf(err) {
	case interlock.CodeHeld, interlock.CodeAtCapacity, interlock.CodeRateLimited:
		return true
	}
	return false
}

// isGone reports whether an operation was refused because the lease is over, or as good as over.
func isGone(err error) bool {
	switch codeOf(err) {
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodeReleased,
		interlock.CodePreempted, interlock.CodeUnknownLease, interlock.CodeInGrace, interlock.CodeParked:
		return true
	}
	return false
}
