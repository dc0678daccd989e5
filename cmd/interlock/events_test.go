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

// hideLog moves the server's log away, as if the disk could not be read. The server
// still has the newest file open and writes to it.
func (r *rig) hideLog() (show func()) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "*.log"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("no log in %s: %v", r.dir, err)
	}
	away := r.t.TempDir()
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, f := range files {
		move(f, filepath.Join(away, filepath.Base(f)))
	}
	return func() {
		for _, f := range files {
			move(filepath.Join(away, filepath.Base(f)), f)
		}
	}
}

// A history that the server cannot read is not shown as a whole one: the command reports that
// and fails, and one that follows continues when it can be read again.
func TestEventsThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.must("run", "k", "--", "true")
	show := r.hideLog()
	for _, format := range []string{"text", "json"} {
		out, code := r.do("log", "-o", format)
		if code != cli.ExitFailure || !strings.Contains(out, "could not read its journal further") ||
			strings.Contains(out, "granted") {
			t.Errorf("events -o %s: exit code %d\n%s", format, code, out)
		}
	}
	following := r.start("log", "--follow", "--from", "oldest", "-o", "json")
	following.expect("history_unreadable")
	watching := r.start("state", "watch", "--from", "1")
	watching.expect("history_unreadable")
	show()
	following.expect(`"event":"granted"`)
	r.must("state", "set", "doc:1", "1")
	watching.expect("doc:1")
	for _, p := range []*proc{following, watching} {
		p.signal(2)
		p.ends(0)
	}
	if out := r.must("log"); !strings.Contains(out, "granted") {
		t.Errorf("readable again: %s", out)
	}
}

// Events that are followed survive a restart of the server: nothing is left out and
// nothing comes twice.
func TestEventsFollow(t *testing.T) {
	r := newRig(t)
	p := r.start("log", "--follow", "--from", "oldest", "-o", "json")
	p.expect(`"event":"opened"`)
	for i := range 6 {
		if i == 3 {
			r.server.Kill()
			r.restart()
			p.expect("connecting again")
			p.expect(`"event":"opened"`)
		}
		r.must("run", "k", "--", "true")
		p.expect(`"event":"session_opened"`)
		p.expect(`"event":"granted"`)
		p.expect(`"reason":"released"`)
		p.expect(`"event":"session_ended"`)
	}
	p.signal(2)
	out := p.ends(0)
	if n := strings.Count(out, `"event":"granted"`); n != 6 {
		t.Errorf("%d grants were shown, want 6:\n%s", n, out)
	}
}

// Without a server at the start it fails instead of waiting.
func TestEventsWithoutServer(t *testing.T) {
	p := startProc(t, append(cleanEnvironment(), "INTERLOCK_URL=http://127.0.0.1:1"), "log", "--follow")
	p.ends(cli.ExitUnreachable)
}

// A command with --watch shows what has changed, until it is interrupted.
func TestWatch(t *testing.T) {
	r := newRig(t)
	p := r.start("key", "list", "--watch", "--interval", "100ms")
	p.expect("nothing is held or waited for")
	r.must("lock", "k", "--agent", "ann")
	p.expect("exclusive  ann")
	p.signal(syscall.SIGINT)
	p.ends(0)
	if out, code := r.do("key", "list", "-w", "--interval", "1ms"); code != cli.ExitUsage {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
