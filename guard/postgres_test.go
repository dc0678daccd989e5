package guard_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// The page's examples for PostgreSQL; the behaviour of its guard is tested in its own folder.
func TestPostgres(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), postgrestest.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	do := func(sql string) error {
		_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		return err
	}
	write := block(t, "sql postgres")
	for _, sql := range []string{
		postgres.Schema,
		"CREATE TABLE account (id bigint PRIMARY KEY, balance bigint); INSERT INTO account VALUES (12345, 1000)",
		postgres.Attach("account", "account:{id}", "default"),
		write,
	} {
		if err := do(sql); err != nil {
			t.Fatalf("%v in\n%s", err, sql)
		}
	}
	refusal, ok := errors.AsType[*pgconn.PgError](do(with(t, with(t, write, "42", "41"), "900", "1")))
	if !ok || refusal.Code != postgres.StaleFence {
		t.Errorf("an older fence gives %v, want %s", refusal, postgres.StaleFence)
	}
	if err := do("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	var balance int
	if err := conn.QueryRow(t.Context(), "SELECT balance FROM account").Scan(&balance); err != nil || balance != 900 {
		t.Errorf("the balance is %d (%v), want 900", balance, err)
	}
}
