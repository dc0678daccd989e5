package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAccountPage runs the commands of docs/account.md against a server whose accounts
// have the writer and the policies of that page.
func TestAccountPage(t *testing.T) {
	t.Parallel()
	const file = "../../docs/account.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	policies := filepath.Join(t.TempDir(), "accounts.json")
	if err := os.WriteFile(policies, []byte(blocks(string(text), "json")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.must("account", "check", "--policy", policies)
	r.must("account", "setup", "--policy", policies)
	writer := r.start("account", "serve", "--policy", policies, "--ledger", filepath.Join(t.TempDir(), "ledger"), "--agent", "account-agent")
	writer.expect("ready queue=accounts")
	shown := blocks(string(text), "console")
	if !strings.Contains(shown, "\n$ ") {
		t.Fatal("the page shows nothing to run")
	}
	r.runScript(file, shown)
	writer.signal(syscall.SIGTERM)
	writer.ends(0)
}
