package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/internal/api"
)

// shop is a source file of a few functions, each with a counter. Agents edit it by the tools of a harness, which take a
// while between reading and writing.
type shop struct {
	*rig
	random *rand.Rand // guarded by mu

	mu     sync.Mutex
	text   string
	edits  []int // that harnesses have carried out, by function
	denied int
	waited time.Duration
	wrote  int
}

const shopFile = "/w/web/shop.go"

func newShop(r *rig, seed uint64, functions int) *shop {
	r.repo = "web@0123456789"
	s := &shop{rig: r, random: rand.New(rand.NewPCG(seed, 88)), edits: make([]int, functions), text: "package shop\n"}
	for i := range functions {
		s.text += fmt.Sprintf("\n// f%d counts.\nfunc f%d() int {\n\treturn 0 + %d\n}\n", i, i, 1000*i)
	}
	return s
}

// line is the line of a function with its counter.
func line(function, n int) string { return fmt.Sprintf("\treturn %d + %d\n", n, 1000*function) }

// counter returns the counter of a function in a text.
func counter(text string, function int) int {
	end := strings.Index(text, fmt.Sprintf(" + %d\n", 1000*function))
	if end < 0 {
		return -1
	}
	n, err := strconv.Atoi(text[strings.LastIndexByte(text[:end], ' ')+1 : end])
	if err != nil {
		return -1
	}
	return n
}

func (s *shop) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// pass lets about so many seconds pass. No two events are at the same time.
func (s *shop) pass(seconds int) {
	<-time.After(time.Duration(seconds)*time.Second + time.Duration(s.roll(1e9)))
}

func (s *shop) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// send sends an event as interlock-hook does, which answers the question where a path leads, and returns the denial. A
// sub-agent is behind a slash of its session. Where input is of no tool, it is of the event.
func (s *shop) send(session, event, tool string, input map[string]any) (deny string) {
	s.Helper()
	session, sub, _ := strings.Cut(session, "/")
	fields := map[string]any{
		"session_id": session, "agent_id": sub, "hook_event_name": event, "cwd": "/w/web", "tool_name": tool,
	}
	if tool == "" {
		maps.Copy(fields, input)
	} else {
		fields["tool_input"] = input
	}
	body, err := json.Marshal(fields)
	if err != nil {
		s.Fatal(err)
	}
	places := "{}"
	for {
		q := httptest.NewRequestWithContext(
			s.Context(), http.MethodPost, "http://127.0.0.1/v1/hooks/claude-code"+s.query, bytes.NewReader(body),
		)
		q.RemoteAddr = "127.0.0.1:50000"
		q.Header.Set(place.HeaderHost, "ann")
		q.Header.Set(place.HeaderRoot, "/w/web")
		q.Header.Set(place.HeaderRepo, s.repo)
		q.Header.Set(place.HeaderPlaces, places)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, q)
		var asked place.Asked
		if json.Unmarshal(w.Body.Bytes(), &asked) == nil && len(asked.Places) > 0 {
			at := place.Location{Repo: s.repo, Root: "/w/web", Path: "shop.go"}
			if asked.Edit != nil {
				at.Region, _ = asked.Edit.Of(at.Path, []byte(s.read()))
			}
			told, err := json.Marshal(map[string]place.Location{shopFile: at})
			if err != nil {
				s.Fatal(err)
			}
			places = string(told)
			continue
		}
		var out specificAnswer
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				s.Fatal(err)
			}
		} else if w.Code != http.StatusNoContent {
			s.Errorf("%s: %d %s", event, w.Code, w.Body)
		}
		return out.Output.Reason
	}
}

// work lets an agent count up functions, some of them in each of its turns. A few of its changes write the whole file
// anew, from its last reading.
func (s *shop) work(session string, turns, wholes int) {
	for turn := range turns {
		agent := session
		if s.roll(3) == 0 {
			agent = fmt.Sprintf("%s/sub-%d", session, turn)
		}
		end := func() {
			if agent != session && s.roll(2) == 0 { // else its end is not reported
				s.send(agent, "SubagentStop", "", nil)
			}
			s.send(session, "Stop", "", map[string]any{"background_tasks": []any{}})
		}
		for range 1 + s.roll(3) {
			function := s.roll(len(s.edits))
			whole := s.roll(100) < wholes
			for try := 0; !s.change(agent, function, whole); try++ {
				if try > 100 {
					s.Errorf("%s never edits function %d", agent, function)
					return
				}
				if try%3 == 2 { // it ends its turn with a question to its user, so that others can go on
					end()
				}
				s.pass(1 + s.roll(5))
			}
			s.pass(5 + s.roll(20)) // it thinks
		}
		end()
		s.pass(s.roll(10))
	}
}

// change reads the file, thinks, and edits it. It returns false if the hook or the harness has refused that.
func (s *shop) change(session string, function int, whole bool) bool {
	s.send(session, "PostToolUse", "Read", map[string]any{"file_path": shopFile})
	seen := s.read()
	n := counter(seen, function)
	s.pass(1 + s.roll(4))
	before, after := line(function, n), line(function, n+1)
	tool, input := "Edit", map[string]any{"file_path": shopFile, "old_string": before, "new_string": after}
	if whole {
		tool, input = "Write", map[string]any{"file_path": shopFile, "content": strings.Replace(seen, before, after, 1)}
	}
	asked := time.Now()
	deny := s.send(session, "PreToolUse", tool, input)
	s.mu.Lock()
	s.waited += time.Since(asked)
	if deny != "" {
		s.denied++
	}
	s.mu.Unlock()
	if deny != "" {
		return false
	}
	if s.roll(10) == 0 { // a person looks at it, and refuses it at times
		s.pass(s.roll(20))
		if s.roll(2) == 0 {
			return false
		}
	}
	text := s.read()
	<-time.After(50*time.Millisecond + time.Duration(s.roll(1e6)))
	done := "PostToolUseFailure"
	if whole {
		text = input["content"].(string)
	} else if strings.Count(text, before) == 1 {
		text = strings.Replace(text, before, after, 1)
	} else {
		text = ""
	}
	if text != "" {
		s.mu.Lock()
		s.text = text
		s.edits[function]++
		s.wrote++
		s.mu.Unlock()
		done = "PostToolUse"
	}
	s.send(session, done, tool, input)
	return done == "PostToolUse"
}

// run lets agents work, and returns how long it took. No edit may be lost.
func (s *shop) run(agents, turns, wholes int) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() { s.work(fmt.Sprintf("session-%d", i), turns, wholes) })
	}
	all.Wait()
	for i, want := range s.edits {
		if got := counter(s.text, i); got != want {
			s.Errorf("function %d was edited %d times, and %d edits are kept", i, want, got)
		}
	}
	return time.Since(began)
}

// TestRegions has agents in random worlds edit the functions of one file, by regions, and by whole files in between.
func TestRegions(t *testing.T) {
	worlds := uint64(40)
	if testing.Short() {
		worlds = 10
	}
	for seed := range worlds {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{T: t, query: "?regions=on"}
			if seed%4 == 3 {
				r.query += "&hold=edit"
			}
			r.open()
			defer r.close()
			s := newShop(r, seed, 1+int(seed)%5)
			s.run(2+int(seed)%4, 3, []int{0, 15, 40}[seed%3])
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		if t.Failed() {
			break
		}
	}
}

// TestRegionOutcomes prints the table of docs/agents.md: what a fleet's edits of one file cost by files and by regions.
func TestRegionOutcomes(t *testing.T) {
	fleets, sizes, worlds := []int{2, 4, 8}, []int{1, 4, 16}, 5
	if testing.Short() {
		fleets, sizes, worlds = fleets[2:], sizes[2:], 1
	}
	for _, agents := range fleets {
		for _, functions := range sizes {
			row := fmt.Sprintf("| %d | %d |", agents, functions)
			var waits [2]float64 // seconds for each edit
			for i, regions := range []string{"off", "on"} {
				var took, waited time.Duration
				wrote, denied := 0, 0
				for seed := range uint64(worlds) {
					synctest.Test(t, func(t *testing.T) {
						r := &rig{T: t, query: "?regions=" + regions}
						r.open()
						defer r.close()
						s := newShop(r, seed, functions)
						took += s.run(agents, 4, 0)
						waited, wrote, denied = waited+s.waited, wrote+s.wrote, denied+s.denied
					})
				}
				waits[i] = waited.Seconds() / float64(wrote)
				minutes, refusals := took.Minutes()/float64(worlds), float64(denied)/float64(wrote)
				row += fmt.Sprintf(" %.0f | %.0f | %.1f |", minutes, waits[i], refusals)
			}
			t.Log(row)
			if agents == 8 && functions == 16 && waits[1]*2 > waits[0] {
				t.Errorf("an edit waits for %.0f s by regions, and for %.0f s by files", waits[1], waits[0])
			}
		}
	}
}

// TestRegionKnowledge checks what agents with regions of one file learn of each other.
func TestRegionKnowledge(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?regions=on&wait_s=0"
		s := newShop(r, 1, 3)
		edit := func(session, event string, function int) string {
			return s.send(session, event, "Edit", map[string]any{
				"file_path": shopFile, "old_string": line(function, 0), "new_string": line(function, 1),
			})
		}
		read := func(session string) {
			s.send(session, "PostToolUse", "Read", map[string]any{"file_path": shopFile})
			s.pass(1)
		}
		free := func(deny string) {
			t.Helper()
			if deny != "" {
				t.Error(deny)
			}
		}
		read("ann")
		read("bob")
		free(edit("ann", "PreToolUse", 0))
		want(t, edit("bob", "PreToolUse", 1), "writing another part of this file just now", "shop.go#func f1")
		edit("ann", "PostToolUse", 0)
		s.pass(1)
		free(edit("bob", "PreToolUse", 1)) // another region has changed
		edit("bob", "PostToolUse", 1)
		want(t, edit("bob", "PreToolUse", 0), "shop.go#func f0", "claude-code/ann")
		for command, part := range map[string]string{
			"git commit -am x":                   "func f0",
			"gofmt -w shop.go":                   "shop.go",
			"git add shop.go && git commit -m x": "func f0",
		} {
			want(t, s.send("bob", "PreToolUse", "Bash", map[string]any{"command": command}), part)
		}
		s.send("ann", "Stop", "", nil)
		s.pass(1)
		deny := s.send("bob", "PreToolUse", "Write", map[string]any{"file_path": shopFile, "content": ""})
		want(t, deny, "shop.go changed", "Nothing was written")
		read("bob")
		free(s.send("bob", "PreToolUse", "Write", map[string]any{"file_path": shopFile, "content": ""}))
		s.send("bob", "PostToolUse", "Write", map[string]any{"file_path": shopFile, "content": ""})
		s.send("bob", "Stop", "", nil)
		s.pass(1)
		want(t, edit("ann", "PreToolUse", 2), "shop.go#func f2 changed since you read it")
		read("ann")
		free(edit("ann", "PreToolUse", 2))
	})
}

// TestRegionWriteEnds has an agent begin to write a region and report no end. The next event of its own, or of its main
// agent where that goes on with nothing in the background, lets another agent write another region.
func TestRegionWriteEnds(t *testing.T) {
	none, one := map[string]any{"background_tasks": []any{}}, map[string]any{"background_tasks": []any{1}}
	for _, tt := range []struct {
		writer, by, event string
		fields            map[string]any
		ends              bool
	}{
		{"ann", "ann", "Stop", none, true},
		{"ann", "ann", "Stop", one, true},
		{"ann", "ann/sub", "SubagentStop", nil, false},
		{"ann/sub", "ann/sub", "SubagentStop", nil, true},
		{"ann/sub", "ann/other", "SubagentStop", nil, false},
		{"ann/sub", "ann", "Stop", none, true},
		{"ann/sub", "ann", "Stop", one, false},
		{"ann/sub", "ann", "Stop", nil, false}, // the harness does not report what goes on
		{"ann/sub", "ann", "UserPromptSubmit", nil, true},
		{"ann/sub", "ann", "SessionEnd", nil, true},
		{"ann/sub", "cid", "SessionEnd", nil, false},
	} {
		inBubble(t, func(r *rig) {
			r.query = "?regions=on&wait_s=0"
			s := newShop(r, 1, 2)
			edit := func(agent string, function int) string {
				return s.send(agent, "PreToolUse", "Edit", map[string]any{
					"file_path": shopFile, "old_string": line(function, 0), "new_string": line(function, 1),
				})
			}
			if deny := edit(tt.writer, 0); deny != "" {
				t.Fatal(deny)
			}
			s.send(tt.by, tt.event, "", tt.fields)
			if deny := edit("bob", 1); (deny == "") != tt.ends {
				t.Errorf("%s writes, then %s of %s %v: the answer is %q", tt.writer, tt.event, tt.by, tt.fields, deny)
			}
		})
	}
}

// TestRegionWritesOfOneAgent has an agent write regions of a file at the same time: another agent writes when the last
// of these writes has ended.
func TestRegionWritesOfOneAgent(t *testing.T) {
	for writes := range 4 {
		inBubble(t, func(r *rig) {
			r.query = "?regions=on&wait_s=0"
			s := newShop(r, 1, 5)
			edit := func(agent, event string, function int) string {
				return s.send(agent, event, "Edit", map[string]any{
					"file_path": shopFile, "old_string": line(function, 0), "new_string": line(function, 1),
				})
			}
			for i := range writes {
				edit("ann", "PreToolUse", i)
			}
			for i := range writes {
				if deny := edit("bob", "PreToolUse", 4); !strings.Contains(deny, "just now") {
					t.Errorf("%d of %d writes go on, and another one has the answer %q", writes-i, writes, deny)
				}
				edit("ann", []string{"PostToolUse", "PostToolUseFailure"}[i%2], i)
				s.pass(1)
			}
			if deny := edit("bob", "PreToolUse", 4); deny != "" {
				t.Errorf("all of %d writes have ended: %s", writes, deny)
			}
		})
	}
}

// TestRegionExclusion has another agent hold a key by another door: the edit of a region waits for it if it is one of
// the region, of its file or above, of this copy or of the repository.
func TestRegionExclusion(t *testing.T) {
	for key, waits := range map[api.Key]bool{
		"repo:web": true, "repo:web/shop.go": true, "repo:web@0123456789": true, "repo:web@0123456789/shop.go": true,
		"repo:web@0123456789/shop.go/#func f0": true, "repo:web@0123456789/shop.go/#func f1": false,
		"repo:web/other.go": false, "repo:web@0123456789/other.go": false, "repo:web@9876543210/shop.go": false,
	} {
		inBubble(t, func(r *rig) {
			r.query = "?regions=on&wait_s=0"
			s := newShop(r, 1, 2)
			r.hold("other", key)
			deny := s.send("ann", "PreToolUse", "Edit", map[string]any{
				"file_path": shopFile, "old_string": line(0, 0), "new_string": line(0, 1),
			})
			if (deny != "") != waits {
				t.Errorf("another agent holds %s: the answer is %q", key, deny)
			}
		})
	}
}

// TestRegionOfInput checks which inputs of tools replace one text.
func TestRegionOfInput(t *testing.T) {
	for _, tt := range []struct {
		input string
		want  bool
	}{
		{`{"old_string":"a","new_string":"b"}`, true},
		{`{"oldString":"a","newString":"b","replaceAll":false}`, true},
		{`{"old_str":"a","new_str":""}`, true},
		{`{"old_string":"a","new_string":"b","expected_replacements":1}`, true},
		{`{"old_string":"a","new_string":"b","replace_all":true}`, false},
		{`{"old_string":"a","new_string":"b","allow_multiple":true}`, false},
		{`{"old_string":"a","new_string":"b","expected_replacements":2}`, false},
		{`{"edits":[{"old_string":"a"}],"old_string":"a"}`, false},
		{`{"old_string":"","new_string":"b"}`, false},
		{`{"old_string":["a"],"new_string":"b"}`, false},
		{`{"content":"b"}`, false},
	} {
		var in toolInput
		if err := json.Unmarshal([]byte(tt.input), &in); err != nil {
			t.Fatal(err)
		}
		if got := in.edit() != nil; got != tt.want {
			t.Errorf("%s replaces one text: %t", tt.input, got)
		}
	}
}

// TestFileAround checks that the form of a region's key leads to its file, also below a folder that looks like one.
func TestFileAround(t *testing.T) {
	for key, want := range map[string]string{
		"repo:web@1/a.go/#func f": "repo:web@1/a.go", "repo:web@1/#old#/c#/a.py/#def f": "repo:web@1/#old#/c#/a.py",
		"repo:web@1/#old#/a.py": "", "repo:web@1/c#/a.cs": "", "repo:web@1": "",
	} {
		if file, inside := fileAround(key); inside != (want != "") || inside && file != want {
			t.Errorf("%s is a region of %q (%t), want %q", key, file, inside, want)
		}
	}
}
