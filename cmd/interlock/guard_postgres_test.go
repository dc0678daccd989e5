//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// The commands against a real server: as its owner, as a role without rights, and with wrong input.
func TestGuardPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	env, dsn := append(cleanEnvironment(), server.Environment(t)...), server.Database(t)
	guard := func(code int, want string, args ...string) {
		t.Helper()
		p := startProc(t, env, append([]string{"guard", "postgres"}, args...)...)
		p.in.Close()
		if out := p.ends(code); !strings.Contains(out, want) || strings.Contains(out, "interlock: interlock: ") {
			t.Errorf("guard postgres %s: got\n%s\nwant %s", strings.Join(args, " "), out, want)
		}
	}
	guard(
		cli.ExitFailure, "put the guard into this database first: interlock guard postgres install", "attach", "--table",
		"pg_class", "--key", "x",
	)
	guard(cli.ExitOK, "installed\n", "install")
	guard(cli.ExitOK, "installed\n", "install", "--dsn", dsn)
	guard(cli.ExitUnreachable, "", "install", "--dsn", strings.Replace(dsn, "dbname=", "dbname=no_", 1))
	guard(cli.ExitUsage, "--dsn: ", "install", "--dsn", "host")
	guard(
		cli.ExitForbidden, "permission denied: \"pg_class\" is a system catalog", "attach", "--table", "pg_class", "--key",
		"x",
	)
	guard(cli.ExitFailure, "interlock: schema \"no\" does not exist\n", "detach", "--table", "no.such")
	guard(
		cli.ExitFailure, "interlock: relation \"nothing\" does not exist\n", "attach", "--table", "nothing", "--key",
		"x:{id}",
	)
	guard(
		cli.ExitUsage, "name a table and the key of its rows: interlock guard postgres attach --table TABLE --key KEY",
		"attach",
		"--table", "account",
	)
	guard(cli.ExitUsage, "name the table: interlock guard postgres detach --table TABLE", "detach")
	guard(cli.ExitUsage, "has no column id", "attach", "--table", "interlock.fences", "--key", "x:{id}")
	guard(
		cli.ExitOK, "attached: a row of interlock.fences needs a fence of x:{key}\n", "attach", "--table", "interlock.fences",
		"--key", "x:{key}",
	)
	guard(cli.ExitOK, "interlock.fences: x:{key} in default\n", "list")
	sql := func(text string) {
		t.Helper()
		psql := exec.Command(
			filepath.Join(server.Programs, "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--command", text,
		)
		psql.Env = env
		if out, err := psql.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", text, err, out)
		}
	}
	sql("CREATE TABLE later () INHERITS (interlock.fences)")
	guard(cli.ExitFailure, "later: not guarded, though it inherits from interlock.fences\n", "list")
	sql("DROP TABLE later")
	guard(cli.ExitUsage, "--idle: want a minute or more", "prune", "--idle", "1s")
	guard(cli.ExitFailure, "still guarded: interlock.fences: detach them first", "uninstall")
	guard(cli.ExitOK, "detached: every client may write interlock.fences\n", "detach", "--table", "interlock.fences")
	sql(
		`SELECT interlock.enter('default', 'x:' || i, 1) FROM generate_series(1, 5) i; UPDATE interlock.fences SET entered_at = entered_at - interval '2 hours'`,
	)
	sql("SELECT interlock.enter('default', 'x:6', 2)")
	guard(cli.ExitOK, "forgotten: 0\n", "prune")
	guard(cli.ExitOK, "forgotten: 5\n", "prune", "--idle", "1h")
	guard(cli.ExitOK, "SELECT interlock.prune('3600 seconds');\n", "prune", "--idle", "1h", "--print")
	guard(cli.ExitOK, "uninstalled\n", "uninstall")
	guard(cli.ExitFailure, "put the guard into this database first", "list")
	guard(cli.ExitOK, "uninstalled\n", "uninstall")

	guard(cli.ExitOK, postgres.Schema, "print")
	guard(cli.ExitOK, postgres.Uninstall, "uninstall", "--print")
	guard(
		cli.ExitOK, fmt.Sprintln(`SELECT interlock.attach('it''s', E'a:{b}\\', '{tenant}');`), "attach", "--table", "it's",
		"--key", `a:{b}\`, "--for", "{tenant}", "--print",
	)
	guard(cli.ExitOK, "SELECT interlock.detach('account');\n", "detach", "--table", "account", "--print")
}
