package boundarytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/merge/merger"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

func TestWorlds(t *testing.T) {
	tools.Need(t, "git")
	server := launchtest.Start(t, launch.Config{DataDir: filepath.Join(t.TempDir(), "data")})
	from, to := search.SeedsOfNight(t, 0, 2, 8, 2000)
	for seed := from; seed < to && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, server, seed).live() })
	}
}

// world is a repository with a merger, and the agents that work on it.
type world struct {
	*testing.T
	rng      *rand.Rand
	server   *launch.Server
	client   *client.Client
	dir      string
	upstream string // the bare repository, which has the target
	checkout string // a clone, which workspaces are made from
	outside  string // a folder that nothing may change
	repo     string // its name in keys
	begin    string // the first commit
	before   string // what the checkout is like
	env      []string
	flaky    bool
	agents   []*agent
	tokens   int
	safe     map[string]string // tokens of deleted workspaces, and where they were
	sent     map[string]*submission
	order    []string        // of sent
	frozen   string          // the reason of the freeze; "" if the target is not frozen
	frozenAt string          // the target then
	excepted map[string]bool // agents that land in it
	single   bool            // one submission is checked at a time
	merging  *process
	story    []string // what has happened, for the report of a failure

	mu     sync.Mutex
	passed map[string]bool // trees
	gate   chan struct{}   // while it is there no check ends
}

// submission is a task of the merge queue, and the commit that it names.
type submission struct {
	agent     string
	head      string
	workspace string
	odd       bool   // its author had done what may be refused
	prior     bool   // it has a priority
	on        string // the one that it builds on
	passes    string // one that it passes by its priority
	disturbed bool   // what happened around it may have changed its place
	outcome   merger.Outcome
}

// Names of the files of a new world; each has lines enough for changes that do not touch each other.
var firstFiles = []string{"a.txt", "b.txt", "src/c.txt", "src/d.txt", "src/deep/e.txt"}

const firstLines = 12

func newWorld(t *testing.T, server *launch.Server, seed uint64) *world {
	dir := t.TempDir()
	w := &world{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), server: server, dir: dir, repo: fmt.Sprintf("w%d", seed),
		upstream: filepath.Join(dir, "upstream.git"), checkout: filepath.Join(dir, "checkout"),
		outside: filepath.Join(dir, "outside"), safe: map[string]string{}, sent: map[string]*submission{},
		passed: map[string]bool{},
	}
	t.Cleanup(w.unmount)
	home := filepath.Join(dir, "home")
	w.write(filepath.Join(home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n[core]\n\tfsync = none\n")
	w.write(filepath.Join(w.outside, "precious"), "precious\n")
	w.env = append(
		slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "INTERLOCK_") || strings.HasPrefix(v, "XDG_")
		}),
		"HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "INTERLOCK_URL=http://"+server.HTTP, "INTERLOCK_GRPC="+server.GRPC,
		"INTERLOCK_WORKSPACES="+filepath.Join(dir, "workspaces"), "INTERLOCK_MIN_FREE=0",
	)
	w.git(dir, "init", "--quiet", "--bare", "--initial-branch=main", w.upstream)
	w.git(dir, "clone", "--quiet", w.upstream, w.checkout)
	w.git(w.checkout, "checkout", "--quiet", "-B", "main")
	for _, path := range firstFiles {
		text := ""
		for line := range firstLines {
			text += fmt.Sprintf("%s %d\n", path, line)
		}
		w.write(filepath.Join(w.checkout, path), text)
	}
	w.write(filepath.Join(w.checkout, ".gitignore"), "ignored/\n")
	w.git(w.checkout, "add", "--all")
	w.git(w.checkout, "commit", "--quiet", "-m", "first")
	w.git(w.checkout, "push", "--quiet", "origin", "main")
	w.begin = w.git(w.checkout, "rev-parse", "HEAD")
	w.git(w.checkout, "checkout", "--quiet", "-b", "mine")
	w.before = w.surroundings()
	w.flaky, w.single = w.rng.IntN(4) == 0, w.rng.IntN(2) == 0
	c, err := client.Dial(busy.Context(t), client.Config{Addrs: []string{server.GRPC}, Agent: "model"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	w.client = c
	for i := range 3 {
		w.agents = append(w.agents, &agent{world: w, name: fmt.Sprintf("agent-%d", i)})
	}
	return w
}

// live has the agents work, and then audits the world.
func (w *world) live() {
	defer func() {
		if w.Failed() {
			log, _ := os.ReadFile(filepath.Join(w.dir, "merger.log"))
			w.Logf("the world:\n%s\nthe merger:\n%s", strings.Join(w.story, "\n"), log)
		}
	}()
	ctx, end := context.WithCancel(context.Background())
	var checks sync.WaitGroup
	defer func() {
		end()
		checks.Wait()
	}()
	w.startMerger()
	queue := merger.Name{Repo: w.repo, Target: "main"}.Queue()
	busy.Wait(w, "the merger makes its queue", func() bool {
		queues, err := w.client.Queues(ctx)
		return err == nil && slices.ContainsFunc(queues, func(q interlock.QueueStatus) bool { return q.Name == queue })
	})
	checks.Go(func() { w.check(ctx) })
	for range 30 + w.rng.IntN(30) {
		if w.Failed() {
			return
		}
		if n := w.rng.IntN(30); n < 2 {
			if w.frozen == "" {
				w.freeze()
			} else {
				w.thaw()
			}
			continue
		} else if n == 2 {
			w.rush()
			continue
		}
		if w.rng.IntN(25) == 0 {
			w.tell("the merger is killed")
			w.disturb()
			w.merging.kill()
			w.startMerger()
			continue
		}
		w.agents[w.rng.IntN(len(w.agents))].act()
	}
	for _, a := range w.agents {
		if a.tree != "" {
			a.delete(true)
		}
	}
	if w.frozen != "" {
		w.thaw()
	}
	w.settle()
	w.audit()
}

// unmount unmounts the overlays that a failed world leaves, so that its folder can be removed.
func (w *world) unmount() {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return // a system without them has no overlays
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); strings.HasPrefix(f[4], w.dir+"/") {
			_ = exec.Command("umount", f[4]).Run()
		}
	}
}

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// token returns a word that nothing else has.
func (w *world) token() string {
	w.tokens++
	return fmt.Sprintf("token-%s-%d;", w.repo, w.tokens)
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644),
	); err != nil {
		w.Fatal(err)
	}
}

// git runs git as a person would, and must succeed.
func (w *world) git(folder string, args ...string) string {
	w.Helper()
	out, err := w.try(folder, append([]string{"git"}, args...)...)
	if err != nil {
		w.Fatalf("git %q in %s: %v\n%s", args, folder, err, out)
	}
	return out
}

// try runs a command, and returns all that it prints.
func (w *world) try(folder string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = folder, w.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// answer is how a command of interlock ended.
type answer struct {
	code        int
	out, errors string
}

// interlock runs a command for an agent. One that does not end fails the test.
func (w *world) interlock(agent, folder string, args ...string) answer {
	w.Helper()
	ctx := busy.Context(w)
	cmd := exec.CommandContext(ctx, launchtest.Binary(w), args...)
	cmd.Dir, cmd.Env = folder, append(slices.Clip(w.env), "INTERLOCK_AGENT="+agent)
	cmd.SysProcAttr = launch.Attributes()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	before := w.precious() // an agent that is in no sandbox may have written there itself
	err := cmd.Run()
	if after := w.precious(); after != before {
		w.Errorf("interlock %q changed a folder outside from\n%s\nto\n%s", args, before, after)
	}
	if ctx.Err() != nil {
		w.Fatalf("interlock %q does not end: %s", args, errs.String())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.Fatal(err)
	}
	a := answer{cmd.ProcessState.ExitCode(), strings.TrimSpace(out.String()), strings.TrimSpace(errs.String())}
	w.tell("%s: interlock %s: %d %s %s", agent, strings.Join(args, " "), a.code, a.out, a.errors)
	return a
}

// process is a running merger.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended
}

// kill kills the merger, unless it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// startMerger starts a merger, with the check in this process.
func (w *world) startMerger() {
	w.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, "merger.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.Fatal(err)
	}
	args := []string{
		"merge", "serve", w.repo + "/main", "--repo", w.upstream, "--check", "unit=", "--max-tries", "1000", "--ttl", "2s",
		"--agent", "merger",
	}
	if w.single {
		args = append(args, "--runners", "1", "--max-batch", "1")
	}
	cmd := exec.Command(launchtest.Binary(w), args...)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = w.env, log, launch.Attributes()
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = log.Close()
		close(p.ended)
	}()
	w.merging = p
	w.Cleanup(p.kill)
}

// check is the worker of the checks: a tree is bad if a file has the word bad. In a flaky world some runs fail for
// nothing.
func (w *world) check(ctx context.Context) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 2))
	queue := merger.Name{Repo: w.repo, Target: "main"}.CheckQueue("unit")
	busy.Wait(w, "the queue of the checks", func() bool {
		queues, err := w.client.Queues(ctx)
		return err == nil && slices.ContainsFunc(queues, func(q interlock.QueueStatus) bool { return q.Name == queue }) ||
			ctx.Err() != nil
	})
	err := w.client.Work(ctx, client.Worker{
		Queue: queue, Concurrency: 1, Drain: time.Millisecond,
		Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			w.pass(ctx)
			var c merger.Check
			if err := job.Decode(&c); err != nil {
				return client.Done{}, err
			}
			if w.flaky && rng.IntN(4) == 0 {
				return client.Done{}, errors.New("flaky")
			}
			out, err := w.try(w.upstream, "git", "grep", "--quiet", "-w", "bad", c.Tree)
			if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 1 {
				return client.Done{}, fmt.Errorf("the tree %s is bad: %v %s", c.Tree, err, out)
			}
			w.mu.Lock()
			w.passed[c.Tree] = true
			w.mu.Unlock()
			return client.Done{}, nil
		},
	})
	if err != nil && ctx.Err() == nil {
		w.Errorf("the worker of the checks: %v", err)
	}
}

// settle waits for the outcome of each submission.
func (w *world) settle() {
	w.Helper()
	for id, s := range w.sent {
		task, err := interlock.ParseTaskID(id)
		if err != nil {
			w.Fatal(err)
		}
		settled, err := w.client.Await(busy.Context(w), task)
		if refused, ok := errors.AsType[*interlock.Error](err); ok && refused.Code == interlock.CodeTaskSettled {
			settled, err = w.client.Task(busy.Context(w), task)
		}
		if err != nil {
			w.Fatalf("%s of %s has no outcome: %v", id, s.agent, err)
		}
		switch settled.State {
		case interlock.TaskDone:
			if err := json.Unmarshal(settled.Result, &s.outcome); err != nil {
				w.Fatal(err)
			}
		case interlock.TaskCancelled:
			s.outcome.Code = merger.Withdrawn
		default:
			w.Errorf("the task %s of %s is %s", id, s.agent, settled.State)
		}
		w.tell("%s of %s: %s %s", id, s.agent, s.outcome.Code, s.outcome.Message)
	}
	_ = w.merging.cmd.Process.Signal(syscall.SIGTERM)
	<-w.merging.ended
	if w.merging.err != nil {
		w.Errorf("the merger ended: %v", w.merging.err)
	}
}
