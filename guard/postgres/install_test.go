package postgres_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

func TestInstall(t *testing.T) {
	server := postgrestest.Start(t)
	t.Run("at once", func(t *testing.T) { testInstallAtOnce(t, server) })
	t.Run("dump and restore", func(t *testing.T) { testDumpAndRestore(t, server) })
}

func testInstallAtOnce(t *testing.T, server *postgrestest.Server) {
	dsn := server.Database(t)
	var group sync.WaitGroup
	for range 4 {
		conn := connect(t, dsn)
		group.Go(func() {
			if _, err := conn.Exec(t.Context(), postgres.Schema, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A database that is dumped and restored is guarded as before: it knows its fences,
// its tables have their triggers, and nothing counts as entered.
func testDumpAndRestore(t *testing.T, server *postgrestest.Server) {
	from, to := server.Database(t), server.Database(t)
	conn := connect(t, from)
	must(t, conn, postgres.Schema)
	must(t, conn, "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint); INSERT INTO account VALUES (12345, 1000)")
	must(t, conn, postgres.Attach("account", "account:{id}", "default"))
	must(t, conn, "BEGIN; SELECT interlock.enter('default', 'account:12345', 5); UPDATE account SET balance = 900; COMMIT")

	dump, err := exec.Command(filepath.Join(server.Programs, "pg_dump"), from).Output()
	if err != nil {
		t.Fatal(err)
	}
	restore := exec.Command(
		filepath.Join(server.Programs, "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", to,
	)
	restore.Stdin = strings.NewReader(string(dump))
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	conn = connect(t, to)
	for _, tt := range []struct{ sql, state string }{
		{"UPDATE account SET balance = 1", postgres.NoFence},
		{
			"BEGIN; SELECT interlock.enter('default', 'account:12345', 4); UPDATE account SET balance = 1; COMMIT",
			postgres.StaleFence,
		},
		{
			"ROLLBACK; BEGIN; SELECT interlock.enter('default', 'account:12345', 5); UPDATE account SET balance = 800; COMMIT",
			"",
		},
	} {
		if _, err := conn.Exec(t.Context(), tt.sql, pgx.QueryExecModeSimpleProtocol); state(err) != tt.state {
			t.Errorf("%s gives %v, want %q", tt.sql, err, tt.state)
		}
	}
	// Nor does installing forget what is known.
	must(t, conn, postgres.Schema)
	if _, err := conn.Exec(
		t.Context(), postgres.Enter, "default", "account:12345", int64(4),
	); state(err) != postgres.StaleFence {
		t.Errorf("after another installation fence 4 gives %v, want %s", err, postgres.StaleFence)
	}
}
