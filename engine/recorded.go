package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock/engine/record"
)

// The words that the engine itself records as a reason, in fields that otherwise have a person's:
// the reason of a task or an effect, the outcome of an event. Journals and snapshots contain them,
// so they keep their wording. Messages to callers are of package message instead.

const (
	pastDeadline      = "its deadline has passed"
	givenUp           = "its worker gave it up"
	tooManyForPattern = "since a pattern changed, a key will never have as many permits as it claims"
)

// lastAttempt is the reason of a task that is dead because its last attempt ended.
func lastAttempt(n int, why record.Reason) string {
	return fmt.Sprintf("the last of %d attempts came to its end: %s", n, why)
}

// unanswered is the reason of a question that its limit answered.
func unanswered(given, needed int, limit time.Duration) string {
	if given > 0 {
		return fmt.Sprintf("%d of %d approved within %v", given, needed, limit)
	}
	return fmt.Sprintf("nobody answered within %v", limit)
}

// deniedBy is the reason of a task that is dead because its question was denied.
func deniedBy(name, words string) string {
	if words == "" {
		return "denied by " + name
	}
	return "denied by " + name + ": " + words
}

// silence returns the reason why no outcome of d was reported.
func (d *sideEffect) silence() string {
	switch {
	case !d.lease.IsZero():
		return "the lease in whose name it was claimed ended before it was told what became of it"
	case d.session != 0:
		return "the session that claimed it ended before it was told what became of it"
	}
	return "the time for which it was claimed passed before it was told what became of it"
}

// left names what a caller would miss in s, with counts: living things, and permanent settings
// and documents. It returns "" if there are none. Remembered answers, results and notes do not
// count.
func (s *namespace) left() string {
	open, dead := len(s.tasks.all)-s.tasks.done.Len()-s.tasks.failed.Len(), s.tasks.dead
	effects := len(s.sideEffects.known) - s.sideEffects.done.Len() - s.sideEffects.free.Len()
	var list []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{len(s.sessions) - s.lingering, "session", "sessions"},
		{s.leases, "lease", "leases"},
		{s.away, "parked lease with freed keys", "parked leases with freed keys"},
		{s.waiters, "waiter", "waiters"},
		{open, "unfinished task", "unfinished tasks"},
		{dead, "dead letter", "dead letters"},
		{len(s.docs.present), "document", "documents"},
		{effects, "unsettled effect", "unsettled effects"},
		{s.sideEffects.done.Len(), "done effect", "done effects"},
		{s.logs.all.Len(), "log entry", "log entries"},
		{len(s.patterns), "pattern", "patterns"},
		{len(s.tasks.queues), "queue", "queues"},
	} {
		switch x.n {
		case 0:
		case 1:
			list = append(list, "1 "+x.one)
		default:
			list = append(list, fmt.Sprintf("%d %s", x.n, x.many))
		}
	}
	if s.unmatched != record.UnsetKeys {
		list = append(list, "settings of its own")
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}
