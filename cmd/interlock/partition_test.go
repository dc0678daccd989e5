//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Parts are with one member, move when another one comes, and come back when that one
// leaves; and at no time does a command run for a part while another one still does.
func TestPartition(t *testing.T) {
	r := newRig(t)
	log := filepath.Join(t.TempDir(), "log")
	r.env = append(r.env, "LOG="+log)
	member := func(name string) *proc {
		return r.start("pool", "join", "queue", "--parts", "4", "--agent", name, "--", "sh", "-c",
			`echo "begin $INTERLOCK_KEYS $INTERLOCK_PART $INTERLOCK_FENCE" >> "$LOG"; trap 'echo "end $INTERLOCK_KEYS" >> "$LOG"; exit' TERM; echo ready; sleep 1000 & wait`)
	}
	expect := func(p *proc, text string, times int) {
		t.Helper()
		for range times {
			p.expect(text)
		}
	}
	a := member("a")
	expect(a, "ready", 4)
	if out := r.must("key", "get", "queue"); !strings.Contains(out, "member of 4 parts") {
		t.Errorf("get shows\n%s", out)
	}
	b := member("b")
	expect(a, "stopped", 2)
	expect(b, "ready", 2)
	b.signal(syscall.SIGTERM)
	b.ends(cli.ExitSignal + int(syscall.SIGTERM))
	expect(a, "ready", 2)
	a.signal(syscall.SIGINT)
	a.ends(cli.ExitSignal + int(syscall.SIGINT))

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	running, began := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		what, part := strings.Fields(line)[0], strings.Fields(line)[1]
		if what == "begin" {
			began++
			if running[part] {
				t.Errorf("two commands ran for %s", part)
			}
		}
		running[part] = what == "begin"
	}
	if began != 8 {
		t.Errorf("%d commands were begun, want 8:\n%s", began, text)
	}
	if out := r.must("key", "list"); !strings.Contains(out, "nothing is held") {
		t.Errorf("something was left behind:\n%s", out)
	}
}

// A member leaves when its command fails, and reports which part it was.
func TestPartitionFails(t *testing.T) {
	r := newRig(t)
	p := r.start(
		"pool", "join", "queue", "--parts", "2", "-o", "json", "--", "sh", "-c", `test $INTERLOCK_PART = 0 || exit 7`,
	)
	out := p.ends(7)
	for _, want := range []string{
		`{"event":"begun","key":"queue/0","part":0,"fence":"`, `{"event":"failed","key":"queue/1"`,
		"the command for queue/1 failed (exit code 7)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %s:\n%s", want, out)
		}
	}
	p = r.start("pool", "join", "queue", "--parts", "1", "--", "true")
	p.expect("queue/0: done")
	p.signal(syscall.SIGHUP)
	p.ends(cli.ExitSignal + int(syscall.SIGHUP))
	for _, args := range [][]string{
		{"pool", "join", "queue", "--", "true"},
		{"pool", "join", "queue", "--parts", "2"},
		{"pool", "join", "a", "b", "--parts", "2", "--", "true"},
		{"pool", "join", "queue", "--parts", "4097", "--", "true"},
		{"pool", "join", "queue", "--parts", "2", "--divide", "luck", "--", "true"},
	} {
		if out, code := r.do(args...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
	}
}
