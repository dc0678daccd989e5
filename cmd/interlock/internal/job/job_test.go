//go:build unix

package job

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/busy"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// newJob is a job without a server: the script runs in sh.
func newJob(t *testing.T, script string) (j *Job, lost chan struct{}) {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	lost = make(chan struct{})
	return &Job{
		Path: path, Argv: []string{"sh", "-c", script}, Env: os.Environ(), Files: []*os.File{null, null, null},
		KillAfter: 100 * time.Millisecond, Lost: lost, Signals: make(chan os.Signal, 16),
	}, lost
}

func TestJobCodes(t *testing.T) {
	for script, want := range map[string]int{
		"true": 0, "exit 1": 1, "exit 79": 79, "exit 255": 255,
		"kill -TERM $$": cli.ExitSignal + int(syscall.SIGTERM), "kill -KILL $$": cli.ExitSignal + int(syscall.SIGKILL),
	} {
		j, _ := newJob(t, script)
		r, err := j.Run()
		if err != nil || r.Code() != want || r.Ended {
			t.Errorf("%s: code %d, ended %v, %v; want %d", script, r.Code(), r.Ended, err, want)
		}
	}
}

// A lease that is lost before the command has begun ends it all the same, and a
// command that ends by itself at that moment has an ordinary end.
func TestJobLostAtOnce(t *testing.T) {
	j, lost := newJob(t, "trap '' TERM; while :; do :; done")
	close(lost)
	r, err := j.Run()
	// It may not have come so far as to ignore SIGTERM.
	if code := r.Code() - cli.ExitSignal; err != nil || !r.Ended ||
		code != int(syscall.SIGTERM) && code != int(syscall.SIGKILL) {
		t.Errorf("code %d, ended %v, %v", r.Code(), r.Ended, err)
	}
}

// Signals that came before the command was there reach it.
func TestJobEarlySignal(t *testing.T) {
	j, _ := newJob(t, "while :; do :; done")
	j.Signals <- syscall.SIGUSR1
	r, err := j.Run()
	if err != nil || r.Code() != cli.ExitSignal+int(syscall.SIGUSR1) {
		t.Errorf("code %d, %v", r.Code(), err)
	}
}

func TestJobThatCannotBegin(t *testing.T) {
	j, _ := newJob(t, "true")
	j.Path = "/nonexistent/sh"
	if _, err := j.Run(); err == nil {
		t.Error("no error")
	}
}

// witness adds a file to a job that each process of the command has. gone waits until none has it any more.
func witness(t *testing.T, j *Job) (gone func()) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { errors.Join(read.Close(), write.Close()) })
	j.Files = append(j.Files, write)
	return func() {
		t.Helper()
		write.Close()
		if err := read.SetReadDeadline(time.Now().Add(busy.Patience())); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, read); err != nil {
			t.Errorf("processes of the command live on: %v", err)
		}
	}
}

// When its caller ends, a command ends that ignores signals, with all that it has started.
func TestCallerEnds(t *testing.T) {
	runtime.LockOSThread() // else Linux could end the command
	defer runtime.UnlockOSThread()
	j, _ := newJob(t, "trap '' TERM INT HUP; sleep 1000 & sleep 1000 | sleep 1000")
	gone := witness(t, j)
	pid, err := j.start()
	if err != nil {
		t.Fatal(err)
	}
	j.watcher.control.Close() // as the kernel does it
	gone()
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
	if state, err := j.watcher.process.Wait(); err != nil || !state.Success() {
		t.Errorf("the watcher: %v, %v", state, err)
	}
	j.watcher.ready.Close()
}

// When its caller ends before the watcher has its group, a command does not begin.
func TestCallerEndsBefore(t *testing.T) {
	program, err := self()
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []bool{false, true} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if open {
			write.Write([]byte{0})
		}
		write.Close()
		cmd := exec.Command(program, commandArgument, strconv.Itoa(os.Getpid()), "3", "/bin/sh", "sh", "-c", "echo it runs")
		cmd.ExtraFiles = []*os.File{read, read}
		out, err := cmd.Output()
		if ran := len(out) > 0; ran != open || ran != (err == nil) {
			t.Errorf("open %v: %q, %v", open, out, err)
		}
		read.Close()
	}
}

// A watcher does nothing to a group that is another's by now.
func TestGroupOfAnother(t *testing.T) {
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return cmd
	}
	former, other := start(), start()
	g := openGroup(former.Process.Pid)
	if !g.left() {
		t.Error("the group has no members")
	}
	if err := former.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	former.Wait()
	g.id = other.Process.Pid // as if it had the same number
	if g.left() {
		t.Error("a stranger is taken for the group")
	}
	if g.kill(); other.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("a stranger was killed")
	}
}

// A watcher ends with its command, also when a daemon lives on that has left the group; and it is gone when Run
// returns.
func TestWatcherEnds(t *testing.T) {
	j, _ := newJob(t, "daemon=$(setsid sh -c 'echo $$; exec sleep 1000 >/dev/null' &); echo $daemon >&3")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	j.Files = append(j.Files, write)
	if r, err := j.Run(); err != nil || r.Code() != 0 {
		t.Errorf("code %d, %v", r.Code(), err)
	}
	if err := j.watcher.process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the watcher lives on: %v", err)
	}
	var daemon int
	if _, err := fmt.Fscan(read, &daemon); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// A command does not depend on its watcher.
func TestWatcherIsKilled(t *testing.T) {
	j, _ := newJob(t, "sleep 0 | true; exit 7")
	j.Started = func() { _ = j.watcher.process.Kill() }
	if r, err := j.Run(); err != nil || r.Code() != 7 {
		t.Errorf("code %d, %v", r.Code(), err)
	}
}

// The caller is the parent of the command.
func TestParent(t *testing.T) {
	j, _ := newJob(t, fmt.Sprintf("test $PPID = %d", os.Getpid()))
	if r, err := j.Run(); err != nil || r.Code() != 0 {
		t.Errorf("code %d, %v", r.Code(), err)
	}
}

// Of a variable that is there twice the last one counts.
func TestRepeatedVariable(t *testing.T) {
	j, _ := newJob(t, `test "$TWICE" = b`)
	j.Env = append(j.Env, "TWICE=a", "TWICE=b")
	if r, err := j.Run(); err != nil || r.Code() != 0 {
		t.Errorf("code %d, %v", r.Code(), err)
	}
}
