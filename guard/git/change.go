package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// update is one line of a pre-receive hook's input: a ref and what it was and is to
// be.
type update struct{ old, new, ref string }

func (u *update) creates() bool { return isZero(u.old) }
func (u *update) deletes() bool { return isZero(u.new) }

// isZero reports whether an object's name is the one that stands for none.
func isZero(name string) bool { return strings.Trim(name, "0") == "" }

// maxUpdates bounds how many refs one push may change.
const maxUpdates = 10_000

func readUpdates(in io.Reader) (updates []update, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3)
		if len(fields) != 3 || !isObject(fields[0]) || !isObject(fields[1]) || fields[2] == "" {
			return nil, fmt.Errorf(
				"the input of the hook has the line %q: want OLD NEW REF, as git gives them to pre-receive", lines.Text(),
			)
		}
		if len(updates) == maxUpdates {
			return nil, fmt.Errorf("the push changes more than %d refs: push them in parts", maxUpdates)
		}
		updates = append(updates, update{fields[0], fields[1], fields[2]})
	}
	return updates, lines.Err()
}

// isObject reports whether s is the full name of an object, in SHA-1 or SHA-256. Anything else
// would be an option or a revision to git.
func isObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// repository runs git in the hook's directory and environment, so that it sees the
// objects of the push, which are in quarantine.
type repository struct{ dir string }

func (r *repository) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	// Refs that a push puts below refs/replace must not change the comparison.
	cmd.Env = append(os.Environ(), "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	return cmd, &complaint
}

// lines runs git and returns its output, line by line. ok is false when it exits with 1,
// which for some commands is an answer.
func (r *repository) lines(ctx context.Context, args ...string) (lines []string, ok bool, err error) {
	cmd, complaint := r.command(ctx, args...)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == 1 {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, gitFailed(args[0], err, complaint)
	}
	if text := strings.TrimSuffix(string(out), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	return lines, true, nil
}

func gitFailed(command string, err error, complaint *bytes.Buffer) error {
	return fmt.Errorf("git %s: %w: %s", command, err, strings.TrimSpace(complaint.String()))
}

// errTooMany reports that a push changes more paths than may be asked about.
var errTooMany = errors.New("too many paths")

// changed lists the paths that updates change, in order, at most limit.
//
// For a ref that moves they are the paths in which its two commits differ, forced or not. A new
// ref changes what it has beyond the refs that there are: its difference from the best common
// ancestor with them. A ref that goes changes what goes with it: its difference from the best
// common ancestor with those that stay. A rename is two paths, and a submodule one. refs
// selects the refs that count.
func (r *repository) changed(
	ctx context.Context, updates []update, refs func(string) bool, limit int,
) ([]string, error) {
	tips, err := r.tips(ctx, refs)
	if err != nil {
		return nil, err
	}
	staying := map[string]string{}
	for ref, commit := range tips {
		staying[ref] = commit
	}
	for i := range updates {
		delete(staying, updates[i].ref)
	}
	all := map[string]bool{}
	for i := range updates {
		u := &updates[i]
		if !refs(u.ref) {
			continue
		}
		var paths map[string]bool
		switch {
		case u.creates() && u.deletes():
		case u.creates():
			paths, err = r.beyond(ctx, u.new, tips, limit)
		case u.deletes():
			paths, err = r.beyond(ctx, u.old, staying, limit)
		default:
			paths, err = r.difference(ctx, u.old, u.new, limit)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.ref, err)
		}
		for path := range paths {
			all[path] = true
		}
		if len(all) > limit {
			return nil, errTooMany
		}
	}
	list := make([]string, 0, len(all))
	for path := range all {
		list = append(list, path)
	}
	slices.Sort(list)
	return list, nil
}

// tips returns the commits of the refs that count.
func (r *repository) tips(ctx context.Context, refs func(string) bool) (map[string]string, error) {
	lines, _, err := r.lines(ctx, "for-each-ref", "--format=%(objecttype) %(objectname) %(refname)")
	if err != nil {
		return nil, err
	}
	tips := map[string]string{}
	for _, line := range lines {
		fields := strings.SplitN(line, " ", 3)
		if len(fields) == 3 && fields[0] == "commit" && refs(fields[2]) {
			tips[fields[2]] = fields[1]
		}
	}
	return tips, nil
}

// beyond returns the paths in which a commit differs from its common ancestor with tips.
// Where there are several best common ancestors, a path counts that differs from each of them.
func (r *repository) beyond(
	ctx context.Context, commit string, tips map[string]string, limit int,
) (map[string]bool, error) {
	args := []string{"merge-base", "--all", commit}
	known := map[string]bool{}
	for _, tip := range tips {
		if !known[tip] {
			known[tip] = true
			args = append(args, tip)
		}
	}
	var bases []string
	if len(known) > 0 {
		var err error
		if bases, _, err = r.lines(ctx, args...); err != nil {
			return nil, err
		}
	}
	if len(bases) == 0 {
		empty, _, err := r.lines(ctx, "hash-object", "-t", "tree", os.DevNull)
		if err != nil || len(empty) != 1 {
			return nil, fmt.Errorf("git hash-object: %w", err)
		}
		bases = empty
	}
	paths, err := r.difference(ctx, bases[0], commit, limit)
	for _, base := range bases[1:] {
		if err != nil {
			return nil, err
		}
		var others map[string]bool
		others, err = r.difference(ctx, base, commit, limit)
		for path := range paths {
			if !others[path] {
				delete(paths, path)
			}
		}
	}
	return paths, err
}

// difference returns the paths in which two commits or trees differ.
func (r *repository) difference(ctx context.Context, from, to string, limit int) (map[string]bool, error) {
	return r.paths(ctx, limit, "--end-of-options", from, to)
}

// committed lists the paths that a commit changes, in order; those of a merge differ from all of its
// parents.
func (r *repository) committed(ctx context.Context, commit string, limit int) ([]string, error) {
	paths, err := r.paths(ctx, limit, "--root", "-c", "--no-commit-id", "--end-of-options", commit)
	if errors.Is(err, errTooMany) {
		return nil, fmt.Errorf("the range changes more than --max-paths allows: %w", err)
	}
	return slices.Sorted(maps.Keys(paths)), err
}

// paths returns what git diff-tree lists.
func (r *repository) paths(ctx context.Context, limit int, args ...string) (map[string]bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, complaint := r.command(
		ctx, append([]string{
			"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none",
		}, args...)...,
	)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	in := bufio.NewReader(out)
	for {
		path, err := in.ReadString(0)
		if err != nil {
			break // its exit code reports what went wrong
		}
		paths[strings.TrimSuffix(path, "\x00")] = true
		if len(paths) > limit {
			cancel()
			_ = cmd.Wait()
			return nil, errTooMany
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, gitFailed("diff-tree", err, complaint)
	}
	return paths, nil
}
