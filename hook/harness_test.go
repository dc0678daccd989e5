package hook

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestBodies reads the bodies below testdata, and compares the events and the answers with the golden files.
func TestBodies(t *testing.T) {
	for name, h := range harnesses {
		files, err := filepath.Glob(filepath.Join("testdata", name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no bodies: %v", name, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ev, err := h.parse(body, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			golden := strings.TrimSuffix(file, ".json") + ".want"
			got := describe(t, h, ev)
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s:\n%swant:\n%s", file, got, want)
			}
			if marked, err := h.parse(append([]byte("\ufeff"), body...), nil); err != nil {
				t.Errorf("%s behind a byte order mark: %v", file, err)
			} else if again := describe(t, h, marked); !bytes.Equal(again, got) {
				t.Errorf("%s behind a byte order mark:\n%swant:\n%s", file, again, got)
			}
			if bytes.Contains(got, []byte("secret")) {
				t.Errorf("%s: the contents of a file are kept", file)
			}
		}
	}
}

var kindNames = map[Kind]string{
	Other: "other", BeforeTool: "before-tool", AfterTool: "after-tool", FailedTool: "failed-tool", Prompt: "prompt",
	TurnEnd: "turn-end", SubagentEnd: "sub-agent-end", SessionStart: "session-start", SessionEnd: "session-end",
	WorktreeRemoved: "worktree-removed",
}

func treesOf(ev *Event) string {
	var all []string
	for _, tree := range ev.Trees {
		text := []string{
			"", "stages ", "commits ", "records ", "amends ", "moves ", "switches ", "stashes ", "resets ",
		}[tree.Effect]
		if tree.Whole {
			text += "the checkout of "
		}
		all = append(all, text+tree.Path)
	}
	return strings.Join(all, " ")
}

// describe returns an event and what the harness would hear.
func describe(t *testing.T, h *harness, ev *Event) []byte {
	t.Helper()
	if ev.foreign != nil {
		h = ev.foreign
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s session=%s flow=%s\n", kindNames[ev.Kind], ev.Name, ev.Session, ev.Flow)
	for _, field := range []struct{ name, text string }{
		{"type", ev.Type},
		{"call", ev.Call},
		{"tool", ev.Tool},
		{"dir", ev.Dir},
		{"reads", strings.Join(ev.Reads, " ")},
		{"trees", treesOf(ev)},
		{"unknown", ev.Unknown},
		{"prompt", ev.Prompt},
		{"message", ev.Message},
		{"worktree", ev.Worktree},
	} {
		if field.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", field.name, field.text)
		}
	}
	for _, target := range ev.Writes {
		fmt.Fprintf(&b, "writes: %s %s\n", target.Path, target.Into)
	}
	if ev.Alone {
		b.WriteString("alone\n")
	}
	for _, v := range []Verdict{{Deny: "held"}, {Tell: "news"}} {
		answer, err := json.Marshal(h.answer(ev, v))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s%s -> %s\n", v.Deny, v.Tell, answer)
	}
	if answer := h.answer(ev, Verdict{}); answer != nil {
		t.Errorf("%s: where there is nothing to tell, the answer is %v", ev.Name, answer)
	}
	return b.Bytes()
}

// TestOddBodies has bodies that a harness cannot have sent, and ones with fields of other types.
func TestOddBodies(t *testing.T) {
	for name, h := range harnesses {
		for _, body := range []string{
			"", "{", "null", "7", `"x"`, "[]", "{}", `{"hook_event_name":7,"event":7}`, "\xff", `{"hook_event_name":"Stop"}`,
			`{"hook_event_name":"PreToolUse","session_id":{},"conversation_id":[]}`,
			`{"event":"session.idle","hook_event_name":"Stop","session_id":"` + strings.Repeat("x", maxSession+1) + `"}`,
		} {
			if ev, err := h.parse([]byte(body), nil); err == nil && ev.Kind != Other {
				t.Errorf("%s: %s is %+v", name, body, ev)
			} else if err != nil && !strings.Contains(err.Error(), ": ") {
				t.Errorf("%s: %s: %v has no next step", name, body, err)
			}
		}
	}
	ev, err := claudeCode.parse([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":7,"agent_id":[],
		"tool_name":"Edit","tool_input":{"file_path":7},"background_tasks":"x"}`), nil)
	if err != nil || ev.Kind != BeforeTool || ev.Flow != mainFlow || ev.Writes != nil {
		t.Errorf("fields of other types: %+v, %v", ev, err)
	}
	ev, err = claudeCode.parse([]byte(`{"hook_event_name":"PreToolUse","session_id":"s",
		"tool_name":"mcp__fs__put","tool_input":{"where":"/a"}}`), map[string]string{"mcp__fs__put": "where"})
	if err != nil || len(ev.Writes) != 1 || ev.Writes[0].Path != "/a" {
		t.Errorf("a tool of an MCP server: %+v, %v", ev, err)
	}
}

func FuzzBody(f *testing.F) {
	for name := range harnesses {
		f.Add(name, []byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash",
			"tool_input":{"command":"rm a"}}`))
		f.Add(name, []byte(`{"event":{"type":"session.idle","properties":{"sessionID":"s"}}}`))
	}
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		h := harnesses[name]
		if h == nil {
			return
		}
		ev, err := h.parse(body, nil)
		if (err == nil) != (ev != nil) {
			t.Fatalf("event %+v, error %v", ev, err)
		}
		if ev != nil {
			h.answer(ev, Verdict{Deny: "x", Tell: "y"})
		}
	})
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n \n": "", "\n a\nb": "a", "a\x1b[31mb\u202e": "a [31mb",
		strings.Repeat("ä", 200): strings.Repeat("ä", 98) + "…",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
