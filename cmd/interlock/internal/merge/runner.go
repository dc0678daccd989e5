package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
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
	ref     string // of the target
	command string
	box     *confine.Flags // nil: no sandbox
	stores  []string       // the folders of objects that checks read
	within  time.Duration  // how long a run may take
	log     *slog.Logger
}

const (
	// killAfter is how long a check may take to end after SIGTERM.
	killAfter = 5 * time.Second
	// maxReport is how much of a failed check's output goes into the verdict.
	maxReport = 3 << 10
)

// handle runs the command in a folder with the files of the commit. What fails besides the command is no verdict on the
// tree.
func (r *runner) handle(ctx context.Context, j *client.Job) (client.Done, error) {
	var c merger.Check
	if err := j.Decode(&c); err != nil {
		return client.Done{}, err
	}
	limited, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	began := time.Now()
	report, err := r.try(limited, &c)
	switch {
	case ctx.Err() != nil:
		return client.Done{}, context.Cause(ctx) // no verdict
	case limited.Err() != nil:
		report.Failed = true
		report.Tail += fmt.Sprintf("\nthe check timed out: it was ended after %v", r.within)
	case err != nil:
		r.log.Warn("a check could not run", "check", c.Check, "tree", c.Tree, "error", err)
		return client.Done{Result: merger.Report{Lost: true, Tail: git.Words(err.Error())}}, nil
	}
	took := time.Since(began).Milliseconds()
	r.log.Info("checked", "check", c.Check, "tree", c.Tree, "passed", !report.Failed, "took_ms", took)
	if report.Failed {
		return client.Done{Result: report}, nil
	}
	return client.Done{}, nil
}

// try runs the command on a commit.
func (r *runner) try(ctx context.Context, c *merger.Check) (merger.Report, error) {
	dir, err := scratch.New("check")
	if err != nil {
		return merger.Report{}, err
	}
	defer dir.Remove()
	tree := dir.Path("tree")
	if err := r.checkOut(ctx, c.Commit, dir, tree); err != nil {
		return merger.Report{}, fmt.Errorf("the tree could not be checked out: %w", err)
	}
	return r.run(ctx, c, dir, tree)
}

// checkOut writes the files of a commit into a folder, with a git directory of its own.
func (r *runner) checkOut(ctx context.Context, commit string, dir *scratch.Folder, tree string) error {
	if err := git.CheckObject(commit); err != nil {
		return err
	}
	if err := os.Mkdir(tree, 0o777); err != nil {
		return err
	}
	if err := r.layGit(ctx, commit, filepath.Join(tree, ".git")); err != nil {
		return err
	}
	repo := r.repo
	repo.WorkTree = tree
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tree, ".git", "index")}
	for _, args := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--force", "--index"}} {
		if _, err := repo.Run(ctx, git.Call{Args: args, Env: env}); err != nil {
			return err
		}
	}
	return nil
}

// layGit makes a git directory with a commit as its head. It has the tags, and the target's branch as that of a remote
// repository, so that git describe and comparisons with HEAD~1 or the branch work. It borrows the repository's objects:
// git reads them and writes its own elsewhere. A check has no ref, no configuration and no hook of the repository.
func (r *runner) layGit(ctx context.Context, commit, folder string) error {
	format, err := r.repo.Output(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	objects, err := objectsOf(ctx, r.repo)
	if err != nil {
		return err
	}
	refs, err := r.repo.Output(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/")
	if err != nil {
		return err
	}
	if at, err := r.repo.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", r.ref); err == nil {
		refs = fmt.Sprintf("%s refs/remotes/origin/%s\n%s", at, strings.TrimPrefix(r.ref, "refs/heads/"), refs)
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[gc]\n\tauto = 0\n"
	if format != "sha1" {
		config += "[extensions]\n\tobjectFormat = " + format + "\n"
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o777); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"HEAD": commit + "\n", "config": config, "packed-refs": strings.TrimSpace(refs) + "\n",
		"objects/info/alternates": quoteAlternate(objects) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf is the folder of a repository's objects.
func objectsOf(ctx context.Context, repo git.Repository) (string, error) {
	objects, err := repo.Output(ctx, "rev-parse", "--git-path", "objects")
	if err == nil && !filepath.IsAbs(objects) {
		objects = filepath.Join(repo.Dir, objects)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(objects)
}

// maxBorrowed is how many stores git follows from one to the next.
const maxBorrowed = 5

// storesOf are the folders of a repository's objects: its own, and those that it borrows from.
func storesOf(ctx context.Context, repo git.Repository) ([]string, error) {
	objects, err := objectsOf(ctx, repo)
	if err != nil {
		return nil, err
	}
	list := []string{objects}
	for i := 0; i < len(list) && i <= maxBorrowed; i++ {
		text, err := os.ReadFile(filepath.Join(list[i], "info", "alternates"))
		if err != nil {
			continue // it borrows nothing
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line[0] == '"' {
				continue
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(list[i], line)
			}
			list = append(list, line)
		}
	}
	return list, nil
}

// quoteAlternate writes a path as git reads it from a line of a file.
func quoteAlternate(name string) string {
	if !strings.ContainsAny(name, "\"\\\n") && !strings.HasPrefix(name, "#") {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// run runs the command, and reports whether it has failed, with the end of its output. An error is that of the runner.
func (r *runner) run(
	ctx context.Context, c *merger.Check, dir *scratch.Folder, tree string,
) (report merger.Report, err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return report, err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return report, err
	}
	defer nothing.Close()
	out, err := os.Create(dir.Path("report"))
	if err != nil {
		return report, err
	}
	defer out.Close()
	j := &job.Job{
		Path: shell, Argv: []string{"sh", "-c", `cd "$INTERLOCK_CHECKOUT" && eval "$INTERLOCK_COMMAND"`},
		Env: r.environment(c, tree), Files: []*os.File{nothing, out, out}, KillAfter: killAfter, Lost: ctx.Done(),
		Background: true,
	}
	end := func(int) (limits []string, err error) { return nil, nil }
	if r.box != nil {
		s, err := box(r.box, j.Argv, j.Env, tree, r.stores...)
		if err != nil {
			return report, err
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
	report.Tail = tail(out)
	why := ""
	switch err = errors.Join(err, failed); {
	case err != nil, result.Code() == 0:
		return report, err
	case result.Status.Signaled():
		why = fmt.Sprintf("the check was ended by signal %v", result.Status.Signal())
	default:
		why = fmt.Sprintf("exit code %d", result.Code())
	}
	if len(limits) > 0 {
		why += fmt.Sprintf(": %s; the limit is that of the merge queue", strings.Join(limits, "; "))
	}
	report.Failed, report.Tail = true, report.Tail+"\n"+why
	return report, nil
}

// box makes the sandbox of a check: it can write to its tree, and has no network of the machine unless that was asked.
func box(flags *confine.Flags, argv, env []string, tree string, read ...string) (*sandbox.Sandbox, error) {
	cfg := sandbox.Config{Argv: argv, Env: env, Dir: tree, Write: []string{tree}}
	flags.Into(&cfg)
	cfg.Read = append(cfg.Read, read...)
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

// placeOfGit are the variables that lead git to another repository than that of the check's folder.
var placeOfGit = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX",
}

// environment is ours without our own variables: a check is code of agents, and must not see the credential.
func (r *runner) environment(c *merger.Check, tree string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(v, "INTERLOCK_") || slices.Contains(placeOfGit, name)
	})
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
