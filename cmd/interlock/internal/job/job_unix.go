//go:build unix

package job

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// group is the process group of the command, and the terminal that it shares with us.
type group struct {
	id        int
	watcher   watcher
	tty       *terminal // nil without one
	suspended time.Time // when it was stopped by the terminal; zero when it runs
	had       bool      // it had the terminal when it was stopped
}

// passedOn are the signals that the command gets when we get them.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// begin starts the command.
func (j *Job) begin() (<-chan change, error) {
	if !j.Background {
		j.tty = openTerminal()
	}
	adoptOrphans()
	var err error
	if j.id, err = j.start(); err != nil {
		return nil, err
	}
	if j.tty != nil && j.tty.foreground() == j.tty.own && cli.IsTerminal(j.Files[0]) && cli.IsTerminal(j.Files[1]) {
		j.tty.give(j.id)
	}
	changes := make(chan change)
	go waitChanges(j.id, changes)
	return changes, nil
}

// left reports whether the group has members.
func (j *Job) left() bool { return unix.Kill(-j.id, 0) == nil }

// kill ends the group at once.
func (j *Job) kill() { j.send(unix.SIGKILL) }

func (j *Job) send(s unix.Signal) {
	// The only error is that no process is left.
	_ = unix.Kill(-j.id, s)
}

// terminate asks the group to end. One that is stopped must go on to hear it.
func (j *Job) terminate() {
	j.send(unix.SIGTERM)
	j.send(unix.SIGCONT)
}

func (j *Job) pass(s syscall.Signal) {
	if s == syscall.SIGCONT {
		j.resumed()
		return
	}
	j.send(s)
}

// stopped is called when the command was stopped by a signal.
func (j *Job) stopped(by syscall.Signal) {
	if j.tty == nil {
		return // by a process that will let it go on again
	}
	front := j.tty.foreground()
	if (by == unix.SIGTTIN || by == unix.SIGTTOU) && (front == j.tty.own || front == j.id) {
		// It has asked for the terminal, perhaps just before it got it.
		j.tty.give(j.id)
		j.send(unix.SIGCONT)
		return
	}
	if !shellWaits() {
		return
	}
	// The shell waits for us, so we stop too. From here on there are no heartbeats.
	j.had = front == j.id
	if j.had {
		j.tty.give(j.tty.own)
	}
	if j.TTL > 0 {
		j.say("stopped: the lease ends in %s unless the command continues", cli.Short(j.TTL))
	}
	j.suspended = time.Now()
	// The other commands of a pipeline belong to the job.
	signal.Ignore(syscall.SIGTSTP)
	_ = unix.Kill(0, unix.SIGTSTP)
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
}

// shellWaits reports whether a process is there that notices that we stop and can let us go on: a
// parent of our session that is not of our group.
func shellWaits() bool {
	parent := unix.Getppid()
	theirs, err := unix.Getsid(parent)
	if err != nil {
		return false
	}
	ours, err := unix.Getsid(0)
	if err != nil || theirs != ours {
		return false
	}
	group, err := unix.Getpgid(parent)
	return err == nil && group != unix.Getpgrp()
}

// resumed is called when we were continued.
func (j *Job) resumed() {
	if j.suspended.IsZero() {
		j.send(unix.SIGCONT)
		return
	}
	signal.Notify(j.Signals, syscall.SIGTSTP)
	if slept := time.Since(j.suspended); j.TTL > 0 && slept >= j.TTL {
		// The lease is over; the command must not wake up before it learns that.
		select {
		case <-j.Lost:
			j.suspended = time.Time{}
			return // watch ends it
		case <-time.After(2 * time.Second):
		}
	}
	j.suspended = time.Time{}
	if j.tty != nil && j.tty.foreground() == j.tty.own && j.had {
		j.tty.give(j.id)
	}
	j.send(unix.SIGCONT)
}

// close makes the terminal ours again, in the state in which we got it if the command could not
// tidy up.
func (j *Job) close(r Result) {
	defer j.watcher.end()
	if j.tty == nil {
		return
	}
	defer j.tty.close()
	if j.id == 0 || j.tty.foreground() != j.id {
		return
	}
	j.tty.give(j.tty.own)
	if r.Status.Signaled() {
		j.tty.restore()
	}
}

// waitChanges reports each stop of a process, and its end. It waits for the orphans of its group too,
// and closes changes when no process is left to wait for. It is the only one that waits, so the
// group's number is not given to others before.
func waitChanges(pid int, changes chan<- change) {
	defer close(changes)
	for {
		var status unix.WaitStatus
		who, err := unix.Wait4(-pid, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return
		case who == pid:
			changes <- changed(status)
		}
	}
}

func changed(status unix.WaitStatus) (c change) {
	switch {
	case status.Stopped():
		c.stop = status.StopSignal()
	case status.Signaled():
		c.signal = status.Signal()
	default:
		c.exit = status.ExitStatus()
	}
	return c
}
