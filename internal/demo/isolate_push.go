package demo

import (
	"path/filepath"
	"strings"
)

// push is how agents work without a merge queue: clone, think, edit, build, and then push; while that is refused, pull
// with a rebase and push again. In a conflict an agent keeps its own version of the file, since it cannot know what
// the other one wanted. The build ran before the rebase.
func (r *isolateRun) push(t isolateTask) error {
	dir := filepath.Join(r.dir, t.agent)
	if _, err := r.git(t.agent, r.dir, "clone", "--quiet", r.origin, dir); err != nil {
		return err
	}
	if err := pause(r.ctx, r.think); err != nil {
		return err
	}
	if err := t.edit(dir); err != nil {
		return err
	}
	if err := build(dir); err != nil {
		return err
	}
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--message=" + t.purpose}} {
		if _, err := r.git(t.agent, dir, args...); err != nil {
			return err
		}
	}
	for {
		if _, err := r.git(t.agent, dir, "push", "--quiet", "origin", "main"); err == nil {
			return nil
		}
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err := r.pull(t, dir); err != nil {
			return err
		}
	}
}

// pull rebases the agent's commit onto the target.
func (r *isolateRun) pull(t isolateTask, dir string) error {
	_, err := r.git(t.agent, dir, "pull", "--quiet", "--rebase", "origin", "main")
	if err == nil {
		return nil
	}
	list, listErr := r.git(t.agent, dir, "diff", "--name-only", "--diff-filter=U")
	files := strings.Fields(list)
	if listErr != nil || len(files) == 0 {
		return err
	}
	for _, file := range files {
		// In a rebase, "theirs" is the commit that is being applied: the agent's own.
		if _, err := r.git(t.agent, dir, "checkout", "--quiet", "--theirs", "--", file); err != nil {
			return err
		}
		r.add(&r.result.Overwrote)
	}
	r.say("%s (%s) resolves a conflict in %s with its own version", t.agent, t.purpose, strings.Join(files, ", "))
	if _, err := r.git(t.agent, dir, "add", "--all"); err != nil {
		return err
	}
	_, err = r.git(t.agent, dir, "rebase", "--continue")
	return err
}
