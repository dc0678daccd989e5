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

// limit bounds a run of an agent.
const limit = 2 * time.Minute

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
		name: "gemini", dialect: dialect{read: "read_file", write: "write_file", path: "file_path"},
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
		name: "opencode", dialect: dialect{read: "read", write: "write", path: "filePath"},
		prepare: func(home, model string) error {
			return writeJSON(filepath.Join(home, ".config/opencode/opencode.json"), map[string]any{
				"provider": map[string]any{"fake": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": model + "/v1", "apiKey": "x"},
					"models": map[string]any{"m": map[string]any{"tool_call": true}},
				}},
				"model": "fake/m", "small_model": "fake/m", "autoupdate": false, "share": "disabled",
			})
		},
		command: []string{"opencode", "run", "--format", "json", "Add your line to notes.md."},
		env:     func(string) []string { return nil },
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
			var lost, refusals int
			var times []time.Duration
			for n := range *runs {
				o := h.play(t, url, hooks, fmt.Sprintf("%s-%v-%d", h.name, hooks, n))
				if t.Failed() {
					t.FailNow()
				}
				if o.lost > 0 {
					lost++
				}
				refusals += o.refused
				times = append(times, o.took)
			}
			slices.Sort(times)
			fmt.Printf(
				"| %s | %s | %d | %d | %d | %.1f s |\n", h.name, map[bool]string{true: "yes", false: "no"}[hooks], *runs, lost,
				refusals, times[len(times)/2].Seconds(),
			)
			switch {
			case hooks && lost > 0:
				t.Errorf("%s: lines were lost with hooks, in %d of %d runs", h.name, lost, *runs)
			case hooks && refusals < *runs:
				t.Errorf("%s: in %d runs the second agent was refused %d times only", h.name, *runs, refusals)
			case !hooks && lost == 0:
				t.Errorf("%s: no line was lost without hooks, so the scene shows nothing", h.name)
			}
		}
	}
}

// play lets two agents work in a new repository.
func (h *harness) play(t *testing.T, url string, hooks bool, name string) outcome {
	repo := filepath.Join(t.TempDir(), name)
	git(t, "init", "-q", repo)
	file := filepath.Join(repo, "notes.md")
	if err := os.WriteFile(file, []byte("entry of agent-0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + filepath.Dir(launchtest.Binary(t)) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"INTERLOCK_URL=" + url,
	}
	if hooks {
		install := exec.CommandContext(t.Context(), launchtest.Binary(t), "init", "--yes", "--harness", h.name)
		install.Dir, install.Env = repo, append(slices.Clone(env), "HOME="+t.TempDir())
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("interlock init: %v\n%s", err, out)
		}
	}
	lines := []string{"entry of agent-1", "entry of agent-2"}
	agent, err := filepath.Abs(filepath.Join(programs, h.command[0]))
	if err != nil {
		t.Fatal(err)
	}
	both := newBarrier(len(lines))
	began := time.Now()
	var all sync.WaitGroup
	var models []*model
	for _, line := range lines {
		m := newModel(t, h.dialect, line, file, both)
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
	for i, line := range lines {
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
