package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is the command of run: a process in a group of its own, so that all of it can
// be ended when its lease is lost.
//
//	              signals, Ctrl-C elsewhere
//	shell ──► interlock ──────────────────► group of the command
//	            │  lease lost: SIGTERM, after killAfter SIGKILL ▲
//	            └─ stops when the command stops (Ctrl-Z), and   │
//	               goes on with it          Ctrl-C, Ctrl-Z when it has the terminal
//
// When standard input and output are a terminal, the command gets that terminal at once, as in
// a shell. Otherwise it gets it when it asks for it (it is then stopped by SIGTTIN or SIGTTOU),
// because with "interlock run ... | less" the terminal is less's to read.
type job struct {
	path  string
	argv  []string
	env   []string
	files []*os.File

	// killAfter is how long the group may take to end after SIGTERM.
	killAfter time.Duration
	// lost is closed when the command must end.
	lost <-chan struct{}
	// ttl is how long the lease outlives a stop of this process.
	ttl time.Duration
	// tell takes what a person should know; it may be nil.
	tell func(format string, args ...any)
	// signals may bring signals from before.
	signals chan os.Signal
	// background keeps the terminal and the signals from it: it is one of several.
	background bool

	group     int
	tty       *terminal // nil without one
	suspended time.Time // when it was stopped by the terminal; zero when it runs
	had       bool      // it had the terminal when it was stopped
}

// jobResult is how a job ended.
type jobResult struct {
	status unix.WaitStatus // of the command itself
	ended  bool            // we ended it, because lost was closed
}

// code is the exit code, as a shell has it.
func (r jobResult) code() int {
	if r.status.Signaled() {
		return exitSignal + int(r.status.Signal())
	}
	return r.status.ExitStatus()
}

// passedOn are the signals that the command gets when we get them.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// run starts the command and returns when nothing of its group is left.
func (j *job) run() (r jobResult, err error) {
	// The kernel signals the command when the thread that made it ends, so this one
	// must not be given to another goroutine and then end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if !j.background {
		j.tty = openTerminal()
		defer j.tty.close()
		notify(j.signals, passedOn...)
		defer signal.Stop(j.signals)
	}

	adoptOrphans()
	process, err := os.StartProcess(j.path, j.argv, &os.ProcAttr{Env: j.env, Files: j.files, Sys: jobAttributes()})
	if err != nil {
		return r, err
	}
	j.group = process.Pid
	_ = process.Release() // it is waited for below, stops included
	if j.tty != nil && j.tty.foreground() == j.tty.own && isTerminal(j.files[0]) && isTerminal(j.files[1]) {
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
func (j *job) watch(states <-chan unix.WaitStatus) (r jobResult, kill *time.Timer) {
	lost := j.lost
	var killNow <-chan time.Time
	for {
		select {
		case status, known := <-states:
			if !known {
				status = exitFailure << 8 // another goroutine has waited for it
			}
			if !status.Stopped() {
				r.status = status
				return r, kill
			}
			j.stopped(status.StopSignal())
		case s := <-j.signals:
			j.pass(s.(syscall.Signal))
		case <-lost:
			lost, r.ended = nil, true
			j.terminate()
			kill = time.NewTimer(j.killAfter)
			killNow = kill.C
		case <-killNow:
			killNow = nil
			j.say("the command did not end within %s: it is killed", j.killAfter)
			j.kill(unix.SIGKILL)
		}
	}
}

// sweep ends the processes that the command left behind in its group. A process that runs on
// without the lease could write at the same time as its next holder; a daemon leaves the group
// by setsid.
func (j *job) sweep(states <-chan unix.WaitStatus, kill *time.Timer) {
	if !j.left() {
		return
	}
	if kill == nil {
		j.say("the command left processes behind: they are ended, too")
		j.terminate()
		kill = time.NewTimer(j.killAfter)
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
		case s := <-j.signals:
			j.pass(s.(syscall.Signal))
		case <-kill.C:
			j.kill(unix.SIGKILL)
			giveUp = time.After(killedWithin)
		case <-giveUp:
			// Nothing of it runs any more: these are dead ones that the first process of
			// this machine does not bury, as in some containers.
			return
		}
	}
}

// killedWithin is how long the kernel may take to end what was killed.
const killedWithin = 2 * time.Second

// left reports whether the group has members.
func (j *job) left() bool { return unix.Kill(-j.group, 0) == nil }

func (j *job) kill(s unix.Signal) {
	// The only error is that no process is left.
	_ = unix.Kill(-j.group, s)
}

// terminate asks the group to end. One that is stopped must go on to hear it.
func (j *job) terminate() {
	j.kill(unix.SIGTERM)
	j.kill(unix.SIGCONT)
}

func (j *job) pass(s syscall.Signal) {
	if s == syscall.SIGCONT {
		j.resumed()
		return
	}
	j.kill(s)
}

// stopped is called when the command was stopped by a signal.
func (j *job) stopped(by syscall.Signal) {
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
	if j.ttl > 0 {
		j.say("stopped: the lease ends in %s unless the command continues", short(j.ttl))
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
func (j *job) resumed() {
	if j.suspended.IsZero() {
		j.kill(unix.SIGCONT)
		return
	}
	signal.Notify(j.signals, syscall.SIGTSTP)
	if slept := time.Since(j.suspended); j.ttl > 0 && slept >= j.ttl {
		// The lease is over; the command must not wake up before it learns that.
		select {
		case <-j.lost:
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
func (j *job) takeBack(r *jobResult) {
	if j.tty == nil || j.tty.foreground() != j.group {
		return
	}
	j.tty.give(j.tty.own)
	if r.status.Signaled() {
		j.tty.restore()
	}
}

func (j *job) say(format string, args ...any) {
	if j.tell != nil {
		j.tell(format, args...)
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
