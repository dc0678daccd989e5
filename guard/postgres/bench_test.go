package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// The cost of a guard: a transaction that reads a row and writes it, alone and guarded, with
// commits that reach the disk; and a statement that writes many rows.
func BenchmarkGuard(b *testing.B) {
	dsn := postgrestest.Start(b, "-c", "fsync=on").Database(b)
	owner := connect(b, dsn)
	must(b, owner, postgres.Schema)
	must(b, owner, `CREATE TABLE bare (id bigint PRIMARY KEY, balance bigint);
		INSERT INTO bare SELECT i, 0 FROM generate_series(1, 1000) i;
		CREATE TABLE flat AS TABLE bare; ALTER TABLE flat ADD PRIMARY KEY (id);
		CREATE TABLE tree AS TABLE bare; ALTER TABLE tree ADD PRIMARY KEY (id)`)
	must(b, owner, postgres.Attach("flat", "accounts", "default"))
	must(b, owner, postgres.Attach("tree", "bank/accounts/{id}", "default"))
	for _, bench := range []struct{ name, table, key, update string }{
		{"bare", "bare", "", " WHERE id = 1"},
		{"key", "flat", "accounts", " WHERE id = 1"},
		{"key of three segments", "tree", "bank/accounts/1", " WHERE id = 1"},
		{"1000 rows bare", "bare", "", ""},
		{"1000 rows of a key", "flat", "accounts", ""},
		{"1000 rows below a key", "tree", "bank/accounts", ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			conn := connect(b, dsn)
			for b.Loop() {
				if err := pgx.BeginFunc(b.Context(), conn, func(tx pgx.Tx) error {
					if bench.key != "" {
						if _, err := tx.Exec(b.Context(), postgres.Enter, "default", bench.key, int64(1)); err != nil {
							return err
						}
					}
					var balance int64
					if err := tx.QueryRow(b.Context(), "SELECT balance FROM "+bench.table+" WHERE id = 1").Scan(&balance); err != nil {
						return err
					}
					_, err := tx.Exec(b.Context(), "UPDATE "+bench.table+" SET balance = $1"+bench.update, balance+1)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
