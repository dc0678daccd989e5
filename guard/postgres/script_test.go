package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// TestScripts runs the scripts of testdata, each in a database of its own with the
// guard in it. They are what the guard's behaviour is. A script reads like this:
//
//	# What it shows.
//	a> SELECT interlock.enter('default', 'account:1', 5)
//	b> BEGIN
//	b> SELECT interlock.enter('default', 'account:1', 4)
//	! IL001 interlock: fence 4 of account:1 is stale, ...
//
// Each letter is a connection. Below a statement stand its rows, as "= value, value", or its
// error, as "! SQLSTATE message"; dots at the end of a message stand for the rest. "a waits"
// below a statement means that it is blocked, and "a goes on" is where its outcome is expected.
// \install and \uninstall stand for the SQL that does it.
func TestScripts(t *testing.T) {
	server := postgrestest.Start(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runScript(t, server.Database(t), file, string(text))
		})
	}
}

// session is a connection of a script.
type session struct {
	conn    *pgx.Conn
	waiting chan []string // what a blocked statement will have given
}

func runScript(t *testing.T, dsn, file, text string) {
	ctx := t.Context()
	watch := connect(t, dsn)
	must(t, watch, postgres.Schema)
	sessions := map[string]*session{}
	var got, want []string
	at := ""
	check := func() {
		if !matches(want, got) {
			t.Fatalf("%s\ngot\n%s\nwant\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		got, want = nil, nil
	}
	for i, line := range strings.Split(text, "\n") {
		place := fmt.Sprintf("%s:%d: %s", file, i+1, line)
		name, statement, isStatement := strings.Cut(line, "> ")
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isStatement && len(name) == 1:
			check()
			at = place
			s := sessions[name]
			if s == nil {
				s = &session{conn: connect(t, dsn)}
				sessions[name] = s
			}
			if s.waiting != nil {
				t.Fatalf("%s: it waits", at)
			}
			outcome := make(chan []string, 1)
			go func() { outcome <- execute(ctx, s.conn, statement) }()
			got = s.settle(t, watch, name, outcome)
		case rest == "goes on":
			check()
			at = place
			got = <-sessions[first].waiting
			sessions[first].waiting = nil
		default:
			want = append(want, line)
		}
	}
	check()
	for name, s := range sessions {
		if s.waiting != nil {
			t.Errorf("%s: %s still waits at the end", file, name)
		}
	}
}

// settle waits until a statement is done or blocked.
func (s *session) settle(t *testing.T, watch *pgx.Conn, name string, outcome chan []string) []string {
	t.Helper()
	for {
		var blocked bool
		err := watch.QueryRow(
			t.Context(), "SELECT cardinality(pg_blocking_pids($1)) > 0", s.conn.PgConn().PID(),
		).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case lines := <-outcome:
			return lines
		default:
			if blocked {
				s.waiting = outcome
				return []string{name + " waits"}
			}
		}
	}
}

// execute runs a statement and describes what came of it.
func execute(ctx context.Context, conn *pgx.Conn, statement string) (lines []string) {
	switch statement {
	case `\install`:
		statement = postgres.Schema
	case `\uninstall`:
		statement = postgres.Uninstall
	}
	results, err := conn.PgConn().Exec(ctx, statement).ReadAll()
	for _, result := range results {
		for _, row := range result.Rows {
			var values []string
			for _, v := range row {
				values = append(values, string(v))
			}
			if strings.Join(values, "") != "" { // a function that returns void has an empty value
				lines = append(lines, "= "+strings.Join(values, ", "))
			}
		}
	}
	if err != nil {
		lines = append(lines, "! "+state(err)+" "+message(err))
	}
	return lines
}

// state is the SQLSTATE of an error, "" of none.
func state(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code
	}
	return ""
}

func message(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Message
	}
	return err.Error()
}

func matches(want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		beginning, cut := strings.CutSuffix(want[i], "...")
		if want[i] != got[i] && !(cut && strings.HasPrefix(got[i], beginning)) {
			return false
		}
	}
	return true
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func must(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}
