package main

import (
	"strings"
	"syscall"
	"testing"
)

// An interrupted command leaves neither a lease nor a place in line behind.
func TestLockInterrupted(t *testing.T) {
	r := newRig(t)
	r.must("lock", "k", "--agent", "holder")
	p := r.start("lock", "k")
	p.expect("waiting for k: place 1 of 1")
	p.signal(syscall.SIGTERM)
	if out := p.ends(exitSignal + int(syscall.SIGTERM)); strings.Contains(out, "INTERLOCK_LEASE") {
		t.Error(out)
	}
	if out := r.must("get", "k"); strings.Contains(out, "WAITER") {
		t.Errorf("it still stands in line:\n%s", out)
	}
}

// A lease that was granted although its answer was lost is found again and released.
func TestLockUndo(t *testing.T) {
	r := newRig(t)
	target := &target{URL: "http://" + r.server.HTTP}
	if err := target.complete(); err != nil {
		t.Fatal(err)
	}
	c := newAPI(target)
	ask := func(id string) request {
		return request{
			Method: "POST", Path: "/v1/leases", ID: id,
			Body: map[string]any{"claims": []claim{{Key: "k", Mode: "exclusive"}}, "on_conflict": "wait"},
		}
	}
	if _, _, err := c.do(t.Context(), ask("first")); err != nil {
		t.Fatal(err)
	}
	status, _, err := c.do(t.Context(), ask("second"))
	if err != nil || status != 202 {
		t.Fatal(status, err)
	}
	undoAcquire(c, ask("second"), &leaseAnswer{})
	if out := r.must("get", "k"); strings.Contains(out, "WAITER") {
		t.Errorf("the place in line is still there:\n%s", out)
	}
	undoAcquire(c, ask("first"), &leaseAnswer{})
	if out := r.must("get", "k"); !strings.Contains(out, "k  free") {
		t.Errorf("the lease is still there:\n%s", out)
	}
}
