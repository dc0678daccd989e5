package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Job is the command of run: a process in a group of its own, so that all of it can
// be ended when its lease is lost.
//
//	              signals, Ctrl-C elsewhere
//	shell ──► interlock ──────────────────► group of the command
//	            │  lease lost: SIGTERM, after KillAfter SIGKILL ▲
//	            └─ stops when the command stops (Ctrl-Z), and   │
//	               goes on with it          Ctrl-C, Ctrl-Z when it has the terminal
//
// When standard input and output are a terminal, the command gets that terminal at once, as in
// a shell. Otherwise it gets it when it asks for it (it is then stopped by SIGTTIN or SIGTTOU),
// because with "interlock run ... | less" the terminal is less's to read.
type Job struct {
	Path  string
	Argv  []string
	Env   []string
	Files []*os.File

	// KillAfter is how long the group may take to end after SIGTERM.
	KillAfter time.Duration
	// Lost is closed when the command must end.
	Lost <-chan struct{}
	// TTL is how long the lease outlives a stop of this process.
	TTL time.Duration
	// Tell takes what a person should know; it may be nil.
	Tell func(format string, args ...any)
	// Signals may bring signals from before.
	Signals chan os.Signal
	// Background keeps the terminal and the signals from it: it is one of several.
	Background bool

	group     int
	tty       *terminal // nil without one
	suspended time.Time // when it was stopped by the terminal; zero when it runs
	had       bool      // it had the terminal when it was stopped
}

// Result is how a job ended.
type Result struct {
	Status unix.WaitStatus // of the command itself
	Ended  bool            // we ended it, because lost was closed
}

// Code is the exit code, as a shell has it.
func (r Result) Code() int {
	if r.Status.Signaled() {
		return cli.ExitSignal + int(r.Status.Signal())
	}
	return r.Status.ExitStatus()
}

// passedOn are the signals that the command gets when we get them.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// Run starts the command and returns when nothing of its group is left.
func (j *Job) Run() (r Result, err error) {
	// The kernel signals the command when the thread that made it ends, so this one
	// must not be given to another goroutine and then end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if !j.Background {
		j.tty = openTerminal()
		defer j.tty.close()
		cli.Notify(j.Signals, passedOn...)
		defer signal.Stop(j.Signals)
	}

	adoptOrphans()
	process, err := os.StartProcess(j.Path, j.Argv, &os.ProcAttr{Env: j.Env, Files: j.Files, Sys: jobAttributes()})
	if err != nil {
		return r, err
	}
	j.group = process.Pid
	_ = process.Release() // it is waited for below, stops included
	if j.tty != nil && j.tty.foreground() == j.tty.own && cli.IsTerminal(j.Files[0]) && cli.IsTerminal(j.Files[1]) {
		j.tty.give(j.group)
	}
	defer j.takeBack(&r)

	states := make(chan unix.WaitStatus)
	go waitStates(j.group, states)
	r, kill := j.watch(states)
	j.sweep(states, kill)
	return r, nil
}

// watch follows the command until it has ended. kill is the timer of a group that
// is being ended.
func (j *Job) watch(states <-chan unix.WaitStatus) (r Result, kill *time.Timer) {
	lost := j.Lost
	var killNow <-chan time.Time
	for {
		select {
		case status, known := <-states:
			if !known {
				status = cli.ExitFailure << 8 // another goroutine has waited for it
			}
			if !status.Stopped() {
				r.Status = status
				return r, kill
			}
			j.stopped(status.StopSignal())
		case s := <-j.Signals:
			j.pass(s.(syscall.Signal))
		case <-lost:
			lost, r.Ended = nil, true
			j.terminate()
			kill = time.NewTimer(j.KillAfter)
			killNow = kill.C
		case <-killNow:
			killNow = nil
			j.say("the command did not end within %s: it is killed", j.KillAfter)
			j.kill(unix.SIGKILL)
		}
	}
}

// sweep ends the processes that the command left behind in its group. A process that runs on
// without the lease could write at the same time as its next holder; a daemon leaves the group
// by setsid.
func (j *Job) sweep(states <-chan unix.WaitStatus, kill *time.Timer) {
	if !j.left() {
		return
	}
	if kill == nil {
		j.say("the command left processes behind: they are ended, too")
		j.terminate()
		kill = time.NewTimer(j.KillAfter)
	}
	defer kill.Stop()
	// Where orphans are not ours to wait for, there is no event for their end.
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var giveUp <-chan time.Time
	for j.left() {
		select {
		case <-states:
			states = nil // closed: all that were ours have ended
		case <-look.C:
		case s := <-j.Signals:
			j.pass(s.(syscall.Signal))
		case <-kill.C:
			j.kill(unix.SIGKILL)
			giveUp = time.After(KilledWithin)
		case <-giveUp:
			// Nothing of it runs any more: these are dead ones that the first process of
			// this machine does not bury, as in some containers.
			return
		}
	}
}

// KilledWithin is how long the kernel may take to end what was killed.
const KilledWithin = 2 * time.Second

// left reports whether the group has members.
func (j *Job) left() bool { return unix.Kill(-j.group, 0) == nil }

func (j *Job) kill(s unix.Signal) {
	// The only error is that no process is left.
	_ = unix.Kill(-j.group, s)
}

// terminate asks the group to end. One that is stopped must go on to hear it.
func (j *Job) terminate() {
	j.kill(unix.SIGTERM)
	j.kill(unix.SIGCONT)
}

func (j *Job) pass(s syscall.Signal) {
	if s == syscall.SIGCONT {
		j.resumed()
		return
	}
	j.kill(s)
}

// stopped is called when the command was stopped by a signal.
func (j *Job) stopped(by syscall.Signal) {
	if j.tty == nil {
		return // by a process that will let it go on again
	}
	front := j.tty.foreground()
	if (by == unix.SIGTTIN || by == unix.SIGTTOU) && (front == j.tty.own || front == j.group) {
		// It has asked for the terminal, perhaps just before it got it.
		j.tty.give(j.group)
		j.kill(unix.SIGCONT)
		return
	}
	if !shellWaits() {
		return
	}
	// The shell waits for us, so we stop too. From here on there are no heartbeats.
	j.had = front == j.group
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
		j.kill(unix.SIGCONT)
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
		j.tty.give(j.group)
	}
	j.kill(unix.SIGCONT)
}

// takeBack makes the terminal ours again, in the state in which we got it if the command could not
// tidy up.
func (j *Job) takeBack(r *Result) {
	if j.tty == nil || j.tty.foreground() != j.group {
		return
	}
	j.tty.give(j.tty.own)
	if r.Status.Signaled() {
		j.tty.restore()
	}
}

func (j *Job) say(format string, args ...any) {
	if j.Tell != nil {
		j.Tell(format, args...)
	}
}

// waitStates tells each stop of a process, and its end. It waits for the orphans of its group too,
// and closes states when no process is left to wait for. It is the only one that waits, so the
// group's number is not given to others before.
func waitStates(pid int, states chan<- unix.WaitStatus) {
	defer close(states)
	for {
		var status unix.WaitStatus
		who, err := unix.Wait4(-pid, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return
		case who == pid:
			states <- status
		}
	}
}

// CannotRun explains why a command could not be started, with the exit code that shells use.
func CannotRun(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return cli.ExitWith(cli.ExitNotFound, fmt.Errorf("%s: there is no such command", cli.Clean(name)))
	}
	var wrapped *exec.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return cli.ExitWith(cli.ExitCannotRun, fmt.Errorf("%s cannot be run: %w", cli.Clean(name), err))
}
