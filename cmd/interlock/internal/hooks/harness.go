package hooks

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/hook/place"
)

// harness is a coding agent with hooks.
type harness struct {
	name  string
	title string
	// folders and programs show that it is in use: below a project or a home, and on PATH.
	folders  []string
	programs []string

	project, user string // the settings file, below the project and below the home
	own           string // the project's file of one person, where there is one beside the shared one
	home          string // a variable with another folder in place of the first one of user

	// events are those that are hooked, the one before a tool first.
	events []event
	// flat means that an event has a list of handlers, not of groups of handlers.
	flat bool
	// handler is the entry of one event.
	handler func(o *options, e event) any
	// version is a field of the file that has to be 1.
	version bool
	// plugin means that the file is a program, wholly ours.
	plugin bool
	// next is what a person has to do after the installation.
	next string
}

// event is an event that is hooked.
type event struct {
	name    string
	matcher string
	seconds int
	before  bool // it is before a tool runs, so it may wait and refuse
}

// Seconds that a harness waits for a hook. The one before a tool waits in line for 30 s.
const (
	waits = 40
	short = 5
)

// geminiMCP is what may stand before the name of a tool of the MCP server: Gemini CLI has changed it, and leaves it out
// where no other tool has the name.
const geminiMCP = "(mcp_+)?(interlock_+)?"

// harnesses are the known ones, by name.
var harnesses = []*harness{
	{
		name: "claude-code", title: "Claude Code", folders: []string{".claude"}, programs: []string{"claude"},
		project: ".claude/settings.json", own: ".claude/settings.local.json", user: ".claude/settings.json",
		home: "CLAUDE_CONFIG_DIR",
		events: []event{
			{"PreToolUse", "Edit|Write|NotebookEdit|Bash|mcp__interlock__acquire", waits, true},
			{"PostToolUse", "Edit|Write|NotebookEdit|Bash|Read|mcp__interlock__acquire|mcp__interlock__wait", short, false},
			{"PostToolUseFailure", "Edit|Write|NotebookEdit|Bash", short, false},
			{"UserPromptSubmit", "", short, false},
			{"SubagentStop", "", short, false},
			{"Stop", "", short, false},
			{"StopFailure", "", short, false},
			{"SessionEnd", "", short, false},
		},
		handler: claudeHandler,
	},
	{
		name: "codex", title: "Codex CLI", folders: []string{".codex"}, programs: []string{"codex"},
		project: ".codex/hooks.json", user: ".codex/hooks.json", home: "CODEX_HOME",
		events: []event{
			{"PreToolUse", "^(Bash|apply_patch|mcp__interlock__acquire)$", waits, true},
			{"PostToolUse", "^(Bash|apply_patch|mcp__interlock__acquire|mcp__interlock__wait)$", short, false},
			{"UserPromptSubmit", "", short, false},
			{"SubagentStop", "", short, false},
			{"Stop", "", short, false},
			{"SessionEnd", "", 3, false}, // the most that Codex allows there
		},
		handler: func(o *options, e event) any {
			return commandHandler{Type: "command", Command: o.command("codex", e), Timeout: e.seconds}
		},
		next: "start codex, type /hooks and confirm the entries; Codex runs none that a person has not confirmed",
	},
	{
		name: "gemini", title: "Gemini CLI", folders: []string{".gemini"}, programs: []string{"gemini"},
		project: ".gemini/settings.json", user: ".gemini/settings.json",
		events: []event{
			{"BeforeTool", "write_file|replace|run_shell_command|" + geminiMCP + "acquire", waits, true},
			{"AfterTool", "write_file|replace|run_shell_command|read_file|" + geminiMCP + "(acquire|wait)", short, false},
			{"BeforeAgent", "", short, false},
			{"AfterAgent", "", short, false},
			{"SessionEnd", "", short, false},
		},
		handler: func(o *options, e event) any {
			return commandHandler{
				Name:    "interlock",
				Type:    "command",
				Command: o.command("gemini", e),
				Timeout: e.seconds * 1000, // it counts milliseconds
			}
		},
		next: "Gemini CLI runs the hooks of a project in a trusted folder only: start gemini there and trust it",
	},
	{
		name: "cursor", title: "Cursor", folders: []string{".cursor"}, programs: []string{"cursor", "cursor-agent"},
		project: ".cursor/hooks.json", user: ".cursor/hooks.json",
		events: []event{
			{"preToolUse", "", waits, true},
			{"postToolUse", "", short, false},
			{"postToolUseFailure", "", short, false},
			{"beforeSubmitPrompt", "", short, false},
			{"subagentStop", "", short, false},
			{"stop", "", short, false},
			{"sessionEnd", "", short, false},
		},
		flat: true, version: true,
		handler: func(o *options, e event) any {
			return cursorHandler{Command: o.command("cursor", e), Timeout: e.seconds, FailClosed: o.strict(e)}
		},
	},
	{
		name:     "copilot",
		title:    "GitHub Copilot CLI",
		folders:  []string{".github/hooks", ".copilot"},
		programs: []string{"copilot"},
		project:  ".github/hooks/interlock.json",
		user:     ".copilot/hooks/interlock.json",
		events: []event{
			{"PreToolUse", "", waits, true},
			{"PostToolUse", "", short, false},
			{"agentStop", "", short, false},
			{"sessionEnd", "", short, false},
		},
		flat:    true,
		version: true,
		handler: func(o *options, e event) any {
			command := o.command("copilot", e)
			return copilotHandler{Type: "command", Bash: command, PowerShell: command, Timeout: e.seconds}
		},
	},
	{
		name:     "opencode",
		title:    "OpenCode",
		folders:  []string{".opencode", ".config/opencode"},
		programs: []string{"opencode"},
		project:  ".opencode/plugins/interlock.ts",
		user:     ".config/opencode/plugins/interlock.ts",
		plugin:   true,
	},
}

// The entries of the harnesses.
type (
	group struct {
		Matcher string `json:"matcher,omitempty"`
		Hooks   []any  `json:"hooks"`
	}
	httpHandler struct {
		Type      string            `json:"type"`
		URL       string            `json:"url"`
		Timeout   int               `json:"timeout"`
		Message   string            `json:"statusMessage,omitempty"`
		Headers   map[string]string `json:"headers,omitempty"`
		Variables []string          `json:"allowedEnvVars,omitempty"`
		OnFailure string            `json:"onFailure,omitempty"`
	}
	commandHandler struct {
		Name      string `json:"name,omitempty"`
		Type      string `json:"type"`
		Command   string `json:"command"`
		Timeout   int    `json:"timeout"`
		OnFailure string `json:"onFailure,omitempty"`
	}
	cursorHandler struct {
		Command    string `json:"command"`
		Timeout    int    `json:"timeout"`
		FailClosed bool   `json:"failClosed,omitempty"`
	}
	copilotHandler struct {
		Type       string `json:"type"`
		Bash       string `json:"bash"`
		PowerShell string `json:"powershell"`
		Timeout    int    `json:"timeoutSec"`
	}
)

// claudeHandler calls the server itself where Claude Code can.
func claudeHandler(o *options, e event) any {
	onFailure := ""
	if o.strict(e) {
		onFailure = "block"
	}
	if !o.direct() {
		return commandHandler{
			Type:      "command",
			Command:   o.command("claude-code", e),
			Timeout:   e.seconds,
			OnFailure: onFailure,
		}
	}
	h := httpHandler{
		Type:      "http",
		URL:       o.address("claude-code", e),
		Timeout:   e.seconds,
		OnFailure: onFailure,
		Headers:   map[string]string{},
	}
	if e.before {
		h.Message = "interlock"
		// The leases around the agent's process are its own; without them the variables are empty.
		h.Headers[place.HeaderLease] = "$INTERLOCK_LEASE $INTERLOCK_OUTER"
		h.Variables = []string{"INTERLOCK_LEASE", "INTERLOCK_OUTER"}
	}
	if o.namespace != "" {
		h.Headers["Interlock-Namespace"] = o.namespace
	}
	return h
}

// find returns a harness by its name.
func find(name string) (*harness, error) {
	i := slices.IndexFunc(harnesses, func(h *harness) bool { return h.name == name })
	if i < 0 {
		return nil, cli.Usagef("there is no harness %s: want %s", cli.Quote(cli.Clean(name)), list())
	}
	return harnesses[i], nil
}

func names() (all []string) {
	for _, h := range harnesses {
		all = append(all, h.name)
	}
	return all
}

func list() string {
	all := ""
	for i, name := range names() {
		switch {
		case i == len(harnesses)-1:
			all += " or "
		case i > 0:
			all += ", "
		}
		all += name
	}
	return all
}

// file is the settings file of a scope, and the folder that it is below.
func (h *harness) file(s scope, project string) (path, top string, err error) {
	switch {
	case s == userScope:
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "", cli.Usagef("--user: %w", err)
		}
		if dir := os.Getenv(h.home); h.home != "" && dir != "" {
			return filepath.Join(dir, filepath.Base(h.user)), dir, nil
		}
		return filepath.Join(home, filepath.FromSlash(h.user)), home, nil
	case s == ownScope && h.own != "":
		return filepath.Join(project, filepath.FromSlash(h.own)), project, nil
	}
	return filepath.Join(project, filepath.FromSlash(h.project)), project, nil
}

// scopes lists those with a file of the harness.
func (h *harness) scopes() []scope {
	if h.own == "" {
		return []scope{sharedScope, userScope}
	}
	return []scope{ownScope, sharedScope, userScope}
}
