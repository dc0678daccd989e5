package hook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// The remedy of a refusal is a command that the hook lets pass, with the agent's own files.
func TestRemedy(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("src/b")
		ann.stop("")
		ann.edit("new c")
		ben.edit("src/a")
		own := "git add -A -- 'new c' src/b && git commit --only -m MESSAGE -- 'new c' src/b"
		for command, remedy := range map[string]string{
			"git commit -am x":                   "{ git add -A -- 'new c' src/b && git commit --only -m x -- 'new c' src/b; }",
			"git add . && git commit -m x":       "git add -A -- 'new c' src/b && git commit --only -m x -- 'new c' src/b",
			"git commit -m x src":                "{ git add -A -- src/b && git commit --only -m x -- src/b; }",
			"git commit --amend --no-edit":       own,
			"if true; then git commit -am x; fi": own,
			"git stash":                          "git add -A -- 'new c' src/b && git stash push -- 'new c' src/b",
			"git reset --hard":                   "git add -A -- 'new c' src/b && git stash push -- 'new c' src/b",
			"git switch -c new":                  "git worktree add /w/web-aaaaaaaa",
			"git pull --rebase":                  "git worktree add /w/web-aaaaaaaa",
			"git bisect start":                   "git worktree add /w/web-aaaaaaaa",
			"cd /w/web && git am x":              "git worktree add /w/web-aaaaaaaa",
			"cd .. && git -C web stash":          "git add -A -- 'new c' src/b && git stash push -- 'new c' src/b",
		} {
			deny := ann.bash(command)
			want(r.T, deny, "a is held by claude-code/bbbbbbbb", "\n  "+remedy)
			if !strings.HasSuffix(deny, remedy) {
				r.Errorf("%s: the remedy is not the last line of %q", command, deny)
			}
			if deny := ann.bash(remedy); deny != "" {
				r.Errorf("%s: the remedy is denied: %s", command, deny)
			}
		}
		// What another agent holds or wrote after it is not its own any more, although it was refused once.
		ben.stop("")
		ben.tool("PostToolUse", "Read", "", map[string]any{"file_path": "src/b"})
		ann.stop("")
		ben.edit("src/b")
		ben.stop("")
		pass(time.Second)
		ann.edit("src/b")
		ann.stop("")
		pass(time.Second)
		ben.denied("src/b", "changed since you read it")
		want(r.T, ann.bash("git commit -am x"), "src/b is held",
			"{ git add -A -- 'new c' && git commit --only -m x -- 'new c'; }")
		ben.stop("")
		ann.stop("")
		ben.edit("new c")
		ben.stop("")
		ben.edit("src/a")
		want(r.T, ann.bash("git commit -am x"), "git commit --only -m x -- src/b; }")
	})
}

// The top folder of the checkout, which git computes for a command, is the one of the agent's folder.
func TestTopFolder(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("src/b")
		ben.edit("src/a")
		top := `cd sub && cd "$(git rev-parse --show-toplevel)" && `
		for _, command := range []string{"rm src/a", "rm src/*", "git checkout -- src", "cd src && git restore a"} {
			want(r.T, ann.bash(top+command), "a is held by claude-code/bbbbbbbb")
		}
		if deny := ann.bash(top + "rm src/b"); deny != "" {
			r.Errorf("its own file: %s", deny)
		}
		want(r.T, ann.bash(`cd "$(git rev-parse --show-toplevel)" && git add -A && git commit -m x`), "a is held by",
			`cd "$(git rev-parse --show-toplevel)" && git add -A -- src/b && git commit --only -m x -- src/b`)
	})
}

// A remedy with many files, and with names that git takes for patterns, is let through, and leaves out no file.
func TestRemedyOfManyFiles(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		names := []string{":c", "a*b", "app/[id]/page.tsx"}
		for i := range 60 {
			names = append(names, fmt.Sprintf("src/f%02d.go", i))
		}
		for _, name := range names {
			ann.edit(name)
			ann.stop("")
		}
		ben.edit("src/a.go")
		for _, command := range []string{"git commit -qam x", "git add -A", "git stash", "git commit --amend"} {
			_, remedy, _ := strings.Cut(ann.bash(command), "\n  ")
			want(r.T, remedy, " ':(literal):c' ':(literal)a*b' ':(literal)app/[id]/page.tsx' src/f00.go ")
			if last := " src/f59.go"; command != "git stash" {
				want(r.T, remedy, last)
			} else if strings.Contains(remedy, last) {
				r.Errorf("the remedy of a stash names more files than a command may lease: %s", remedy)
			}
			if deny := ann.bash(remedy); deny != "" {
				r.Errorf("%s: the remedy is denied: %s", command, deny)
			}
			held := strings.ReplaceAll(remedy, "src/f20.go", "src/a.go")
			want(r.T, ann.bash(held), "src/a.go is held by claude-code/bbbbbbbb")
		}
		want(r.T, ann.bash("git add '*.go'"), "a.go is held by claude-code/bbbbbbbb")
		want(r.T, ann.bash("git checkout -- 'src/*.go'"), "a.go is held by claude-code/bbbbbbbb")
	})
}

// What was staged in a folder, or by another agent, is not committed while another session holds it.
func TestStagedByOthers(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		commit := func() string { return ann.bash("git commit -m x") }
		ben.edit("a")
		if deny := commit(); deny != "" {
			r.Errorf("nothing is staged: %s", deny)
		}
		ben.bash("git add a")
		want(r.T, commit(), "commits all that is staged in the checkout of web, and a is held by",
			"git commit --only -m MESSAGE -- FILE...")
		ben.tool("PostToolUse", "Bash", "c", map[string]any{"command": "git commit -m y"})
		if deny := commit(); deny != "" {
			r.Errorf("it was committed: %s", deny)
		}
		ben.stop("")
		if deny := ann.bash("git add ."); deny != "" {
			r.Errorf("no agent holds a file: %s", deny)
		}
		ben.edit("b")
		want(r.T, commit(), "commits all that is staged in the checkout of web, and b is held by")
	})
}

// With commits=own a harness that can change a command runs one that takes the agent's own files alone.
func TestCommitsOwn(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0&commits=own"
		ann, ben := r.coder(annID), r.coder(benID)
		ben.edit("src/a")
		ann.edit("src/b")
		const narrowed = `{ git add -A -- src/b && git commit --only -m x -- src/b; }`
		for harness, c := range map[string]struct{ body, want string }{
			"claude-code": {
				`{"session_id":"` + annID + `","hook_event_name":"PreToolUse","cwd":"/w/web","tool_name":"Bash",
				"tool_use_id":"HARNESS","tool_input":{"command":"git commit -am x","timeout":7}}`,
				`{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"Another agent holds a file here, so ` +
					`this ran instead, with your own files alone: ` + narrowed + `","updatedInput":{"command":"` + narrowed +
					`","timeout":7}}}`,
			},
			"gemini": {
				`{"session_id":"` + annID + `","hook_event_name":"BeforeTool","cwd":"/w/web","tool_name":"run_shell_command",
				"tool_input":{"command":"git commit -am x"}}`,
				`{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"` + narrowed + `"}}}`,
			},
			"cursor": {
				`{"conversation_id":"` + annID + `","hook_event_name":"preToolUse","cwd":"/w/web","tool_name":"Shell",
				"tool_use_id":"HARNESS","tool_input":{"command":"git commit -am x"}}`,
				`{"updated_input":{"command":"` + narrowed + `"}}`,
			},
			"copilot": {
				`{"sessionId":"` + annID + `","hookEventName":"preToolUse","cwd":"/w/web","toolName":"bash",
				"toolArgs":"{\"command\":\"git commit -am x\"}"}`,
				`{"modifiedArgs":{"command":"` + narrowed + `"}}`,
			},
			"opencode": {
				`{"event":"tool.execute.before","sessionID":"` + annID + `","directory":"/w/web","tool":"bash","callID":"HARNESS",
				"args":{"command":"git commit -am x"}}`,
				`{"command":"` + narrowed + `"}`,
			},
			"codex": {
				`{"session_id":"` + annID + `","hook_event_name":"PreToolUse","cwd":"/w/web","tool_name":"Bash",
				"tool_use_id":"HARNESS","tool_input":{"command":"git commit -am x"}}`, `"permissionDecision":"deny"`,
			},
		} {
			status, answer := r.post(harness, strings.ReplaceAll(c.body, "HARNESS", harness))
			var text string
			if json.Unmarshal([]byte(answer), new(any)) == nil {
				text = strings.NewReplacer(`\u0026`, "&", `\n`, "\n").Replace(answer)
			}
			if status != http.StatusOK || !strings.Contains(text, c.want) {
				r.Errorf("%s: %d %s\nwant %s", harness, status, text, c.want)
			}
		}
		want(r.T, ann.bash("git stash"), "git stash push -- src/b")
		want(r.T, ann.bash("cd src; sudo git commit -a"), "git commit --only -m MESSAGE -- src/b")
	})
}

// A server that does not answer ends each event within the time of its harness, and denies nothing.
func TestServerThatHangs(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.handler.Close()
		r.handler = NewHandler(Config{API: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			<-q.Context().Done()
		})})
		for _, event := range []struct {
			name  string
			limit time.Duration
		}{
			{"PreToolUse", 7*time.Second + hookclient.Margin},
			{"PostToolUse", hookclient.Short},
			{"SessionEnd", hookclient.Short},
		} {
			began := time.Now()
			body := `{"session_id":"s","hook_event_name":"` + event.name + `","cwd":"/w","tool_name":"Edit","tool_use_id":"1",
				"tool_input":{"file_path":"a"}}`
			w := r.do("POST", "/v1/hooks/claude-code?wait_s=7", body)
			refused(r.T, w, 503, interlock.CodeOverloaded, "nothing is reserved")
			if took := time.Since(began); took >= event.limit {
				r.Errorf("%s took %v", event.name, took)
			}
		}
	})
}

// The disk is looked at for a caller on this machine that no proxy stands before, and only if the operator lets it.
func TestDisk(t *testing.T) {
	for _, c := range []struct {
		disk   bool
		remote string
		header string
		here   bool
	}{
		{true, "127.0.0.1:5", "", true},
		{true, "[::1]:5", "", true},
		{false, "127.0.0.1:5", "", false},
		{true, "10.0.0.1:5", "", false},
		{true, "127.0.0.1:5", "X-Forwarded-For", false},
		{true, "127.0.0.1:5", "X-Forwarded-Proto", false},
		{true, "127.0.0.1:5", "Forwarded", false},
		{true, "127.0.0.1:5", "Via", false},
		{true, "127.0.0.1:5", "X-Real-IP", false},
		{true, "[::1]:5", "CF-Connecting-IP", false},
		{true, "127.0.0.1:5", "True-Client-IP", false},
	} {
		for _, host := range []string{"", "ann"} {
			h := &Handler{disk: c.disk, host: "ann"}
			q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			q.RemoteAddr = c.remote
			if c.header != "" {
				q.Header.Set(c.header, "x")
			}
			if host != "" {
				q.Header.Set(place.HeaderHost, host)
			}
			if l := newLocator(q, h.sees(q), t.TempDir()); l.here != c.here {
				t.Errorf("%+v, host %q: the disk is looked at: %v", c, host, l.here)
			}
		}
	}
}
