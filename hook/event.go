package hook

import (
	"strings"

	"github.com/interlockdev/interlock/hook/region"
	"github.com/interlockdev/interlock/hook/shell"
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
	// Call is the harness's id of the tool call, "" without one. Print identifies calls alike in folder, tool and input.
	Call, Print string
	Tool        string
	// Dir is the folder that relative paths begin at.
	Dir string
	// Writes and Reads are paths as the harness names them, Trees are what a command changes at large, and Unknown is
	// the first part of it that is not understood.
	Writes  []shell.Target
	Reads   []string
	Trees   []shell.Tree
	Unknown string
	// Edit is the text that a tool replaces in the one file that it writes, nil for another change.
	Edit *region.Edit
	// Command is the text of a command, Input all that the tool was given with it, and Field the name that the command
	// has there.
	Command, Field string
	Input          toolInput
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

// Verdict is what the door answers.
type Verdict struct {
	// Deny is why a tool may not run, in words for the model; "" lets it run. Ask means that a person may let it run
	// all the same.
	Deny string
	Ask  bool
	// Command is what a harness is to run instead of the command that was asked; "" for no other one.
	Command string
	// Tell is what else the model should know; "" for nothing.
	Tell string
}

// bound makes a change at large of one of more than n files: all of them are below one folder.
func (ev *Event) bound(n int) {
	if len(ev.Writes) <= n {
		return
	}
	paths := make([]string, 0, len(ev.Writes))
	for _, target := range ev.Writes {
		if path := shell.Join(ev.Dir, target.Path); path != "" {
			paths = append(paths, path)
		}
	}
	ev.Writes = nil
	if len(paths) > 0 {
		ev.Trees = append(ev.Trees, shell.Tree{Path: shell.Above(paths)})
	}
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
