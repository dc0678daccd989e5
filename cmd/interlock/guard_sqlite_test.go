//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/sqlite"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// The commands against the real sqlite3, on a file with a name that looks like an option.
func TestGuardSQLite(t *testing.T) {
	tools.Need(t, "sqlite3")
	launchtest.Binary(t) // is built from where the test begins
	t.Chdir(t.TempDir())
	file := "-bank.db"
	if out, err := exec.Command(
		"sqlite3", "./"+file, "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	guard := func(code int, want string, args ...string) {
		t.Helper()
		p := startProc(t, cleanEnvironment(), append([]string{"guard", "sqlite"}, args...)...)
		p.in.Close()
		if out := p.ends(code); !strings.Contains(out, want) || strings.Contains(out, "interlock: interlock: ") {
			t.Errorf("guard sqlite %s: got\n%s\nwant %s", strings.Join(args, " "), out, want)
		}
	}
	on := "--file=" + file
	guard(cli.ExitUsage, "name the database with --file, or print the SQL with --print", "install")
	guard(cli.ExitUsage, "--file: stat missing.db: no such file", "install", "--file", "missing.db")
	guard(
		cli.ExitFailure,
		"no such table: interlock_entered: put the guard into this file first: interlock guard sqlite install --file FILE",
		"attach", on, "--table", "account", "--key", "x",
	)
	guard(cli.ExitOK, "installed\n", "install", on)
	guard(cli.ExitOK, "installed\n", "install", on)
	guard(
		cli.ExitUsage,
		"name a table and the key of its rows: interlock guard sqlite attach --file FILE --table TABLE --key KEY",
		"attach", on, "--table", "account",
	)
	guard(cli.ExitUsage, "is not text with columns in braces", "attach", on, "--table", "account", "--key", "account:{id")
	guard(
		cli.ExitFailure, "interlock: no such column: account.number\n", "attach", on, "--table", "account", "--key",
		"account:{number}",
	)
	guard(
		cli.ExitOK, "attached: a row of account needs a fence of account:{id}\n", "attach", on, "--table", "account", "--key",
		"account:{id}",
	)
	guard(cli.ExitFailure, "interlock: a table is still guarded: detach it first\n", "uninstall", on)
	if out, err := exec.Command("sqlite3", "./"+file, "INSERT INTO account VALUES (1, 1)").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "no fence was entered") {
		t.Errorf("an insert without a fence: %v\n%s", err, out)
	}
	guard(cli.ExitOK, "forgotten: 0\n", "prune", on)
	guard(cli.ExitUsage, "--idle: want a minute or more", "prune", on, "--idle", "1s")
	guard(cli.ExitUsage, "name the table", "detach", on)
	if out, err := exec.Command("sqlite3", "./"+file, "ALTER TABLE account RENAME TO konto").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	guard(
		cli.ExitFailure, "konto is still guarded, by triggers from when it had another name: drop them: interlock_guard_",
		"detach", on, "--table", "konto",
	)
	if out, err := exec.Command("sqlite3", "./"+file, "ALTER TABLE konto RENAME TO account").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	guard(cli.ExitOK, "detached: account is written without a fence\n", "detach", on, "--table", "account")
	guard(cli.ExitOK, "uninstalled\n", "uninstall", on)

	attach, err := sqlite.Attach("it's", "a:{b}")
	if err != nil {
		t.Fatal(err)
	}
	guard(cli.ExitOK, sqlite.Schema, "print")
	guard(cli.ExitOK, sqlite.Schema, "install", "--print")
	guard(cli.ExitOK, attach, "attach", "--table", "it's", "--key", "a:{b}", "--print")
	guard(cli.ExitOK, sqlite.Uninstall, "uninstall", "--print")

	// Without the program there is the SQL.
	p := startProc(t, append(cleanEnvironment(), fmt.Sprintf("PATH=%s", t.TempDir())), "guard", "sqlite", "install", on)
	p.in.Close()
	if out := p.ends(cli.ExitFailure); !strings.Contains(out, "the program sqlite3 is not installed here") {
		t.Errorf("without sqlite3: %s", out)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(file) {
		t.Errorf("files: %v (%v), want the database alone", entries, err)
	}
}
