package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/home"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// A canary is an event of a session that does not exist, about a file that does not exist, which takes
// the way of the true ones: the command or the URL of the settings file.

// canaryLimit bounds one of them.
const canaryLimit = 10 * time.Second

// before is an event before an edit, ends the end of a session, as the harness has them.
func (h *harness) before(session, path, dir string) []byte {
	id := cli.FreshID()
	switch h.name {
	case "codex":
		patch := "*** Begin Patch\n*** Update File: " + path + "\n*** End Patch\n"
		return object("session_id", session, "cwd", dir, "hook_event_name", "PreToolUse", "tool_name", "apply_patch",
			"tool_use_id", id, "tool_input", map[string]string{"command": patch})
	case "gemini":
		return object("session_id", session, "cwd", dir, "hook_event_name", "BeforeTool", "tool_name", "write_file",
			"tool_input", map[string]string{"file_path": path, "content": ""})
	case "cursor":
		return object("conversation_id", session, "generation_id", id, "hook_event_name", "preToolUse",
			"workspace_roots", []string{dir}, "cwd", dir, "tool_name", "Write", "tool_use_id", id,
			"tool_input", map[string]string{"file_path": path})
	case "opencode":
		return object("event", "tool.execute.before", "sessionID", session, "rootID", session, "callID", id,
			"tool", "edit", "directory", dir, "args", map[string]string{"filePath": path})
	}
	return object("session_id", session, "cwd", dir, "hook_event_name", "PreToolUse", "tool_name", "Edit",
		"tool_use_id", id, "tool_input", map[string]string{"file_path": path})
}

func (h *harness) ends(session, dir string) []byte {
	switch h.name {
	case "cursor":
		return object("conversation_id", session, "hook_event_name", "sessionEnd", "workspace_roots", []string{dir})
	case "opencode":
		return object("event", "session.deleted", "sessionID", session, "rootID", session, "directory", dir)
	}
	return object("session_id", session, "cwd", dir, "hook_event_name", "SessionEnd", "reason", "other")
}

// object is a JSON object of names and values.
func object(fields ...any) []byte {
	all := map[string]any{}
	for i := 0; i < len(fields); i += 2 {
		all[fields[i].(string)] = fields[i+1]
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // they are texts
	}
	return text
}

// refusalIn returns the reason in an answer that refuses, in the words of any harness.
func refusalIn(answer []byte) (reason string, refused bool) {
	var in struct {
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
		Permission string `json:"permission"`
		Agent      string `json:"agent_message"`
		Top        string `json:"permissionDecision"`
		TopReason  string `json:"permissionDecisionReason"`
		Specific   struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(answer, &in) != nil {
		return "", false
	}
	for _, c := range []struct{ decision, reason string }{
		{in.Decision, in.Reason},
		{in.Permission, in.Agent},
		{in.Top, in.TopReason},
		{in.Specific.Decision, in.Specific.Reason},
	} {
		if c.decision == "deny" {
			return c.reason, true
		}
	}
	return "", false
}

// sender sends an event on the way of a handler, without a wait in line.
type sender func(ctx context.Context, event []byte) ([]byte, error)

// senderOf is that of a handler in a settings file, or of the plugin.
func (h *harness) senderOf(f found) sender {
	way := handlerOf(f.handler)
	switch {
	case h.plugin:
		return func(ctx context.Context, event []byte) ([]byte, error) {
			settings, err := home.LoadHook()
			if err != nil {
				return nil, err
			}
			return pass(ctx, &settings, &hookclient.Settings{Harness: h.name}, event)
		}
	case isURL(way):
		return func(ctx context.Context, event []byte) ([]byte, error) { return postTo(ctx, way, f.handler, event) }
	}
	return func(ctx context.Context, event []byte) ([]byte, error) { return runLine(ctx, way, event) }
}

func isURL(way string) bool { return strings.Contains(way, "://") }

// runLine runs a command line as a harness does.
func runLine(ctx context.Context, line string, event []byte) ([]byte, error) {
	// With a cache of its own it reports each failure.
	cache, err := os.MkdirTemp("", "interlock-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(cache)
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/C"
	}
	line += " --wait 0s"
	if strings.Contains(line, "--mode strict") {
		line += " --mode guard" // the last one counts, and a failure is not a refusal
	}
	cmd := exec.CommandContext(ctx, shell, flag, line)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "LocalAppData="+cache)
	cmd.Stdin = bytes.NewReader(event)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if text := strings.TrimSpace(report.String()); text != "" {
		if _, why, ok := strings.Cut(text, "files are not reserved: "); ok {
			text, _, _ = strings.Cut(why, " (next message")
		}
		return nil, errors.New(cli.Clean(text))
	}
	return out, err
}

// postTo posts an event as Claude Code does.
func postTo(ctx context.Context, address string, handler, event []byte) ([]byte, error) {
	var in struct {
		Headers   map[string]string `json:"headers"`
		Variables []string          `json:"allowedEnvVars"`
	}
	_ = json.Unmarshal(handler, &in) // without headers there are none
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("wait_s", "0")
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range in.Headers {
		req.Header.Set(name, os.Expand(value, func(variable string) string {
			if !slices.Contains(in.Variables, variable) {
				return ""
			}
			return os.Getenv(variable)
		}))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, fmt.Errorf("no server answers at %s: %w", u.Host, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, hookclient.MaxEvent))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		var problem struct{ Code, Detail string }
		_ = json.Unmarshal(body, &problem) // an answer of others has neither
		if problem.Code == "" {
			return nil, fmt.Errorf("what answers at %s has no hooks (%s)", u.Host, res.Status)
		}
		return nil, fmt.Errorf(
			"the server at %s refused the event (%s): %s",
			u.Host,
			problem.Code,
			cli.Clean(problem.Detail),
		)
	}
	return body, nil
}
