//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// An interrupted command leaves neither a lease nor a place in line behind.
func TestLockInterrupted(t *testing.T) {
	r := newRig(t)
	r.must("lock", "k", "--agent", "holder")
	p := r.start("lock", "k")
	p.expect("waiting for k: place 1 of 1")
	p.signal(syscall.SIGTERM)
	if out := p.ends(cli.ExitSignal + int(syscall.SIGTERM)); strings.Contains(out, "INTERLOCK_LEASE") {
		t.Error(out)
	}
	if out := r.must("key", "get", "k"); strings.Contains(out, "WAITER") {
		t.Errorf("it still stands in line:\n%s", out)
	}
}
