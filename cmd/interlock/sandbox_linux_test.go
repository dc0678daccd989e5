package main

import (
	"os"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// runToolScript runs a script that needs more programs than Go.
func runToolScript(r *rig, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	r.runScript(file, string(text))
}

func TestSandboxScript(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap")
	runToolScript(newRig(t), "testdata/tools/sandbox.txt")
}

func TestDatabaseScript(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap", "sqlite3", "psql")
	url := postgrestest.Start(t).URL(t)
	postgrestest.Execute(t, url, "CREATE TABLE account (id int); INSERT INTO account VALUES (1), (2)")
	r := newRig(t)
	r.env = append(r.env, "BANK="+url)
	runToolScript(r, "testdata/tools/database.txt")
}
