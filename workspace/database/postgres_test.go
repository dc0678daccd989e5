package database_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/workspace/database"
)

var owner = database.Owner{Repo: "web", Name: "a"}

// isCode fails unless an error is an *Error with a code.
func isCode(t *testing.T, err error, code string) *database.Error {
	t.Helper()
	var e *database.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	return e
}

// bank makes a database with an account, a view, and a name that has to be quoted.
func bank(t *testing.T, s *postgrestest.Server) (source string) {
	t.Helper()
	source = s.URL(t)
	postgrestest.Execute(t, source, `CREATE TABLE account (id int PRIMARY KEY, balance int);
		INSERT INTO account SELECT i, 100 FROM generate_series(1, 1000) i;
		CREATE VIEW rich AS SELECT * FROM account WHERE balance > 50;
		ALTER DATABASE `+current(t, source)+` SET work_mem = '5MB'`)
	return source
}

func current(t *testing.T, url string) string {
	t.Helper()
	return postgrestest.Value(t, url, "SELECT current_database()::text")
}

// cloneURL is how a client finds a clone: by DATABASE_URL.
func cloneURL(t *testing.T, c *database.Clone, source string) string {
	t.Helper()
	env, err := c.Environ(source, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range env {
		if url, ok := strings.CutPrefix(pair, "DATABASE_URL="); ok {
			return url
		}
	}
	t.Fatal("no DATABASE_URL in", env)
	return ""
}

// Tests that share a server. Each leaves no clone there.
func TestPostgres(t *testing.T) {
	tools.Need(t, "psql")
	s := postgrestest.Start(t)
	t.Run("clone", func(t *testing.T) { clonePostgres(t, s) })
	t.Run("template in use", func(t *testing.T) { templateInUse(t, s) })
	t.Run("hostile names", func(t *testing.T) { hostileNames(t, s) })
	t.Run("failed dump", func(t *testing.T) { failedDump(t, s) })
	t.Run("migrate", func(t *testing.T) { migratePostgres(t, s) })
	t.Run("foreign", func(t *testing.T) { foreign(t, s) }) // last: it leaves databases
}

// A clone by each method has what it should; a write to it stays there; it is dropped once.
func clonePostgres(t *testing.T, s *postgrestest.Server) {
	source := bank(t, s)
	const sum = "SELECT coalesce(sum(balance), 0)::text FROM rich"
	for method, want := range map[database.Method]string{
		"": "100000", database.Template: "100000", database.Dump: "100000", database.Schema: "0",
	} {
		c, err := database.Create(t.Context(), database.Options{Source: source, Owner: owner, Method: method})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		url := cloneURL(t, c, source)
		if got := postgrestest.Value(t, url, sum); got != want {
			t.Errorf("%s: the clone has %s, want %s", method, got, want)
		}
		postgrestest.Execute(t, url, "DELETE FROM account; INSERT INTO account VALUES (1, 7)")
		if got := postgrestest.Value(t, source, sum); got != "100000" {
			t.Errorf("%s: the source has %s after a write to the clone", method, got)
		}
		_, err = database.Create(t.Context(), database.Options{Source: source, Owner: owner, Method: method})
		isCode(t, err, database.CodeExists)
		for range 2 {
			if err := c.Drop(t.Context(), source, false); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
		if n := s.Value(t, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'interlock%'"); n != "0" {
			t.Errorf("%s: %s clones are left", method, n)
		}
	}
}

// While a session is connected to the template the clone is refused, with the session; a dump is not.
func templateInUse(t *testing.T, s *postgrestest.Server) {
	source := bank(t, s)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, source+"&application_name=report")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	_, err = database.Create(t.Context(), database.Options{Source: source, Owner: owner})
	e := isCode(t, err, database.CodeInUse)
	if len(e.Sessions) != 1 || e.Sessions[0].Application != "report" || e.Sessions[0].PID != int(conn.PgConn().PID()) ||
		!strings.Contains(e.Text, `"report"`) {
		t.Errorf("%v, sessions %v, want the session report", e, e.Sessions)
	}
	c, err := database.Create(t.Context(), database.Options{Source: source, Owner: owner, Method: database.Dump})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(ctx); err != nil {
		t.Error("the session on the source was ended:", err)
	}
	// The clone's own sessions are ended on request alone.
	own, err := pgx.Connect(ctx, cloneURL(t, c, source))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close(ctx)
	if e := isCode(t, c.Drop(t.Context(), source, false), database.CodeInUse); len(e.Sessions) != 1 {
		t.Errorf("sessions %v, want one", e.Sessions)
	}
	if err := c.Drop(t.Context(), source, true); err != nil {
		t.Error(err)
	}
	if own.Ping(ctx) == nil || conn.Ping(ctx) != nil {
		t.Error("the wrong session was ended")
	}
}

// Nothing but a marked clone of the same workspace is dropped, and leftovers are listed.
func foreign(t *testing.T, s *postgrestest.Server) {
	source := bank(t, s)
	c, err := database.Create(t.Context(), database.Options{Source: source, Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Execute(t, source, "CREATE DATABASE interlock_unmarked")
	for _, other := range []database.Clone{
		{Engine: database.PostgreSQL, Owner: owner, Name: current(t, source)},
		{Engine: database.PostgreSQL, Owner: owner, Name: "postgres"},
		{Engine: database.PostgreSQL, Owner: owner, Name: "interlock_unmarked"},
		{Engine: database.PostgreSQL, Owner: database.Owner{Repo: "web", Name: "b"}, Name: c.Name},
	} {
		isCode(t, other.Drop(t.Context(), source, true), database.CodeForeign)
	}
	list, err := database.List(t.Context(), source)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	i := slices.IndexFunc(list, func(l database.Leftover) bool { return l.Marked })
	if i < 0 || list[i].Clone != *c || list[i].Bytes == 0 || list[1-i].Name != "interlock_unmarked" {
		t.Errorf("listed %+v, want %+v and the unmarked one", list, c)
	}
	_, err = database.Create(t.Context(), database.Options{Source: cloneURL(t, c, source), Owner: owner})
	isCode(t, err, database.CodeSource)
}

// Hostile names of workspaces, repositories and databases are data.
func hostileNames(t *testing.T, s *postgrestest.Server) {
	base := bank(t, s)
	const name = `x"; DROP TABLE account; -- '\ ü`
	postgrestest.Execute(t, base, `CREATE DATABASE "x""; DROP TABLE account; -- '\ ü"`)
	source := "host=" + filepath.Dir(s.Socket()) + ` user=postgres dbname='x"; DROP TABLE account; -- \'\\ ü'`
	postgrestest.Execute(t, source, "CREATE TABLE account (balance int); INSERT INTO account VALUES (5)")
	for _, method := range []database.Method{database.Template, database.Dump, database.Empty} {
		evil := database.Owner{Repo: `w'; DROP DATABASE postgres; --`, Name: strings.Repeat("ü", 100) + `\'`}
		c, err := database.Create(t.Context(), database.Options{Source: source, Owner: evil, Method: method})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if c.Source != name || len(c.Name) > 63 {
			t.Errorf("cloned %q as %q", c.Source, c.Name)
		}
		if method != database.Empty {
			if got := postgrestest.Value(t, cloneURL(t, c, source), "SELECT balance::text FROM account"); got != "5" {
				t.Errorf("%s: %s", method, got)
			}
		}
		if err := c.Drop(t.Context(), source, false); err != nil {
			t.Error(err)
		}
	}
	postgrestest.Execute(t, source, "SELECT balance FROM account")
}

// A password reaches the programs and the environment of the command, and no error, list or text.
func TestPassword(t *testing.T) {
	tools.Need(t, "psql")
	s := postgrestest.Start(t, "-c", "password_encryption=scram-sha-256")
	base := bank(t, s)
	postgrestest.Execute(t, base, "CREATE ROLE app LOGIN CREATEDB PASSWORD 'hunter2'")
	postgrestest.Execute(t, base, "CREATE DATABASE shop OWNER app")
	hba := filepath.Join(filepath.Dir(s.Socket()), "data/pg_hba.conf")
	if err := os.WriteFile(hba, []byte("local all postgres trust\nlocal all all scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Value(t, "SELECT pg_reload_conf()::text")
	for _, source := range []string{
		"postgres://app:hunter2@/shop?host=" + filepath.Dir(s.Socket()),
		"host=" + filepath.Dir(s.Socket()) + " user = app password = 'hunter2' dbname=shop",
	} {
		c, err := database.Create(t.Context(), database.Options{Source: source, Owner: owner, Method: database.Dump})
		if err != nil {
			t.Fatal(err)
		}
		if got := postgrestest.Value(t, cloneURL(t, c, source), "SELECT current_user::text"); got != "app" {
			t.Errorf("connected as %s", got)
		}
		comment := s.Value(t, "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '"+c.Name+"'")
		if all := c.Redacted(source) + comment; strings.Contains(all, "hunter2") || !strings.Contains(all, "user=app") {
			t.Error(all)
		}
		if err := c.Drop(t.Context(), source, false); err != nil {
			t.Error(err)
		}
		for _, wrong := range []string{
			strings.Replace(source, "shop", "absent", 1), strings.Replace(source, "hunter2", "hunter2wrong", 1),
			source + " ' = ", "postgres://app:hunter2@[::1:bad/x",
		} {
			_, err := database.Create(t.Context(), database.Options{Source: wrong, Owner: owner, Method: database.Dump})
			if e := isCode(t, err, database.CodeSource); strings.Contains(e.Error(), "hunter2") {
				t.Errorf("%s", e)
			}
		}
	}
}

// A failed dump leaves no clone.
func failedDump(t *testing.T, s *postgrestest.Server) {
	source := bank(t, s)
	// A role that may make databases and not read the table.
	postgrestest.Execute(t, source, "CREATE ROLE app LOGIN CREATEDB")
	source = strings.Replace(source, "postgres@", "app@", 1)
	_, err := database.Create(t.Context(), database.Options{Source: source, Owner: owner, Method: database.Dump})
	if e := isCode(t, err, database.CodeTool); !strings.Contains(e.Text, "pg_dump failed") {
		t.Error(e)
	}
	if n := s.Value(t, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'interlock%'"); n != "0" {
		t.Errorf("%s clones are left", n)
	}
}

// A migration that works on one of an empty and a copied database alone is found; both are dropped.
func migratePostgres(t *testing.T, s *postgrestest.Server) {
	source := bank(t, s)
	for script, want := range map[string]string{
		"CREATE TABLE IF NOT EXISTS account (id int); ALTER TABLE account ADD COLUMN note text": "",
		"ALTER TABLE account ADD COLUMN note text":                                              "an empty database",
		"CREATE TABLE account (id int)":                                                         "a copy of the database",
	} {
		var out bytes.Buffer
		err := database.Migrate(t.Context(), database.Migration{
			Source: source, Argv: []string{"psql", "-v", "ON_ERROR_STOP=1", "-c", script}, Dir: t.TempDir(), Env: os.Environ(),
			Output: &out,
		})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v\n%s", script, err, &out)
			}
			continue
		}
		e := isCode(t, err, database.CodeMigrated)
		var exit *exec.ExitError
		if !strings.Contains(e.Text, want) || !errors.As(err, &exit) || out.Len() == 0 {
			t.Errorf("%s: %v, want it to fail on %s\n%s", script, err, want, &out)
		}
	}
	if n := s.Value(t, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'interlock%'"); n != "0" {
		t.Errorf("%s clones are left", n)
	}
}
