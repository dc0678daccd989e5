package hook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/interlockdev/interlock/hook/region"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/jsonname"
)

// harness knows the bodies and the answers of one harness.
type harness struct {
	// parse reads a body. It returns an error for one that the harness cannot have sent.
	parse func(body []byte, also map[string]string) (*Event, error)
	// answer returns the answer, nil for an empty one.
	answer func(*Event, Verdict) any
	// hears reports whether the harness passes Verdict.Tell of such an event to the model.
	hears func(*Event) bool
	// asks means that the harness can ask its user, rewrites that a hook can change the command that it runs.
	asks, rewrites bool
}

// harnesses are those of the last part of the path.
var harnesses = map[string]*harness{
	"claude-code": &claudeCode,
	"codex":       &codex,
	"copilot":     &copilot,
	"cursor":      &cursor,
	"gemini":      &gemini,
	"opencode":    &openCode,
}

// workFolders are the parameters of a harness's tools that change where they work. A parameter of another harness is
// ignored, as the harness ignores it.
//
//	claude-code  2.1.332   Bash has none
//	codex        0.171.0   exec_command, shell
//	copilot      1.0.102   not published in a form that can be read: all that are known
//	cursor       2026-11   Shell, in its documentation
//	gemini       0.61.0    run_shell_command
//	opencode     1.18.33   bash
var workFolders = map[string][]string{
	"codex":    {"workdir"},
	"copilot":  {"cwd", "workdir", "working_directory"},
	"cursor":   {"working_directory", "cwd"},
	"gemini":   {"dir_path"},
	"opencode": {"workdir"},
}

// decode reads a body into a structure. Unknown fields are ignored, and a field with a value of another type is
// as if it were not there. A name that stands twice in an object is refused: the harness may have read the other one.
func decode(body []byte, into any) error {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark
	err := json.Unmarshal(body, into)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if odd.Field == "" {
			return fmt.Errorf("the body is a JSON %s: want an object", odd.Value)
		}
	} else if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if err := jsonname.Unique(body, false); err != nil {
		return fmt.Errorf("the body can be read in two ways: %w", err)
	}
	return nil
}

// check completes an event with what all harnesses have in common.
func (ev *Event) check(eventField, sessionField string) (*Event, error) {
	switch {
	case ev.Name == "":
		return nil, fmt.Errorf("field %s is missing, or is not a text: want the name of the event", eventField)
	case ev.Kind == Other:
		return ev, nil
	case ev.Session == "":
		return nil, fmt.Errorf("field %s is missing, or is not a text: want the id of the conversation", sessionField)
	}
	for _, id := range []*string{&ev.Session, &ev.Flow, &ev.Call} {
		if len(*id) > maxSession {
			return nil, fmt.Errorf("an id has %d bytes: want at most %d", len(*id), maxSession)
		}
	}
	if ev.Flow == "" {
		ev.Flow = mainFlow
	}
	return ev, nil
}

// toolInput is the input of a tool, as far as paths and commands are in it.
type toolInput map[string]json.RawMessage

// UnmarshalJSON reads an object, or a text that has one.
func (in *toolInput) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		b = []byte(text)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) == nil { // an input of another form has no paths
		*in = fields
	}
	return nil
}

// text returns the first of the fields that is a text with anything in it.
func (in toolInput) text(fields ...string) string {
	for _, name := range fields {
		var s string
		if json.Unmarshal(in[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// command returns a command, which may be a list of words.
func (in toolInput) command(fields ...string) string {
	if s := in.text(fields...); s != "" {
		return s
	}
	for _, name := range fields {
		var words []string
		if json.Unmarshal(in[name], &words) != nil || len(words) == 0 {
			continue
		}
		return shell.Words(words)
	}
	return ""
}

// edit returns the text that a tool replaces once, nil if it does something else as well.
func (in toolInput) edit() *region.Edit {
	for _, field := range []string{"replace_all", "replaceAll", "allow_multiple", "expected_replacements", "edits"} {
		if value := string(in[field]); value != "" && value != "false" && value != "1" && value != "null" {
			return nil
		}
	}
	e := &region.Edit{
		Old: in.text("old_string", "oldString", "old_str"), New: in.text("new_string", "newString", "new_str"),
	}
	if e.Old == "" {
		return nil
	}
	return e
}

// What the tools of all harnesses do, by their names in lower case.
var (
	writers = words(
		"edit write multiedit notebookedit create str_replace str_replace_editor str_replace_based_edit_tool write_file " +
			"replace delete delete_file edit_file create_file search_replace insert",
	)
	runners  = words("bash shell run_shell_command local_shell exec_command execute_command terminal run_in_terminal")
	readers  = words("read read_file view notebookread open_file")
	patchers = words("apply_patch patch")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// pathFields are where tools have the path of a file.
var pathFields = []string{
	"file_path", "filePath", "notebook_path", "path", "target_file", "absolute_path", "filename",
}

// tool fills in what a tool of a harness reads and writes. also has the tools of MCP servers that write a file, with
// the field that has its path. The contents of files are dropped here.
func (ev *Event) tool(harness, name string, in toolInput, also map[string]string) {
	ev.Tool, ev.Print = name, fingerprint(harness, ev.Dir, name, in)
	if dir := in.text(workFolders[harness]...); dir != "" {
		ev.Dir = shell.Join(ev.Dir, dir)
	}
	kind := strings.ToLower(name)
	path := in.text(pathFields...)
	switch field, listed := also[name]; {
	case listed:
		if path := in.text(field); path != "" {
			ev.Writes = []shell.Target{{Path: path}}
		}
	case runners[kind]:
		ev.command(in.command("command", "cmd"))
		ev.Input = in
		for _, field := range []string{"command", "cmd"} {
			if in.text(field) == ev.Command && ev.Field == "" {
				ev.Field = field
			}
		}
	case patchers[kind]:
		ev.Writes = shell.Patched(in.text("command", "patchText", "patch", "input"))
		if len(ev.Writes) == 0 && path != "" {
			ev.Writes = []shell.Target{{Path: path}}
		}
	case path == "":
	case writers[kind]:
		ev.Writes, ev.Edit = []shell.Target{{Path: path}}, in.edit()
	case readers[kind]:
		ev.Reads = []string{path}
	}
}

// command fills in what a command of a shell changes.
func (ev *Event) command(text string) {
	ev.Command = text
	reading := shell.Read(text, ev.Dir)
	ev.Writes, ev.Trees, ev.Unknown = reading.Writes, reading.Trees, reading.Unknown
}

// fingerprint identifies a call by its harness, folder, tool and input.
func fingerprint(harness, dir, name string, input any) string {
	text, err := json.Marshal([]any{harness, dir, strings.ToLower(name), input}) // fields are in the order of their names
	if err != nil {                                                              // a field that was read as JSON is not
		text = fmt.Appendf(nil, "%q %q %q %v", harness, dir, name, input)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// specific is the part of an answer that Claude Code and its kin have for each event.
type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
	// Input replaces all that the tool was given: of Claude Code and Codex. Args is merged into it: of Gemini CLI.
	Input toolInput `json:"updatedInput,omitempty"`
	Args  toolInput `json:"tool_input,omitempty"`
}

type specificAnswer struct {
	Output specific `json:"hookSpecificOutput"`
}

// decision is the word of Claude Code, Copilot and Cursor for a verdict with a Deny.
func (v *Verdict) decision() string {
	if v.Ask {
		return "ask"
	}
	return "deny"
}

// specificOf answers as Claude Code wants it. "allow" is never sent: it would skip the user's own question.
func specificOf(ev *Event, v Verdict, hears bool) any {
	switch {
	case v.Deny != "" && ev.Kind == BeforeTool:
		return specificAnswer{specific{Event: ev.Name, Decision: v.decision(), Reason: v.Deny}}
	case v.Command != "":
		out := specific{Event: ev.Name, Input: ev.rewritten(v.Command)}
		if hears {
			out.Context = v.Tell
		}
		return specificAnswer{out}
	case v.Tell != "" && hears:
		return specificAnswer{specific{Event: ev.Name, Context: v.Tell}}
	}
	return nil
}

// rewritten is the input of a tool with another command.
func (ev *Event) rewritten(command string) toolInput {
	text, err := json.Marshal(command)
	if err != nil {
		panic(err) // it is a text
	}
	in := maps.Clone(ev.Input)
	if in == nil {
		in = toolInput{}
	}
	in[ev.Field] = text
	return in
}
