package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// Access is what programs in a room get besides the workspace.
type Access struct {
	// Read and Write list further paths that are visible in the sandbox.
	Read, Write []string
	// Config is more configuration of git, as "name=value". It is stronger than all that the agent configured.
	Config []string
	// Env has more variables, as "NAME=VALUE".
	Env []string
}

// Room is a workspace that was opened to run git, and programs that git starts, on what an agent writes: the tree and
// the private git directory. They run in a sandbox that sees the workspace as the agent does, the objects that it
// borrows, and the system directories: no network, no home directory, no vault. So whatever the agent configured,
// linked or changes meanwhile, nothing outside changes. What they print is the agent's word: use it to find work and to
// bring objects over (see take), and compute what others rely on in the vault.
//
// Each run ends after 15 minutes, or as soon as it waits for a named pipe.
//
// Where bubblewrap does not work there is no sandbox, and no agent was ever in one. There git runs on a view: a git
// directory of ours with copies from the agent's, without its configuration, hooks and links. Close carries
// what git changed back into the agent's.
type Room struct {
	// Git runs git in the tree, with the agent's configuration in the sandbox, and with ours in a view.
	Git  *git.Repository
	w    *Workspace
	view *view // nil in a sandbox

	conversions *conversions
}

// Open returns a room of the workspace, after a look at the private git directory (ErrBroken). The tree is mounted if
// it has to be. Close it.
func (w *Workspace) Open(ctx context.Context, a Access) (*Room, error) {
	if _, err := w.examine(); err != nil {
		return nil, err
	}
	return w.open(ctx, w.GitDir(), a)
}

// open opens a room on a git directory of ours, or on the agent's.
func (w *Workspace) open(ctx context.Context, gitDir string, a Access) (*Room, error) {
	prefix, err := w.Enter(ctx, ".")
	if err != nil {
		return nil, err
	}
	c, err := w.converting(ctx)
	if err != nil {
		return nil, err
	}
	own, err := w.refresh(c)
	if err != nil && gitDir == w.GitDir() {
		return nil, w.broken("the settings for git cannot be written to %s (%v)", gitDir, err)
	}
	r := &Room{w: w, conversions: c, Git: &git.Repository{
		Dir: gitDir, WorkTree: w.Path(), Config: slices.Concat(roomConfig(), own.Config, a.Config), Guard: w.guard,
		Env: slices.Concat(w.Author.env(), own.Env, a.Env),
	}}
	if !w.host.sandboxed() {
		r.Git.Through, r.Git.Config = prefix, append(r.Git.Config, c.without()...)
		if gitDir != w.GitDir() {
			return r, nil
		}
		if r.view, err = w.makeView(); err != nil {
			return nil, err
		}
		r.Git.Dir = r.view.dir
		return r, nil
	}
	r.Git.Env = append([]string{"TMPDIR=/tmp"}, r.Git.Env...)
	// A git that reads a link to an endless file ends here, not the machine.
	r.Git.Through = []string{"sh", "-c", `ulimit -d 8388608; exec "$@"`, "sh"}
	box := sandbox.Config{
		Net: sandbox.NetOff, Read: slices.Concat(w.Borrowed(), gitPrefix(), own.Read, a.Read),
		Write: slices.Concat([]string{w.Path(), gitDir}, a.Write),
	}
	r.Git.Wrap = func(cmd *exec.Cmd) (func(), error) {
		done, err := sandbox.Wrap(cmd, box)
		if err != nil || len(prefix) == 0 {
			return done, err
		}
		cmd.Args = slices.Concat(prefix, cmd.Args)
		cmd.Path, cmd.Err = exec.LookPath(prefix[0])
		return done, nil
	}
	return r, nil
}

// Close ends the use of a room.
func (r *Room) Close() error {
	if r.view == nil {
		return nil
	}
	return r.view.close()
}

// Run runs a program in the tree, with the environment of git. Its output goes to out, and what it complains of into
// the error.
func (r *Room) Run(ctx context.Context, in io.Reader, out io.Writer, argv ...string) error {
	return r.start(ctx, in, out, slices.Concat(r.Git.Through, argv)...)
}

// start does it with the whole command line.
func (r *Room) start(ctx context.Context, in io.Reader, out io.Writer, argv ...string) error {
	ctx, stop := r.Git.Guard(ctx)
	defer stop()
	name := argv[0]
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = r.w.Path(), r.Git.Environ()
	git.Alone(cmd)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &writeLimit{to: &complaint, left: 64 << 10}
	if r.Git.Wrap != nil {
		done, err := r.Git.Wrap(cmd)
		if err != nil {
			return err
		}
		defer done()
	}
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return &git.Error{
			Command: name, Exit: cmd.ProcessState.ExitCode(), Stderr: strings.TrimSpace(complaint.String()), Err: err,
		}
	}
	return nil
}

// roomConfig is the configuration of git in a room: an agent that hides work from its own git does not hide it here.
func roomConfig() []string {
	return []string{
		"core.ignoreStat=false", "diff.ignoreSubmodules=none", "status.submoduleSummary=false",
		"status.aheadBehind=false",
	}
}

// sandboxed reports whether rooms are sandboxes.
func (h *Host) sandboxed() bool { return !h.noSandbox && sandbox.Wraps() == nil }

// gitPrefix is the folder where git is installed, if that is none of the system's.
func gitPrefix() []string {
	path, err := exec.LookPath("git")
	if err != nil || sandbox.System(path) {
		return nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil
	}
	if prefix := filepath.Dir(filepath.Dir(path)); prefix != "/" && filepath.Base(filepath.Dir(path)) == "bin" {
		return []string{prefix}
	}
	return []string{filepath.Dir(path)}
}

// gitFailed names the workspace where git fails on what the agent wrote.
func (w *Workspace) gitFailed(err error) error {
	failure, ok := errors.AsType[*git.Error](err)
	if !ok || failure.DiskFull() {
		return err
	}
	if refused := w.filterFailed(context.Background(), err); refused != err {
		return refused
	}
	why := cmp.Or(firstLines(failure.Stderr, 2), fmt.Sprint(failure.Err))
	return w.broken("git fails in %s (%s)", w.GitDir(), why)
}

// hasFile reports whether the private git directory has a name, such as that of a merge that goes on.
func (r *Room) hasFile(name string) bool { return exists(filepath.Join(r.Git.Dir, name)) }
