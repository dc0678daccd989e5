package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock/engine/internal/store"
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
func silence(d *store.SideEffect) string {
	switch {
	case !d.Lease.IsZero():
		return "the lease in whose name it was claimed ended before it was told what became of it"
	case d.Session != 0:
		return "the session that claimed it ended before it was told what became of it"
	}
	return "the time for which it was claimed passed before it was told what became of it"
}

// contents names what a caller would miss in s, with counts: living things, and permanent settings
// and documents. It returns "" if there are none. Remembered answers, results and notes do not
// count.
func contents(s *store.Namespace) string {
	open, dead := len(s.Tasks.All)-s.Tasks.Done.Len()-s.Tasks.Failed.Len(), s.Tasks.Dead
	effects := len(s.SideEffects.Known) - s.SideEffects.Done.Len() - s.SideEffects.Free.Len()
	var list []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{len(s.Sessions) - s.Lingering, "session", "sessions"},
		{s.Leases, "lease", "leases"},
		{s.Away, "parked lease with freed keys", "parked leases with freed keys"},
		{s.Waiters, "waiter", "waiters"},
		{open, "unfinished task", "unfinished tasks"},
		{dead, "dead letter", "dead letters"},
		{len(s.Documents.Present), "document", "documents"},
		{effects, "unsettled effect", "unsettled effects"},
		{s.SideEffects.Done.Len(), "done effect", "done effects"},
		{s.Logs.All.Len(), "log entry", "log entries"},
		{len(s.Patterns), "pattern", "patterns"},
		{len(s.Tasks.Queues), "queue", "queues"},
	} {
		switch x.n {
		case 0:
		case 1:
			list = append(list, "1 "+x.one)
		default:
			list = append(list, fmt.Sprintf("%d %s", x.n, x.many))
		}
	}
	if s.Unmatched != record.UnsetKeys {
		list = append(list, "settings of its own")
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}
