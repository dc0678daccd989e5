package pgjournal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal/remote"
)

// Several that open a store at once, in a database without tables, have epochs of their own.
func TestOpenTogether(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	at := place(t, server.URL(t))
	remotetest.OpenTogether(t, func() *remote.Store { return connect(t, at) })
}

func TestShare(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	at := place(t, server.URL(t))
	remotetest.Share(t, func() *remote.Store { return connect(t, at) })
}

// A dump that is restored at another server continues there, and fences jump. The original goes on.
func TestRestoredDump(t *testing.T) {
	server, other := postgrestest.Start(t, durable...), postgrestest.Start(t, durable...)
	url := server.URL(t)
	j := remotetest.Own(t, connect(t, place(t, url)))
	remotetest.Add(t, j, "before")
	dump := filepath.Join(t.TempDir(), "dump")
	if out, err := exec.Command(
		filepath.Join(server.Programs, "pg_dump"), "--file="+dump, url,
	).CombinedOutput(); err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	remotetest.Add(t, j, "after")
	sql, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	into := other.URL(t)
	cmd := exec.Command(filepath.Join(server.Programs, "psql"), "--set=ON_ERROR_STOP=1", "--quiet", into)
	cmd.Stdin = strings.NewReader(string(sql))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	s := connect(t, place(t, into))
	restored := remotetest.Own(t, s)
	if !restored.Copied() {
		t.Error("fences do not jump")
	}
	if got := remotetest.Texts(t, restored); got != " before " {
		t.Errorf("the restored journal holds %q", got)
	}
	if err := restored.Adopt(); err != nil {
		t.Fatal(err)
	}
	if remotetest.Own(t, s).Copied() {
		t.Error("fences jump twice")
	}
	if err := j.Barrier(t.Context()); err != nil || remotetest.Texts(t, j) != " before after" {
		t.Errorf("the original: %v", err)
	}
}
