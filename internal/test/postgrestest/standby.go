package postgrestest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows this one, as far as it can. Its replication is asynchronous unless
// the primary waits for the name "standby".
func (s *Server) Standby(t testing.TB, args ...string) *Server {
	t.Helper()
	follower := newServer(t, append([]string{"-c", "cluster_name=standby"}, args...))
	follower.run(
		t, "pg_basebackup", "--pgdata="+follower.data(), "--host="+s.dir, "--username=postgres", "--checkpoint=fast",
		"--no-sync", "--write-recovery-conf",
	)
	follower.Restart(t)
	return follower
}

// Promote makes a standby a primary, with what it has.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.run(t, "pg_ctl", "promote", "--pgdata="+s.data(), "--wait")
}

// Caught waits until a standby has replayed what its primary has written.
func (s *Server) Caught(t testing.TB, primary *Server) {
	t.Helper()
	at := primary.Value(t, "SELECT pg_current_wal_lsn()::text")
	for s.Value(t, "SELECT (pg_last_wal_replay_lsn() >= '"+at+"')::text") != "true" {
		s.Value(t, "SELECT pg_sleep(0.02)::text")
	}
}

// Value returns what a statement returns at the server, which is one text.
func (s *Server) Value(t testing.TB, sql string) string {
	t.Helper()
	return Value(t, s.dsn("postgres"), sql)
}

// Value returns what a statement returns, which is one text.
func Value(t testing.TB, url, sql string) (value string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Execute carries statements out.
func Execute(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
