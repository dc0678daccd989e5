package guard_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/guard/sqlite"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// The page's examples for SQLite; the behaviour of its guard is tested in its own folder.
func TestSQLite(t *testing.T) {
	tools.Need(t, "sqlite3")
	file := filepath.Join(t.TempDir(), "bank.db")
	run := func(sql string) string {
		t.Helper()
		cmd := exec.Command("sqlite3", "-batch", file)
		cmd.Stdin = strings.NewReader(sql)
		out, err := cmd.CombinedOutput()
		if len(out) == 0 && err != nil {
			t.Fatalf("sqlite3: %v", err)
		}
		return string(out)
	}
	attach, err := sqlite.Attach("account", "account:{id}")
	if err != nil {
		t.Fatal(err)
	}
	write := block(t, "sql sqlite write")
	if !strings.HasPrefix(strings.ReplaceAll(write, ";\n", "; "), sqlite.Connect+"; ") {
		t.Errorf("the page does not begin a connection with %s", sqlite.Connect)
	}
	for _, tt := range []struct{ sql, want string }{
		{
			sqlite.Schema +
				"CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (12345, 1000);" +
				attach,
			"",
		},
		{write, "1000\n"},
		{with(t, with(t, write, "42", "41"), "900", "1"), "the fence is stale: do not write"},
		{with(t, write, "PRAGMA recursive_triggers = ON;\n", ""), "begin with PRAGMA recursive_triggers = ON"},
		{"SELECT balance FROM account", "900\n"},
	} {
		if got := run(tt.sql); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s\ngot %q, want %q", tt.sql, got, tt.want)
		}
	}
}
