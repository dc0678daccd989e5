//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// Two agents wait for each other's answer, each holding what is its own: the second gets the error
// that it would wait for ever, and that is how the first gets on.
func TestWaitForFindsADeadlock(t *testing.T) {
	r := newRig(t)
	self := launchtest.Binary(t)
	a := r.start(
		"run", "--agent", "a", "x", "--", "sh", "-c",
		self+` agent wait b -- sh -c 'echo a asks; read answer; echo a has its answer'`,
	)
	// No agent of that name is there yet.
	if out := a.ends(cli.ExitFailure); strings.Contains(out, "asks") {
		t.Error(out)
	}

	b := r.start(
		"run", "--agent", "b", "y", "--", "sh", "-c", `echo b is there; read go; exec `+self+` agent wait a -- echo never`,
	)
	b.expect("b is there")
	a = r.start(
		"run", "--agent", "a", "x", "--", "sh", "-c",
		self+` agent wait b -- sh -c 'echo a asks; read answer; echo a has its answer'`,
	)
	a.expect("a asks")
	if out := r.must("key", "waits"); !strings.Contains(out, "waits for it, as it declared") {
		t.Errorf("waits shows\n%s", out)
	}
	if out := r.must("why", "--agent", "a"); !strings.Contains(out, "  a waits for b, as it declared, for ") ||
		!strings.Contains(out, "    b is awaited") {
		t.Errorf("why shows\n%s", out)
	}
	if out := r.must("agents"); !strings.Contains(out, "another agent") {
		t.Errorf("agents shows\n%s", out)
	}
	b.in.Write([]byte("\n"))
	if out := b.ends(
		cli.ExitDeadlock,
	); !strings.Contains(out, "waiting would be a deadlock") || strings.Contains(out, "never\n") {
		t.Error(out)
	}
	a.expect("b is gone: its session is over")
	a.in.Write([]byte("\n"))
	a.expect("a has its answer")
	a.ends(0)
}

// Without a command the wait ends with the other's session, or when its time is over.
func TestWaitForTheEnd(t *testing.T) {
	r := newRig(t)
	b := r.start("run", "--agent", "b", "y", "--", "sh", "-c", "echo ready; read x")
	b.expect("ready")
	if out, code := r.do("agent", "wait", "--wait", "100ms", "b"); code != cli.ExitNotAcquired ||
		!strings.Contains(out, "b was not done within 100ms") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	p := r.start("agent", "wait", "b")
	p.expect("waiting for b")
	b.in.Write([]byte("\n"))
	b.ends(0)
	p.expect("b is gone")
	p.ends(0)
	if out := r.must("key", "waits"); !strings.Contains(out, "no waiters") {
		t.Errorf("a wait was left behind:\n%s", out)
	}
}

// A run inside another one has a session of its own. The chain leads through both to the holder
// that the inner one waits for.
func TestWhyThroughNestedRuns(t *testing.T) {
	r := newRig(t)
	self := launchtest.Binary(t)
	last := r.start("run", "--agent", "a", "k:1", "--", "sh", "-c", "echo ready; read x")
	last.expect("ready")
	outer := r.start("run", "--agent", "b", "k:2", "--", self, "run", "--agent", "b2", "k:1", "--", "echo", "both")
	outer.expect("waiting for k:1")
	waiter := r.start("run", "--agent", "x", "k:2", "--", "echo", "mine")
	waiter.expect("waiting for k:2")
	for _, args := range [][]string{{"why", "--agent", "x"}, {"why", "x"}, {"why", "k:2"}} {
		out := r.must(args...)
		if !strings.Contains(out, "b2 waits for k:1") || !strings.Contains(out, "a holds k:1") ||
			strings.Contains(out, "on b2") || strings.Contains(out, "/v1/") {
			t.Errorf("%v wrote\n%s", args, out)
		}
	}
	if out := r.must("key", "waits"); strings.Count(out, "b2 (") != 1 {
		t.Errorf("the waits are no single tree:\n%s", out)
	}
	last.in.Write([]byte("\n"))
	last.ends(0)
	outer.expect("both")
	outer.ends(0)
	waiter.expect("mine")
	waiter.ends(0)
}
