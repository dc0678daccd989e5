package hook

import (
	"encoding/json"
	"strings"
)

// copilotBody is the input of a hook of Copilot CLI 1.0.102 under its own names, from its documentation. With
// event names in PascalCase its bodies are those of Claude Code.
type copilotBody struct {
	Session string    `json:"sessionId"`
	Dir     string    `json:"cwd"`
	Tool    string    `json:"toolName"`
	Args    toolInput `json:"toolArgs"`
	Call    string    `json:"toolCallId"`
	Prompt  string    `json:"prompt"`
	Event   string    `json:"hookEventName"`
	Result  *struct {
		Type string          `json:"resultType"`
		Text json.RawMessage `json:"textResultForLlm"`
	} `json:"toolResult"`
	Reason string `json:"reason"`
}

var copilotEvents = map[string]Kind{
	"preToolUse": BeforeTool, "postToolUse": AfterTool, "userPromptSubmitted": Prompt, "sessionStart": SessionStart,
	"sessionEnd": SessionEnd, "agentStop": TurnEnd, "AgentStop": TurnEnd,
}

var copilot = harness{
	parse: func(body []byte, also map[string]string) (*Event, error) {
		var in copilotBody
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		if in.Session == "" {
			return parseClaude("copilot", body, also)
		}
		ev := &Event{Name: in.Event, Session: in.Session, Call: in.Call, Dir: in.Dir, Prompt: firstLine(in.Prompt)}
		if ev.Name == "" { // older versions do not name the event
			switch {
			case in.Tool != "" && in.Result != nil:
				ev.Name = "postToolUse"
			case in.Tool != "":
				ev.Name = "preToolUse"
			case in.Prompt != "":
				ev.Name = "userPromptSubmitted"
			case in.Reason != "":
				ev.Name = "sessionEnd"
			default:
				ev.Name = "sessionStart"
			}
		}
		ev.Kind = copilotEvents[ev.Name]
		if ev.Kind == Other {
			ev.Kind = claudeEvents[strings.ToUpper(ev.Name[:1])+ev.Name[1:]]
		}
		if ev.Kind == AfterTool && in.Result != nil && (in.Result.Type == "failure" || in.Result.Type == "denied") {
			ev.Kind = FailedTool
		}
		ev.tool("copilot", in.Tool, in.Args, also)
		if in.Result != nil {
			ev.mcp(in.Tool, in.Args, in.Result.Text)
		} else {
			ev.mcp(in.Tool, in.Args, nil)
		}
		return ev.check("hookEventName", "sessionId")
	},
	answer: func(ev *Event, v Verdict) any {
		if v.Deny != "" && ev.Kind == BeforeTool {
			return copilotAnswer{Decision: v.decision(), Reason: v.Deny}
		}
		if v.Command != "" {
			return copilotAnswer{Args: ev.rewritten(v.Command)}
		}
		return nil
	},
	hears: func(*Event) bool { return false },
	asks:  true, rewrites: true,
}

type copilotAnswer struct {
	Decision string    `json:"permissionDecision,omitempty"`
	Reason   string    `json:"permissionDecisionReason,omitempty"`
	Args     toolInput `json:"modifiedArgs,omitempty"`
}
