package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// newJob is a job without a server: the script runs in sh.
func newJob(t *testing.T, script string) (j *job, lost chan struct{}) {
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
	return &job{
		path: path, argv: []string{"sh", "-c", script}, env: os.Environ(), files: []*os.File{null, null, null},
		killAfter: 100 * time.Millisecond, lost: lost, signals: make(chan os.Signal, 16),
	}, lost
}

func TestJobCodes(t *testing.T) {
	for script, want := range map[string]int{
		"true": 0, "exit 1": 1, "exit 79": 79, "exit 255": 255,
		"kill -TERM $$": exitSignal + int(syscall.SIGTERM), "kill -KILL $$": exitSignal + int(syscall.SIGKILL),
	} {
		j, _ := newJob(t, script)
		r, err := j.run()
		if err != nil || r.code() != want || r.ended {
			t.Errorf("%s: code %d, ended %v, %v; want %d", script, r.code(), r.ended, err, want)
		}
	}
}

// A lease that is lost before the command has begun ends it all the same, and a
// command that ends by itself at that moment has an ordinary end.
func TestJobLostAtOnce(t *testing.T) {
	j, lost := newJob(t, "trap '' TERM; while :; do :; done")
	close(lost)
	r, err := j.run()
	// It may not have come so far as to ignore SIGTERM.
	if code := r.code() - exitSignal; err != nil || !r.ended ||
		code != int(syscall.SIGTERM) && code != int(syscall.SIGKILL) {
		t.Errorf("code %d, ended %v, %v", r.code(), r.ended, err)
	}
}

// Signals that came before the command was there reach it.
func TestJobEarlySignal(t *testing.T) {
	j, _ := newJob(t, "while :; do :; done")
	j.signals <- syscall.SIGUSR1
	r, err := j.run()
	if err != nil || r.code() != exitSignal+int(syscall.SIGUSR1) {
		t.Errorf("code %d, %v", r.code(), err)
	}
}

func TestJobThatCannotBegin(t *testing.T) {
	j, _ := newJob(t, "true")
	j.path = "/nonexistent/sh"
	if _, err := j.run(); err == nil {
		t.Error("no error")
	}
}
