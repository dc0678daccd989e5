//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// Three commands want one key. They run one after the other, in the order in which
// they came, each under a higher fence.
func TestRunHandsOver(t *testing.T) {
	r := newRig(t)
	log := filepath.Join(t.TempDir(), "log")
	job := func(name string) *proc {
		return r.start("run", "--agent", name, "account:1", "--", "sh", "-c", fmt.Sprintf(
			`echo "begin %s" >> %s; echo "%s has fence $INTERLOCK_FENCE"; read x; echo "end %s" >> %s`, name, log, name, name,
			log,
		))
	}
	a := job("a")
	first := a.expect("a has fence")
	b := job("b")
	b.expect("waiting for account:1: place 1 of 1")
	c := job("c")
	c.expect("waiting for account:1: place 2 of 2")

	a.in.Close()
	a.ends(0)
	second := b.expect("b has fence")
	b.in.Write([]byte("go on\n"))
	b.ends(0)
	third := c.expect("c has fence")
	c.in.Write([]byte("go on\n"))
	c.ends(0)

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "begin a\nend a\nbegin b\nend b\nbegin c\nend c\n"; string(text) != want {
		t.Errorf("they ran as\n%swant\n%s", text, want)
	}
	var fences [3]uint64
	for i, line := range []string{first, second, third} {
		if _, err := fmt.Sscanf(line[1:], " has fence %d", &fences[i]); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	if !(fences[0] < fences[1] && fences[1] < fences[2]) {
		t.Errorf("fences %v do not grow", fences)
	}
}

func TestRunSharedKeysAtOnce(t *testing.T) {
	r := newRig(t)
	a := r.start("run", "--shared", "k", "--", "sh", "-c", "echo a runs; read x")
	a.expect("a runs")
	b := r.start("run", "--shared", "k", "--", "sh", "-c", "echo b runs; read x")
	b.expect("b runs")
	for _, p := range []*proc{a, b} {
		p.in.Write([]byte("\n"))
		p.ends(0)
	}
}

// Revoking a lease ends its command: with SIGTERM, and when that is ignored with
// SIGKILL.
func TestRunEndsItsCommandWhenTheLeaseIsLost(t *testing.T) {
	tests := []struct {
		name, script string
		says         string
	}{
		{"that tidies up", `trap 'echo tidied up; exit 0' TERM; echo ready; sleep 1000 & wait`, "tidied up"},
		{"that ignores SIGTERM", `trap '' TERM; echo ready; read x`, "it is killed"},
		{"whose children ignore it", `exec 3<&0; sh -c 'trap "" TERM; echo ready; read x <&3' & wait`, ""},
		{"that is stopped", `echo ready; kill -STOP $$; echo never; read x`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.start("run", "--kill-after", "300ms", "account:1", "--", "sh", "-c", tt.script)
			p.expect("ready")
			r.must("lease", "revoke", "account:1", "-y", "--reason", "stuck since noon")
			out := p.ends(cli.ExitLost)
			if !strings.Contains(out, tt.says) || !strings.Contains(out, "the lease is lost") || strings.Contains(out, "never") {
				t.Errorf("it said:\n%s", out)
			}
		})
	}
}

// Past --max-hold the command is ended, however often heartbeats come.
func TestRunMaxHold(t *testing.T) {
	r := newRig(t)
	p := r.start("run", "--max-hold", "1s", "--ttl", "1s", "k", "--", "sh", "-c", "echo ready; read x")
	p.expect("ready")
	p.ends(cli.ExitLost)
}

// A server that is gone for longer than the ttl ends the command; one that comes
// back in time does not.
func TestRunSurvivesARestart(t *testing.T) {
	r := newRig(t)
	p := r.start("run", "k", "--", "sh", "-c", "echo ready; read x; exit 5")
	p.expect("ready")
	r.server.Kill()
	r.restart()
	if out, code := r.do("run", "--wait", "0", "k", "--", "true"); code != cli.ExitNotAcquired {
		t.Errorf("the lease did not survive: exit code %d\n%s", code, out)
	}
	p.in.Write([]byte("\n"))
	p.ends(5)
	r.must("run", "--wait", "0", "k", "--", "true")
}

func TestRunWithoutItsServer(t *testing.T) {
	r := newRig(t)
	p := r.start("run", "--ttl", "1s", "k", "--", "sh", "-c", "echo ready; read x")
	p.expect("ready")
	r.server.Kill()
	p.ends(cli.ExitLost)
}

// Each signal reaches the command, and an end by a signal shows in the exit code.
func TestRunPassesSignalsOn(t *testing.T) {
	r := newRig(t)
	for _, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		t.Run(cli.SignalName(s), func(t *testing.T) {
			name := strings.TrimPrefix(cli.SignalName(s), "SIG")
			p := r.start(
				"run", "trapped", "--", "sh", "-c",
				fmt.Sprintf("trap 'echo got %s; exit 42' %s; echo ready; while :; do read x; done", name, name),
			)
			p.expect("ready")
			p.signal(s)
			go p.keepTyping() // a shell that was about to read acts on the signal only after that read
			p.expect("got " + name)
			p.ends(42)

			p = r.start("run", "untrapped", "--", "sh", "-c", "ulimit -c 0; echo ready; read x")
			p.expect("ready")
			p.signal(s)
			p.ends(cli.ExitSignal + int(s))
		})
	}
	if out := r.must("log"); strings.Contains(out, "session_expired") || strings.Contains(out, " ttl ") {
		t.Errorf("a lease was left behind:\n%s", out)
	}
}

// A command that is interrupted while waiting leaves the line at once.
func TestRunInterruptedInLine(t *testing.T) {
	r := newRig(t)
	holder := r.start("run", "k", "--", "sh", "-c", "echo ready; read x")
	holder.expect("ready")
	p := r.start("run", "k", "--", "echo", "never")
	p.expect("waiting for k")
	p.signal(syscall.SIGINT)
	if out := p.ends(cli.ExitSignal + int(syscall.SIGINT)); strings.Contains(out, "never") ||
		!strings.Contains(out, "given up") {
		t.Error(out)
	}
	if out := r.must("key", "get", "k"); strings.Contains(out, "WAITER") {
		t.Errorf("it still stands in line:\n%s", out)
	}
	holder.in.Close()
	holder.end()
}

// Two commands that wait for each other: one of them gets that error.
func TestRunDeadlock(t *testing.T) {
	// A deadlock needs one session that holds and waits, which run has not: it asks
	// for all keys at once. So two of them can never wait for each other.
	r := newRig(t)
	a := r.start("run", "x", "y", "--", "sh", "-c", "echo a runs; read x")
	a.expect("a runs")
	b := r.start("run", "y", "x", "--", "sh", "-c", "echo b runs")
	b.expect("waiting for y, x: place 1 of 1")
	a.in.Write([]byte("\n"))
	a.ends(0)
	b.expect("b runs")
	b.ends(0)

	// But it can wait for the lease of the command that runs it.
	if out := r.start("run", "x", "--", launchtest.Binary(t), "run", "x", "--", "true").ends(
		cli.ExitDeadlock,
	); !strings.Contains(out, "waiting would never end") {
		t.Error(out)
	}
}

// Processes that the command leaves behind in its group are ended before the lease is released;
// those that have left the group live on.
func TestRunEndsWhatIsLeftBehind(t *testing.T) {
	r := newRig(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := r.start("run", "k", "--", "sh", "-c", fmt.Sprintf(
		`sh -c 'trap "echo tidied up; exit" TERM; echo ready > %s; sleep 1000 & wait' & cat %s`, fifo, fifo,
	))
	p.expect("ready")
	p.expect("left processes behind")
	p.expect("tidied up")
	p.ends(0)
}

func TestRunTellsNotesAndChanges(t *testing.T) {
	r := newRig(t)
	r.must("run", "--agent", "first", "--note", "fee is in\x1b[31m", "k", "--", "true")
	out := r.must("run", "k", "--", "true")
	if !strings.Contains(out, `note of first`) || !strings.Contains(out, "fee is in") || strings.Contains(out, "\x1b") {
		t.Errorf("it said:\n%q", out)
	}
	if out := r.must("run", "-q", "k", "--", "true"); out != "" {
		t.Errorf("with -q it said:\n%s", out)
	}
}

// Flags that say which server is meant reach the command, so that what it starts
// means the same one; the credential does not.
func TestRunEnvironment(t *testing.T) {
	r := newRig(t)
	// A variable that is about another server does not mix with a flag.
	r.env = append(cleanEnvironment(), "INTERLOCK_URL=http://127.0.0.1:1", "INTERLOCK_GRPC=127.0.0.1:1")
	if out, code := r.do("run", "--url", "http://127.0.0.1:2", "k", "--", "true"); code != cli.ExitUnreachable ||
		!strings.Contains(out, "127.0.0.1:3 ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	out := r.must("run", "--url", "http://"+r.server.HTTP, "--grpc-addr", r.server.GRPC, "--namespace", "acme", "--credential", "ilk_secret",
		"a", "b c", "--", "env")
	for _, want := range []string{
		"INTERLOCK_LEASE=l_", "INTERLOCK_FENCE=1\n", "INTERLOCK_KEYS=a\nb c\n",
		"INTERLOCK_URL=http://" + r.server.HTTP + "\n",
		"INTERLOCK_GRPC=" + r.server.GRPC + "\n", "INTERLOCK_NAMESPACE=acme\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the environment lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "ilk_secret") {
		t.Error("the credential was given to the command")
	}
}

// A lease of a server that asks for credentials, over TLS.
func TestRunForbidden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	out, code := startProc(t, cleanEnvironment(), "credential", "create", "ops", "--for", "acme", "--file", file).end()
	if code != 0 {
		t.Fatal(out)
	}
	secret, _, _ := strings.Cut(out, "\n")
	r := &rig{
		t: t, server: launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Args: []string{"--credentials", file}}),
	}
	r.env = r.environment()
	for _, args := range [][]string{{"key", "list"}, {"run", "k", "--", "true"}, {"lock", "k"}} {
		if out, code := r.do(args...); code != cli.ExitForbidden || !strings.Contains(out, "credential") {
			t.Errorf("%v without a credential: exit code %d\n%s", args, code, out)
		}
	}
	plain := r.env
	r.env = append(plain[:len(plain):len(plain)], "INTERLOCK_CREDENTIAL="+secret)
	r.must("run", "k", "--", "true")
	r.must("key", "list")
	if out, code := r.do("--namespace", "other", "key", "list"); code != cli.ExitForbidden || strings.Contains(out, secret) {
		t.Errorf("in another namespace: exit code %d\n%s", code, out)
	}
	keep := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(keep, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = plain
	r.must("--credential-file", keep, "key", "list")
}
