//go:build unix

package job

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// A caller that ends while its command is being started takes the command with it.
func TestCallerEndsAtOnce(t *testing.T) {
	for name, start := range map[string]func(*Job) error{
		"before the watcher has begun": func(j *Job) error { return j.startWatcher() },
		"when the command has begun": func(j *Job) error {
			_, err := j.startWatched()
			return err
		},
	} {
		j, _ := newJob(t, "trap '' TERM INT HUP; sleep 1000 & sleep 1000 | sleep 1000")
		gone := witness(t, j)
		if err := start(j); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		j.watcher.control.Close() // as the kernel does it
		gone()
		if state, err := j.watcher.process.Wait(); err != nil || !state.Success() {
			t.Errorf("%s: the watcher: %v, %v", name, state, err)
		}
		j.watcher.reports.Close()
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

// Without its watcher the command is killed: nothing would end it later.
func TestWatcherIsKilled(t *testing.T) {
	j, _ := newJob(t, "trap '' TERM; sleep 1000 & sleep 1000 | sleep 1000")
	gone := witness(t, j)
	j.Started = func() { _ = j.watcher.process.Kill() }
	r, err := j.Run()
	if err != nil || r.Code() != cli.ExitSignal+int(syscall.SIGKILL) {
		t.Errorf("code %d, %v", r.Code(), err)
	}
	gone()
}

// Signals to a watcher are not for it.
func TestWatcherSignals(t *testing.T) {
	j, _ := newJob(t, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; kill -TSTP $PPID; exit 7")
	if r, err := j.Run(); err != nil || r.Code() != 7 {
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
