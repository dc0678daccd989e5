//go:build live

package livetest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

var runs = flag.Int("runs", 20, "how often each scene is played")

func TestMain(m *testing.M) { launchtest.Main(m) }

// programs is where scripts/live-tools.sh installs the agents, seen from this folder.
const programs = "../../../dist/live/node_modules/.bin"

// limit bounds a run of an agent: it is longer than one takes on a loaded machine.
const limit = 10 * time.Minute

// harness is a coding agent.
type harness struct {
	name    string
	dialect dialect
	// prepare writes the agent's settings into its home; command runs it with a prompt.
	prepare func(home, model string) error
	command []string
	env     func(model string) []string
}

var harnesses = []harness{
	{
		name: "gemini", dialect: dialect{
			read: "read_file", write: "write_file", path: "file_path",
			edit: "replace", old: "old_string", new: "new_string",
		},
		prepare: func(home, _ string) error {
			return writeJSON(filepath.Join(home, ".gemini/settings.json"), map[string]any{
				"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
				"general":  map[string]any{"disableAutoUpdate": true},
			})
		},
		command: []string{"gemini", "-m", "gemini-2.5-flash", "--yolo", "-p", "Add your line to notes.md."},
		env: func(model string) []string {
			return []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
	},
	{
		name: "opencode", dialect: dialect{
			read: "read", write: "write", path: "filePath", edit: "edit", old: "oldString", new: "newString",
		},
		prepare: func(home, model string) error {
			return writeJSON(filepath.Join(home, ".config/opencode/opencode.json"), map[string]any{
				"provider": map[string]any{"fake": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": model + "/v1", "apiKey": "x"},
					"models": map[string]any{"m": map[string]any{"tool_call": true}},
				}},
				"model": "fake/m", "small_model": "fake/m", "autoupdate": false, "share": "disabled",
				"lsp":      false, // it would download a language server
				"snapshot": false, // thirty calls of git in each run
			})
		},
		command: []string{"opencode", "run", "--format", "json", "Add your line to notes.md."},
		env:     func(string) []string { return []string{"OPENCODE_DISABLE_MODELS_FETCH=1"} },
	},
}

func writeJSON(name string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

// scene is a file of a repository that two agents change.
type scene struct {
	file, text string
	olds       [2]string // the texts to replace, "" for lines at the end
	lines      [2]string
	install    []string // flags of "interlock init", nil for no hooks
}

// outcome is what came of one run of two agents.
type outcome struct {
	lost    int
	refused int
	took    time.Duration
}

// Two agents add a line each to one file. With hooks, the second one waits, reads again and writes.
func TestTwoAgentsOnOneFile(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	url := "http://" + server.HTTP
	fmt.Printf("| agent | hooks | runs | runs with a lost line | refused writes | median time |\n|---|---|---|---|---|---|\n")
	for _, h := range harnesses {
		for _, hooks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hooks=%t", h.name, hooks), func(t *testing.T) {
				s := &scene{
					file: "notes.md", text: "entry of agent-0\n", lines: [2]string{"entry of agent-1", "entry of agent-2"},
				}
				if hooks {
					s.install = []string{"--yes"}
				}
				lost, refusals, median := h.playAll(t, url, s, fmt.Sprintf("%s-%v", h.name, hooks))
				fmt.Printf(
					"| %s | %s | %d | %d | %d | %.1f s |\n", h.name, map[bool]string{true: "yes", false: "no"}[hooks], *runs, lost,
					refusals, median.Seconds(),
				)
				switch {
				case hooks && lost > 0:
					t.Errorf("%s: lines were lost with hooks, in %d of %d runs", h.name, lost, *runs)
				case hooks && refusals < *runs:
					t.Errorf("%s: in %d runs the second agent was refused %d times only", h.name, *runs, refusals)
				case !hooks && lost == 0:
					t.Errorf("%s: no line was lost without hooks, so the scene shows nothing", h.name)
				}
			})
		}
	}
}

// playAll plays a scene -runs times. It returns how many runs lost something, the number of refusals, and the
// median of the times.
func (h *harness) playAll(t *testing.T, url string, s *scene, name string) (lost, refusals int, median time.Duration) {
	t.Helper()
	var times []time.Duration
	for n := range *runs {
		o := h.play(t, url, s, fmt.Sprintf("%s-%d", name, n))
		if t.Failed() {
			t.FailNow()
		}
		if o.lost > 0 {
			lost++
		}
		refusals += o.refused
		times = append(times, o.took)
		t.Logf("run %d: lost %d, refused %d, %.1f s", n, o.lost, o.refused, o.took.Seconds())
	}
	slices.Sort(times)
	return lost, refusals, times[len(times)/2]
}

// Two agents edit two functions of one file. By regions neither waits, and both edits are kept.
func TestTwoFunctions(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	url := "http://" + server.HTTP
	fmt.Printf("| agent | regions | runs | runs with a lost edit | refused edits | median time |\n")
	fmt.Printf("|---|---|---|---|---|---|\n")
	for _, h := range harnesses {
		for _, regions := range []string{"off", "on"} {
			t.Run(fmt.Sprintf("%s/regions=%s", h.name, regions), func(t *testing.T) {
				lost, refusals, median := h.playAll(t, url, &scene{
					file:    "shop.go",
					text:    "package shop\n\nfunc login() int {\n\treturn 1\n}\n\nfunc logout() int {\n\treturn 2\n}\n",
					olds:    [2]string{"return 1", "return 2"},
					lines:   [2]string{"return 10 // entry of agent-1", "return 20 // entry of agent-2"},
					install: []string{"--yes", "--regions", regions},
				}, fmt.Sprintf("%s-regions-%s", h.name, regions))
				fmt.Printf("| %s | %s | %d | %d | %d | %.1f s |\n", h.name, regions, *runs, lost, refusals, median.Seconds())
				if lost > 0 {
					t.Errorf("%s: edits were lost with regions %s, in %d of %d runs", h.name, regions, lost, *runs)
				}
				if regions == "on" && refusals > 0 {
					t.Errorf("%s: %d edits were refused in %d runs", h.name, refusals, *runs)
				}
			})
		}
	}
}

// play lets two agents work in a new repository.
func (h *harness) play(t *testing.T, url string, s *scene, name string) outcome {
	repo := filepath.Join(t.TempDir(), name)
	git(t, "init", "-q", repo)
	file := filepath.Join(repo, s.file)
	if err := os.WriteFile(file, []byte(s.text), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + filepath.Dir(launchtest.Binary(t)) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"INTERLOCK_URL=" + url,
	}
	if s.install != nil {
		install := exec.CommandContext(
			t.Context(), launchtest.Binary(t), append([]string{"init", "--harness", h.name}, s.install...)...,
		)
		install.Dir, install.Env = repo, append(slices.Clone(env), "HOME="+t.TempDir())
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("interlock init: %v\n%s", err, out)
		}
	}
	agent, err := filepath.Abs(filepath.Join(programs, h.command[0]))
	if err != nil {
		t.Fatal(err)
	}
	both := newBarrier(len(s.lines))
	began := time.Now()
	var all sync.WaitGroup
	var models []*model
	for i, line := range s.lines {
		m := newModel(t, h.dialect, s.olds[i], line, file, both)
		models = append(models, m)
		home := t.TempDir()
		if err := h.prepare(home, m.URL); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, agent, h.command[1:]...)
			cmd.Dir, cmd.Env = repo, append(append(slices.Clone(env), "HOME="+home), h.env(m.URL)...)
			if out, err := cmd.CombinedOutput(); err != nil || !m.finished() {
				t.Errorf("%s of %s did not finish: %v\n%s", h.name, name, err, out)
			}
		})
	}
	all.Wait()
	o := outcome{took: time.Since(began)}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range s.lines {
		if !strings.Contains(string(text), line) {
			o.lost++
		}
		for _, refusal := range models[i].refusals {
			t.Logf("%s: %s was refused: %s", name, line, refusal)
		}
		o.refused += len(models[i].refusals)
	}
	return o
}

func git(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}
