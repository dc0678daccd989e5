package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// lowFree is how many free bytes of a journal's disk are few.
const lowFree = 1 << 30

// diskUse is the known use of the journal's disk.
type diskUse struct {
	used, free int64
	known      bool
}

// getStatus is GET /v1/status: the state of the server and the namespace, with warnings. The figures
// of the whole server are shown to the roles that reach beyond a namespace, and to every caller of
// a server without credentials.
func (c *call) getStatus() {
	counts := engine.NamespaceCounts{Namespace: c.namespace}
	questions := engine.LeaseQuestions{Namespace: c.namespace, Limit: 1000}
	at, ok := c.survey(&counts, &questions)
	if !ok {
		return
	}
	condition, _, err := c.s.shard.Condition(c.r.Context())
	if err != nil {
		c.failWith(err)
		return
	}
	counts.Approvals += len(questions.Rows)
	var disk diskUse
	if c.s.disk != nil {
		disk.used, disk.free, disk.known = c.s.disk()
	}
	whole := c.identity.Principal.Has(interlock.RoleServer) || c.identity.Principal.Has(interlock.RoleMetrics)

	j := c.reply()
	j.str("role", "active")
	j.str("version", c.s.version)
	j.timestamp("started", c.s.started)
	j.ms("up_ms", time.Since(c.s.started))
	writeNamespaceStatus(j, "namespace", &counts)
	if whole {
		j.open("server")
		writeServerCounts(j, &condition.Counts)
		j.open("journal")
		j.said("kind", c.s.journalKind)
		j.decimal("first", uint64(condition.First))
		j.decimal("index", uint64(at.Index))
		j.decimal("snapshot", uint64(condition.Snapshot))
		if disk.known {
			j.int("bytes", disk.used)
			j.int("free_bytes", disk.free)
		}
		j.close()
		j.close()
	}
	writeTexts(j, "warnings", statusWarnings(&counts, &condition, disk, whole))
	c.send(http.StatusOK, j, at)
}

func writeServerCounts(j *jsonOut, n *engine.Counts) {
	j.int("namespaces", int64(n.Namespaces))
	j.int("keys", int64(n.Keys))
	j.int("leases", int64(n.Leases))
	j.int("waiters", int64(n.Waiters))
	j.int("sessions", int64(n.Sessions))
}

// statusWarnings returns warnings for the operator, the most urgent first.
func statusWarnings(n *engine.NamespaceCounts, s *shard.Condition, disk diskUse, whole bool) (list []string) {
	warn := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	warn(s.LowSpace, "no_space: the journal has no room, and only what frees something is admitted")
	warn(s.LowMemory, "no_memory: memory is nearly full, and only what frees something is admitted")
	warn(s.Draining, "draining: the server shuts down and grants nothing new")
	if whole {
		warn(
			disk.known && disk.free < lowFree && !s.LowSpace, "low_space: %d MiB are free where the journal is", disk.free>>20,
		)
		warn(s.SnapshotError != nil, "snapshot_failed: %v: the next start replays more of the journal", s.SnapshotError)
		warn(
			s.ClockBehind > 0, "clock_behind: at the start the clock was %s behind the journal: set it if it is wrong",
			s.ClockBehind.Round(time.Second),
		)
	}
	warn(n.DeadLetters > 0, "dead_letters: tasks that no worker tries again: %d", n.DeadLetters)
	return list
}
