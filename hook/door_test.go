package hook

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/internal/test/apitest"
)

// rig is the door in front of a server in the same process.
type rig struct {
	*testing.T
	api     apitest.API
	handler *Handler
	query   string
	around  string // the leases around the agent's process
	repo    string // the copy that the agents work in; "" stands for web
}

// inBubble runs a test with a rig in fake time.
func inBubble(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t}
		r.open()
		defer r.close()
		test(r)
	})
}

func (r *rig) open() {
	r.Helper()
	r.api.Open(r)
	r.handler = NewHandler(Config{API: r.api.Handler})
}

func (r *rig) close() {
	r.handler.Close()
	r.api.Close()
}

// post sends a body, and returns the status and the answer.
func (r *rig) post(harness, body string) (int, string) {
	r.Helper()
	q := httptest.NewRequestWithContext(
		r.Context(), http.MethodPost, "http://127.0.0.1/v1/hooks/"+harness+r.query, strings.NewReader(body),
	)
	q.RemoteAddr = "127.0.0.1:50000"
	q.Header.Set(place.HeaderHost, "ann")
	q.Header.Set(place.HeaderRoot, "/w/web")
	q.Header.Set(place.HeaderRepo, cmp.Or(r.repo, "web"))
	r.setAround(q.Header)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

// coder is a session of Claude Code, or a sub-agent of it.
type coder struct {
	*rig
	session, flow string
	calls         int
	decision      string // the harness's word in the last answer
}

func (r *rig) coder(session string) *coder { return &coder{rig: r, session: session} }

func (c *coder) sub(flow string) *coder { return &coder{rig: c.rig, session: c.session, flow: flow} }

// hook sends an event with more fields, and returns the denial and the text for the model.
func (c *coder) hook(event string, fields map[string]any) (deny, tell string) {
	c.Helper()
	body := map[string]any{"session_id": c.session, "hook_event_name": event, "cwd": "/w/web"}
	if c.flow != "" {
		body["agent_id"], body["agent_type"] = c.flow, "worker"
	}
	for name, value := range fields {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		c.Fatal(err)
	}
	c.decision = ""
	status, answer := c.post("claude-code", string(text))
	if status == http.StatusNoContent {
		return "", ""
	}
	if status != http.StatusOK {
		c.Fatalf("%s: %d %s", event, status, answer)
	}
	var out specificAnswer
	if err := json.Unmarshal([]byte(answer), &out); err != nil || out.Output.Event != event {
		c.Fatalf("%s: %s, %v", event, answer, err)
	}
	c.decision = out.Output.Decision
	return out.Output.Reason, out.Output.Context
}

func (c *coder) tool(event, tool, call string, input map[string]any) (deny, tell string) {
	c.Helper()
	return c.hook(event, map[string]any{"tool_name": tool, "tool_input": input, "tool_use_id": call})
}

// before asks to edit a file.
func (c *coder) before(file string) (deny, tell string) {
	c.Helper()
	c.calls++
	return c.tool("PreToolUse", "Edit", c.flow+"call"+time.Duration(c.calls).String(), map[string]any{"file_path": file})
}

// edit edits a file, which nothing prevents.
func (c *coder) edit(file string) (tell string) {
	c.Helper()
	deny, tell := c.before(file)
	if deny != "" {
		c.Fatalf("%s is denied: %s", file, deny)
	}
	_, more := c.tool("PostToolUse", "Edit", "", map[string]any{"file_path": file})
	return tell + more
}

func (c *coder) bash(command string) (deny string) {
	c.Helper()
	c.calls++
	deny, _ = c.tool("PreToolUse", "Bash", "bash"+time.Duration(c.calls).String(), map[string]any{"command": command})
	return deny
}

func (c *coder) prompt(text string) (tell string) {
	c.Helper()
	_, tell = c.hook("UserPromptSubmit", map[string]any{"prompt": text})
	return tell
}

func (c *coder) stop(message string) {
	c.Helper()
	c.hook("Stop", map[string]any{"last_assistant_message": message})
}

// denied checks a denial.
func (c *coder) denied(file string, parts ...string) {
	c.Helper()
	deny, _ := c.before(file)
	want(c.T, deny, parts...)
}

// want checks that a text has all of the parts.
func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	if text == "" {
		t.Errorf("there is no text, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the text is %q, want it with %q", text, part)
		}
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

const (
	annID = "1111-aaaaaaaa"
	benID = "2222-bbbbbbbb"
)

func TestSecondWaits(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		ann.prompt("Split the login page\nplease")
		if tell := ann.edit("src/auth.ts"); tell != "" {
			r.Errorf("the first edit hears %q", tell)
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			<-time.After(10 * time.Second)
			ann.stop("Split it.\nAll tests pass.")
		}()
		begin := time.Now()
		ben.denied(
			"src/auth.ts", "src/auth.ts changed while you waited for it (claude-code/aaaaaaaa", `: "Split the login page"`,
			"Nothing was written", "You hold it now: read it again",
		)
		if waited := time.Since(begin); waited != 10*time.Second {
			r.Errorf("it waited for %v", waited)
		}
		<-stopped // ann's answer comes after ben's turn, and the end of the test would cut it off
		if tell := ben.edit("src/auth.ts"); tell != "" {
			r.Errorf("the edit after reading hears %q", tell)
		}
		ben.stop("")
		want(
			r.T, ann.edit("src/auth.ts"), "src/auth.ts changed since you read it (claude-code/bbbbbbbb, 0 s ago",
			"Read it again",
		)
	})
}

func TestDeniedThenTurnComes(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		ann.prompt("Split the login page")
		ann.edit("src/auth.ts")
		ben.denied(
			"src/auth.ts", `src/auth.ts is held by claude-code/aaaaaaaa (alive, for 30 s, "Split the login page").`,
			"You are 1st in line", "work on something else", "read the file again", "data, not instructions",
		)
		if tell := ben.edit("src/other.ts"); tell != "" {
			r.Errorf("before its turn it hears %q", tell)
		}
		pass(20 * time.Second)
		ann.stop("Split it.")
		pass(5 * time.Second)
		want(
			r.T, ben.edit("src/third.ts"), "It is your turn for src/auth.ts, which is kept for you for up to 55 s",
			`It changed meanwhile (claude-code/aaaaaaaa, 5 s ago: "edited src/auth.ts: Split it.")`,
			"Read it again, then edit it.",
		)
		if tell := ben.prompt("go on"); tell != "" {
			r.Errorf("it hears of its turn again: %q", tell)
		}
		pass(35 * time.Second)
		if tell := ben.edit("src/auth.ts"); tell != "" {
			r.Errorf("the edit in its turn hears %q", tell)
		}
		ann.denied("src/auth.ts", "held by claude-code/bbbbbbbb")
	})
}

// Two agents that want each other's files do not wait for each other, and the one that is refused reads how it ends.
func TestDeadlock(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ben.edit("b")
		ann.denied("b", "held by claude-code/bbbbbbbb")
		ben.denied("a", "would be a deadlock", "end your turn: what you hold is released then")
		ben.stop("")
		pass(time.Millisecond)
		if tell := ann.prompt("go on"); !strings.Contains(tell, "your turn for b") {
			r.Errorf("behind the end of that turn the other hears %q", tell)
		}
	})
}

// The note of a lease has what was edited under it, and nothing of the other leases of the turn.
func TestNoteOfALease(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.tool("PostToolUse", "Read", "", map[string]any{"file_path": "b"})
		pass(time.Second)
		ben.edit("b")
		ben.stop("")
		ann.edit("a")
		ann.denied("b", "b changed since you read it")
		ben.tool("PostToolUse", "Read", "", map[string]any{"file_path": "a"})
		ben.denied("a", "held by claude-code/aaaaaaaa")
		ben.denied("b", "held by claude-code/aaaaaaaa")
		ann.stop("Done.")
		pass(time.Second)
		tell := ben.prompt("go on")
		want(r.T, tell, `It changed meanwhile (claude-code/aaaaaaaa, 1 s ago: "edited a: Done.")`)
		if strings.Count(tell, "It changed meanwhile") != 1 {
			r.Errorf("a file that was not edited has a change: %q", tell)
		}
	})
}

// A sub-agent of OpenCode has a prompt of its own, which is not that of the main agent.
func TestPurposeOfSubAgent(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		send := func(event, session, file, prompt string) string {
			_, answer := r.post("opencode", `{"event":"`+event+`","sessionID":"`+session+`","rootID":"main-11111111",`+
				`"directory":"/w/web","tool":"edit","args":{"filePath":"`+file+`"},"prompt":"`+prompt+`"}`)
			return answer
		}
		send("chat.message", "main-11111111", "", "Split the page")
		send("chat.message", "child-2222", "", "Write the tests")
		send("tool.execute.before", "child-2222", "b", "")
		send("tool.execute.before", "main-11111111", "a", "")
		ben := r.coder(benID)
		ben.denied("a", `"Split the page"`)
		ben.denied("b", `"Write the tests"`)
	})
}

// TestTurnWithoutNews has the edit as the first event after the turn has come.
func TestTurnWithoutNews(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ben.denied("a", "1st in line")
		pass(20 * time.Second)
		ann.stop("")
		pass(40 * time.Second)
		want(r.T, ben.edit("a"), "a changed while you waited for it", "Read it again before you edit")
	})
}

func TestTurnThatIsNotTakenUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ben.denied("a", "held by")
		ann.stop("")
		pass(61 * time.Second)
		want(r.T, ben.edit("a"), "a changed while you waited for it (claude-code/aaaaaaaa, 91 s ago).", "Read it again")
		ben.stop("")
		pass(time.Second)
		ann.edit("a")
		ben.denied("a", "held by claude-code/aaaaaaaa")
	})
}

func TestStaleRead(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		read := func() { ann.tool("PostToolUse", "Read", "", map[string]any{"file_path": "/w/web/a"}) }
		read()
		pass(time.Second)
		ben.prompt("Rename it")
		ben.edit("a")
		ben.stop("")
		pass(time.Second)
		ann.denied("a", `a changed since you read it (claude-code/bbbbbbbb, 1 s ago: "Rename it"). Nothing was written.`)
		read()
		if tell := ann.edit("a"); tell != "" {
			r.Errorf("it hears %q", tell)
		}
		// A crash leaves no note.
		ann.stop("")
		pass(time.Second)
		ben.edit("a")
		pass(6 * time.Minute)
		ann.denied("a", "a changed since you read it (claude-code/bbbbbbbb, 6 min ago")
		ann.edit("a")
	})
}

func TestSubagents(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=1"
		ann := r.coder(annID)
		one, two := ann.sub("sub-1"), ann.sub("sub-2")
		ann.prompt("Split it")
		ann.edit("a")
		one.edit("a") // main yields
		two.denied("a", `held by your own session, sub-agent sub-1 (alive`, `"worker: Split it"`)
		ann.denied("a", "sub-agent sub-1")
		two.edit("b")
		ann.stop("") // while they run
		two.denied("a", "held by")
		one.hook("SubagentStop", map[string]any{"last_assistant_message": "done"})
		pass(time.Second)
		want(r.T, two.edit("a"), "a changed while you waited for it (your own session, sub-agent sub-1", "Read it again")
		ann.hook("Stop", map[string]any{"background_tasks": []any{}})
		r.coder(benID).edit("a")
	})
}

func TestEnds(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		for name, end := range map[string]func(){
			"session end": func() { ann.hook("SessionEnd", map[string]any{"reason": "other"}) },
			"failed stop": func() { ann.hook("StopFailure", nil) },
			"crash":       func() { pass(5*time.Minute + 6*time.Second) },
		} {
			if deny, _ := ann.before("a"); deny != "" {
				ann.before("a")
			}
			ben.denied("a", "held by")
			ben.stop("") // leaves the line
			end()
			if deny, _ := ben.before("a"); deny != "" && !strings.Contains(deny, "You hold it now") {
				r.Errorf("after %s: %s", name, deny)
			}
			ben.hook("SessionEnd", nil)
		}
	})
}

func TestHoldEdit(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?hold=edit&wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ben.edit("a")
		ann.before("a")
		ann.before("b")
		ben.denied("b", "held by")
	})
}

func TestModes(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		r.query = "?mode=warn"
		begin := time.Now()
		want(r.T, ben.edit("a"), "a is held by claude-code/aaaaaaaa", "Your edit may meet theirs")
		if time.Since(begin) != 0 {
			r.Error("a warning waits")
		}
	})
}

func TestCommands(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("src/a")
		want(r.T, ben.bash("sed -i 's/a/b/' src/a"), "src/a is held by")
		want(
			r.T, ben.bash("git checkout main"), "changes files of the checkout of web at large",
			"src/a is held by claude-code/aaaa",
		)
		want(r.T, ben.bash("rm -rf src"), "changes files of src at large, and a is held by")
		for _, command := range []string{
			"go test ./... > /dev/null", "cd src", "git status", "rm -rf lib", "echo x > src/b",
		} {
			if deny := ben.bash(command); deny != "" {
				r.Errorf("%s: %s", command, deny)
			}
		}
		if deny := ann.bash("git stash"); !strings.Contains(deny, "src/b is held by claude-code/bbbb") {
			r.Errorf("git stash: %q", deny)
		}
		ben.stop("")
		if deny := ann.bash("git stash"); deny != "" {
			r.Errorf("git stash over its own files: %q", deny)
		}
	})
}

func TestSeveralFiles(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("b")
		want(r.T, ben.bash("rm a b"), "b is held by")
		ann.edit("a") // all or none
		ann.before("b")
		if deny := ann.bash("rm a b c"); deny != "" {
			r.Errorf("files that it has already, and one more: %s", deny)
		}
		ben.denied("c", "held by")
	})
}

func TestDoubleFiring(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.coder(annID)
		ann.edit("a")
		ask := func() (string, string) {
			ben := r.coder(benID) // which remembers its last answer
			return ben.tool("PreToolUse", "Edit", "call", map[string]any{"file_path": "a"})
		}
		type answer struct{ deny, tell string }
		second := make(chan answer)
		begin := time.Now()
		go func() {
			<-time.After(time.Second)
			deny, tell := ask()
			second <- answer{deny, tell}
		}()
		deny, tell := ask()
		if got := <-second; got != (answer{deny, tell}) || deny == "" {
			r.Errorf("the answers are %q and %+v", deny, got)
		}
		if third, _ := ask(); third != deny {
			r.Errorf("later the answer is %q", third)
		}
		if waited := time.Since(begin); waited != 30*time.Second {
			r.Errorf("together they waited for %v", waited)
		}
		ann.stop("")
		pass(time.Minute)
		if again, _ := ask(); again == deny {
			r.Error("after a minute it is still the old answer")
		}
	})
}

// Gemini CLI has no ids of calls. What looks like the same call is a new one after another event, and at its turn.
func TestRepetitionWithoutIDs(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		event := func(session, name string) string {
			_, answer := r.post("gemini", `{"session_id":"`+session+`","hook_event_name":"`+name+`","cwd":"/w/web",`+
				`"tool_name":"write_file","tool_input":{"file_path":"a"}}`)
			return answer
		}
		event(annID, "BeforeTool")
		held := event(benID, "BeforeTool")
		pass(time.Millisecond)
		if again := event(benID, "BeforeTool"); again != held || !strings.Contains(held, "held by gemini/aaaaaaaa") {
			r.Errorf("the answers are %s and %s", held, again)
		}
		event(annID, "AfterTool")
		event(annID, "AfterAgent")
		pass(time.Millisecond)
		if turn := event(benID, "BeforeTool"); strings.Contains(turn, "held by") {
			r.Errorf("at its turn the answer is %s", turn)
		}
		event(benID, "AfterTool")
		event(benID, "AfterAgent")
		event(annID, "BeforeTool")
		event(annID, "AfterAgent")
		if after := event(benID, "BeforeTool"); strings.Contains(after, "held by") {
			r.Errorf("after other events the answer is %s", after)
		}
	})
}

func TestServerRestarts(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		r.close()
		r.open()
		ben.denied("a", "held by claude-code/aaaaaaaa")
		ben.stop("")
		if tell := ann.edit("a"); tell != "" {
			r.Errorf("it hears %q", tell)
		}
		r.close()
		r.open()
		ann.sub("sub-1").edit("a") // main yields, also what it has from before
		r.close()
		r.open()
		ann.hook("Stop", nil)
		ann.sub("sub-1").hook("SubagentStop", nil)
		ben.edit("a")
	})
}

// Agents of the same minute have different names.
func TestAgentNames(t *testing.T) {
	for session, want := range map[string]string{
		"ses_de9e5ca9bffewQBZn65p8GrFEM":       "opencode/5p8GrFEM",
		"0192f3a0-7c11-7abc-8def-0123456789ab": "opencode/456789ab",
		"a b":                                  "opencode/ab", "": "opencode/", "\u202e/é": "opencode/",
	} {
		if got := agentName("opencode", session); got != want {
			t.Errorf("the agent of %q is %q, want %q", session, got, want)
		}
	}
}

// TestTurnForSubagent has a file that is kept for the main agent when its sub-agent wants it.
func TestTurnForSubagent(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ben.edit("a")
		ann.denied("a", "held by")
		ben.stop("")
		pass(time.Second)
		if deny, _ := ann.sub("sub-1").before("a"); deny != "" {
			r.Errorf("it is denied: %s", deny)
		}
	})
}

// A command that names more files than an event may lease takes none: it is refused while another session holds a file
// below the folder that all of them are in.
func TestManyFiles(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0&files=3"
		ann, ben := r.coder(annID), r.coder(benID)
		for _, command := range []string{"rm", "rm src/x"} {
			for i := range 150 {
				command += " src/f" + strconv.Itoa(i)
			}
			if deny := ann.bash(command); deny != "" {
				r.Errorf("it is denied: %s", deny)
			}
		}
		ben.edit("a")
		if deny := ann.bash("rm src/1 src/2 src/3 src/4"); deny != "" {
			r.Errorf("it is denied: %s", deny)
		}
		ben.edit("src/f149")
		want(r.T, ann.bash("rm src/1 src/2 src/3 src/4"),
			"changes files of src at large, and f149 is held by claude-code/bbbbbbbb")
		if deny := ann.bash("rm src/1 src/2 src/3"); deny != "" {
			r.Errorf("it is denied: %s", deny)
		}
		ben.denied("src/2", "held by claude-code/aaaaaaaa")
	})
}

// What takes the changes of others into a commit, or moves HEAD under them, is refused with the remedy.
func TestCommitsOfOthersFiles(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ben.edit("src/a")
		for command, text := range map[string]string{
			"git commit -am x":               "takes all changes of the checkout of web for a commit, and src/a is held",
			"git add -A && git commit -m x":  "git commit --only -m MESSAGE -- FILE",
			"git add src":                    "takes all changes of src for a commit, and a is held by",
			"git commit -m x src/a":          "takes all changes of src/a for a commit",
			"git checkout -b new":            "moves HEAD of the checkout of web",
			"git switch -c new":              "git worktree add",
			"cd src && git reset --hard":     "changes files of the checkout of web at large",
			"cd src && git checkout -f main": "changes files of the checkout of web at large",
		} {
			want(r.T, ann.bash(command), text)
		}
		for _, command := range []string{
			"git commit -m x", "git commit -m x -- b", "git add b src/b", "git commit --dry-run -a", "git status",
			"git stash push -- b", "git restore --staged src/a",
		} {
			if deny := ann.bash(command); deny != "" {
				r.Errorf("%s is denied: %s", command, deny)
			}
			ann.stop("")
		}
	})
}

// A command that is not understood passes, is refused or left to a person, by the setting, and only while another
// session holds a file of the checkout.
func TestUnknownCommand(t *testing.T) {
	for query, decision := range map[string]string{
		"?wait_s=0": "", "?wait_s=0&unknown=allow": "", "?wait_s=0&unknown=ask": "ask",
		"?wait_s=0&unknown=deny": "deny",
	} {
		inBubble(t, func(r *rig) {
			r.query = query
			ann, ben := r.coder(annID), r.coder(benID)
			expect := func(command, decision string) string {
				reason := ann.bash(command)
				if ann.decision != decision {
					r.Errorf("%s: %s: the decision is %q (%s), want %q", query, command, ann.decision, reason, decision)
				}
				return reason
			}
			expect("./gen.sh", "")
			ben.edit("a")
			if reason := expect("./gen.sh > out", decision); decision != "" {
				want(r.T, reason, `cannot tell what this bash command changes ("gen.sh"), and a is held by claude-code/bbbb`)
			}
			expect("go test ./... | tail", "")
			expect("git status", "")
			expect("./gen.sh > a", "deny")
		})
	}
}

// TestOwnFilesHideNone has a file of another agent behind more files of one's own than an answer shows.
func TestOwnFilesHideNone(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.coder(annID), r.coder(benID)
		for i := range 40 {
			ann.edit("f" + time.Duration(i).String())
		}
		if deny := ann.bash("git stash"); deny != "" {
			r.Errorf("it is denied: %s", deny)
		}
		ben.edit("z")
		want(r.T, ann.bash("git stash"), "z is held by claude-code/bbbbbbbb (alive")
	})
}

// The main agent hands its file to its sub-agent by the line: a waiter of another session comes first.
func TestSubagentBehindAWaiter(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ben.denied("a", "held by claude-code/aaaaaaaa")
		ann.sub("s").denied("a", "held by claude-code/bbbbbbbb")
	})
}

// Places in line outlive a restart of the server: the door finds the tickets again, and follows them.
func TestRestartInLine(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben, cat := r.coder(annID), r.coder(benID), r.coder("3333-cccccccc")
		ann.edit("a")
		ben.prompt("Split the login page")
		for range 2 { // the first place is over at the end of the turn
			ben.denied("a", "You are 1st in line")
			ben.stop("")
		}
		ben.denied("a", "You are 1st in line")
		cat.denied("a", "You are 2nd in line")
		r.close()
		r.open()
		ben.denied("a", "You are 1st in line")
		cat.denied("a", "You are 2nd in line")
		ann.stop("")
		pass(30 * time.Second)
		want(r.T, ben.prompt("go on"), "It is your turn for a")
		ben.edit("a")
		cat.denied("a", "held by claude-code/bbbbbbbb")
		ben.stop("")
		pass(30 * time.Second)
		cat.edit("a")
	})
}

// A turn that ends after a restart of the server ends the places in line from before it, too.
func TestTurnEndsAfterRestart(t *testing.T) {
	for _, holds := range []bool{false, true} {
		inBubble(t, func(r *rig) {
			r.query = "?wait_s=0"
			ann, ben, cat := r.coder(annID), r.coder(benID), r.coder("3333-cccccccc")
			ann.edit("a")
			if holds {
				ben.edit("b")
			}
			ben.denied("a", "You are 1st in line")
			ben.sub("worker").denied("a", "You are 2nd in line")
			r.close()
			r.open()
			ben.stop("")
			if holds {
				cat.edit("b")
			}
			ann.stop("")
			pass(time.Second)
			cat.denied("a", "held by claude-code/bbbbbbbb") // its sub-agent goes on
			if holds {
				ben.sub("worker").hook("SubagentStop", nil)
			} else { // its end was not reported
				ben.hook("Stop", map[string]any{"background_tasks": []any{}})
			}
			pass(time.Second)
			cat.edit("a")
		})
	}
}
