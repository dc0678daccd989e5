package merge

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/scratch"
	"github.com/interlockdev/interlock/merge/merger"
)

// impacts is the flags that tell what a submission can affect, for lanes.
type impacts struct {
	command string
	table   string
	whole   int
}

const (
	// impactWithin is how long the command may take, and maxImpactOutput how much it may print. Beyond either the
	// submission can affect everything.
	impactWithin    = time.Minute
	maxImpactOutput = 256 << 10
)

func (i *impacts) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(
		&i.command, "impact", "",
		"a shell `command` that prints what a submission can affect, one name on a line: submissions without a common name "+
			"are checked apart (as by --lanes)",
	)
	f.StringVar(
		&i.table, "impact-map", "", "a `file` in place of --impact: each line has the beginning of paths and what they affect",
	)
	f.IntVar(&i.whole, "whole-every", 16, "after how many landings apart the whole branch is checked")
}

func (i *impacts) check() error {
	switch {
	case i.command != "" && i.table != "":
		return cli.Usagef("--impact and --impact-map exclude each other")
	case i.whole < 1:
		return cli.Usagef("--whole-every %d: want at least 1", i.whole)
	}
	return nil
}

// given reports whether the operator has set one.
func (i *impacts) given() bool { return i.command != "" || i.table != "" }

// measure returns the function that a merger asks, or nil if no flag is set.
func (i *impacts) measure(repo git.Repository) (
	func(ctx context.Context, c merger.Change) ([]string, error), error,
) {
	switch {
	case i.table != "":
		text, err := os.ReadFile(i.table)
		if err != nil {
			return nil, err
		}
		m, err := merger.ParseImpactMap(string(text))
		if err != nil {
			return nil, cli.Usagef("--impact-map %s: %w", cli.Quote(i.table), err)
		}
		return func(_ context.Context, c merger.Change) ([]string, error) { return m.Of(c.Paths), nil }, nil
	case i.command != "":
		return func(ctx context.Context, c merger.Change) ([]string, error) { return i.run(ctx, repo, c) }, nil
	}
	return nil, nil
}

// run runs the command in a folder with the files of the submission, with its paths on standard input.
func (i *impacts) run(ctx context.Context, repo git.Repository, c merger.Change) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, impactWithin)
	defer cancel()
	dir, err := scratch.New("impact")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	tree, home := dir.Path("tree"), dir.Path("home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if err := (&runner{repo: repo}).checkOut(ctx, c.Head, dir, tree); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", i.command)
	cmd.Dir = tree
	// What agents submit is in the folder, and the command may run some of it: it gets no variable of ours.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + home, "PWD=" + tree, "INTERLOCK_COMMIT=" + c.Head,
	}
	cmd.Stdin = strings.NewReader(strings.Join(c.Paths, "\n") + "\n")
	out, complaint := &firstBytes{left: maxImpactOutput}, &firstBytes{left: maxReport}
	cmd.Stdout, cmd.Stderr = out, complaint
	git.Alone(cmd)
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return nil, cmp.Or(context.Cause(ctx), ctx.Err())
	case out.cut:
		return nil, fmt.Errorf("it prints more than %d bytes", maxImpactOutput)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, cli.Clean(complaint.String()))
	}
	return merger.ReadImpacts(out.String())
}

// firstBytes keeps the beginning of an output.
type firstBytes struct {
	bytes.Buffer
	left int
	cut  bool
}

func (w *firstBytes) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.cut = w.cut || n < len(p)
	_, _ = w.Buffer.Write(p[:n])
	return len(p), nil
}
