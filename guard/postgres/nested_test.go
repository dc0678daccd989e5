package postgres_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// A session holds a key, then also the key above it. The server finds the first fence
// valid, because its lease lives. The guard refuses it once the later one was entered
// above: what was read under that fence must not change under a lower one, and the
// guard does not know sessions. The later fence writes the lower key as well.
func TestNestedLeases(t *testing.T) {
	door := "http://" + launchtest.Start(t, launch.Config{DataDir: t.TempDir()}).HTTP
	dsn := postgrestest.Start(t).Database(t)
	owner := connect(t, dsn)
	must(t, owner, postgres.Schema)
	session := post(t, door+"/v1/sessions", `{"agent": "a"}`)
	acquire := func(key string) int64 {
		answer := post(
			t, door+"/v1/leases",
			fmt.Sprintf(`{"session": %q, "claims": [{"key": %q, "mode": "exclusive"}]}`, session.Session.ID, key),
		)
		fence, err := strconv.ParseInt(answer.Lease.Fence, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return fence
	}
	child, parent := acquire("repo:web/src"), acquire("repo:web")
	enter := func(key string, fence int64, want string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), postgres.Enter, "default", key, fence); state(err) != want {
			t.Errorf("entering %s under %d: %v, want %q", key, fence, err, want)
		}
	}
	enter("repo:web/src", child, "")
	enter("repo:web", parent, "")
	if check := post(
		t, door+"/v1/fences/check", fmt.Sprintf(`{"key": "repo:web/src", "fence": "%d"}`, child),
	); check.Outcome != "valid" {
		t.Errorf("the server's check says %q", check.Outcome)
	}
	enter("repo:web/src", child, postgres.StaleFence)
	enter("repo:web/src", parent, "")
}
