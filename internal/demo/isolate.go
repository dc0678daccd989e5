package demo

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
)

// The isolate scene: twenty coding agents change one program at the same time. Some change the same lines, and one
// renames a function that two others begin to call: each of these changes builds alone, and they fail together. First
// every agent pulls, rebases and pushes. Then each has a workspace, and submits to a merge queue.
//
//	agent            workspace, merge queue
//	new         ───► a folder and a private git directory
//	think, edit
//	submit      ───► merged in a fixed order, the merged tree is built
//	            ◄─── landed
//	            ◄─── returned: conflict, or the build fails: sync, decide again, submit again
//
// Where PostgreSQL is installed, two more agents migrate a database in both ways (isolate_migration.go).

// isolateRun is one run of all agents: all push, or each submits from a workspace.
type isolateRun struct {
	ctx    context.Context
	dir    string // of this run
	origin string // the bare repository
	think  time.Duration
	began  time.Time
	more   []string // variables of all programs

	mu     sync.Mutex // guards the fields below
	told   []moment
	result isolateResult
}

// isolateResult is the result of one run, as JSON.
type isolateResult struct {
	Changes    int   `json:"changes"`
	Lost       int   `json:"lost_changes"`
	Commits    int   `json:"commits"` // on the target, along first parents
	Red        int   `json:"red_commits"`
	Overwrote  int   `json:"conflicts_overwritten"` // the agent kept its own version of the file
	Returned   int   `json:"returned"`              // by the merge queue, and decided again
	TookMS     int64 `json:"took_ms"`
	LastBroken bool  `json:"ends_broken"`
}

// newIsolateRun makes the repository that the agents work on.
func newIsolateRun(ctx context.Context, dir string, think time.Duration) (*isolateRun, error) {
	r := &isolateRun{ctx: ctx, dir: dir, origin: filepath.Join(dir, "origin.git"), think: think}
	seed := filepath.Join(dir, "first")
	if err := firstProgram().write(seed); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message=The first program"},
		{"clone", "--quiet", "--bare", ".", r.origin},
	} {
		if _, err := r.git("founder", seed, args...); err != nil {
			return nil, err
		}
	}
	return r, os.RemoveAll(seed)
}

// play lets all agents work, each by the function given, and counts the results.
func (r *isolateRun) play(work func(isolateTask) error) error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	r.ctx, r.began = ctx, time.Now()
	var all sync.WaitGroup
	for _, task := range isolateTasks() {
		all.Go(func() {
			if err := work(task); err != nil {
				cancel(fmt.Errorf("%s: %w", task.agent, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.result.TookMS = time.Since(r.began).Milliseconds()
	return r.count()
}

// count looks at every commit of the target, and for every change in the last one.
func (r *isolateRun) count() error {
	list, err := r.git("founder", r.origin, "rev-list", "--first-parent", "--reverse", "main")
	if err != nil {
		return err
	}
	var last program
	for i, commit := range strings.Fields(list) {
		if last, err = r.at(commit); err != nil {
			return err
		}
		if broken := last.build(); i > 0 {
			r.result.Commits++
			if r.result.LastBroken = broken != nil; broken != nil {
				r.result.Red++
			}
		}
	}
	for _, t := range isolateTasks() {
		if r.result.Changes++; !t.done(last) {
			r.result.Lost++
		}
	}
	return nil
}

// at reads the program at a commit.
func (r *isolateRun) at(commit string) (program, error) {
	archive, err := r.git("founder", r.origin, "archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	p := program{}
	for files := tar.NewReader(strings.NewReader(archive)); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		if filepath.Ext(h.Name) != ".go" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		p[h.Name] = string(text)
	}
}

// say notes one event, with its time.
func (r *isolateRun) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, moment{time.Since(r.began), fmt.Sprintf(format, args...)})
}

// add counts one event in a field of the result.
func (r *isolateRun) add(counter *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}

// git runs git as an agent, without any configuration of the user, and returns its output.
func (r *isolateRun) git(agent, dir string, args ...string) (string, error) {
	out, err := r.output(agent, dir, "git", args...)
	if err != nil {
		return out, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// output runs a program as an agent. The error has what it wrote to standard error.
func (r *isolateRun) output(agent, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = launch.Attributes()
	cmd.Env = append(
		os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_EDITOR=true", "LC_ALL=C",
		"GIT_AUTHOR_NAME="+agent, "GIT_AUTHOR_EMAIL="+agent+"@localhost", "GIT_COMMITTER_NAME="+agent,
		"GIT_COMMITTER_EMAIL="+agent+"@localhost",
	)
	cmd.Env = append(cmd.Env, r.more...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// edit makes a change in the folder of an agent.
func (t *isolateTask) edit(dir string) error {
	p, err := readProgram(dir)
	if err != nil {
		return err
	}
	t.do(p)
	return p.write(dir)
}

// write writes the files of a program that are not there as they are.
func (p program) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range p {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
