//go:build unix

package main

import (
	"strings"
	"testing"
)

// The report is the same from a server and from a copy of its journal, and its HTML has no markup of agents.
func TestReport(t *testing.T) {
	r := newRig(t)
	r.must("lock", "account:1", "--agent", "<b>billing</b>", "--ttl", "10m")
	waiter := r.start("run", "account:1", "--agent", "support-2", "--", "true")
	waiter.expect("waiting for account:1")
	r.must("lease", "revoke", "account:1", "--reason", "stuck", "-y")
	waiter.ends(0)
	r.server.Kill()
	<-r.server.Ended()
	r.restart()
	since := "2020-01-01T00:00:00Z"
	live := r.must("report", "--since", since)
	for _, want := range []string{
		"2 incidents: 1 lost lease, 1 fail-over.", "An operator revoked account:1 from \"<b>billing</b>\"",
		"interlock log --from ", "(all)", "A server began a new epoch",
	} {
		if !strings.Contains(live, want) {
			t.Errorf("no %q in\n%s", want, live)
		}
	}
	body := func(out string) string { _, rest, _ := strings.Cut(out, "\n"); return rest }
	if copied := r.must("report", "--since", since, "--data-dir", r.dir); body(copied) != body(live) {
		t.Errorf("without a server it is\n%s\nwith one\n%s", copied, live)
	}
	page := r.must("report", "--format", "html")
	for _, want := range []string{
		"&lt;b&gt;billing&lt;/b&gt;", "Waits at that moment", "main) waits for account:1 (exclusive)",
		"default-src 'none'",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "<b>billing") || strings.Contains(page, "<script") {
		t.Errorf("the page has markup of an agent:\n%s", page)
	}
	if out := r.must("report", "-o", "json"); !strings.Contains(out, `"kind":"lost_lease"`) {
		t.Errorf("as JSON it is %s", out)
	}
	for _, args := range [][]string{
		{"--format", "pdf"}, {"--since", "soon"}, {"--format", "html", "-o", "json"}, {"extra"},
	} {
		if out, code := r.do(append([]string{"report"}, args...)...); code != 2 {
			t.Errorf("report %q ends with %d: %s", args, code, out)
		}
	}
}
