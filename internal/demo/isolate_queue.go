package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/launch"
)

// maxReturns is how often an agent decides again.
const maxReturns = 6

// queue is how agents work through workspaces and a merge queue, with the commands that a person types: workspace new,
// think, edit, build, workspace submit. When the submission comes back, workspace sync, and the agent decides again.
type queue struct {
	*isolateRun
	binary, server, streams string
}

// startMerger runs interlock merge serve for a target, with one check, until the context ends.
func (q *queue) startMerger(ctx context.Context, target, check string, runners int) (stop func() error, err error) {
	log, err := os.OpenFile(filepath.Join(q.dir, "merge.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(
		ctx, q.binary, "merge", "serve", target, "--repo", q.origin, "--runners", fmt.Sprint(runners),
		"--max-tries", fmt.Sprint(maxReturns), "--check", check, "--agent", "merger",
	)
	cmd.Env = q.env("merger")
	cmd.Stderr = log
	cmd.SysProcAttr = launch.Attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan bool, 1)
	ended := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- true
			}
		}
		ended <- errors.Join(cmd.Wait(), log.Close())
	}()
	stop = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		return <-ended
	}
	select {
	case <-ready:
		return stop, nil
	case err := <-ended:
		return nil, fmt.Errorf("interlock merge serve ended early, see %s: %w", log.Name(), err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (q *queue) env(agent string) []string {
	return append(append(
		os.Environ(), "INTERLOCK_URL="+q.server, "INTERLOCK_GRPC="+q.streams, "INTERLOCK_AGENT="+agent,
		"INTERLOCK_WORKSPACES="+filepath.Join(q.dir, "workspaces"), "INTERLOCK_MIN_FREE=0",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
	), q.more...)
}

// interlock runs a command of an agent, and returns its output and its exit code.
func (q *queue) interlock(agent, dir string, args ...string) (stdout, stderr string, code int, err error) {
	cmd := exec.CommandContext(q.ctx, q.binary, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, q.env(agent), launch.Attributes()
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && q.ctx.Err() == nil && exit.ExitCode() > 0 {
		return out.String(), complaint.String(), exit.ExitCode(), nil
	}
	return out.String(), complaint.String(), 0, err
}

// must is interlock for a command that has to succeed.
func (q *queue) must(agent, dir string, args ...string) (string, error) {
	out, complaint, code, err := q.interlock(agent, dir, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("interlock %s ended with %d: %s", strings.Join(args[:2], " "), code, complaint)
	}
	return strings.TrimSpace(out), err
}

// work makes the change of one agent.
func (q *queue) work(t isolateTask) error {
	dir, err := q.must(
		t.agent, q.dir, "workspace", "new", t.agent, "--repo", q.origin, "--repo-name", "shop", "--target", "main",
		"--purpose", t.purpose,
	)
	if err != nil {
		return err
	}
	if err := pause(q.ctx, q.think); err != nil {
		return err
	}
	if err := t.edit(dir); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		if err := build(dir); err != nil {
			return err
		}
		_, complaint, code, err := q.interlock(
			t.agent, dir, "workspace", "submit", "--all", "--message", t.purpose, "--wait", "90s",
		)
		switch {
		case err != nil:
			return err
		case code == 0:
			return nil
		case code != exitReturned || tries == maxReturns:
			return fmt.Errorf("interlock workspace submit ended with %d: %s", code, complaint)
		}
		q.add(&q.result.Returned)
		q.say("%s (%s) is returned: %s", t.agent, t.purpose, reasonOf(complaint))
		if err := q.again(t, dir); err != nil {
			return err
		}
	}
}

// deleteWorkspaces ends the mounts of the agents' files. What has not landed is kept under a ref of the repository.
func (q *queue) deleteWorkspaces() (err error) {
	for _, t := range isolateTasks() {
		if _, statErr := os.Stat(filepath.Join(q.dir, "workspaces", "shop", t.agent)); statErr != nil {
			continue
		}
		_, deleteErr := q.must(t.agent, q.dir, "workspace", "delete", t.agent, "--repo-name", "shop", "--force")
		err = errors.Join(err, deleteErr)
	}
	return err
}

// exitReturned is the exit code of workspace submit for a returned submission, and of workspace sync for conflicts.
const exitReturned = 65

// again takes the target into the workspace, and makes the change anew in what the target has now.
func (q *queue) again(t isolateTask, dir string) error {
	_, complaint, code, err := q.interlock(t.agent, dir, "workspace", "sync")
	if err != nil {
		return err
	}
	if code != 0 && code != exitReturned {
		return fmt.Errorf("interlock workspace sync ended with %d: %s", code, complaint)
	}
	list, err := q.git(t.agent, dir, "diff", "--name-only", "--diff-filter=U")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(list) {
		// In a merge, "theirs" is the target.
		if _, err := q.git(t.agent, dir, "checkout", "--quiet", "--theirs", "--", file); err != nil {
			return err
		}
	}
	if err := t.edit(dir); err != nil {
		return err
	}
	_, err = q.git(t.agent, dir, "add", "--all")
	return err
}

// maxReason is how many bytes of a reason the story prints.
const maxReason = 110

// reasonOf is why a submission came back: the beginning of the last line of the complaint.
func reasonOf(complaint string) string {
	lines := strings.Split(strings.TrimSpace(complaint), "\n")
	reason := lines[len(lines)-1]
	for _, prefix := range []string{"interlock: ", "returned: ", "Your change is kept. ", "Your change is kept, and "} {
		reason = strings.TrimPrefix(reason, prefix)
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "..."
	}
	return reason
}
