package database_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/workspace/database"
)

// The variables and the printed address of a clone, for each form of its source.
func TestAddress(t *testing.T) {
	for _, key := range []string{"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE"} {
		t.Setenv(key, "")
	}
	c := database.Clone{Engine: database.PostgreSQL, Name: "clone"}
	for _, test := range []struct{ source, host, redacted, network, endpoint, env string }{
		{
			source: "postgres://u:p%40ss@db.example:6543/app?sslmode=disable", network: "tcp", endpoint: "db.example:6543",
			redacted: "postgres:///clone?host=db.example&port=6543&sslmode=disable&user=u",
			env: "DATABASE_URL=postgres:///clone?host=db.example&password=p%40ss&port=6543&sslmode=disable&user=u" +
				" PGDATABASE=clone PGHOST=db.example PGPASSWORD=p@ss PGPORT=6543 PGUSER=u",
		},
		{
			source: "host=/run/pg user=u dbname=app password='a b\\'c'", network: "unix", endpoint: "/run/pg/.s.PGSQL.5432",
			redacted: "postgres:///clone?host=/run/pg&user=u",
			env: "DATABASE_URL=postgres:///clone?host=/run/pg&password=a%20b%27c&user=u" +
				" PGDATABASE=clone PGHOST=/run/pg PGPASSWORD=a b'c PGPORT=5432 PGUSER=u",
		},
		{
			source: "postgres://u@h1,h2:7/app?sslmode=disable", host: "127.0.0.1", network: "tcp", endpoint: "h1:5432",
			redacted: "postgres:///clone?host=h1%2Ch2&port=%2C7&sslmode=disable&user=u",
			env: "DATABASE_URL=postgres:///clone?host=127.0.0.1&port=5432&sslmode=disable&user=u" +
				" PGDATABASE=clone PGHOST=127.0.0.1 PGPORT=5432 PGUSER=u",
		},
	} {
		if got := c.Redacted(test.source); got != test.redacted {
			t.Errorf("%s is printed as %s, want %s", test.source, got, test.redacted)
		}
		env, err := c.Environ(test.source, test.host)
		if got := strings.Join(env, " "); err != nil || got != test.env || !slices.IsSorted(env) {
			t.Errorf("%s: %v\n%s, want\n%s", test.source, err, got, test.env)
		}
		network, endpoint, err := database.Endpoint(test.source)
		if err != nil || network != test.network || endpoint != test.endpoint {
			t.Errorf("%s is at %s %s, %v", test.source, network, endpoint, err)
		}
	}
	if got := (&database.Clone{Engine: database.SQLite, Name: "/a/b"}).Redacted("sqlite:/x"); got != "sqlite:///a/b" {
		t.Error(got)
	}
}
