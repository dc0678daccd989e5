package hook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestAnswers has agents of a harness that numbers calls anew in each answer, asks twice, repeats calls and loses
// events after tools, in random orders. The reference keeps no answer: an edit may go on if the agent holds the file at
// that moment, in the reference's own books.
func TestAnswers(t *testing.T) {
	edits, refusals := 0, 0
	for seed := range uint64(40) {
		inBubble(t, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 5))
			perEdit := seed%2 == 1
			r.query = "?wait_s=0"
			if perEdit {
				r.query += "&hold=edit"
			}
			type call struct {
				file, text, id string
				at             time.Time
			}
			var open [3][]call // calls that were let through, of each agent
			holders := map[string]int{}
			free := func(agent int, file string) {
				for _, c := range open[agent] {
					if c.file == file && perEdit {
						return
					}
				}
				if holders[file] == agent {
					delete(holders, file)
				}
			}
			var last [3]call
			for step := range 120 {
				agent := random.IntN(3)
				me := r.coder(fmt.Sprintf("session-%d", agent))
				at := func() string { return fmt.Sprintf("seed %d, step %d, agent %d", seed, step, agent) }
				switch action := random.IntN(10); {
				case action < 6:
					c := call{
						fmt.Sprintf("f%d", random.IntN(3)), fmt.Sprint(random.IntN(2)),
						[]string{"", "call_0", "call_1", fmt.Sprintf("toolu_%d", step)}[random.IntN(4)], time.Now(),
					}
					if random.IntN(3) == 0 && last[agent].file != "" {
						c = last[agent] // asked again, by the model or by a second hook
						c.at = time.Now()
					}
					last[agent] = c
					input := map[string]any{"file_path": c.file, "new_string": c.text}
					deny, _ := me.tool("PreToolUse", "Edit", c.id, input)
					owner, held := holders[c.file]
					switch {
					case deny == "" && held && owner != agent:
						r.Errorf("%s: it may edit %s, which agent %d holds", at(), c.file, owner)
					case deny == "":
						edits++
						holders[c.file] = agent
						same := func(o call) bool {
							return o.file == c.file && o.text == c.text && time.Since(o.at) < sameCall &&
								(o.id == c.id || o.id == "" || c.id == "")
						}
						if !slices.ContainsFunc(open[agent], same) {
							open[agent] = append(open[agent], c)
						}
					default:
						refusals++
					}
				case action < 8 && len(open[agent]) > 0:
					i := random.IntN(len(open[agent]))
					c := open[agent][i]
					open[agent] = append(open[agent][:i:i], open[agent][i+1:]...)
					if random.IntN(4) > 0 { // else the event is lost, and the file stays held
						me.tool("PostToolUse", "Edit", c.id, map[string]any{"file_path": c.file, "new_string": c.text})
						if perEdit {
							free(agent, c.file)
						}
					} else if perEdit {
						open[agent] = append(open[agent], c)
					}
				case action == 8:
					me.hook("Stop", nil)
					open[agent] = nil
					for file, owner := range holders {
						if owner == agent {
							delete(holders, file)
						}
					}
				default:
					<-time.After(time.Duration(random.IntN(1500)) * time.Millisecond)
				}
			}
		})
	}
	if edits < 500 || refusals < 500 {
		t.Errorf("only %d edits and %d refusals", edits, refusals)
	}
}

// A second hook for one call has the answer of the first, and its agent stands in line once. It is decided by itself if
// the first one went away.
func TestSameCall(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		me, other := r.coder("session-1"), r.coder("session-2")
		other.edit("a.ts")
		ask := func(id, text string) string {
			deny, _ := me.tool("PreToolUse", "Edit", id, map[string]any{"file_path": "a.ts", "new_string": text})
			return deny
		}
		first := ask("call_0", "x")
		if first == "" || ask("call_0", "x") != first || ask("", "x") != first {
			r.Errorf("a second hook has another answer than %q", first)
		}
		other.hook("Stop", nil)
		<-time.After(time.Second)
		if deny := ask("call_0", "y"); deny == first {
			r.Errorf("another edit under the id of the first has its answer: %q", deny)
		}
	})
}

// A model that is refused, reads again and asks for the same edit within a second has another answer than the first:
// its harness may number no calls.
func TestSameEditAfterReading(t *testing.T) {
	for _, read := range []struct{ tool, field string }{{"Read", "file_path"}, {"Bash", "command"}} {
		for _, held := range []bool{false, true} {
			inBubble(t, func(r *rig) {
				r.query = "?wait_s=0"
				me, other := r.coder("session-1"), r.coder("session-2")
				look := func() { me.tool("PostToolUse", read.tool, "", map[string]any{read.field: "a.ts"}) }
				ask := func() string {
					deny, _ := me.tool("PreToolUse", "Edit", "", map[string]any{"file_path": "a.ts", "new_string": "x"})
					return deny
				}
				me.tool("PostToolUse", "Read", "", map[string]any{"file_path": "a.ts"})
				<-time.After(time.Millisecond)
				other.edit("a.ts")
				if held {
					want(r.T, ask(), "a.ts is held by claude-code/ession-2 (alive, for 0 s)")
					<-time.After(sameCall / 2)
					look()
					want(r.T, ask(), "a.ts is held by claude-code/ession-2 (alive, for 1 s)")
					return
				}
				other.hook("Stop", nil)
				want(r.T, ask(), "a.ts changed since you read it")
				want(r.T, ask(), "a.ts changed since you read it") // by a second hook
				look()
				if deny := ask(); deny != "" {
					r.Errorf("after %s the same edit is refused: %q", read.tool, deny)
				}
			})
		}
	}
}

// A parameter moves a tool of the harnesses that have it, and of no others.
func TestWorkFolders(t *testing.T) {
	for name, want := range map[string]string{
		"codex": "workdir", "gemini": "dir_path", "opencode": "workdir", "cursor": "working_directory", "copilot": "cwd",
		"claude-code": "",
	} {
		for _, field := range []string{"workdir", "dir_path", "working_directory"} {
			body := fmt.Sprintf(`{"hook_event_name":"PreToolUse","event":"tool.execute.before",
				"session_id":"s","sessionID":"s","conversation_id":"s","cwd":"/w","directory":"/w",
				"tool_name":"run_shell_command","tool":"bash",
				"tool_input":{"command":"echo x > a","%[1]s":"sub"},"args":{"command":"echo x > a","%[1]s":"sub"}}`, field)
			if name == "claude-code" || name == "copilot" { // other fields are those of others
				body = fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"Bash",
					"tool_input":{"command":"echo x > a","%s":"sub"}}`, field)
			}
			ev, err := harnesses[name].parse([]byte(body), nil)
			if err != nil || len(ev.Writes) != 1 {
				t.Fatalf("%s: %+v, %v", name, ev, err)
			}
			moved := "/w/a"
			if field == want || name == "copilot" && field != "dir_path" {
				moved = "/w/sub/a"
			}
			if got := ev.Writes[0].Path; got != moved {
				t.Errorf("%s writes %s with %s, want %s", name, got, field, moved)
			}
		}
	}
}
