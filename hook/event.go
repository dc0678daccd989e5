package hook

import (
	"strings"

	"github.com/interlockdev/interlock/internal/invisible"
)

// Kind is what an event of a harness is about.
type Kind int

const (
	Other Kind = iota
	BeforeTool
	AfterTool
	FailedTool
	Prompt
	TurnEnd
	SubagentEnd
	SessionStart
	SessionEnd
	WorktreeRemoved
)

// mainFlow is the flow of the agent that a person talks to.
const mainFlow = "main"

// Event is what a harness reports.
type Event struct {
	Kind Kind
	// Name is the harness's own name of the event.
	Name string
	// Session is the harness's id of the conversation, Flow that of a sub-agent or "main", Type the kind of the
	// sub-agent.
	Session, Flow, Type string
	// Call is the harness's id of the tool call. Without one, Print identifies calls alike in tool and input.
	Call, Print string
	Tool        string
	// Dir is the folder that relative paths begin at.
	Dir string
	// Writes and Reads are paths as the harness names them, Trees are folders with files that the tool changes at large.
	Writes []Target
	Reads  []string
	Trees  []string
	// Takes are the keys that a tool of Interlock's MCP server is about to take, Taken the leases that one has returned.
	Takes []string
	Taken []string
	// Prompt and Message are the first lines of a person's prompt and of the agent's last message.
	Prompt, Message string
	// Alone means that no task of the agent runs in the background; false where the harness does not report it.
	Alone bool
	// Worktree is the folder of a removed worktree.
	Worktree string

	foreign *harness // the one with such bodies, where it is not that of the path; else nil
}

// Target is a path that a tool writes.
type Target struct {
	Path string
	// Into is the name of the file if Path is a folder, as in "mv a.go src".
	Into string
}

// Verdict is what the door answers.
type Verdict struct {
	// Deny is why a tool may not run, in words for the model; "" lets it run.
	Deny string
	// Tell is what else the model should know; "" for nothing.
	Tell string
}

const (
	maxLine    = 200 // bytes of a prompt or a message that others see
	maxSession = 512 // bytes of a harness's id of a session, a flow or a call
)

// firstLine returns the first line of a text with anything to see, cut to maxLine bytes.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(invisible.Line(line)); line != "" {
			return invisible.Clip(line, maxLine)
		}
	}
	return ""
}
