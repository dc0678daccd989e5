package guard_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lite is a database file, and the real sqlite3 that is run on it.
type lite struct {
	t    *testing.T
	file string
}

func newLite(t *testing.T) *lite {
	l := &lite{t, filepath.Join(t.TempDir(), "bank.db")}
	l.does("", "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (12345, 1000), (2, 1000);"+
		"PRAGMA journal_mode = WAL;"+block(t, "sql sqlite schema")+block(t, "sql sqlite triggers"))
	return l
}

// does runs SQL, which goes on after an error as a careless client does, and wants
// text to be in what is said about errors; "" wants no error.
func (l *lite) does(text, sql string) string {
	l.t.Helper()
	cmd := exec.Command("sqlite3", "-cmd", ".timeout 30000", l.file)
	cmd.Stdin = strings.NewReader(sql)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && errs.Len() == 0 {
		l.t.Fatalf("sqlite3: %v: make deps installs it", err)
	}
	if (text == "") != (errs.Len() == 0) || !strings.Contains(errs.String(), text) {
		l.t.Errorf("%s\nsaid %q, want %q", sql, errs.String(), text)
	}
	return strings.TrimSpace(string(out))
}

func (l *lite) balance(want string) {
	l.t.Helper()
	if got := l.does("", "SELECT group_concat(balance, ' ') FROM (SELECT balance FROM account ORDER BY id DESC)"); got != want {
		l.t.Errorf("balances are %s, want %s", got, want)
	}
}

func TestSQLite(t *testing.T) {
	const stale, missing = "interlock: the fence is stale: do not write", "interlock: no fence was entered for this row"
	write := block(t, "sql sqlite write")
	l := newLite(t)
	l.does("", write)
	l.balance("900 1000")
	// Whoever is late is refused, also one that does not stop at an error.
	l.does(stale, with(t, with(t, write, "42", "41"), "900", "1"))
	l.balance("900 1000")
	// The same fence again, and a higher one.
	l.does("", with(t, write, "900", "800"))
	l.does("", with(t, with(t, write, "42", "1099511627820"), "900", "700"))
	l.does(stale, with(t, write, "900", "1"))
	l.balance("700 1000")
	// Without a fence, or with that of another row.
	for _, sql := range []string{
		"UPDATE account SET balance = 1 WHERE id = 12345", "DELETE FROM account", "INSERT INTO account VALUES (3, 1)",
		"INSERT OR REPLACE INTO account VALUES (2, 1)", "INSERT INTO account VALUES (2, 1) ON CONFLICT DO UPDATE SET balance = 1",
	} {
		l.does(missing, sql)
	}
	l.does(missing, with(t, write, "'account:12345'", "'account:2'"))
	l.does(missing, with(t, with(t, write, "'account:12345', 42", "'account:2', 42"), "SET balance = 900 WHERE id = 12345", "SET id = 3 WHERE id = 2"))
	l.balance("700 1000")
	// A transaction that was rolled back has entered nothing, and one that forgets its
	// entry cannot be committed.
	l.does(missing, "BEGIN IMMEDIATE; SAVEPOINT s; INSERT INTO interlock_entered VALUES ('account:2', 99); ROLLBACK TO s; UPDATE account SET balance = 1 WHERE id = 2; COMMIT;")
	l.does("FOREIGN KEY constraint failed", with(t, with(t, write, "DELETE FROM interlock_entered;", ""), "42", "1099511627821"))
	l.does("", with(t, with(t, write, "42", "1099511627820"), "900", "600"))
	l.balance("600 1000")
}

// Writers of their own processes, with fences old and new: those of a row never go
// down.
func TestSQLiteFencesNeverGoDown(t *testing.T) {
	l := newLite(t)
	l.does("", "CREATE TABLE written (fence INTEGER); CREATE TRIGGER log AFTER UPDATE ON account BEGIN INSERT INTO written VALUES (NEW.balance); END")
	write := block(t, "sql sqlite write")
	var group sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		var script strings.Builder
		for n := range 100 {
			fence := fmt.Sprint(max(1, n+1-random.IntN(5)))
			script.WriteString(with(t, with(t, write, "42", fence), "900", fence))
		}
		group.Go(func() { l.does("the fence is stale", script.String()) })
	}
	group.Wait()
	if n := l.does("", "SELECT count(*) FROM written WHERE rowid > 1 AND fence < (SELECT w.fence FROM written w WHERE w.rowid = written.rowid - 1)"); n != "0" {
		t.Errorf("the fences go down %s times", n)
	}
	if n := l.does("", "SELECT count(*) >= 10 FROM written"); n != "1" {
		t.Error("too few writes were accepted to show anything")
	}
}
