package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// screen is a shell on a terminal of its own, with a person typing.
type screen struct {
	t      *testing.T
	master *os.File
	pid    int // of the shell

	mu   sync.Mutex
	text strings.Builder
	from int // what was looked at
	more chan struct{}
}

func newScreen(t *testing.T, env []string, name string, args ...string) *screen {
	t.Helper()
	master, slave := openPTY(t)
	cmd := exec.Command(name, args...)
	cmd.Env = append(env, "TERM=xterm", "PS1=$ ")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	s := &screen{t: t, master: master, pid: cmd.Process.Pid, more: make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		master.Close() // hangs up: what still runs gets SIGHUP
	})
	return s
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	control, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	failed := control.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	// Wide enough that nothing is cut off.
	failed = control.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 250})
	})
	if failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.master, text); err != nil {
		s.t.Fatal(err)
	}
}

// foreground is the group that has the terminal.
func (s *screen) foreground() (group int) {
	s.t.Helper()
	control, err := s.master.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	failed := control.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	if failed != nil || err != nil {
		s.t.Fatal(failed, err)
	}
	return group
}

// kill kills the child of the shell.
func (s *screen) kill() {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.pid, s.pid))
	if err != nil {
		s.t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(text), &child); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// sees waits until text has appeared behind what was seen before.
func (s *screen) sees(text string) {
	s.t.Helper()
	timeout := time.After(busy.Patience())
	for {
		s.mu.Lock()
		all := s.text.String()
		i := strings.Index(all[s.from:], text)
		if i >= 0 {
			s.from += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-s.more:
		case <-timeout:
			s.t.Fatalf("the screen does not show %q behind byte %d; it shows:\n%s", text, s.from, all)
		}
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// On a terminal the command has the terminal: it reads what is typed, Ctrl-C
// reaches it, and Ctrl-Z stops it together with interlock, until fg.
func TestRunOnATerminal(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	binary := launchtest.Binary(t)
	s := newScreen(t, r.env, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("$ ")
	s.types("stty -echo; interlock() { " + binary + " \"$@\"; }\n")
	s.sees("$ ")

	s.types("interlock run k -- sh -c 'read x; echo \"it read <$x>\"'; echo \"code <$?>\"\n")
	s.types("some words\n")
	s.sees("it read <some words>")
	s.sees("code <0>")

	s.types("interlock run k -- sh -c 'echo rea''dy; exec cat'; echo \"code <$?>\"\n")
	s.sees("ready")
	s.types(ctrlC)
	s.sees("code <130>")

	s.types("interlock run k -- sh -c 'echo rea''dy; exec cat'\n")
	s.sees("ready")
	s.types("first\n")
	s.sees("first") // so it has the terminal
	s.types(ctrlZ)
	s.sees("stopped: the lease ends in 30s")
	s.sees("Stopped")
	s.types("interlock key list\n")
	s.sees("exclusive")
	s.types("fg\n")
	s.types("hello\n")
	s.sees("hello")
	s.types("\x04") // the end of its input
	s.types("echo \"code <$?>\"\n")
	s.sees("code <0>")
}

// Behind a pipe the terminal is the other command's to read; the first one gets it
// when it asks for it.
func TestRunInAPipeline(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	s := newScreen(t, r.env, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("$ ")
	s.types("stty -echo\n")
	s.sees("$ ")
	s.types(launchtest.Binary(t) + " run k -- sh -c 'read x; echo \"it read <$x>\"' | sed 's/^/through sed: /'\n")
	s.types("some words\n")
	s.sees("through sed: it read <some words>")
	s.sees("$ ")
}

// A lease that ended while everything was stopped ends the command before it can
// go on.
func TestRunStoppedForTooLong(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	s := newScreen(t, r.env, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("$ ")
	s.types("stty -echo\n")
	s.sees("$ ")
	s.types(
		launchtest.Binary(t) +
			" run --ttl 1s --grace 0 k -- sh -c 'trap \"echo tidied up; exit\" TERM; echo rea''dy; while :; do read x && echo \"read <$x>\"; done'\n",
	)
	s.sees("ready")
	s.types("first\n")
	s.sees("read <first>") // so it has the terminal
	s.types(ctrlZ)
	s.sees("Stopped")
	other := r.start("run", "k", "--", "sh", "-c", "echo its turn; read x")
	other.expect("its turn")
	s.types("fg\n")
	s.sees("the lease is lost")
	s.sees("$ ") // the shell has the terminal again: what is typed now is not the command's to read
	s.types("echo \"code <$?>\"\n")
	s.sees("code <79>")
	other.in.Write([]byte("\n"))
	other.ends(0)
}

// While it waits on a terminal there is one line, which is written over.
func TestWaitingOnATerminal(t *testing.T) {
	r := newRig(t)
	holder := r.start(
		"run", "--agent", "billing-7", "--purpose", "apply\x1b[31m late fee", "k", "--", "sh", "-c", "echo ready; read x",
	)
	holder.expect("ready")
	s := newScreen(t, r.env, launchtest.Binary(t), "run", "k", "--", "echo", "my turn")
	s.sees("\r\x1b[K")
	s.sees("waiting for k: place 1 of 1")
	s.sees("held by billing-7")
	s.sees(": apply") // and not its colour
	s.sees("\r\x1b[Kinterlock: waiting for k")
	holder.in.Write([]byte("\n"))
	holder.ends(0)
	s.sees("granted after")
	s.sees("my turn")
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.text.String(), "[31m") && strings.Contains(s.text.String(), "\x1b[31m") {
		t.Errorf("another agent's colour is on the screen:\n%q", s.text.String())
	}
}

// On a terminal revoke asks first, and takes no answer for an answer of no.
func TestRevokeAsks(t *testing.T) {
	r := newRig(t)
	r.must("lock", "k", "--agent", "billing-7", "--purpose", "apply late fee")
	for _, answer := range []string{"\n", "n\n", "\x04"} {
		s := newScreen(t, r.env, launchtest.Binary(t), "lease", "revoke", "k")
		s.sees("k is held by billing-7 (held for ")
		s.sees("apply late fee")
		s.sees("(fence 1)")
		s.sees("[y/N]")
		s.types(answer)
		s.sees("nothing was revoked")
	}
	s := newScreen(t, r.env, launchtest.Binary(t), "lease", "revoke", "k")
	s.sees("[y/N]")
	s.types("y\n")
	s.sees("revoked: billing-7 no longer holds k (fence 1)")
}

// Colours are for terminals, and NO_COLOR turns them off there too.
func TestColours(t *testing.T) {
	r := newRig(t)
	r.must("lock", "k")
	s := newScreen(t, r.env, launchtest.Binary(t), "key", "list")
	s.sees("KEY  MODE")
	env := slices.DeleteFunc(slices.Clone(r.env), func(v string) bool { return v == "NO_COLOR=1" })
	s = newScreen(t, env, launchtest.Binary(t), "key", "list")
	s.sees("\x1b[1mKEY\x1b[0m")
	s.sees("\x1b[32mlive\x1b[0m")
}

// When interlock itself is killed while its command reads the terminal, the script around it has the terminal again.
func TestKilledOnATerminal(t *testing.T) {
	r := newRig(t)
	w := newWitness(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, r.env, "sh", "-c", fmt.Sprintf(
		"sh -c 'exec %s run k -- sh -c \"%s exec cat\"'; echo \"code <$?>\"; read x < %s; read x; echo \"it read <$x>\"",
		launchtest.Binary(t), strings.ReplaceAll(w.shows("$INTERLOCK_LEASE"), "$", "\\$"), gate,
	))
	w.line()
	s.types("first\n")
	s.sees("first\r\nfirst") // the echo, and cat: it has the terminal
	s.kill()
	w.gone()
	s.sees("code <137>")
	busy.Wait(t, "the terminal", func() bool { return s.foreground() == s.pid })
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.types("second\n")
	s.sees("it read <second>")
}

// A job that was stopped on a terminal ends when interlock is killed.
func TestKilledWhileStopped(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	w := newWitness(t)
	s := newScreen(t, r.env, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("$ ")
	s.types("stty -echo\n")
	s.sees("$ ")
	s.types(launchtest.Binary(t) + " run k -- sh -c '" + w.shows("ready") + " exec cat'\n")
	w.line()
	s.types("first\n")
	s.sees("first") // so it has the terminal
	s.types(ctrlZ)
	s.sees("Stopped")
	s.types("kill -KILL %1\n")
	w.gone()
	s.types("echo the shell $((1+1))\n")
	s.sees("the shell 2")
}

// Text of other agents is bytes to a pipe, and cannot steer a terminal.
func TestContentOnATerminal(t *testing.T) {
	r := newRig(t)
	r.must("state", "set", "hostile", "--type", "text/plain", "a\x1b]0;owned\x07\u009b2Jb\u202ec")
	out := r.must("state", "get", "hostile")
	if !strings.Contains(out, "\x1b]0;owned") {
		t.Errorf("to a pipe the document is %q", out)
	}
	r.must("queue", "set", "q")
	id := strings.Fields(r.must("task", "create", "q", "{}"))[0]
	r.must("task", "work", "q", "--idle", "0", "--quiet", "--", "printf", "done \\033[2J\\302\\233")
	for _, c := range []struct {
		args  []string
		shows string
	}{
		{[]string{"state", "get", "hostile"}, `a\u001b]0;owned\u0007\u009b2Jb\u202ec`},
		{[]string{"task", "wait", id}, `done \u001b[2J\u009b`},
		{[]string{"effect", "run", "--tool", "t", "--target", "x", "--", "printf", `ran \033[2J`}, `ran \u001b[2J`},
	} {
		s := newScreen(t, r.env, launchtest.Binary(t), c.args...)
		s.sees(c.shows)
		s.mu.Lock()
		if text := s.text.String(); strings.ContainsAny(text, "\x1b\u009b\u202e") {
			t.Errorf("%v writes %q to the terminal", c.args, text)
		}
		s.mu.Unlock()
	}
}
