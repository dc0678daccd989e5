package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Repository is how git is called: on which repository, and with which additions to the pinned environment. The zero
// value calls git without a repository, for init, clone and version. A Repository may be copied and used concurrently.
type Repository struct {
	// Dir is the git directory: that of a bare repository, or .git of another. It becomes GIT_DIR, so git never
	// searches for one. Empty means none.
	Dir string
	// WorkTree is the folder of the checked out files. It becomes GIT_WORK_TREE. Empty means none.
	WorkTree string
	// Folder is where git runs. Empty means WorkTree, else Dir, else the folder of this process.
	Folder string
	// Objects is where git writes objects, instead of the repository's own store. Empty means that store.
	Objects string
	// Alternates are object stores that git reads besides. Their paths contain no newline.
	Alternates []string
	// Config has more configuration, as "name=value", which is stronger than [Pinned].
	Config []string
	// Through is a command, with arguments, that runs git: git's own command line is put behind it. It must pass the
	// environment on, and exit with git's code. Empty means that git runs directly.
	Through []string
	// Wrap changes the prepared command of each call, such as to put it into a sandbox. Its done is called when the
	// command has ended, or could not be started. Nil means that nothing is changed.
	Wrap func(cmd *exec.Cmd) (done func(), err error)
	// Guard bounds each call of Run: it returns a context that ends when the call has to, and a function to call after
	// it. Its cause is then the error of Run. Nil means no bound.
	Guard func(ctx context.Context) (context.Context, context.CancelFunc)
	// Env has more variables, as "NAME=VALUE", and takes away those that are named alone. [Remote] has those that reach
	// a remote repository.
	Env []string
}

// Call is one run of git.
type Call struct {
	// Args are the command and its arguments, such as "cat-file", "-t", ID.
	Args []string
	// In is the standard input; nil means an empty one.
	In io.Reader
	// Out receives the standard output; nil means that the result has it.
	Out io.Writer
	// Answers are exit codes besides 0 that are answers, and no failures.
	Answers []int
	// Env has variables for this call alone.
	Env []string
	// Files stay open in git, and in what it starts, as descriptors 3 and up. Only Unix has this.
	Files []*os.File
}

// Result is the answer of git.
type Result struct {
	// Exit is 0 or one of Call.Answers.
	Exit int
	// Out is the standard output, unless Call.Out received it.
	Out []byte
	// Stderr is the beginning of the standard error: at most 16 KiB.
	Stderr string
}

const (
	// maxOutput bounds the output that a result holds. Git's own lists of a large repository stay below it.
	maxOutput = 256 << 20
	maxStderr = 16 << 10
	// patience is how long a killed git may keep its pipes open by programs that it started.
	patience = 2 * time.Second
)

// Run runs git to its end. When ctx ends, git is killed, with the programs that it started. The error is an *[Error],
// or that of ctx.
func (r *Repository) Run(ctx context.Context, c Call) (Result, error) {
	if r.Guard != nil {
		var stop context.CancelFunc
		ctx, stop = r.Guard(ctx)
		defer stop()
	}
	cmd := r.command(ctx, c)
	out := outputBuffer{limit: maxOutput}
	complaint := outputBuffer{limit: maxStderr, cut: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, &out, &complaint
	if c.Out != nil {
		cmd.Stdout = c.Out
	}
	err := r.wrap(cmd, cmd.Run)
	result := Result{Out: out.buffer.Bytes(), Stderr: complaint.buffer.String()}
	return r.judge(ctx, c, result, err)
}

// wrap changes the command as [Repository.Wrap] does, and runs it.
func (r *Repository) wrap(cmd *exec.Cmd, run func() error) error {
	if r.Wrap == nil {
		return run()
	}
	done, err := r.Wrap(cmd)
	if err != nil {
		return err
	}
	defer done()
	return run()
}

// judge separates answers from failures.
func (r *Repository) judge(ctx context.Context, c Call, result Result, err error) (Result, error) {
	if err == nil {
		return result, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
			cause = fmt.Errorf("git %s: %w", c.name(), cause)
		}
		return Result{}, cause
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	if exited && exit.Exited() && slices.Contains(c.Answers, exit.ExitCode()) {
		result.Exit = exit.ExitCode()
		return result, nil
	}
	failure := &Error{Command: c.name(), Exit: -1, Stderr: strings.TrimSpace(result.Stderr), Err: err}
	if exited {
		failure.Exit = exit.ExitCode()
	}
	return Result{}, failure
}

// name is the command of a call.
func (c *Call) name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return c.Args[0]
}

// Output runs git and returns its standard output without the last newline. Each exit code but 0 is a failure.
func (r *Repository) Output(ctx context.Context, args ...string) (string, error) {
	result, err := r.Run(ctx, Call{Args: args})
	return strings.TrimSuffix(string(result.Out), "\n"), err
}

// Feed runs git with the input given, and returns its standard output without the last newline.
func (r *Repository) Feed(ctx context.Context, in []byte, args ...string) (string, error) {
	result, err := r.Run(ctx, Call{Args: args, In: bytes.NewReader(in)})
	return strings.TrimSuffix(string(result.Out), "\n"), err
}

// Environ is the environment of a call, with the variables of that call, for programs that are run beside git, too.
func (r *Repository) Environ(more ...string) []string {
	env := slices.Concat(base(), r.place(), configuration(slices.Concat(Pinned(), r.Config)), r.Env, more)
	return slices.DeleteFunc(env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains(r.Env, name) || slices.Contains(more, name)
	})
}

// command makes the process of a call. Its environment is complete: nothing of the caller's is left but PATH and
// what an operating system needs to start a program.
func (r *Repository) command(ctx context.Context, c Call) *exec.Cmd {
	argv := slices.Concat(r.Through, []string{"git"}, c.Args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.ExtraFiles = c.Files
	cmd.Env = r.Environ(c.Env...)
	switch {
	case r.Folder != "":
		cmd.Dir = r.Folder
	case r.WorkTree != "":
		cmd.Dir = r.WorkTree
	default:
		cmd.Dir = r.Dir
	}
	Alone(cmd)
	return cmd
}

// place returns the variables that tell git where the repository is.
func (r *Repository) place() (env []string) {
	add := func(name, path string) {
		if path == "" {
			return
		}
		// Git resolves a relative path from its own folder, which is another one.
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		env = append(env, name+"="+path)
	}
	add("GIT_DIR", r.Dir)
	add("GIT_WORK_TREE", r.WorkTree)
	add("GIT_OBJECT_DIRECTORY", r.Objects)
	if len(r.Alternates) > 0 {
		quoted := make([]string, len(r.Alternates))
		for i, path := range r.Alternates {
			quoted[i] = quote(path)
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(quoted, string(os.PathListSeparator)))
	}
	return env
}

// quote puts a path into the quotes of C, so that it may contain the separator of a list.
func quote(path string) string {
	if !strings.ContainsAny(path, "\"\\"+string(os.PathListSeparator)) || filepath.Separator == '\\' {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// outputBuffer is a buffer with a limit. Beyond it a write fails, or is dropped where cut is set.
type outputBuffer struct {
	buffer bytes.Buffer
	limit  int
	cut    bool
}

func (b *outputBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buffer.Len()
	if len(p) <= room {
		return b.buffer.Write(p)
	}
	if !b.cut {
		return 0, fmt.Errorf("the output of git exceeds %d bytes", b.limit)
	}
	b.buffer.Write(p[:room])
	return len(p), nil
}
