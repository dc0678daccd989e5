package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/deploy"
)

// A file that is missing or stale fails the check, which writes nothing. Then it is written.
func TestRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "interlock.json")
	if err := run(name, true); err == nil {
		t.Error("a file that is missing passes the check")
	}
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(name, true); err == nil {
		t.Error("a stale file passes the check")
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "{}\n" {
		t.Errorf("the check has written %q, %v", b, err)
	}
	if err := run(name, false); err != nil {
		t.Fatal(err)
	}
	if err := run(name, true); err != nil {
		t.Error(err)
	}
}

// The committed dashboard is the one that the table makes.
func TestFresh(t *testing.T) {
	if err := run(filepath.Join("..", deploy.DashboardFile), true); err != nil {
		t.Error(err)
	}
}
