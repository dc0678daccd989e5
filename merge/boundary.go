package merge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/scratch"
)

// Config is what a boundary needs.
type Config struct {
	// Repository is the git directory with the objects to merge, bare or not. It must be neither shallow nor partial.
	Repository string
	// Profile is that of the target. [NewProfile] makes that of this machine.
	Profile Profile
	// Discard keeps the objects that are computed out of the repository, and drops them at Close. Verify needs no
	// more, and then only reads the repository.
	Discard bool
	// Signer signs landings, in [Boundary.Sign]. Nil means that they are not signed.
	Signer *Signer
	// Wrap changes the command of each call of git, as that of a git.Repository does. nil changes nothing.
	Wrap func(cmd *exec.Cmd) (done func(), err error)
}

// Boundary computes landings. Its methods may be called concurrently, and run one after the other.
type Boundary struct {
	profile Profile
	digest  string
	// folder has the boundary's own git directory, attributes and discarded objects.
	folder *scratch.Folder
	git    git.Repository
	signer *Signer
	// idLength is 40 in a repository of SHA-1, and 64 in one of SHA-256.
	idLength int

	mu                sync.Mutex
	read, write, diff coprocess
	attributes        attributeCache
	// ungraphed counts the landings since the graph was written.
	ungraphed int
}

// Open makes a boundary. Close removes its folder, and Open those of processes that were killed.
func Open(ctx context.Context, c Config) (b *Boundary, err error) {
	if err := c.Profile.check(ctx); err != nil {
		return nil, err
	}
	source := git.Repository{Dir: c.Repository}
	facts, err := source.Output(
		ctx, "rev-parse", "--show-object-format", "--is-shallow-repository", "--git-path", "objects",
	)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitN(facts, "\n", 3)
	if len(lines) != 3 {
		return nil, fmt.Errorf("git rev-parse printed %q: want three lines", facts)
	}
	if lines[1] != "false" {
		return nil, fmt.Errorf("the repository %s is shallow: fetch its history with git fetch --unshallow", c.Repository)
	}
	objects := lines[2]
	if !filepath.IsAbs(objects) {
		objects = filepath.Join(c.Repository, objects)
	}
	if objects, err = filepath.Abs(objects); err != nil {
		return nil, err
	}
	b = &Boundary{profile: c.Profile, digest: c.Profile.Digest(), idLength: 40, signer: c.Signer}
	if lines[0] == "sha256" {
		b.idLength = 64
	}
	if b.folder, err = scratch.New("merge"); err != nil {
		return nil, err
	}
	if err := b.lay(lines[0]); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	// A tree that a power failure left empty or torn would never be written again, since git finds its name. So the
	// content is written before the name. Move waits until both are on disk.
	b.git = git.Repository{
		Dir: b.folder.Path("git"), WorkTree: b.folder.Path("attributes", "none"), Objects: objects,
		Config: append(c.Profile.config(), "core.fsync=loose-object", "core.fsyncMethod=writeout-only"), Wrap: c.Wrap,
	}
	if c.Discard {
		b.git.Objects, b.git.Alternates = b.folder.Path("git", "objects"), []string{objects}
	}
	b.read = coprocess{git: &b.git, args: []string{"cat-file", "--batch"}}
	b.write = coprocess{git: &b.git, args: []string{"hash-object", "-w", "-t", "commit", "--no-filters", "--stdin-paths"}}
	b.diff = coprocess{git: &b.git, args: []string{"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"}}
	return b, nil
}

// lay makes the boundary's own git directory. It has no ref, no hook and no index.
func (b *Boundary) lay(objectFormat string) error {
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
	if objectFormat != "sha1" {
		config += "[extensions]\n\tobjectFormat = " + objectFormat + "\n"
	}
	var failures []error
	for _, folder := range []string{"git/objects", "git/refs", "git/info", "attributes/none"} {
		failures = append(failures, os.MkdirAll(b.folder.Path(folder), 0o700))
	}
	for name, text := range map[string]string{
		"git/HEAD": "ref: refs/heads/none\n", "git/config": config, "git/info/attributes": b.profile.Attributes,
	} {
		failures = append(failures, os.WriteFile(b.folder.Path(name), []byte(text), 0o600))
	}
	return errors.Join(failures...)
}

// Profile returns the boundary's profile.
func (b *Boundary) Profile() Profile { return b.profile }

// Close ends the boundary's programs, and removes its folder. What it wrote into the repository stays.
func (b *Boundary) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read.close()
	b.write.close()
	b.diff.close()
	return b.folder.Remove()
}

// Missing is an object that the repository lacks: a commit that was never pushed, or was removed.
type Missing struct{ Object string }

// Error names the object.
func (e *Missing) Error() string {
	return fmt.Sprintf("the repository has no object %s: push or fetch it first", e.Object)
}

// coprocess is a git that answers requests one by one. It starts with the first request, and again after a failure
// or after many requests, since it keeps what it has read in memory.
type coprocess struct {
	git     *git.Repository
	args    []string
	process *git.Process
	asked   int
}

// maxAsked is how many requests one process answers.
const maxAsked = 4096

// ask writes a request, and lets read have the answer. A process that failed is not asked again.
func (c *coprocess) ask(ctx context.Context, request string, read func(*bufio.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.asked++; c.asked > maxAsked {
		c.close()
	}
	if c.process == nil {
		// The process outlives this request, and ends at close.
		p, err := c.git.Start(context.WithoutCancel(ctx), git.Call{Args: c.args})
		if err != nil {
			return err
		}
		c.process, c.asked = p, 0
	}
	stop := context.AfterFunc(ctx, c.process.Kill) // one that hangs ends with the request
	_, err := c.process.In.Write([]byte(request))
	if err == nil {
		err = read(c.process.Out)
	}
	if stopped := stop(); err == nil && stopped {
		return nil
	}
	if ctx.Err() != nil {
		c.close()
		return fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	if _, missing := errors.AsType[*Missing](err); missing {
		return err // a whole answer
	}
	p := c.process
	c.process = nil
	return p.Fail(err)
}

func (c *coprocess) close() {
	if c.process != nil {
		c.process.Close()
		c.process = nil
	}
}

// object reads an object of the kind given.
func (b *Boundary) object(ctx context.Context, kind, id string) (content []byte, err error) {
	if err := git.CheckObject(id); err != nil {
		return nil, err
	}
	found := ""
	err = b.read.ask(ctx, id+"\n", func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == "missing" {
			return &Missing{id}
		}
		if len(fields) != 3 {
			return fmt.Errorf("git cat-file printed %q", line)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return fmt.Errorf("git cat-file printed %q", line)
		}
		found = fields[1]
		content, err = readExactly(r, size)
		return err
	})
	if err == nil && found != kind {
		return nil, fmt.Errorf("object %s is a %s: want a %s", id, found, kind)
	}
	return content, err
}

// readExactly reads n bytes and the newline behind them.
func readExactly(r *bufio.Reader, n int) ([]byte, error) {
	content := make([]byte, n+1)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	return content[:n], nil
}
