package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// The agents scene: coding agents work in one repository, and each adds a feature. They read a file,
// think, and write the whole file, as coding agents do. First they do so alone, then with the hooks
// that Interlock installs: before each write the hook program asks the server, over HTTP.
//
//	agent            hook program          server
//	read file
//	think
//	write file? ───► POST /v1/hooks/gemini ──► lease of the file, or a place in line
//	           ◄───  nothing: write
//	           ◄───  deny: the holder, or "it changed: read it again"
//	end of turn ───► the leases end

// codingThought is how long an agent thinks about one file.
const codingThought = 1200 * time.Millisecond

// codingAgent is one agent of the scene.
type codingAgent struct {
	name    string
	feature string
	run     *codingRun
}

// codingRun is one run of all agents: with hooks or without.
type codingRun struct {
	dir   string
	hook  *hookProgram // nil: without hooks
	think time.Duration

	mu     sync.Mutex
	began  time.Time
	told   []moment
	denied string // the first reason, as the agent received it
	result codingResult
}

// codingResult is the result of one run, as JSON.
type codingResult struct {
	Edits      int   `json:"edits"`
	Lost       int   `json:"lost_edits"`
	Builds     int   `json:"builds"` // one after each edit
	Broken     int   `json:"broken_builds"`
	Refused    int   `json:"refused_edits"`
	WaitingMS  int64 `json:"waiting_ms"`  // in hooks, all agents together
	TookMS     int64 `json:"took_ms"`     // until the last agent was done
	LastBroken bool  `json:"ends_broken"` // the repository does not build in the end
}

// agentsResult is the result of the scene, as JSON.
type agentsResult struct {
	Agents   int          `json:"agents"`
	Without  codingResult `json:"without_hooks"`
	With     codingResult `json:"with_hooks"`
	Problems []string     `json:"problems,omitempty"`
}

// Agents plays the scene and prints what was lost. It returns an error that is ErrClaim when an edit
// is lost with hooks, or none is without.
func Agents(ctx context.Context, cfg Config) (err error) {
	agents := orDefault(cfg.Agents, 6)
	cfg.Agents, cfg.Speed = 0, orDefault(cfg.Speed, 1)
	switch {
	case cfg.Server != "":
		return invalid("the scene needs a server of its own: leave the server out, and it starts one")
	case agents < 2 || agents > len(features):
		return invalid("%d agents: the scene is played by 2 to %d", agents, len(features))
	}
	if cfg, err = cfg.complete(); err != nil {
		return err
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("the scene was not over after two minutes"))
	defer cancel()
	server, err := startServer(ctx, cfg.Binary, dir)
	if err != nil {
		return err
	}
	cfg.ready(server, "")
	defer func() { err = cfg.stopServer(ctx, server, err) }()
	hook, err := newHookProgram(cfg.Binary, "http://"+server.HTTP)
	if err != nil {
		return err
	}
	if !cfg.JSON {
		fmt.Fprintf(cfg.Out, "%d coding agents add a feature each to one repository: a handler in handlers.go, "+
			"and its route in routes.go\n  %s\n", agents, dir)
	}
	result := agentsResult{Agents: agents}
	var runs []*codingRun
	for _, way := range []struct {
		name string
		hook *hookProgram
		to   *codingResult
	}{{"without-hooks", nil, &result.Without}, {"with-hooks", hook, &result.With}} {
		r := &codingRun{
			dir: filepath.Join(dir, way.name, "shop"), hook: way.hook, think: codingThought / time.Duration(cfg.Speed),
		}
		if err := r.play(ctx, agents); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		*way.to = r.result
		runs = append(runs, r)
	}
	return result.conclude(cfg, runs)
}

// play lets all agents work in a new repository, and counts what came of it.
func (r *codingRun) play(ctx context.Context, agents int) error {
	if err := makeShop(ctx, r.dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.began = time.Now()
	var all sync.WaitGroup
	for i := range agents {
		a := &codingAgent{name: fmt.Sprintf("agent-%d", i+1), feature: features[i], run: r}
		all.Go(func() {
			if err := a.work(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", a.name, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.result.TookMS = time.Since(r.began).Milliseconds()
	for i := range agents {
		for _, edit := range edits(features[i]) {
			text, err := os.ReadFile(filepath.Join(r.dir, edit.file))
			if err != nil {
				return err
			}
			r.result.Edits++
			if !strings.Contains(string(text), edit.line) {
				r.result.Lost++
			}
		}
	}
	r.result.LastBroken = build(r.dir) != nil
	return nil
}

// work adds the agent's feature, in one turn.
func (a *codingAgent) work(ctx context.Context) error {
	for _, edit := range edits(a.feature) {
		if err := a.edit(ctx, edit); err != nil {
			return err
		}
	}
	_, err := a.ask(ctx, "AfterAgent", "", edit{}, "")
	return err
}

// edit reads a file, thinks, and writes it with the agent's line. When the hook denies the write, it
// begins again.
func (a *codingAgent) edit(ctx context.Context, e edit) error {
	path := filepath.Join(a.run.dir, e.file)
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := a.ask(ctx, "AfterTool", "read_file", e, ""); err != nil {
			return err
		}
		if err := pause(ctx, a.run.think); err != nil {
			return err
		}
		content := e.in(string(text))
		reason, err := a.ask(ctx, "BeforeTool", "write_file", e, content)
		if err != nil {
			return err
		}
		if reason != "" {
			a.run.refuse(a.name, e.file, reason)
			continue
		}
		if err := replace(path, content); err != nil {
			return err
		}
		a.run.wrote(a.name, e.file)
		_, err = a.ask(ctx, "AfterTool", "write_file", e, "")
		return err
	}
}

// replace writes a file at once, so that no build sees a half of it.
func replace(path, content string) error {
	part := fmt.Sprintf("%s.%d", path, time.Now().UnixNano())
	if err := os.WriteFile(part, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// ask sends an event of the agent to the hook program, and returns why it denies a tool; "" if it
// does not.
func (a *codingAgent) ask(ctx context.Context, event, tool string, e edit, content string) (reason string, err error) {
	if a.run.hook == nil {
		return "", nil
	}
	in := map[string]any{
		"session_id": a.name, "cwd": a.run.dir, "hook_event_name": event,
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano),
	}
	if tool != "" {
		input := map[string]any{"file_path": filepath.Join(a.run.dir, e.file)}
		if content != "" {
			input["content"] = content
		}
		in["tool_name"], in["tool_input"] = tool, input
	}
	asked := time.Now()
	reason, err = a.run.hook.ask(ctx, in)
	if event == "BeforeTool" {
		a.run.mu.Lock()
		a.run.result.WaitingMS += time.Since(asked).Milliseconds()
		a.run.mu.Unlock()
	}
	return reason, err
}

func (r *codingRun) say(format string, args ...any) {
	r.told = append(r.told, moment{time.Since(r.began), fmt.Sprintf(format, args...)})
}

func (r *codingRun) refuse(agent, file, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Refused++
	if r.denied == "" {
		r.denied = reason
	}
	r.say("%s may not write %s yet, and reads it again", agent, file)
}

// wrote counts an edit, and builds the repository.
func (r *codingRun) wrote(agent, file string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Builds++
	if err := build(r.dir); err != nil {
		r.result.Broken++
		r.say("%s writes %s; the build fails: %v", agent, file, err)
		return
	}
	r.say("%s writes %s", agent, file)
}

// hookProgram is the program that a harness runs for each event.
type hookProgram struct{ path, url string }

// newHookProgram finds the program beside the interlock binary.
func newHookProgram(binary, url string) (*hookProgram, error) {
	name := "interlock-hook"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(filepath.Dir(binary), name)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the hook program %s is missing: build it with make build", path)
	}
	return &hookProgram{path: path, url: url}, nil
}

// ask runs the program for one event of Gemini CLI, and returns why it denies the tool.
func (h *hookProgram) ask(ctx context.Context, event map[string]any) (reason string, err error) {
	text, err := json.Marshal(event)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, h.path, "gemini")
	cmd.Env = []string{"INTERLOCK_URL=" + h.url, "HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(string(text))
	cmd.Dir, _ = event["cwd"].(string)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the hook program: %w", err)
	}
	if len(out) == 0 {
		return "", nil
	}
	var answer struct{ Decision, Reason string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("the hook program printed no JSON: %w", err)
	}
	if answer.Decision == "deny" || answer.Decision == "block" {
		return answer.Reason, nil
	}
	return "", nil
}
