//go:build unix

package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// watcher is a process beside the command, which kills the group when we have ended without doing so. It runs this
// program, in a group of its own:
//
//	interlock ─┬──────────────────────► command ──► what it starts: one group
//	           └─ control ──► watcher      ▲
//	                             └─────────┘ SIGKILL, at the end of control without a goodbye
//
// Only interlock has the writing end of control, so the kernel closes it when interlock has ended, however that was,
// and no process of the command can keep that from the watcher. The command's process first runs this program, too,
// and becomes the command when the watcher has its group: the command never runs unwatched, and we are its parent.
type watcher struct {
	process *os.Process
	control *os.File
	ready   *os.File // has a byte when the watcher has the group
}

// The first argument of this program when it is a watcher or is to become a command. A watcher's second one is our
// group; those of a command are our process id, the number of its files, its path, and its arguments.
const (
	watcherArgument = "interlock:watcher"
	commandArgument = "interlock:command"
)

// The files of a watcher.
const (
	controlFile = 3 + iota
	readyFile
)

// Main is called first by every program that runs jobs: by main, and by TestMain. It returns at once, unless this
// process belongs to a job; then it never returns.
func Main() {
	if len(os.Args) < 2 {
		return
	}
	var err error
	switch args := os.Args[2:]; {
	case os.Args[1] == watcherArgument && len(args) == 1:
		err = watch(args[0])
	case os.Args[1] == commandArgument && len(args) > 3:
		err = become(args)
	default:
		return
	}
	if err != nil {
		os.Exit(cli.ExitFailure)
	}
	os.Exit(cli.ExitOK)
}

// watch is the watcher.
func watch(owner string) error {
	own, err := strconv.Atoi(owner)
	if err != nil {
		return err
	}
	// Signals are for others. Those that were ignored stay so.
	cli.Notify(make(chan os.Signal, 1), append(passedOn, syscall.SIGTTIN, syscall.SIGTTOU)...)
	tty := openTerminal()
	var id int32
	control := os.NewFile(controlFile, "control")
	if err := binary.Read(control, binary.NativeEndian, &id); err != nil {
		return err // the command has not begun
	}
	g := openGroup(int(id))
	if _, err := os.NewFile(readyFile, "ready").Write([]byte{0}); err != nil {
		g.kill()
		return err
	}
	if n, _ := control.Read(make([]byte, 1)); n == 1 {
		return nil // goodbye
	}
	g.kill()
	if tty != nil && tty.foreground() == g.id {
		// The others of the caller's group, such as a script, go on with the terminal.
		tty.give(own)
		tty.restore()
	}
	// Not every system kills a process that is being made.
	for limit := time.Now().Add(KilledWithin); time.Now().Before(limit) && g.left(); <-time.After(lookAgain) {
		g.kill()
	}
	return nil
}

// kill ends the group.
func (g *watchedGroup) kill() { _ = g.signal(unix.SIGKILL) } // the only error is that no process is left

// left reports whether the group has members.
func (g *watchedGroup) left() bool { return g.signal(0) == nil }

// become makes this process the command, when the watcher is there.
func become(args []string) error {
	// Linux tells the thread that the parent has ended, and exec keeps that.
	runtime.LockOSThread()
	parent, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	gate, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	failure := gate + 1
	unix.CloseOnExec(gate)
	unix.CloseOnExec(failure)
	endWithParent()
	if n, err := os.NewFile(uintptr(gate), "gate").Read(make([]byte, 1)); n != 1 || unix.Getppid() != parent {
		return err
	}
	err = syscall.Exec(args[2], args[3:], os.Environ())
	number := syscall.EINVAL
	_ = errors.As(err, &number)
	return binary.Write(os.NewFile(uintptr(failure), "failure"), binary.NativeEndian, int32(number))
}

// start starts the command under a watcher, and returns its process id.
func (j *Job) start() (pid int, err error) {
	program, err := self()
	if err != nil {
		return 0, notStarted(err)
	}
	if err := j.watcher.start(program); err != nil {
		return 0, notStarted(err)
	}
	gate, open, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer gate.Close()
	defer open.Close()
	failed, failure, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer failed.Close()
	defer failure.Close()
	args := []string{"interlock", commandArgument, strconv.Itoa(os.Getpid()), strconv.Itoa(len(j.Files)), j.Path}
	process, err := os.StartProcess(program, append(args, j.Argv...), &os.ProcAttr{
		// Of a variable that is there twice the last one counts.
		Env:   (&exec.Cmd{Env: j.Env}).Environ(),
		Files: append(append([]*os.File(nil), j.Files...), gate, failure),
		Sys:   jobAttributes(),
	})
	if err != nil {
		return 0, notStarted(err)
	}
	_ = failure.Close() // else exec would not end it
	if err = j.watcher.take(process.Pid); err == nil {
		_, _ = open.Write([]byte{0}) // if it has ended, so has failed
		var number int32
		if binary.Read(failed, binary.NativeEndian, &number) == nil {
			err = &os.PathError{Op: "fork/exec", Path: j.Path, Err: syscall.Errno(number)}
		}
	}
	if err != nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return 0, err
	}
	pid = process.Pid
	_ = process.Release() // it is waited for by waitChanges, stops included
	return pid, nil
}

// notStarted explains that a process of ours could not be started: what is missing is not the command.
func notStarted(err error) error { return fmt.Errorf("interlock could not start itself: %v", err) }

// self is this program, for another process.
func self() (string, error) {
	const link = "/proc/self/exe" // also when the file has been replaced
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	if path, err := os.Executable(); err == nil {
		return path, nil
	}
	return exec.LookPath(os.Args[0])
}

func (w *watcher) start(program string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	control, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer control.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer theirs.Close()
	w.control, w.ready = ours, ready
	args := []string{"interlock", watcherArgument, strconv.Itoa(unix.Getpgrp())}
	w.process, err = os.StartProcess(program, args, &os.ProcAttr{
		Files: []*os.File{null, null, null, control, theirs}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	return err
}

// take hands the watcher the group of a command that has not begun, and waits until it has it.
func (w *watcher) take(id int) error {
	if err := binary.Write(w.control, binary.NativeEndian, int32(id)); err != nil {
		return errors.New("its watcher has ended")
	}
	if _, err := w.ready.Read(make([]byte, 1)); err != nil {
		return errors.New("its watcher has ended")
	}
	return nil
}

// end tells the watcher that it is not needed any more, if it was started.
func (w *watcher) end() {
	if w.control == nil {
		return
	}
	_, _ = io.WriteString(w.control, "\n")
	_ = w.control.Close()
	_ = w.ready.Close()
	if w.process == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		_, _ = w.process.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(KilledWithin): // it was stopped
	}
}
