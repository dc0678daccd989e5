//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

const accountPage = "../../docs/account.md"

// TestAccountPage runs the commands of docs/account.md against a server with the writer and the
// policies of that page.
func TestAccountPage(t *testing.T) {
	t.Parallel()
	page := readPage(t, accountPage)
	policies := filepath.Join(t.TempDir(), "accounts.json")
	if err := os.WriteFile(policies, []byte(onTheirLines(page.of("json"))), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.must("account", "check", "--policy", policies)
	r.must("account", "setup", "--policy", policies)
	writer := r.start(
		"account", "serve", "--policy", policies, "--ledger", filepath.Join(t.TempDir(), "ledger"), "--agent",
		"account-agent",
	)
	writer.expect("ready queue=accounts")
	page.paste(r, page.of("sh", "console", hiddenCommands))
	writer.signal(syscall.SIGTERM)
	writer.ends(0)
}
