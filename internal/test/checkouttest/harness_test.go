package checkouttest

import (
	"encoding/json"
	"strings"
)

// harness makes the JSON of one harness, and reads its answers.
type harness struct {
	name string
	// before and after are the events of a tool, with "edit" for an edit of a file and "run" for a command.
	event func(o *occasion) map[string]any
	turn  func(session, dir string) map[string]any
}

// occasion is what an event tells of.
type occasion struct {
	session, dir, call string
	after              bool
	file, command      string // one of them
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func claudeLike(edit, run string) func(o *occasion) map[string]any {
	return func(o *occasion) map[string]any {
		body := map[string]any{
			"session_id": o.session, "cwd": o.dir, "tool_use_id": o.call,
			"hook_event_name": pick(o.after, "PostToolUse", "PreToolUse"),
		}
		switch {
		case o.file == "":
			body["tool_name"], body["tool_input"] = run, map[string]any{"command": o.command, "timeout": 60}
		case edit == "apply_patch":
			patch := "*** Begin Patch\n*** Update File: " + o.file + "\n@@\n-a\n+b\n*** End Patch\n"
			body["tool_name"], body["tool_input"] = edit, map[string]any{"command": patch}
		default:
			body["tool_name"], body["tool_input"] = edit, map[string]any{"file_path": o.file, "old_string": "a"}
		}
		return body
	}
}

func claudeStop(session, dir string) map[string]any {
	return map[string]any{"session_id": session, "cwd": dir, "hook_event_name": "Stop"}
}

var harnesses = []harness{
	{"claude-code", claudeLike("Edit", "Bash"), claudeStop},
	{"codex", claudeLike("apply_patch", "Bash"), claudeStop},
	{"gemini", func(o *occasion) map[string]any {
		body := map[string]any{
			"session_id": o.session, "cwd": o.dir, "hook_event_name": pick(o.after, "AfterTool", "BeforeTool"),
			"tool_name": "run_shell_command", "tool_input": map[string]any{"command": o.command},
		}
		if o.file != "" {
			body["tool_name"], body["tool_input"] = "replace", map[string]any{"file_path": o.file, "new_string": o.call}
		}
		return body
	}, func(session, dir string) map[string]any {
		return map[string]any{"session_id": session, "cwd": dir, "hook_event_name": "AfterAgent"}
	}},
	{"cursor", func(o *occasion) map[string]any {
		body := map[string]any{
			"conversation_id": o.session, "cwd": o.dir, "workspace_roots": []string{o.dir}, "tool_use_id": o.call,
			"hook_event_name": pick(o.after, "postToolUse", "preToolUse"),
			"tool_name":       "Shell", "tool_input": map[string]any{"command": o.command},
		}
		if o.file != "" {
			body["tool_name"], body["tool_input"] = "Write", map[string]any{"file_path": o.file}
		}
		return body
	}, func(session, dir string) map[string]any {
		return map[string]any{"conversation_id": session, "cwd": dir, "hook_event_name": "stop"}
	}},
	{"copilot", func(o *occasion) map[string]any {
		args := map[string]any{"command": o.command}
		tool := "bash"
		if o.file != "" {
			tool, args = "edit", map[string]any{"path": o.file}
		}
		text, err := json.Marshal(args)
		if err != nil {
			panic(err) // they are texts
		}
		return map[string]any{
			"sessionId": o.session, "cwd": o.dir, "hookEventName": pick(o.after, "postToolUse", "preToolUse"),
			"toolName": tool, "toolArgs": string(text), "toolCallId": o.call,
		}
	}, func(session, dir string) map[string]any {
		return map[string]any{"sessionId": session, "cwd": dir, "hookEventName": "agentStop"}
	}},
	{"opencode", func(o *occasion) map[string]any {
		body := map[string]any{
			"event": pick(o.after, "tool.execute.after", "tool.execute.before"), "sessionID": o.session, "callID": o.call,
			"directory": o.dir, "tool": "bash", "args": map[string]any{"command": o.command},
		}
		if o.file != "" {
			body["tool"], body["args"] = "edit", map[string]any{"filePath": o.file}
		}
		return body
	}, func(session, dir string) map[string]any {
		return map[string]any{"event": "session.idle", "sessionID": session, "directory": dir}
	}},
}

// answer is what any harness reads in an answer.
type answer struct {
	refused, asked bool
	reason         string
	command        string // to run instead
	body           string
}

func read(body []byte) (a answer) {
	if len(body) == 0 {
		return a
	}
	var in struct {
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
		Command    string `json:"command"`
		Permission string `json:"permission"`
		Agent      string `json:"agent_message"`
		Copilot    string `json:"permissionDecision"`
		CopilotWhy string `json:"permissionDecisionReason"`
		Input      struct {
			Command string `json:"command"`
		} `json:"updated_input"`
		Args struct {
			Command string `json:"command"`
		} `json:"modifiedArgs"`
		Output struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
			Input    struct {
				Command string `json:"command"`
			} `json:"updatedInput"`
			Args struct {
				Command string `json:"command"`
			} `json:"tool_input"`
		} `json:"hookSpecificOutput"`
	}
	a.body = string(body)
	if err := json.Unmarshal(body, &in); err != nil {
		return answer{reason: "the answer is no JSON: " + string(body)}
	}
	word := in.Decision + in.Permission + in.Copilot + in.Output.Decision
	a.refused, a.asked = word == "deny", word == "ask"
	a.reason = in.Reason + in.Agent + in.CopilotWhy + in.Output.Reason
	a.command = in.Command + in.Input.Command + in.Args.Command + in.Output.Input.Command + in.Output.Args.Command
	return a
}

// remedy is the command on the last line of a refusal, "" if there is none, or one with placeholders.
func (a *answer) remedy() string {
	lines := strings.Split(strings.ReplaceAll(a.reason, "\n (Texts", "\nTexts"), "\n  ")
	last, _, _ := strings.Cut(lines[len(lines)-1], "\n")
	if len(lines) < 2 || strings.Contains(last, "FILE...") {
		return ""
	}
	return last
}
