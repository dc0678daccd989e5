package sqlite_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/guard/sqlite"
	"github.com/interlockdev/interlock/internal/test/tools"
)

const (
	stale     = "interlock: the fence is stale: do not write; acquire the key anew and read again"
	missing   = "interlock: no fence was entered for this row's key"
	malformed = "interlock: a key is text that is not empty, and a fence an integer above 0"
)

// bank is a database file, and the real sqlite3 that is run on it.
type bank struct {
	t    testing.TB
	file string
}

// newBank makes a file with the guard in it, and runs SQL there.
func newBank(t testing.TB, sql ...string) *bank {
	t.Helper()
	tools.Need(t, "sqlite3")
	b := &bank{t, filepath.Join(t.TempDir(), "bank.db")}
	b.does("", "PRAGMA journal_mode = WAL;"+sqlite.Schema+strings.Join(sql, ";\n"))
	return b
}

// run runs SQL to its end, past errors, as a careless client does.
func (b *bank) run(sql string, options ...string) (rows, errors string) {
	b.t.Helper()
	cmd := exec.Command("sqlite3", append(options, "-batch", "-cmd", ".timeout 30000", b.file)...)
	cmd.Stdin = strings.NewReader(sql)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && errs.Len() == 0 {
		b.t.Fatalf("sqlite3: %v", err)
	}
	return strings.TrimSpace(string(out)), errs.String()
}

// does runs SQL and checks that text is in its errors; "" is for none.
func (b *bank) does(text, sql string) (rows string) {
	b.t.Helper()
	rows, errs := b.run(sql)
	if (text == "") != (errs == "") || !strings.Contains(errs, text) {
		b.t.Errorf("%s\nerrors: %q, want %q", sql, errs, text)
	}
	return rows
}

// bail is does for SQL that ends at its first error.
func (b *bank) bail(text, sql string) {
	b.t.Helper()
	if _, errs := b.run(sql, "-bail"); text == "" || !strings.Contains(errs, text) {
		b.t.Errorf("%s\nerrors: %q, want %q", sql, errs, text)
	}
}

// under runs SQL in a transaction that has entered keys, each as "key fence". An error
// of a statement does not keep the rest from being run and committed.
func (b *bank) under(text, sql string, entries ...string) {
	b.t.Helper()
	b.does(text, transaction(sql, entries...))
}

func transaction(sql string, entries ...string) string {
	var all strings.Builder
	fmt.Fprintf(&all, "%s;\nBEGIN IMMEDIATE;\n", sqlite.Connect)
	for _, entry := range entries {
		key, fence, _ := strings.Cut(entry, " ")
		fmt.Fprintf(&all, "INSERT INTO interlock_entered VALUES ('%s', %s);\n", key, fence)
	}
	fmt.Fprintf(&all, "%s;\n%s;\nCOMMIT;\n", sql, sqlite.Leave)
	return all.String()
}

// shows checks the rows of a query.
func (b *bank) shows(want, query string) {
	b.t.Helper()
	if got := b.does("", query); got != want {
		b.t.Errorf("%s\ngot\n%s\nwant\n%s", query, got, want)
	}
}

func attach(t testing.TB, table, key string) string {
	t.Helper()
	sql, err := sqlite.Attach(table, key)
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

// A key that is no key and a fence that is no fence are refused in every form of the
// statement, and leave nothing behind.
func TestEnterRefuses(t *testing.T) {
	b := newBank(t)
	b.under("", "SELECT 1", "account:1 5")
	for _, verb := range []string{"INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL", "REPLACE"} {
		for _, values := range []string{
			"'account:1', ''", "'account:1', 'x'", "'account:1', '9x'", "'account:1', x'39'", "'account:1', NULL",
			"'account:1', 0", "'account:1', -7",
			"'account:1', 6.5", "'account:1', 1e300", "'account:1', 9223372036854775808", "'account:1', '9223372036854775808'",
			"NULL, 6", "'', 6", "x'61', 6",
		} {
			b.under(malformed, verb+" INTO interlock_entered VALUES ("+values+")")
		}
		b.under(stale, verb+" INTO interlock_entered VALUES ('account:1', 4)")
	}
	b.under("enter a key by INSERT", "UPDATE interlock_entered SET fence = 9", "account:1 5")
	b.under("this table stays empty", "INSERT INTO interlock_nobody VALUES ('account:1')", "account:1 5")
	b.shows("account:1|5", "SELECT key, highest FROM interlock_fences")
	b.shows("", "SELECT * FROM interlock_entered")
	// Decimal text is an integer here, exactly up to the last fence.
	b.under("", "SELECT 1", "account:1 '9007199254740993'")
	b.under(stale, "SELECT 1", "account:1 9007199254740992")
	b.under("", "SELECT 1", "account:1 9223372036854775807")
}

// A connection without the two settings enters nothing, also where the schema is not
// trusted and triggers may not read pragmas.
func TestConnectionSettings(t *testing.T) {
	b := newBank(t)
	const enter = "BEGIN IMMEDIATE; INSERT INTO interlock_entered VALUES ('account:1', 1);"
	for _, schema := range []string{"", "PRAGMA trusted_schema = OFF;"} {
		b.does("PRAGMA foreign_keys = ON", schema+"PRAGMA foreign_keys = OFF; PRAGMA recursive_triggers = ON;"+enter)
		b.does("PRAGMA recursive_triggers = ON", schema+"PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = OFF;"+enter)
		for range 3 {
			b.does("", schema+sqlite.Connect+";"+enter+sqlite.Leave+"; COMMIT;")
		}
	}
	// An entry that is left behind keeps the transaction from being committed.
	b.does(
		"FOREIGN KEY constraint failed",
		sqlite.Connect+"; BEGIN IMMEDIATE; INSERT INTO interlock_entered VALUES ('account:1', 1); COMMIT;",
	)
	b.does("FOREIGN KEY constraint failed", sqlite.Connect+"; INSERT INTO interlock_entered VALUES ('account:1', 1);")
	b.shows("", "SELECT * FROM interlock_entered")
}

// The guard migrates the tables of its older form, and keeps their data, except for values that
// were never a fence.
func TestInstallOverAnOlderForm(t *testing.T) {
	tools.Need(t, "sqlite3")
	b := &bank{t, filepath.Join(t.TempDir(), "old.db")}
	b.does("", `CREATE TABLE interlock_fence (key TEXT PRIMARY KEY, highest INTEGER NOT NULL) WITHOUT ROWID;
		CREATE TABLE interlock_nobody (key TEXT PRIMARY KEY);
		CREATE TABLE interlock_entered (key TEXT PRIMARY KEY REFERENCES interlock_nobody DEFERRABLE INITIALLY DEFERRED,
			fence INTEGER NOT NULL CHECK (fence > 0)) WITHOUT ROWID;
		CREATE TRIGGER interlock_enter BEFORE INSERT ON interlock_entered BEGIN SELECT 1; END;
		INSERT INTO interlock_fence VALUES ('account:1', 7), ('account:2', '');`+sqlite.Schema+sqlite.Schema)
	b.under(stale, "SELECT 1", "account:1 6")
	b.under(malformed, "SELECT 1", "account:2 ''")
	b.under("", "SELECT 1", "account:1 7", "account:2 1")
	b.does("", sqlite.Schema)
	b.under(stale, "SELECT 1", "account:1 6")
}

func TestAttach(t *testing.T) {
	b := newBank(t, "CREATE TABLE account (id INTEGER PRIMARY KEY)", "CREATE VIEW seen AS SELECT id FROM account")
	for _, tt := range []struct{ table, key, text string }{
		{"account", "", `"" is not text with columns in braces, such as account:{id}`},
		{"account", "account:{id", "is not text with columns in braces"},
		{"account", "account:{}", "is not text with columns in braces"},
		{"account", "account:id}", "is not text with columns in braces"},
		{"account", "account:{{id}}", "is not text with columns in braces"},
		{"", "x", "the table's name is missing"},
		{"Interlock_fences", "x", "belongs to the guard"},
	} {
		if _, err := sqlite.Attach(tt.table, tt.key); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("Attach(%q, %q): %v, want %s", tt.table, tt.key, err, tt.text)
		}
	}
	b.does("no such column: account.number", attach(t, "account", "account:{number}"))
	b.does("no such table: nothing", attach(t, "nothing", "account:{id}"))
	b.does("cannot create AFTER trigger on view", attach(t, "seen", "account:{id}"))
	bare := &bank{t, filepath.Join(t.TempDir(), "bare.db")}
	bare.does("no such table: interlock_entered", "CREATE TABLE account (id);"+attach(t, "account", "account:{id}"))

	// Another key takes the place of the first, also after the table got another name.
	detach, err := sqlite.Detach("account")
	if err != nil {
		t.Fatal(err)
	}
	b.does("", attach(t, "account", "account:{id}")+attach(t, "account", "bank"))
	b.under("", "INSERT INTO account VALUES (1)", "bank 1")
	b.bail("a table is still guarded: detach it first", sqlite.Uninstall)
	b.shows("", detach)
	b.does("", "INSERT INTO account VALUES (2)")
	b.does("", attach(t, "account", "bank")+"ALTER TABLE account RENAME TO konto;")
	if detach, err = sqlite.Detach("konto"); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"insert", "update", "delete"} {
		if left := b.does("", detach); !strings.Contains(left, "interlock_guard_"+event+"_account") {
			t.Errorf("left after detaching: %q, want the trigger of %s", left, event)
		}
	}
	b.does(missing, "INSERT INTO konto VALUES (3)")
}

// Forgotten fences stay refused, those entered since are not forgotten, and a fence that no
// lease can have had does not become the floor.
func TestPrune(t *testing.T) {
	b := newBank(t)
	b.under("", "SELECT 1", "old:1 10", "old:2 20", "old:3 9000000", "new:1 5", "new:2 30")
	b.does("", "UPDATE interlock_fences SET entered_at = entered_at - 3600 WHERE key LIKE 'old:%'")
	b.shows("0", sqlite.Prune(2*time.Hour))
	b.shows("2", sqlite.Prune(30*time.Minute))
	b.shows("new:1|5\nnew:2|30\nold:3|9000000", "SELECT key, highest FROM interlock_fences")
	for _, late := range []string{"old:1 9", "old:1 19", "old:2 19", "never:1 19", "new:2 29", "new:1 4"} {
		b.under(stale, "SELECT 1", late)
	}
	b.under("", "SELECT 1", "old:2 20", "never:1 31", "new:1 5")
	b.shows("0", sqlite.Prune(30*time.Minute))
	// Where nothing was entered since, nothing shows how high a fence can be: only what
	// is below the floor already is forgotten.
	b.does("", "UPDATE interlock_fences SET entered_at = 0")
	b.shows("2", sqlite.Prune(30*time.Minute))
	b.shows("never:1|31\nnew:2|30\nold:3|9000000", "SELECT key, highest FROM interlock_fences")
}

func TestUninstall(t *testing.T) {
	b := newBank(t)
	b.does("", sqlite.Uninstall+sqlite.Uninstall)
	b.shows("", "SELECT name FROM sqlite_master")
}
