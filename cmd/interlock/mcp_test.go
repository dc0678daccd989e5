//go:build unix

package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// mcpClient is an agent that speaks MCP.
type mcpClient struct {
	t *testing.T
	*sdk.ClientSession
}

func connectMCP(t *testing.T, revision string, transport sdk.Transport) *mcpClient {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &mcpClient{t, session}
}

// call calls a tool and returns its answer.
func (c *mcpClient) call(outcome, tool string, in map[string]any) map[string]any {
	c.t.Helper()
	result, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		c.t.Fatal(err)
	}
	out, _ := result.StructuredContent.(map[string]any)
	if result.IsError || out["outcome"] != outcome {
		c.t.Fatalf("%s: got %s, want %s", tool, result.Content[0].(*sdk.TextContent).Text, outcome)
	}
	return out
}

// mcpProcess starts interlock mcp as a coding agent does.
func mcpProcess(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(launchtest.Binary(t), append([]string{"mcp"}, args...)...)
	cmd.Env = env
	return cmd
}

// Agents of two revisions and both transports take turns on one key. The end of a process, in
// whichever way, releases what its agent holds.
func TestMCP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := func(key string, wait int) map[string]any {
		return map[string]any{"keys": []string{key}, "wait_s": wait}
	}
	address := &sdk.StreamableClientTransport{Endpoint: "http://" + r.server.HTTP + "/mcp"}
	ann := connectMCP(t, "2026-07-28", address)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		cmd := mcpProcess(t, r.env, "--agent", "ben")
		ben := connectMCP(t, revision, &sdk.CommandTransport{Command: cmd})
		lease := ann.call("granted", "acquire", keys("account:1", 0))["lease"]
		queued := ben.call("queued", "acquire", keys("account:1", 0))
		ann.call("released", "release", map[string]any{"lease": lease, "note": "fee written"})
		got := ben.call("granted", "wait", map[string]any{"ticket": queued["ticket"]})
		if got["changed"] != true || got["notes"] == nil {
			t.Errorf("granted %v", got)
		}
		held := ann.call("held", "look", map[string]any{"keys": []string{"account:1"}})
		if !strings.Contains(held["message"].(string), `held by "ben" (alive`) {
			t.Errorf("look %v", held)
		}
		if err := ben.Close(); err != nil {
			t.Error(err)
		}
		ann.call("free", "look", map[string]any{"keys": []string{"account:1"}})
	}

	cmd := mcpProcess(t, r.env)
	ben := connectMCP(t, "2025-11-25", &sdk.CommandTransport{Command: cmd})
	ben.call("granted", "acquire", keys("account:1", 0))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = ben.Wait()
	ann.call("free", "look", map[string]any{"keys": []string{"account:1"}})
}

// A process ends with the program that started it, although others keep its input open, and nothing is held any more.
func TestMCPEndsWithItsParent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	parent := exec.Command("sh", "-c", `exec 3<&0; "$0" mcp <&3 & wait`, launchtest.Binary(t))
	parent.Env = r.env
	ben := connectMCP(t, "2025-11-25", &sdk.CommandTransport{Command: parent})
	ben.call("granted", "acquire", map[string]any{"keys": []string{"k"}})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = ben.Wait()
	}()
	select {
	case <-ended:
	case <-busy.Context(t).Done():
		t.Fatal("the process lives on without its parent")
	}
	if out := r.must("key", "get", "k"); !strings.Contains(out, "free") {
		t.Errorf("the key is not free: %s", out)
	}
}

// A process without a configured server has one of its own, which keeps its journal.
func TestMCPEmbedded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := map[string]any{"writes": []any{map[string]any{"key": "n", "add": 1}}}
	for _, sum := range []string{"1", "2"} {
		c := connectMCP(
			t, "2026-07-28", &sdk.CommandTransport{Command: mcpProcess(t, cleanEnvironment(), "--embedded", dir)},
		)
		if got := c.call("committed", "commit", write)["version"]; got != sum {
			t.Errorf("version %v, want %s", got, sum)
		}
		if out, code := startProc(t, cleanEnvironment(), "mcp", "--embedded", dir).end(); code != cli.ExitLocked {
			t.Errorf("a second process over one journal: exit code %d: %s", code, out)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A missing server is an error of the call, not of the process, with the way to start one.
func TestMCPWithoutServer(t *testing.T) {
	t.Parallel()
	env := append(cleanEnvironment(), "INTERLOCK_URL=http://127.0.0.1:1")
	c := connectMCP(t, "2026-07-28", &sdk.CommandTransport{Command: mcpProcess(t, env)})
	result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "look", Arguments: map[string]any{"prefix": "k"}})
	if err != nil || !result.IsError {
		t.Fatal(err, result)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	for _, want := range []string{
		"There is no Interlock server at 127.0.0.1:1 (", "nothing was done",
		"start one with `interlock serve --data-dir DIR`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
}
