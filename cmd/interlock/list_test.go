//go:build unix

package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/server"
)

// The commands that list show leases, requests in line and agents, and the log is filtered on the
// server, with the date and the zone of each event.
func TestListsAndLog(t *testing.T) {
	r := newRig(t)
	held := r.start("run", "account:1", "--agent", "billing-7", "--purpose", "late fee", "--", "cat")
	until := func(want string, args ...string) (out string) {
		t.Helper()
		busy.Wait(t, fmt.Sprintf("%q in the output of %v", want, args), func() bool {
			out = r.must(args...)
			return strings.Contains(out, want)
		})
		return out
	}
	until("account:1", "lease", "list")
	waits := r.start("run", "account:1", "--agent", "support-2", "--wait", "1m", "--", "true")
	until("support-2", "lease", "list", "--waiting")
	for _, c := range []struct {
		args         string
		shows, hides string
	}{
		{"lease list account: --agent billing-7", "late fee", "support-2"},
		{"lease list --agent support-2", "no leases", "late fee"},
		{"lease list --waiting", "support-2", "billing-7"},
		{"agents", "billing-7", "late fee"},
		{"agent list --waiting", "account:1", "billing-7"},
		{"agent list billing-7 -o json", `"leases":1`, "support-2"},
		{"log account:1 --event granted", "billing-7", "support-2"},
		{"log support-2 --since 1h", "queued", "billing-7"},
		{"log --since 1h --until 30m", "", "billing-7"},
		{"log --key account: --agent support-2", time.Now().Local().Format("2006-01-02T"), "billing-7"},
		{"log --principal ops", "", "billing-7"},
	} {
		out := r.must(strings.Fields(c.args)...)
		if !strings.Contains(out, c.shows) || strings.Contains(out, c.hides) {
			t.Errorf("interlock %s shows %s", c.args, out)
		}
	}
	for args, words := range map[string]string{
		"log --since yesterday":          "12h or 7d",
		"log --until 1h --follow":        "use one of them",
		"lease list --limit 0":           "at least 1",
		"agent list --holding --waiting": "use one of them",
	} {
		if out, code := r.do(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(out, words) {
			t.Errorf("interlock %s: exit code %d, %s", args, code, out)
		}
	}
	if out, code := r.do("log", "--event", "grantd"); code == 0 || !strings.Contains(out, `"granted"`) {
		t.Errorf("an unknown event: exit code %d, %s", code, out)
	}
	held.signal(2)
	held.end()
	waits.ends(0)
}

// The status fits on one screen, and has the disk of a journal in files.
func TestStatus(t *testing.T) {
	r := newRig(t)
	r.must("state", "set", "doc:1", "1")
	out := r.must("status")
	for _, want := range []string{
		"active", "up ", "default: 0 leases", "1 document,", "pending approvals", "file, entries", "free", "warning",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if lines := strings.Count(out, "\n"); lines > 12 {
		t.Errorf("the status has %d lines", lines)
	}
}

// A standby names the active server, and a list of both leads to the active one.
func TestStatusOfAStandby(t *testing.T) {
	r := newRig(t)
	active := server.Active{HTTP: "http://" + r.server.HTTP, GRPC: r.server.GRPC}
	var seated atomic.Bool
	s, err := server.NewStandby(server.Config{Logger: slog.New(slog.DiscardHandler)}, func() server.Active {
		if seated.Load() {
			return active
		}
		return server.Active{}
	})
	if err != nil {
		t.Fatal(err)
	}
	standby := httptest.NewServer(s.HTTPHandler())
	t.Cleanup(standby.Close)
	out, code := r.do("status", "--url", standby.URL)
	want := "server      standby\nshard       no server that answers owns the shard at the moment\n"
	if code != cli.ExitUnreachable || out != want {
		t.Errorf("exit code %d, %s; want %s", code, out, want)
	}
	seated.Store(true)
	out, code = r.do("status", "--url", standby.URL)
	want = "server      standby\nshard       this server does not own the shard; the active one is " + active.HTTP
	if code != cli.ExitUnreachable || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d, %s; want %s", code, out, want)
	}
	if out := r.must("status", "--url", standby.URL+","+active.HTTP); !strings.HasPrefix(out, "server      active") {
		t.Errorf("a list of both shows %s", out)
	}
}
