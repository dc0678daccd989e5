package hook

import "encoding/json"

// geminiBody is the input of a hook of Gemini CLI 0.61.0. A call of a tool has no id.
type geminiBody struct {
	Session  string          `json:"session_id"`
	Event    string          `json:"hook_event_name"`
	Dir      string          `json:"cwd"`
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Response json.RawMessage `json:"tool_response"`
	Prompt   string          `json:"prompt"`
	Message  string          `json:"prompt_response"`
}

var geminiEvents = map[string]Kind{
	"BeforeTool": BeforeTool, "AfterTool": AfterTool, "BeforeAgent": Prompt, "AfterAgent": TurnEnd,
	"SessionStart": SessionStart, "SessionEnd": SessionEnd,
}

var gemini = harness{
	parse: func(body []byte, also map[string]string) (*Event, error) {
		var in geminiBody
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		ev := &Event{
			Kind: geminiEvents[in.Event], Name: in.Event, Session: in.Session, Dir: in.Dir,
			Message: firstLine(in.Message),
		}
		if ev.Kind == Prompt {
			ev.Prompt = firstLine(in.Prompt)
		}
		var response struct {
			Error json.RawMessage `json:"error"`
		}
		_ = json.Unmarshal(in.Response, &response) // one of another form has no error
		if ev.Kind == AfterTool && len(response.Error) > 0 && string(response.Error) != "null" {
			ev.Kind = FailedTool
		}
		var input toolInput
		_ = input.UnmarshalJSON(in.Input) // never an error
		ev.tool("gemini", in.Tool, input, also)
		ev.mcp(in.Tool, input, in.Response)
		return ev.check("hook_event_name", "session_id")
	},
	answer: func(ev *Event, v Verdict) any {
		if v.Deny != "" && ev.Kind == BeforeTool {
			return decision{Decision: "deny", Reason: v.Deny}
		}
		if v.Command != "" {
			return specificAnswer{specific{Event: ev.Name, Args: (&Event{Field: ev.Field}).rewritten(v.Command)}}
		}
		return specificOf(ev, Verdict{Tell: v.Tell}, geminiHears(ev))
	},
	hears: geminiHears, rewrites: true,
}

func geminiHears(ev *Event) bool {
	switch ev.Name {
	case "AfterTool", "BeforeAgent", "SessionStart":
		return true
	}
	return false
}

type decision struct {
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Context  string `json:"context,omitempty"` // of OpenCode's plugin only, as is the next one
	Command  string `json:"command,omitempty"`
}
