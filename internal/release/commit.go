package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// release is one release of one commit.
type release struct {
	root    string // the checkout
	out     string // where its files go
	version string // v0.2.0
	commit  string
	time    time.Time // of the commit, and of everything in the release
}

// number is the version without its v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// describe returns the release of the commit that is checked out at dir. A version that is asked for, or a tag, names
// exactly what is in the commit, so a checkout with changes is refused.
func describe(dir, version string) (*release, error) {
	root, err := git(dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	r := &release{root: root, version: version}
	if r.commit, err = git(root, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := git(root, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.time = time.Unix(at, 0).UTC()
	changes, err := git(root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if r.version == "" {
		tags, err := git(root, "tag", "--points-at", "HEAD", "--list", "v*", "--sort=-version:refname")
		if err != nil {
			return nil, err
		}
		r.version, _, _ = strings.Cut(tags, "\n")
	}
	switch {
	case r.version == "":
		r.version = "v0.0.0-" + r.time.Format("20060102150405") + "-" + r.commit[:12]
		if changes != "" {
			r.version += ".dirty"
		}
	case !versions.MatchString(r.version):
		return nil, fmt.Errorf("version %q: want one such as v0.2.0", r.version)
	case changes != "":
		return nil, fmt.Errorf(
			"the checkout has changes that are not in %s: commit them or put them away:\n%s", r.version, changes,
		)
	}
	return r, nil
}

// git returns the output of a git command.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), failed(cmd, err)
}

// failed adds the command and what it printed to its error.
func failed(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
}

// do runs a program that writes files, and shows its output if it fails.
func do(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
