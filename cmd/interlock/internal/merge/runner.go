package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/confine"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/scratch"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// runner runs one check's command on the trees that the merger wants checked.
type runner struct {
	repo    git.Repository
	command string
	box     *confine.Flags // nil: no sandbox
	log     *slog.Logger
}

const (
	// killAfter is how long a check may take to end after SIGTERM.
	killAfter = 5 * time.Second
	// maxReport is how much of a failed check's output goes into the verdict.
	maxReport = 3 << 10
)

// handle runs the command in a folder with the files of the commit.
func (r *runner) handle(ctx context.Context, j *client.Job) (client.Done, error) {
	var c merger.Check
	if err := j.Decode(&c); err != nil {
		return client.Done{}, err
	}
	dir, err := scratch.New("check")
	if err != nil {
		return client.Done{}, err
	}
	defer dir.Remove()
	tree := dir.Path("tree")
	if err := r.checkOut(ctx, c.Commit, dir, tree); err != nil {
		return client.Done{}, fmt.Errorf("the tree could not be checked out: %w", err)
	}
	began := time.Now()
	report, err := r.run(ctx, &c, dir, tree)
	if ctx.Err() != nil {
		return client.Done{}, context.Cause(ctx) // no verdict
	}
	took := time.Since(began).Milliseconds()
	r.log.Info("checked", "check", c.Check, "tree", c.Tree, "passed", err == nil, "took_ms", took)
	if err != nil {
		return client.Done{Result: merger.Report{Failed: true, Tail: fmt.Sprintf("%s\n%v", report, err)}}, nil
	}
	return client.Done{}, nil
}

// checkOut writes the files of a commit into a folder, by an index of its own.
func (r *runner) checkOut(ctx context.Context, commit string, dir *scratch.Folder, tree string) error {
	if err := git.CheckObject(commit); err != nil {
		return err
	}
	if err := os.Mkdir(tree, 0o777); err != nil {
		return err
	}
	repo := r.repo
	repo.WorkTree = tree
	env := []string{"GIT_INDEX_FILE=" + dir.Path("index")}
	for _, args := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--force"}} {
		if _, err := repo.Run(ctx, git.Call{Args: args, Env: env}); err != nil {
			return err
		}
	}
	return nil
}

// run runs the command, and returns the end of its output.
func (r *runner) run(
	ctx context.Context, c *merger.Check, dir *scratch.Folder, tree string,
) (report string, err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return "", err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer nothing.Close()
	out, err := os.Create(dir.Path("report"))
	if err != nil {
		return "", err
	}
	defer out.Close()
	j := &job.Job{
		Path: shell, Argv: []string{"sh", "-c", `cd "$INTERLOCK_CHECKOUT" && eval "$INTERLOCK_COMMAND"`},
		Env: r.environment(c, tree), Files: []*os.File{nothing, out, out}, KillAfter: killAfter, Lost: ctx.Done(),
		Background: true,
	}
	end := func(int) (limits []string, err error) { return nil, nil }
	if r.box != nil {
		s, err := box(r.box, j.Argv, j.Env, tree)
		if err != nil {
			return "", err
		}
		j.Path, j.Argv, j.Env, j.Started = s.Path(), s.Args(), s.Environ(), s.Started
		j.Files = s.Files(nothing, out, out)
		end = func(code int) ([]string, error) {
			err := s.Close()
			return r.box.Reached(s, code), err
		}
	}
	result, err := j.Run()
	limits, failed := end(result.Code())
	err = errors.Join(err, failed)
	report = tail(out)
	switch {
	case err != nil:
		return report, err
	case result.Status.Signaled():
		return report, fmt.Errorf("the check was ended by signal %v", result.Status.Signal())
	case result.Code() != 0 && len(limits) > 0:
		return report, fmt.Errorf(
			"exit code %d: %s; the limit is that of the merge queue", result.Code(), strings.Join(limits, "; "),
		)
	case result.Code() != 0:
		return report, fmt.Errorf("exit code %d", result.Code())
	}
	return report, nil
}

// box makes the sandbox of a check: it can write to its tree, and has no network of the machine unless that was asked.
func box(flags *confine.Flags, argv, env []string, tree string) (*sandbox.Sandbox, error) {
	cfg := sandbox.Config{Argv: argv, Env: env, Dir: tree, Write: []string{tree}}
	flags.Into(&cfg)
	return sandbox.New(cfg)
}

// tryBox fails if no check could run in its sandbox, and describes the sandbox.
func tryBox(ctx context.Context, flags *confine.Flags) (string, error) {
	dir, err := scratch.New("check")
	if err != nil {
		return "", err
	}
	defer dir.Remove()
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer nothing.Close()
	s, err := box(flags, []string{"sh", "-c", "true"}, os.Environ(), dir.Path())
	if err != nil {
		return "", err
	}
	text := confine.Describe(s, flags.Net())
	code, err := s.Run(ctx, nothing, nothing, nothing)
	if err == nil && code != 0 {
		err = fmt.Errorf("a command in the sandbox ends with exit code %d", code)
	}
	return text, err
}

// environment is ours without our own variables: a check is code of agents, and must not see the credential.
func (r *runner) environment(c *merger.Check, tree string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "INTERLOCK_") })
	return append(
		env, "INTERLOCK_CHECKOUT="+tree, "INTERLOCK_COMMAND="+r.command, "INTERLOCK_COMMIT="+c.Commit,
		"INTERLOCK_TREE="+c.Tree, "INTERLOCK_CHECK="+c.Check, "PWD="+tree,
	)
}

// tail is the end of a report.
func tail(f *os.File) string {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, maxReport))
	n, err := f.ReadAt(text, size-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.TrimSpace(cli.CleanLines(strings.ToValidUTF8(string(text[:n]), "")))
}
