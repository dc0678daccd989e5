package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// The status counts what there is in the namespace, and shows the whole server to the roles that
// reach beyond it.
func TestStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, as := credentialed(
			t, interlock.Principal{Name: "ann", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"}},
			interlock.Principal{Name: "ops", Roles: interlock.AllRoles, Queues: []string{"*"}},
			interlock.Principal{Name: "scrape", Roles: interlock.RoleMetrics},
		)
		ann, ops := as["ann"], as["ops"]
		d.post("/v1/sessions", `{"agent":"a"}`, ann...).want(200)
		d.post("/v1/leases", `{"claims":[{"key":"k"}]}`, ann...).want(200)
		d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`, ann...).want(202)
		d.put("/v1/state/doc", `{}`, ann...).want(200)
		d.put("/v1/queues/fees", `{}`, ops...).want(200)
		for _, verb := range []string{"nack", "ask"} {
			d.post("/v1/tasks", `{"queue":"fees"}`, ann...).want(202)
			lease := d.post("/v1/queues/fees/pull", "", ann...).want(200).str("tasks.0.lease.id")
			d.post("/v1/leases/"+lease+"/"+verb, map[string]string{"nack": `{"dead":true}`, "ask": `{"question":"?"}`}[verb], ann...).want(200)
		}
		pass(3 * time.Second)
		s := d.get("/v1/status", ann...).want(200).is("role", "active").has("up_ms", 3000).is("namespace.name", "acme")
		s.has("namespace.leases", 1).has("namespace.waiters", 1).has("namespace.sessions", 1).has("namespace.documents", 1)
		s.has("namespace.tasks", 1).has("namespace.dead_letters", 1).has("namespace.approvals", 1)
		s.says("warnings.0", "dead_letters", "1")
		if s.at("server") != nil {
			t.Errorf("an agent sees the whole server: %s", s.raw)
		}
		all := d.get("/v1/status", ops...).want(200).has("server.namespaces", 1).has("server.leases", 1)
		if all.str("server.journal.index") != all.str("at.index") {
			t.Errorf("the journal is %s", all.raw)
		}
		d.get("/v1/status", as["scrape"]...).want(403, "forbidden")
		d.get("/v1/status").want(401, "unauthenticated")
	})
}

// Each condition has its warning, and those of the whole server stay with its roles.
func TestStatusWarnings(t *testing.T) {
	all := shard.Condition{
		LowSpace: true, LowMemory: true, Draining: true, SnapshotError: errors.New("disk"), ClockBehind: time.Hour,
	}
	counts := &engine.NamespaceCounts{DeadLetters: 2}
	for _, c := range []struct {
		condition shard.Condition
		disk      diskUse
		whole     bool
		want      string
	}{
		{shard.Condition{}, diskUse{}, true, "dead_letters"},
		{all, diskUse{}, false, "no_space no_memory draining dead_letters"},
		{all, diskUse{free: 1, known: true}, true, "no_space no_memory draining snapshot_failed clock_behind dead_letters"},
		{shard.Condition{}, diskUse{free: 1, known: true}, true, "low_space dead_letters"},
		{shard.Condition{}, diskUse{free: lowFree, known: true}, true, "dead_letters"},
	} {
		var names []string
		for _, w := range statusWarnings(counts, &c.condition, c.disk, c.whole) {
			name, _, _ := strings.Cut(w, ":")
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v has the warnings %q, want %q", c.condition, got, c.want)
		}
	}
}
