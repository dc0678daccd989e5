package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/writer/account"
)

// TestAccountPage runs the commands of docs/account.md against a server whose accounts
// have the writer and the policy of that page.
func TestAccountPage(t *testing.T) {
	t.Parallel()
	const file = "../../docs/account.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var policy account.Policy
	if err := json.Unmarshal([]byte(blocks(string(text), "json")), &policy); err != nil {
		t.Fatal(err)
	}
	if err := policy.Check(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	writer, err := client.Dial(ctx, client.Config{Addrs: []string{r.server.GRPC}, Agent: "account-agent"})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.SetQueue(ctx, interlock.TaskQueue{Name: "accounts"}); err != nil {
		t.Fatal(err)
	}
	agent := &account.Agent{Client: writer, Queue: "accounts", Policy: func(interlock.Key) (account.Policy, error) { return policy, nil }}
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = writer.Close(context.Background())
	}()
	shown := blocks(string(text), "console")
	if !strings.Contains(shown, "\n$ ") {
		t.Fatal("the page shows nothing to run")
	}
	r.runScript(file, shown)
}
