package store

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Waits of a session for its own tasks.
//
// An attempt at a task holds in a flow of its own, which has the task's id. A call of the same
// session without a flow has the flow "main", so it waits for the attempt's keys. If the caller
// is the worker itself, that wait never ends, and the wait-for graph has no circle: to the
// engine these are two threads. To count such a call as the attempt's would let another thread
// of the session into what the attempt holds. So the wait is refused, and the caller names the
// flow. A call that names one, "main" included, is not refused.

// OwnAttempt returns the attempt at a task that a call of the session without a flow would
// wait for, because it holds what one of the claims, or with any each of them, excludes; nil
// for none. Attempts in grace end by themselves.
func (sess *Session) OwnAttempt(flow string, claims []interlock.Claim, any bool) (found *Request) {
	if sess == nil || flow != "" || len(sess.Attempts) == 0 {
		return nil
	}
	*sess.NS.Agenda.objects += len(sess.Attempts) * len(claims)
	for _, want := range claims {
		i := slices.IndexFunc(sess.Attempts, func(l *Request) bool {
			return l.Phase == Held &&
				slices.ContainsFunc(l.Claims(), func(have interlock.Claim) bool { return excludes(have, want) })
		})
		switch {
		case i >= 0 && found == nil:
			found = sess.Attempts[i]
		case i < 0 && any:
			return nil
		}
	}
	return found
}

// excludes reports whether two claims conflict when two flows hold them, apart from permits and
// the like that run out.
func excludes(a, b interlock.Claim) bool {
	switch {
	case a.Key == b.Key:
		return lockmode.Conflicts[lockmode.Lock(a.Mode)].Has(lockmode.Lock(b.Mode))
	case keypath.IsBelow(string(a.Key), string(b.Key)):
		return lockmode.Conflicts[lockmode.Intent(a.Mode)].Has(lockmode.Lock(b.Mode))
	case keypath.IsBelow(string(b.Key), string(a.Key)):
		return lockmode.Conflicts[lockmode.Intent(b.Mode)].Has(lockmode.Lock(a.Mode))
	}
	return false
}
