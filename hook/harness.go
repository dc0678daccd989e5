package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// harness knows the bodies and the answers of one harness.
type harness struct {
	// parse reads a body. It returns an error for one that the harness cannot have sent.
	parse func(body []byte, also map[string]string) (*Event, error)
	// answer returns the answer, nil for an empty one.
	answer func(*Event, Verdict) any
	// hears reports whether the harness passes Verdict.Tell of such an event to the model.
	hears func(*Event) bool
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

// decode reads a body into a structure. Unknown fields are ignored, and a field with a value of another type is
// as if it were not there.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if odd.Field == "" {
			return fmt.Errorf("the body is a JSON %s: want an object", odd.Value)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
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
		if len(words) == 3 && shells[base(words[0])] && strings.HasPrefix(words[1], "-") {
			return words[2]
		}
		for i, word := range words {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		return strings.Join(words, " ")
	}
	return ""
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

// tool fills in what a tool reads and writes. also has the tools of MCP servers that write a file, with the field that
// has its path. The contents of files are dropped here.
func (ev *Event) tool(name string, in toolInput, also map[string]string) {
	ev.Tool = name
	if dir := in.text("working_directory", "workdir", "cwd"); dir != "" {
		ev.Dir = join(ev.Dir, dir)
	}
	kind := strings.ToLower(name)
	path := in.text(pathFields...)
	switch field, listed := also[name]; {
	case listed:
		if path := in.text(field); path != "" {
			ev.Writes = []Target{{Path: path}}
		}
	case runners[kind]:
		ev.Writes, ev.Trees = ReadCommand(in.command("command", "cmd"), ev.Dir)
	case patchers[kind]:
		ev.Writes = patched(in.text("command", "patchText", "patch", "input"))
		if len(ev.Writes) == 0 && path != "" {
			ev.Writes = []Target{{Path: path}}
		}
	case path == "":
	case writers[kind]:
		ev.Writes = []Target{{Path: path}}
	case readers[kind]:
		ev.Reads = []string{path}
	}
}

// fingerprint identifies a call by its tool and input.
func fingerprint(name string, input json.RawMessage) string {
	sum := sha256.Sum256(append([]byte(name+"\x00"), input...))
	return hex.EncodeToString(sum[:16])
}

// patched returns the files of a patch in the form of apply_patch.
func patched(patch string) (targets []Target) {
	for line := range strings.Lines(patch) {
		for _, begin := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, begin); ok {
				if path = strings.TrimSpace(path); path != "" {
					targets = append(targets, Target{Path: path})
				}
			}
		}
	}
	return targets
}

// specific is the part of an answer that Claude Code and its kin have for each event.
type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

type specificAnswer struct {
	Output specific `json:"hookSpecificOutput"`
}

// specificOf answers as Claude Code wants it. "allow" is never sent: it would skip the user's own question.
func specificOf(ev *Event, v Verdict, hears bool) any {
	switch {
	case v.Deny != "" && ev.Kind == BeforeTool:
		return specificAnswer{specific{Event: ev.Name, Decision: "deny", Reason: v.Deny}}
	case v.Tell != "" && hears:
		return specificAnswer{specific{Event: ev.Name, Context: v.Tell}}
	}
	return nil
}
