package hook

import "encoding/json"

// openCodeBody is what the plugin for OpenCode 1.18 sends. A sub-agent of OpenCode has a session of its own, so
// rootID names the one that a person talks to; the plugin follows parentID of session.created to find it.
type openCodeBody struct {
	Event   json.RawMessage `json:"event"` // the name, or an event of OpenCode with type and properties
	Session string          `json:"sessionID"`
	Root    string          `json:"rootID"`
	Parent  string          `json:"parentID"`
	Call    string          `json:"callID"`
	Agent   string          `json:"agent"`
	Tool    string          `json:"tool"`
	Args    toolInput       `json:"args"`
	Output  json.RawMessage `json:"output"`
	Dir     string          `json:"directory"`
	Prompt  string          `json:"prompt"`
	Message string          `json:"message"`
}

// openCodeEvent is an event as OpenCode publishes it.
type openCodeEvent struct {
	Type       string `json:"type"`
	Properties struct {
		Session string `json:"sessionID"`
		Info    struct {
			ID     string `json:"id"`
			Parent string `json:"parentID"`
		} `json:"info"`
	} `json:"properties"`
}

var openCodeEvents = map[string]Kind{
	"tool.execute.before": BeforeTool, "tool.execute.after": AfterTool, "tool.execute.failed": FailedTool,
	"chat.message": Prompt, "session.idle": TurnEnd, "session.created": SessionStart, "session.deleted": SessionEnd,
	"dispose": SessionEnd,
}

var openCode = harness{
	parse: func(body []byte, also map[string]string) (*Event, error) {
		var in openCodeBody
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		var name string
		if json.Unmarshal(in.Event, &name) != nil {
			var published openCodeEvent
			if len(in.Event) > 0 && decode(in.Event, &published) == nil {
				name = published.Type
				p := &published.Properties
				for _, id := range []string{p.Session, p.Info.ID} {
					if in.Session == "" {
						in.Session = id
					}
				}
				if in.Parent == "" {
					in.Parent = p.Info.Parent
				}
			}
		}
		ev := &Event{
			Kind: openCodeEvents[name], Name: name, Session: in.Session, Type: in.Agent, Call: in.Call, Dir: in.Dir,
			Prompt: firstLine(in.Prompt), Message: firstLine(in.Message),
		}
		for _, root := range []string{in.Root, in.Parent} {
			if root != "" && root != in.Session {
				ev.Session, ev.Flow = root, in.Session
				break
			}
		}
		if ev.Flow != "" && (ev.Kind == TurnEnd || ev.Kind == SessionEnd) && name != "dispose" {
			ev.Kind = SubagentEnd
		}
		ev.tool("opencode", in.Tool, in.Args, also)
		ev.mcp(in.Tool, in.Args, in.Output)
		return ev.check("event", "sessionID")
	},
	answer: func(ev *Event, v Verdict) any {
		switch {
		case v.Deny != "" && ev.Kind == BeforeTool:
			return decision{Decision: "deny", Reason: v.Deny}
		case v.Command != "":
			return decision{Command: v.Command}
		case v.Tell != "" && openCodeHears(ev):
			return decision{Context: v.Tell}
		}
		return nil
	},
	hears: openCodeHears, rewrites: true,
}

// openCodeHears: the plugin appends a text to the output of the tool.
func openCodeHears(ev *Event) bool { return ev.Name == "tool.execute.after" }
