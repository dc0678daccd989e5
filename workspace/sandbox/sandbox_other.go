//go:build !linux

package sandbox

import (
	"context"
	"os"
	"os/exec"
)

// Main returns: there are no sandboxes on this system.
func Main() {}

// Sandbox is for Linux.
type Sandbox struct{}

// New fails on this system.
func New(Config) (*Sandbox, error) {
	return nil, refuse(CodeUnavailable, "run the command without one, or on Linux", "there is no sandbox on this system")
}

// Available reports that no mechanism works.
func Available() map[Mechanism]error {
	_, err := New(Config{})
	return map[Mechanism]error{Bubblewrap: err, Namespaces: err}
}

// Wrap fails on this system.
func Wrap(*exec.Cmd, Config) (done func(), err error) { return nil, Wraps() }

// Wraps reports that Wrap does not work.
func Wraps() error {
	_, err := New(Config{})
	return err
}

// System reports whether a path is visible in each sandbox; there is none here.
func System(string) bool { return false }

// Path is for Linux.
func (*Sandbox) Path() string { return "" }

// Args is for Linux.
func (*Sandbox) Args() []string { return nil }

// Environ is for Linux.
func (*Sandbox) Environ() []string { return nil }

// Files is for Linux.
func (*Sandbox) Files(_, _, _ *os.File) []*os.File { return nil }

// Mechanism is for Linux.
func (*Sandbox) Mechanism() Mechanism { return Auto }

// Enforced is for Linux.
func (*Sandbox) Enforced() []Enforcement { return nil }

// Started is for Linux.
func (*Sandbox) Started() {}

// Reached is for Linux.
func (*Sandbox) Reached(int) []Reached { return nil }

// Close is for Linux.
func (*Sandbox) Close() error { return nil }

// Run is for Linux.
func (*Sandbox) Run(context.Context, *os.File, *os.File, *os.File) (int, error) { return 0, nil }
