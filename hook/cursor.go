package hook

import (
	"encoding/json"
	"strings"

	"github.com/interlockdev/interlock/hook/shell"
)

// cursorBody is the input of a hook of Cursor, from its documentation of November 2026.
type cursorBody struct {
	Conversation string          `json:"conversation_id"`
	Event        string          `json:"hook_event_name"`
	Dir          string          `json:"cwd"`
	Roots        []string        `json:"workspace_roots"`
	Agent        string          `json:"subagent_id"`
	AgentType    string          `json:"subagent_type"`
	Tool         string          `json:"tool_name"`
	Input        toolInput       `json:"tool_input"`
	Output       json.RawMessage `json:"tool_output"`
	Call         string          `json:"tool_use_id"`
	Command      string          `json:"command"`
	File         string          `json:"file_path"`
	Prompt       string          `json:"prompt"`
}

// cursorEvents are named in lower case: Cursor writes preToolUse, and PreToolUse for hooks of Claude Code.
var cursorEvents = map[string]Kind{
	"pretooluse": BeforeTool, "posttooluse": AfterTool, "posttoolusefailure": FailedTool,
	"beforeshellexecution": BeforeTool, "aftershellexecution": AfterTool, "afterfileedit": AfterTool,
	"beforereadfile": AfterTool, "beforesubmitprompt": Prompt, "userpromptsubmit": Prompt,
	"stop": TurnEnd, "subagentstop": SubagentEnd, "sessionstart": SessionStart, "sessionend": SessionEnd,
}

func parseCursor(body []byte, also map[string]string) (*Event, error) {
	var in cursorBody
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	name := strings.ToLower(in.Event)
	ev := &Event{
		Kind: cursorEvents[name], Name: in.Event, Session: in.Conversation, Flow: in.Agent, Type: in.AgentType,
		Call: in.Call, Dir: in.Dir, Prompt: firstLine(in.Prompt),
	}
	if ev.Dir == "" && len(in.Roots) > 0 {
		ev.Dir = in.Roots[0]
	}
	ev.tool("cursor", in.Tool, in.Input, also)
	ev.mcp(in.Tool, in.Input, in.Output)
	switch name {
	case "beforeshellexecution", "aftershellexecution":
		ev.Tool, ev.Print = "Shell", fingerprint("cursor", in.Dir, "Shell", in.Command)
		ev.command(in.Command)
	case "afterfileedit":
		ev.Tool, ev.Print = "Write", fingerprint("cursor", in.Dir, "Write", in.File)
		if in.File != "" {
			ev.Writes = []shell.Target{{Path: in.File}}
		}
	case "beforereadfile":
		ev.Tool = "Read"
		if in.File != "" {
			ev.Reads = []string{in.File}
		}
	}
	return ev.check("hook_event_name", "conversation_id")
}

var cursor = harness{
	parse: parseCursor,
	answer: func(ev *Event, v Verdict) any {
		switch {
		case v.Deny != "" && ev.Kind == BeforeTool:
			return cursorAnswer{Permission: v.decision(), User: "interlock: another agent has the file", Agent: v.Deny}
		case v.Command != "":
			return cursorAnswer{Input: ev.rewritten(v.Command)}
		case v.Tell != "" && cursorHears(ev):
			return cursorAnswer{Context: v.Tell}
		}
		return nil
	},
	hears: cursorHears,
	asks:  true, rewrites: true,
}

func cursorHears(ev *Event) bool {
	switch strings.ToLower(ev.Name) {
	case "posttooluse", "sessionstart":
		return true
	}
	return false
}

type cursorAnswer struct {
	Permission string    `json:"permission,omitempty"`
	User       string    `json:"user_message,omitempty"`
	Agent      string    `json:"agent_message,omitempty"`
	Context    string    `json:"additional_context,omitempty"`
	Input      toolInput `json:"updated_input,omitempty"`
}
