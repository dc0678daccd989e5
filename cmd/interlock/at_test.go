//go:build unix

package main

import (
	"strings"
	"testing"
)

// The differences are the same from a server and from a copy of its journal.
func TestDifferencesOfACopy(t *testing.T) {
	r := newRig(t)
	r.must("lock", "account:1", "--agent", "billing-7", "--ttl", "10m")
	waiter := r.start("run", "account:1", "--agent", "support-2", "--", "true")
	waiter.expect("waiting for account:1")
	live := r.must("at", "--time", "0s", "--against", "1")
	for _, want := range []string{
		"Different: 1 lease (1 new, 0 gone, 0 changed), 1 waiter (1 new, 0 gone, 0 changed).",
		"billing-7, fence 1", "support-2 for account:1", "position 1", "from entry 1 to entry ",
	} {
		if !strings.Contains(live, want) {
			t.Errorf("no %q in\n%s", want, live)
		}
	}
	body := func(out string) string { text, _, _ := strings.Cut(out, "interlock: "); return text }
	if copied := r.must("at", "--data-dir", r.dir, "--against", "1"); body(copied) != body(live) {
		t.Errorf("without a server it is\n%s\nwith one\n%s", copied, live)
	}
	r.must("lease", "revoke", "account:1", "--reason", "over", "-y")
	waiter.ends(0)
}
