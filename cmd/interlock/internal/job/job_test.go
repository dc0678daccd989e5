//go:build unix

package job

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

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
