package pgjournal_test

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/journal/pgjournal"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]pgjournal.Place{
		"postgres://interlock@db1,db2:5433/locks?sslmode=require": {
			DSN: "postgres://interlock@db1,db2:5433/locks?sslmode=require", Name: "main",
		},
		"postgresql://db/locks?journal=second": {DSN: "postgresql://db/locks", Name: "second"},
		"postgres://me@/locks?host=/run/postgresql&journal=a.b-c_1": {
			DSN: "postgres://me@/locks?host=%2Frun%2Fpostgresql", Name: "a.b-c_1",
		},
	} {
		if got, err := pgjournal.ParsePlace(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"etcd://db/locks":                          "want postgres://",
		"postgres://me:secret@db/locks":            "PGPASSWORD",
		"postgres://me@db/locks?password=secret":   "PGPASSWORD",
		"postgres://db/locks?sslpassword=secret":   "PGPASSWORD",
		"postgres://db/locks?journal=":             "the parameter journal",
		"postgres://db/locks?journal=a/b":          "the parameter journal",
		"postgres://db/locks?sslmode=perhaps":      "parameters of libpq",
		"postgres://db/locks?connect_timeout=soon": "parameters of libpq",
	} {
		_, err := pgjournal.ParsePlace(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
