package sqlite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each statement that would write a row of a key that was not entered is refused as a
// whole, with an entry for another row and with none.
func TestRows(t *testing.T) {
	for _, kind := range []string{"", " WITHOUT ROWID"} {
		t.Run("table"+kind, func(t *testing.T) {
			b := newBank(t, "CREATE TABLE account (id INTEGER PRIMARY KEY, email TEXT UNIQUE, balance INTEGER CHECK (balance "+
				"< 10000))"+
				kind,
				"INSERT INTO account VALUES (1, 'a', 1000), (2, 'b', 1000)", attach(t, "account", "account:{id}"))
			const rows = "1|a|1000\n2|b|1000"
			for _, sql := range []string{
				"UPDATE account SET balance = 1 WHERE id = 1",
				"UPDATE account SET balance = 1", // account:2 is entered, account:1 is not
				"DELETE FROM account",
				"DELETE FROM account WHERE id = 1",
				"INSERT INTO account VALUES (3, 'c', 1)",
				"INSERT OR IGNORE INTO account VALUES (3, 'c', 1)",
				"INSERT OR REPLACE INTO account VALUES (1, 'c', 1)",
				"REPLACE INTO account VALUES (1, 'a', 1)",
				"INSERT INTO account VALUES (1, 'c', 1) ON CONFLICT DO UPDATE SET balance = 1",
				"INSERT INTO account VALUES (3, 'a', 1) ON CONFLICT (email) DO UPDATE SET balance = 1",
				"UPDATE account SET id = 3 WHERE id = 2",
				"UPDATE OR REPLACE account SET id = 2 WHERE id = 1",
				// Rows that REPLACE deletes because they conflict are written, too.
				"INSERT OR REPLACE INTO account VALUES (2, 'a', 1)",
				"REPLACE INTO account SELECT 2, 'a', 1",
				"UPDATE OR REPLACE account SET email = 'a' WHERE id = 2",
				"UPDATE OR REPLACE account SET id = 1 WHERE id = 2",
			} {
				b.does(missing, sql)
				b.under(missing, sql, "account:2 1")
				b.shows(rows, "SELECT * FROM account ORDER BY id")
			}
			b.does(missing, "PRAGMA recursive_triggers = OFF; INSERT OR REPLACE INTO account VALUES (3, 'a', 1)")
			b.shows(rows, "SELECT * FROM account ORDER BY id")
			b.under("", "INSERT OR REPLACE INTO account VALUES (2, 'a', 1)", "account:1 2", "account:2 2")
			b.shows("2|a|1", "SELECT * FROM account")
			b.under("", "UPDATE account SET id = 4; DELETE FROM account", "account:2 2", "account:4 2")
			b.shows("", "SELECT * FROM account")
		})
	}
}

// The row counts as it is after the statement: with the number that SQLite chose, with
// what other triggers and foreign keys made of it.
func TestRowsAsTheyBecome(t *testing.T) {
	b := newBank(t, "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)", attach(t, "account", "account:{id}"),
		"CREATE TABLE file (owner INTEGER REFERENCES account ON DELETE CASCADE ON UPDATE CASCADE, path TEXT)",
		attach(t, "file", "repo/{path...}"),
		"CREATE TABLE job (id INTEGER PRIMARY KEY, done INTEGER)",
		"CREATE TRIGGER settle AFTER UPDATE ON job BEGIN UPDATE account SET balance = 0 WHERE id = NEW.id; END")
	b.under(missing, "INSERT INTO account (balance) VALUES (1)", "account:-1 1", "account: 1")
	b.under("", "INSERT INTO account (balance) VALUES (1)", "account:1 1")
	b.under("", "INSERT INTO file VALUES (1, 'src/a')", "repo/src/a 1")
	b.under(missing, "DELETE FROM account", "account:1 1")
	b.under(missing, "UPDATE account SET id = 2", "account:1 1", "account:2 1")
	b.does("", "INSERT INTO job VALUES (1, 0)")
	b.does(missing, "UPDATE job SET done = 1")
	b.shows("1|1\n1|0", "SELECT id, balance FROM account; SELECT * FROM job")
	b.under("", "DELETE FROM account", "account:1 1", "repo/src/a 1")
	b.shows("0", "SELECT count(*) FROM file")
	// A renamed column stays the row's key.
	b.does("", "ALTER TABLE account RENAME id TO number")
	b.under(missing, "INSERT INTO account VALUES (7, 1)", "account:6 1")
	b.under("", "INSERT INTO account VALUES (7, 1)", "account:7 1")
}

// A value that cannot be a segment belongs to no key, and names and text are quoted.
func TestKeysOfRows(t *testing.T) {
	b := newBank(
		t, `CREATE TABLE "it's a ""table""" ("a column" PRIMARY KEY, b)`,
		attach(t, `it's a "table"`, `it's:{a column}/{b...}`),
	)
	insert := func(values string) string { return `INSERT INTO "it's a ""table""" VALUES (` + values + ")" }
	for _, values := range []string{"NULL, 'b'", "'', 'b'", "'a', NULL", "'a', ''", "'a/b', 'c'"} {
		b.under(missing, insert(values), "it''s:a/b 1", "it''s:a/b/c 1", "it''s:/b 1", "it''s:a/ 1")
	}
	b.under("", insert("'a', 'b/c'")+";"+insert("7, x'64'"), "it''s:a/b/c 1", "it''s:7/d 1")
	b.does("it's:{a column}/{b...}", insert("'x', 'y'"))
}

// Transactions of their own processes, with fences old and new: those that wrote a row
// never go down.
func TestFencesNeverGoDown(t *testing.T) {
	b := newBank(t, "CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER); INSERT INTO account "+
		"VALUES (1, 0)", attach(t, "account", "account:{id}"),
		"CREATE TABLE written (fence INTEGER); CREATE TRIGGER log AFTER UPDATE ON account BEGIN INSERT INTO written "+
			"VALUES (NEW.fence); END")
	var group sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		var script strings.Builder
		for n := range 100 {
			fence := max(1, n+1-random.IntN(5))
			script.WriteString(transaction(fmt.Sprintf("UPDATE account SET fence = %d", fence), fmt.Sprint("account:1 ", fence)))
		}
		group.Go(func() { b.does("the fence is stale", script.String()) })
	}
	group.Wait()
	b.shows(
		"0",
		"SELECT count(*) FROM written WHERE rowid > 1 AND fence < (SELECT w.fence FROM written w WHERE w.rowid = "+
			"written.rowid - 1)",
	)
	b.shows("1", "SELECT count(*) >= 10 FROM written")
}

// Random statements under random fences: every change that a transaction made, whether it saw
// no error or many, is on a row with a key that it had entered under a fence that was not
// stale.
func TestLateWriters(t *testing.T) {
	b := newBank(
		t, "CREATE TABLE account (id INTEGER PRIMARY KEY, email TEXT UNIQUE, balance INTEGER)",
		attach(t, "account", "account:{id}"),
	)
	seen, rows := map[int]int{}, map[int]string{}
	random := rand.New(rand.NewPCG(7, 7))
	changed, refused := 0, 0
	for n := range 200 {
		id := func() int { return 1 + random.IntN(4) }
		text := func() string { return fmt.Sprintf("'%c'", 'a'+rune(random.IntN(4))) }
		entered := map[int]bool{}
		var entries []string
		for range random.IntN(10) {
			key := id()
			fence := max(1, n/20+2-random.IntN(3))
			entries = append(entries, fmt.Sprintf("account:%d %d", key, fence))
			if fence >= seen[key] {
				entered[key], seen[key] = true, fence
			}
		}
		var sql []string
		for range 1 + random.IntN(3) {
			sql = append(sql, []string{
				fmt.Sprintf("INSERT INTO account VALUES (%d, %s, %d)", id(), text(), n),
				fmt.Sprintf("INSERT OR IGNORE INTO account VALUES (%d, %s, %d)", id(), text(), n),
				fmt.Sprintf("INSERT OR REPLACE INTO account VALUES (%d, %s, %d)", id(), text(), n),
				fmt.Sprintf("INSERT INTO account VALUES (%d, %s, %d) ON CONFLICT DO UPDATE SET balance = %d", id(), text(), n, n),
				fmt.Sprintf("UPDATE account SET balance = %d WHERE id = %d", n, id()),
				fmt.Sprintf("UPDATE OR REPLACE account SET email = %s, balance = %d WHERE id = %d", text(), n, id()),
				fmt.Sprintf("UPDATE OR REPLACE account SET id = %d, balance = %d WHERE id = %d", id(), n, id()),
				fmt.Sprintf("DELETE FROM account WHERE id = %d", id()),
				"DELETE FROM account",
			}[random.IntN(9)])
		}
		script := transaction(strings.Join(sql, ";\n"), entries...)
		out, errs := b.run(script + "SELECT id, email, balance FROM account;")
		refused += strings.Count(errs, missing)
		now := map[int]string{}
		for line := range strings.Lines(out) {
			var number int
			key, row, _ := strings.Cut(strings.TrimSpace(line), "|")
			if _, err := fmt.Sscan(key, &number); err != nil {
				t.Fatal(err)
			}
			now[number] = row
		}
		for key := range maps.Keys(now) {
			if _, there := rows[key]; !there {
				rows[key] = "" // so that one walk finds what came and what went
			}
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if rows[key] == now[key] {
				continue
			}
			changed++
			if !entered[key] {
				t.Fatalf("row %d became %q from %q, and was not entered:\n%s", key, now[key], rows[key], script)
			}
		}
		rows = now
	}
	if changed < 30 || refused < 30 {
		t.Errorf("%d rows changed and %d statements were refused: too few to show anything", changed, refused)
	}
}
