//go:build unix

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// A holder learns which agent asks for its keys and why, and may go on to its end.
func TestRunIsAskedToYield(t *testing.T) {
	r := newRig(t)
	holder := r.start("run", "--agent", "billing-7", "account:1", "--", "sh", "-c", "echo ready; read x; echo done")
	holder.expect("ready")
	other := r.start("run", "--preempt", "--agent", "support-2", "--purpose", "hotfix", "account:1", "--", "echo", "mine")
	holder.expect(`support-2 asks you to yield account:1: "hotfix"`)
	holder.in.Write([]byte("\n"))
	if out := holder.ends(0); !strings.Contains(out, "done") {
		t.Error(out)
	}
	other.expect("mine")
	other.ends(0)
}

// Where the key pattern allows it, the holder's command is ended, and the output names the tier on
// which the lease ended.
func TestRunIsPreempted(t *testing.T) {
	r := newRig(t)
	r.must("pattern", "set", "account", "account:{id}", "--preempt", "revoke")
	holder := r.start("run", "-o", "json", "--grace", "1s", "account:1", "--", "sh", "-c", "echo ready; read x")
	holder.expect("ready")
	other := r.start("run", "--preempt", "--agent", "support-2", "account:1", "--", "echo", "mine")
	out := holder.ends(cli.ExitLost)
	for _, want := range []string{"support-2", "the lease is lost (preempted)", `"ended_by":"preempted"`} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	other.expect("mine")
	other.ends(0)
}

// A holder that sends heartbeats and reports no progress loses its lease.
func TestRunStalls(t *testing.T) {
	r := newRig(t)
	p := r.start("run", "--stall", "1s", "k", "--", "sh", "-c", "echo ready; read x")
	p.expect("ready")
	if out := p.ends(cli.ExitLost); !strings.Contains(out, "the lease is lost (stall)") {
		t.Error(out)
	}
}

// Reports keep a lease for longer than it lives without one, also when it is not run
// itself that makes them.
func TestRunReportsProgress(t *testing.T) {
	r := newRig(t)
	p := r.start("run", "--stall", "1h", "k", "--", "sh", "-c", "echo lease $INTERLOCK_LEASE; read x; echo done")
	_, lease, _ := strings.Cut(p.expect("lease l_"), " ")
	left := func() time.Duration {
		t.Helper()
		var l struct{ Lease api.Lease }
		if err := json.Unmarshal([]byte(r.must("lease", "get", lease, "-o", "json")), &l); err != nil {
			t.Fatal(err)
		}
		return time.Duration(l.Lease.StallIn) * time.Millisecond
	}
	// What is left only shrinks, except by a report.
	last, n := left(), 0
	busy.Wait(t, "a report that moves the end", func() bool {
		n++
		r.must("lease", "renew", lease, "--progress", strconv.Itoa(n))
		before := last
		last = left()
		return last > before
	})
	p.in.Write([]byte("\n"))
	if out := p.ends(0); !strings.Contains(out, "done") {
		t.Error(out)
	}
}

// Two of three parties wait until the third is there.
func TestRunBarrier(t *testing.T) {
	r := newRig(t)
	party := func() *proc { return r.start("run", "--parties", "3", "build:42", "--", "echo", "step") }
	a, b := party(), party()
	a.expect("waiting for build:42")
	b.expect("waiting for build:42")
	c := party()
	for _, p := range []*proc{a, b, c} {
		p.expect("step")
		p.ends(0)
	}
}

// A run gets one free member of a pool, and knows which.
func TestRunAnyOfAPool(t *testing.T) {
	r := newRig(t)
	r.must("pattern", "set", "gpu", "gpu:{n:int}", "--member", "gpu:{0..1}")
	worker := func() *proc {
		return r.start("run", "--any-prefix", "gpu:", "--", "sh", "-c", `echo "has $INTERLOCK_KEYS"; read x`)
	}
	a, b := worker(), worker()
	first, second := a.expect("has gpu:"), b.expect("has gpu:")
	if first == second {
		t.Errorf("both have %s", first)
	}
	c := worker()
	c.expect("waiting for one of gpu:")
	a.in.Write([]byte("\n"))
	a.ends(0)
	if third := c.expect("has gpu:"); third != first {
		t.Errorf("the third %s, want %s", third, first)
	}
	for _, p := range []*proc{b, c} {
		p.in.Write([]byte("\n"))
		p.ends(0)
	}
}
