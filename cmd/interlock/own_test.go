//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// TestOneAgentIsOneHolder has the doors of one agent meet: what it holds by one is its own at the others, or is refused
// as that at once. A door that waits for itself does so for longer than the test lasts.
func TestOneAgentIsOneHolder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = append(r.env, "XDG_CACHE_HOME="+t.TempDir())
	r.must("queue", "set", "outer")
	shop := filepath.Join(t.TempDir(), "shop")
	if err := os.MkdirAll(filepath.Join(shop, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shop, ".git", "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"repo:shop/src/auth.ts", "repo:shop/src"} {
		for _, outside := range []string{"run", "task work"} {
			for _, inside := range []string{"run", "lock", "task work", "hook", "mcp", "mcp of another name"} {
				t.Run(fmt.Sprintf("%s on %s, then %s", outside, key, inside), func(t *testing.T) {
					o := &own{T: t, rig: r, shop: shop}
					o.around(outside, key)
					o.check(inside)
				})
			}
		}
		for _, first := range []string{"hook", "mcp"} {
			t.Run(fmt.Sprintf("%s on %s, then the other", first, key), func(t *testing.T) {
				o := &own{T: t, rig: r, shop: shop}
				o.hookAndMCP(first, key)
			})
		}
	}
}

// edited is the file that an agent edits, as a key.
const edited = "repo:shop/src/auth.ts"

// own is one agent, or a process of it.
type own struct {
	*testing.T
	*rig
	shop string   // the checkout
	env  []string // of its process
}

// around has a command run that shows its environment, and keeps it until the test ends.
func (o *own) around(door, key string) {
	o.Helper()
	at := filepath.Join(o.TempDir(), "environment")
	command := []string{"sh", "-c", `env > "$0.new" && mv "$0.new" "$0" && echo ready >&2 && exec cat`, at}
	if door == "task work" {
		// A worker's command has no input that we can end: it waits for the end of a file of its own.
		pipe := filepath.Join(o.TempDir(), "pipe")
		if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
			o.Fatalf("%v: %s", err, out)
		}
		command = []string{"sh", "-c", `env > "$0.new" && mv "$0.new" "$0" && echo ready >&2 && exec cat "$1" >&2`, at, pipe}
		o.must("task", "create", "outer", "--key", key)
		p := o.start(append([]string{"task", "work", "outer", "--idle", "0", "--agent", "coder-1", "--"}, command...)...)
		p.expect("ready")
		o.Cleanup(func() {
			if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
				f.Close()
			}
			p.end()
		})
	} else {
		p := o.start(append([]string{"run", key, "--agent", "coder-1", "--"}, command...)...)
		p.expect("ready")
		o.Cleanup(func() {
			p.in.Close()
			p.end()
		})
	}
	text, err := os.ReadFile(at)
	if err != nil {
		o.Fatal(err)
	}
	o.env = strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, name := range []string{"URL", "AGENT", "SESSION", "FLOW", "LEASE", "FENCE", "KEYS"} {
		if !strings.Contains(string(text), "\nINTERLOCK_"+name+"=") {
			o.Errorf("INTERLOCK_%s is not set", name)
		}
	}
}

// check uses a door in that process, on the key and, where that is above the file, on the file.
func (o *own) check(door string) {
	o.Helper()
	command := func(want string, args ...string) {
		o.Helper()
		p := startProc(o.T, o.env, args...)
		p.in.Close()
		out, code := p.end()
		if !strings.Contains(out, want) || !strings.Contains(out, "your own lease") {
			o.Errorf("%s: exit code %d: %s", door, code, out)
		}
	}
	switch door {
	case "run":
		command("under which this command runs", "run", edited, "--", "echo", "never")
	case "lock":
		command("under which this command runs", "lock", edited)
	case "task work":
		queue := strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(o.Name())
		queue = queue[max(0, len(queue)-40):]
		o.must("queue", "set", queue)
		o.must("task", "create", queue, "--key", edited)
		command("under which this worker runs", "task", "work", queue, "--idle", "0", "--", "echo", "never")
	case "hook":
		for _, harness := range []string{"claude-code", "gemini"} {
			me, other := "me-"+harness, "other-"+harness
			if out := o.edit(o.env, harness, me); out != "" {
				o.Errorf("%s: its own edit is denied: %s", harness, out)
			}
			if out := o.edit(o.rig.env, harness, other); !strings.Contains(out, "held by coder-1") {
				o.Errorf("%s: another agent may edit: %s", harness, out)
			}
			o.endSessions(harness, me, other)
		}
	case "mcp":
		me := connectMCP(o.T, "2026-07-28", &sdk.CommandTransport{Command: mcpProcess(o.T, o.env)})
		other := connectMCP(o.T, "2026-07-28", &sdk.CommandTransport{Command: mcpProcess(o.T, o.rig.env)})
		keys := map[string]any{"keys": []string{edited}, "wait_s": 0}
		lease := me.call("granted", "acquire", keys)["lease"]
		me.call("released", "release", map[string]any{"lease": lease})
		other.call("queued", "acquire", keys) // the lease around it stays
		me.call("granted", "acquire", map[string]any{"keys": []string{"account:7"}, "wait_s": 0})
		if err := me.Close(); err != nil {
			o.Error(err)
		}
		other.call("free", "look", map[string]any{"keys": []string{"account:7"}})
		other.call("held", "look", map[string]any{"keys": []string{edited}})
		_ = other.Close()
	case "mcp of another name":
		cmd := mcpProcess(o.T, o.env, "--agent", "reviewer")
		me := connectMCP(o.T, "2026-07-28", &sdk.CommandTransport{Command: cmd})
		got := me.call("held", "acquire", map[string]any{"keys": []string{edited}})
		if !strings.Contains(got["message"].(string), "your own lease") {
			o.Errorf("%v", got)
		}
		_ = me.Close()
	}
}

// edit sends the event before an edit of the file, and returns the answer.
func (o *own) edit(env []string, harness, session string) string {
	return o.event(env, harness, fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":%q,"tool_name":%q,
		"tool_input":{"file_path":"src/auth.ts"}}`, session, o.shop, map[bool]string{true: "BeforeTool", false: "PreToolUse"}[harness == "gemini"],
		map[bool]string{true: "replace", false: "Edit"}[harness == "gemini"]))
}

// event sends an event of an agent.
func (o *own) event(env []string, harness, body string) string {
	o.Helper()
	program := filepath.Join(filepath.Dir(launchtest.Binary(o.T)), "interlock-hook")
	cmd := exec.Command(program, harness, "--wait", "0s")
	cmd.Env, cmd.Stdin = env, strings.NewReader(body)
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// hookAndMCP takes a key by one of the two doors that init installs, and then by the other.
func (o *own) hookAndMCP(first, key string) {
	o.Helper()
	session := "session-" + first + key
	me := connectMCP(o.T, "2026-07-28", &sdk.CommandTransport{Command: mcpProcess(o.T, o.rig.env)})
	acquire := func() any {
		o.Helper()
		in := fmt.Sprintf(`{"keys":[%q]}`, key)
		tool := `{"session_id":%q,"cwd":%q,"hook_event_name":%q,"tool_name":"mcp__interlock__acquire",` +
			`"tool_use_id":"call","tool_input":%s%s}`
		if out := o.event(o.rig.env, "claude-code", fmt.Sprintf(tool, session, o.shop, "PreToolUse", in, "")); out != "" {
			o.Error(out)
		}
		got := me.call("granted", "acquire", map[string]any{"keys": []string{key}, "wait_s": 0})
		answer := fmt.Sprintf(`,"tool_response":[{"type":"text","text":"{\"lease\":\"%s\"}"}]`, got["lease"])
		o.event(o.rig.env, "claude-code", fmt.Sprintf(tool, session, o.shop, "PostToolUse", in, answer))
		return got["lease"]
	}
	edit := func() {
		o.Helper()
		if out := o.edit(o.rig.env, "claude-code", session); out != "" {
			o.Errorf("its own edit is denied: %s", out)
		}
	}
	if first == "mcp" {
		acquire()
		edit()
	} else {
		edit()
		acquire()
		edit()
	}
	if out := o.edit(o.rig.env, "claude-code", session+"-2"); !strings.Contains(out, "is held by") {
		o.Errorf("another agent may edit: %s", out)
	}
	if err := me.Close(); err != nil {
		o.Error(err)
	}
	o.endSessions("claude-code", session, session+"-2")
}

func (o *own) endSessions(harness string, sessions ...string) {
	o.Helper()
	for _, session := range sessions {
		o.event(o.rig.env, harness, fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"SessionEnd"}`, session, o.shop))
	}
}
