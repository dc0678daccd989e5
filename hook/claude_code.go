package hook

import "encoding/json"

// claudeBody is the input of a hook of Claude Code 2.1, of Codex 0.169, and of Copilot with the names of Claude Code.
type claudeBody struct {
	Conversation string             `json:"conversation_id"` // of Cursor only
	Session      string             `json:"session_id"`
	Event        string             `json:"hook_event_name"`
	Dir          string             `json:"cwd"`
	Agent        string             `json:"agent_id"`
	AgentType    string             `json:"agent_type"`
	Tool         string             `json:"tool_name"`
	Input        toolInput          `json:"tool_input"`
	Response     json.RawMessage    `json:"tool_response"`
	Call         string             `json:"tool_use_id"`
	Prompt       string             `json:"prompt"`
	Message      string             `json:"last_assistant_message"`
	Background   *[]json.RawMessage `json:"background_tasks"`
	Worktree     string             `json:"worktree_path"`
}

var claudeEvents = map[string]Kind{
	"PreToolUse": BeforeTool, "PostToolUse": AfterTool, "PostToolUseFailure": FailedTool,
	"UserPromptSubmit": Prompt, "SessionStart": SessionStart, "SessionEnd": SessionEnd,
	"Stop": TurnEnd, "StopFailure": TurnEnd, "Interrupt": TurnEnd,
	"SubagentStart": SessionStart, "SubagentStop": SubagentEnd, "WorktreeRemove": WorktreeRemoved,
}

func parseClaude(harness string, body []byte, also map[string]string) (*Event, error) {
	var in claudeBody
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	ev := &Event{
		Kind: claudeEvents[in.Event], Name: in.Event, Session: in.Session, Flow: in.Agent, Type: in.AgentType,
		Call: in.Call, Dir: in.Dir, Prompt: firstLine(in.Prompt), Message: firstLine(in.Message),
		Alone: in.Background != nil && len(*in.Background) == 0, Worktree: in.Worktree,
	}
	ev.tool(harness, in.Tool, in.Input, also)
	ev.mcp(in.Tool, in.Input, in.Response)
	return ev.check("hook_event_name", "session_id")
}

// claudeCode is Claude Code 2.1.330. Cursor runs its hooks, too, with a body of its own.
var claudeCode = harness{
	parse: func(body []byte, also map[string]string) (*Event, error) {
		var in struct {
			Conversation string `json:"conversation_id"`
		}
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		if in.Conversation != "" {
			ev, err := parseCursor(body, also)
			if ev != nil {
				ev.foreign = &cursor
			}
			return ev, err
		}
		return parseClaude("claude-code", body, also)
	},
	answer: func(ev *Event, v Verdict) any { return specificOf(ev, v, claudeHears(ev)) },
	hears:  claudeHears,
	asks:   true, rewrites: true,
}

func claudeHears(ev *Event) bool {
	switch ev.Name {
	case "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "SubagentStart":
		return true
	}
	return false
}
