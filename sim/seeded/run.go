package seeded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Runner tries mistakes out, one after the other.
type Runner struct {
	Root  string        // the folder of the module
	Limit time.Duration // for the finders of one mistake, together; building does not count
	Temp  string        // a folder for overlays and binaries, which are removed
}

// Result is the result of one mistake.
type Result struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	File     string `json:"file"`
	Breaks   string `json:"breaks"`
	Found    bool   `json:"found"`
	Finder   string `json:"finder,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	// ByLimit reports that a finder was ended by its own limit. That finds nothing, because it
	// does not name what is wrong, and a slow machine does the same.
	ByLimit bool    `json:"by_limit,omitempty"`
	Build   float64 `json:"build_seconds"`
	Seconds float64 `json:"seconds"` // that finders ran, until it was found
	// Error reports that it could not be tried out, so that it is neither found nor missed: it
	// does not apply, or does not compile.
	Error string `json:"error,omitempty"`
}

// Try makes the finders of a mistake look for it, each for an equal part of the remaining time.
func (r *Runner) Try(ctx context.Context, b *Bug) (x Result) {
	x = Result{Name: b.Name, Title: b.Title, File: b.File, Breaks: b.Breaks}
	if err := r.try(ctx, b, &x); err != nil {
		x.Error = err.Error()
	}
	return x
}

func (r *Runner) try(ctx context.Context, b *Bug, x *Result) error {
	dir, err := os.MkdirTemp(r.Temp, b.Name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.overlay(b, dir)
	if err != nil {
		return err
	}
	built := map[target]bool{}
	left := r.Limit
	for i, name := range b.Finders {
		f := finderNamed(name)
		binary := r.binary(dir, f.target())
		if t := f.target(); !built[t] {
			took, err := r.build(ctx, t, overlay, binary)
			x.Build += took.Seconds()
			if err != nil {
				return err
			}
			built[t] = true
		}
		s, err := r.look(ctx, f, binary, overlay, left/time.Duration(len(b.Finders)-i))
		if err != nil {
			return err
		}
		left -= s.took
		x.Seconds += s.took.Seconds()
		x.ByLimit = x.ByLimit || s.byLimit
		if s.failed && !s.byLimit {
			x.Found, x.Finder, x.Evidence, x.ByLimit = true, name, s.words, false
			return nil
		}
	}
	return nil
}

func (r *Runner) binary(dir string, t target) string {
	return filepath.Join(dir, filepath.Base(t.folder)+".bin")
}

// Pass is a finder's result for the tree without a mistake.
type Pass struct {
	Finder  string  `json:"finder"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// Clean runs a finder on the tree as it is. Unless it passes, what it finds is worth nothing.
func (r *Runner) Clean(ctx context.Context, name string) (p Pass) {
	p = Pass{Finder: name}
	fail := func(err error) Pass {
		p.Error = err.Error()
		return p
	}
	dir, err := os.MkdirTemp(r.Temp, "clean-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	f := finderNamed(name)
	if _, err := r.build(ctx, f.target(), "", r.binary(dir, f.target())); err != nil {
		return fail(err)
	}
	s, err := r.look(ctx, f, r.binary(dir, f.target()), "", r.Limit)
	p.Seconds = s.took.Seconds()
	if err == nil && s.failed {
		err = errors.New(s.words)
	}
	if err != nil {
		return fail(err)
	}
	p.Passed = true
	return p
}

// overlay writes the mistake's file and the list that makes the compiler take it.
func (r *Runner) overlay(b *Bug, dir string) (name string, err error) {
	text, err := b.Apply(r.Root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(b.File))
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(r.Root, filepath.FromSlash(b.File)): changed},
	})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

func (r *Runner) build(ctx context.Context, t target, overlay, out string) (took time.Duration, err error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", t.build(overlay, out)...)
	cmd.Dir = filepath.Join(r.Root, filepath.FromSlash(t.folder))
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("seeded: %s does not build: %w: %s", t.folder, err, bytes.TrimSpace(text))
	}
	return time.Since(began), nil
}

// sight is a finder's observation.
type sight struct {
	failed  bool
	byLimit bool // it failed, and only because it took too long
	took    time.Duration
	words   string // the line that describes best what is wrong
}

// look runs a finder for at most so long. One that is still looking then has found nothing.
// Binaries that the finder itself builds have the mistake, too: the real server, for example.
func (r *Runner) look(
	ctx context.Context, f *finder, binary, overlay string, limit time.Duration,
) (s sight, err error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, binary, f.args...)
	cmd.Dir = filepath.Join(r.Root, filepath.FromSlash(f.folder))
	cmd.WaitDelay = time.Second // for the processes that it has started itself
	// A finder that is skipped finds nothing, and one that waits for minutes is ended by its limit.
	cmd.Env = append(os.Environ(), "INTERLOCK_TEST_TOOLS=1", "INTERLOCK_TEST_PATIENCE=10s")
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	}
	began := time.Now()
	output, err := cmd.CombinedOutput()
	s.took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case err == nil, bounded.Err() != nil:
		return s, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || !exit.Exited() {
		return s, fmt.Errorf("seeded: %s did not run: %w", f.name, err)
	}
	root := []byte(r.Root + string(filepath.Separator)) // the paths of a machine stay out of reports
	s.failed, s.byLimit, s.words = true, timedOut(output), evidence(bytes.ReplaceAll(output, root, nil))
	return s, nil
}
