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

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Job is the command of run: a process in a group of its own, so that all of it can
// be ended when its lease is lost. The group is a process group on Unix, and a job object
// on Windows.
//
//	              signals, Ctrl-C elsewhere
//	shell ──► interlock ──────────────────► group of the command
//	            │  lease lost: SIGTERM, after KillAfter SIGKILL ▲
//	            └─ stops when the command stops (Ctrl-Z), and   │
//	               goes on with it          Ctrl-C, Ctrl-Z when it has the terminal
//
// On Unix, when standard input and output are a terminal, the command gets that terminal at once, as in
// a shell. Otherwise it gets it when it asks for it (it is then stopped by SIGTTIN or SIGTTOU),
// because with "interlock run ... | less" the terminal is less's to read. When interlock
// is killed, a watcher kills the group.
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
	// Started is called when the command has been started, or could not be. It may be nil.
	Started func()
	// Background keeps the terminal and the signals from it: it is one of several.
	Background bool

	group
}

// Result is how a job ended.
type Result struct {
	Status Status // of the command itself
	Ended  bool   // we ended it, because lost was closed
}

// Code is the exit code, as a shell has it.
func (r Result) Code() int {
	if r.Status.Signaled() {
		return cli.ExitSignal + int(r.Status.signal)
	}
	return r.Status.exit
}

// Status is how a command ended: by a signal, or by itself with an exit code.
type Status struct {
	exit   int
	signal syscall.Signal
}

// Signaled reports whether a signal ended the command.
func (s Status) Signaled() bool { return s.signal != 0 }

// Signal returns the signal that ended the command.
func (s Status) Signal() syscall.Signal { return s.signal }

// change is the end of the command, or its stop by a signal.
type change struct {
	Status
	stop syscall.Signal // 0 at the end
}

// Run starts the command and returns when nothing of its group is left.
func (j *Job) Run() (r Result, err error) {
	// Linux signals the command when the thread that made it ends, so this one
	// must not be given to another goroutine and then end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if !j.Background {
		cli.Notify(j.Signals, passedOn...)
		defer signal.Stop(j.Signals)
	}
	changes, err := j.begin()
	if j.Started != nil {
		j.Started()
	}
	defer func() { j.close(r) }()
	if err != nil {
		return r, err
	}
	r, kill := j.watch(changes)
	j.sweep(changes, kill)
	return r, nil
}

// watch follows the command until it has ended. kill is the timer of a group that
// is being ended.
func (j *Job) watch(changes <-chan change) (r Result, kill *time.Timer) {
	lost := j.Lost
	var killNow <-chan time.Time
	for {
		select {
		case c, known := <-changes:
			if !known {
				c.exit = cli.ExitFailure // another goroutine has waited for it
			}
			if c.stop == 0 {
				r.Status = c.Status
				return r, kill
			}
			j.stopped(c.stop)
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
			j.kill()
		}
	}
}

// sweep ends the processes that the command left behind in its group. A process that runs on
// without the lease could write at the same time as its next holder; a daemon leaves the group
// by setsid.
func (j *Job) sweep(changes <-chan change, kill *time.Timer) {
	if !j.left() {
		return
	}
	if kill == nil {
		j.say("the command left processes behind: they are ended, too")
		j.terminate()
		kill = time.NewTimer(j.KillAfter)
	}
	defer kill.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	var giveUp <-chan time.Time
	for j.left() {
		select {
		case <-changes:
			changes = nil // closed: all that were ours have ended
		case <-look.C:
		case s := <-j.Signals:
			j.pass(s.(syscall.Signal))
		case <-kill.C:
			j.kill()
			giveUp = time.After(KilledWithin)
		case <-giveUp:
			// Nothing of it runs any more: these are dead ones that the first process of
			// this machine does not bury, as in some containers.
			return
		}
	}
}

// lookAgain is how often the group of a command that has ended is looked at: orphans may not be ours to wait for,
// and then there is no event for their end.
const lookAgain = 10 * time.Millisecond

// KilledWithin is how long the kernel may take to end what was killed.
const KilledWithin = 2 * time.Second

func (j *Job) say(format string, args ...any) {
	if j.Tell != nil {
		j.Tell(format, args...)
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
