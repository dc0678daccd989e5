//go:build unix

package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// A watcher is a process between this one and its command. It runs this program, in a group of its own:
//
//	interlock ──► watcher ──► command
//	    │ control ►  │           └─► what it starts: one group
//	    └ ◄ reports ─┘ at the end of control without a goodbye: SIGKILL for the group
//
// Only interlock has the writing end of control, so the kernel closes it when interlock has ended, however that was,
// and no process of the command can keep that from the watcher. The watcher starts the command itself, so the
// command never runs without a watcher that knows its group. It is also the only one to wait for the
// command: until it has done so, the number of the group cannot become another group's. From then on processes that
// the command left behind keep the number, and the watcher looks every lookAgain whether there are any.
type watcher struct {
	reports *os.File
	group   processGroup
	tty     *terminal // nil without one
	look    <-chan time.Time
}

// watcherArgument is the first argument of a watcher. The others are our process group, or 0 when the command is kept
// from the terminal, the number of the command's files, its path, and its arguments. The environment is the command's.
const watcherArgument = "interlock:watcher"

// The files of a watcher.
const (
	controlFile = 3 + iota
	reportsFile
	firstFile // the command's standard input; its other files follow
)

// report is what a watcher tells of its command.
type report struct{ Kind, Value int32 }

// The kinds of reports, and their values.
const (
	reportStarted int32 = iota // the process id
	reportFailed               // the error number: the command could not be started
	reportStopped              // the signal
	reportKilled               // the signal
	reportExited               // the exit code
)

// Main is called first by every program that runs jobs: by main, and by TestMain. It returns at once, unless this
// process is a watcher; then it never returns.
func Main() {
	if len(os.Args) < 6 || os.Args[1] != watcherArgument {
		return
	}
	// Linux ends the command when the thread that made it ends.
	runtime.LockOSThread()
	w := &watcher{reports: os.NewFile(reportsFile, "reports")}
	if err := w.run(os.Args[2:]); err != nil {
		os.Exit(cli.ExitFailure)
	}
	os.Exit(cli.ExitOK)
}

func (w *watcher) run(args []string) error {
	owner, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	// Nothing but the end of the caller or of the group ends a watcher. Signals that are caught, and not ignored, have
	// their ordinary effect in the command.
	cli.Notify(make(chan os.Signal, 1), append(passedOn, syscall.SIGTTIN, syscall.SIGTTOU)...)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	adoptOrphans()
	if owner != 0 {
		if w.tty = openTerminal(); w.tty != nil {
			w.tty.own = owner
		}
	}
	if !w.start(args[2], args[3:], count) {
		return nil
	}
	goodbye := make(chan bool)
	go func() {
		n, _ := os.NewFile(controlFile, "control").Read(make([]byte, 1))
		goodbye <- n == 1
	}()
	for {
		select {
		case <-children:
		case <-w.look:
		case ordered := <-goodbye:
			if !ordered {
				w.end()
			}
			return nil
		}
		if w.collect() {
			return nil
		}
	}
}

// start starts the command, and lets go of its files.
func (w *watcher) start(path string, argv []string, count int) bool {
	syscall.CloseOnExec(controlFile)
	syscall.CloseOnExec(reportsFile)
	files := make([]uintptr, count)
	for i := range files {
		files[i] = uintptr(firstFile + i)
		syscall.CloseOnExec(firstFile + i)
	}
	pid, err := w.group.start(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: files, Sys: jobAttributes()})
	for _, file := range files {
		_ = unix.Close(int(file))
	}
	if err != nil {
		number := syscall.EINVAL
		_ = errors.As(err, &number)
		w.report(reportFailed, int(number))
		return false
	}
	w.report(reportStarted, pid)
	return true
}

// report tells the caller. When there is none any more, control has ended, too.
func (w *watcher) report(kind int32, value int) {
	_ = binary.Write(w.reports, binary.NativeEndian, report{kind, int32(value)})
}

// left reports whether the group has members.
func (g *processGroup) left() bool { return g.signal(0) == nil }

// collect reports what has become of the command, buries what has ended of its group, and tells whether
// nothing is left of it.
func (w *watcher) collect() (gone bool) {
	for {
		var status unix.WaitStatus
		who, err := unix.Wait4(-w.group.id, &status, unix.WUNTRACED|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || who == 0:
			return w.look != nil && !w.group.left()
		case who != w.group.id:
			continue
		case status.Stopped():
			w.report(reportStopped, int(status.StopSignal()))
			continue
		case status.Signaled():
			w.report(reportKilled, int(status.Signal()))
		default:
			w.report(reportExited, status.ExitStatus())
		}
		w.look = time.Tick(lookAgain)
	}
}

// end ends the group, because the caller has ended without doing so: its lease is not renewed any more.
func (w *watcher) end() {
	_ = w.group.signal(unix.SIGKILL)
	if w.tty != nil && w.tty.foreground() == w.group.id {
		// The others of the caller's group, such as a script, go on with the terminal.
		w.tty.give(w.tty.own)
		w.tty.restore()
	}
	again := time.NewTicker(lookAgain)
	for limit := time.Now().Add(KilledWithin); time.Now().Before(limit) && !w.collect(); <-again.C {
		_ = w.group.signal(unix.SIGKILL) // not every system kills a process that is being made
	}
}

// watcherHandle is the watcher of a job, as its caller sees it.
type watcherHandle struct {
	process *os.Process
	control *os.File
	reports *os.File
}

// startWatched starts the command under a watcher, and returns its process id.
func (j *Job) startWatched() (pid int, err error) {
	if err := j.startWatcher(); err != nil {
		// What is missing here is not the command.
		return 0, fmt.Errorf("its watcher could not be started: %v", err)
	}
	first, err := j.watcher.next()
	switch {
	case err != nil:
		return 0, errors.New("its watcher has ended")
	case first.Kind == reportFailed:
		return 0, &os.PathError{Op: "fork/exec", Path: j.Path, Err: syscall.Errno(first.Value)}
	}
	return int(first.Value), nil
}

func (j *Job) startWatcher() error {
	program, err := self()
	if err != nil {
		return err
	}
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
	reports, theirs, err := os.Pipe()
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer theirs.Close() // else the end of the watcher would not end the reports
	j.watcher = watcherHandle{control: ours, reports: reports}
	owner := 0
	if j.tty != nil {
		owner = j.tty.own
	}
	args := []string{"interlock", watcherArgument, strconv.Itoa(owner), strconv.Itoa(len(j.Files)), j.Path}
	j.watcher.process, err = os.StartProcess(program, append(args, j.Argv...), &os.ProcAttr{
		// Of a variable that is there twice the last one counts.
		Env:   (&exec.Cmd{Env: j.Env}).Environ(),
		Files: append([]*os.File{null, null, null, control, theirs}, j.Files...),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	return err
}

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

func (w *watcherHandle) next() (r report, err error) {
	err = binary.Read(w.reports, binary.NativeEndian, &r)
	return r, err
}

// waitChanges reports each stop of the command, and its end. It closes changes when the watcher has ended.
func (j *Job) waitChanges(changes chan<- change) {
	defer close(changes)
	ended := false
	for {
		r, err := j.watcher.next()
		if err != nil {
			break
		}
		var c change
		switch r.Kind {
		case reportStopped:
			c.stop = syscall.Signal(r.Value)
		case reportKilled:
			c.signal, ended = syscall.Signal(r.Value), true
		case reportExited:
			c.exit, ended = int(r.Value), true
		}
		changes <- c
	}
	if !ended {
		// The watcher was killed, and the command must not run without one.
		j.kill()
		changes <- change{Status: Status{signal: unix.SIGKILL}}
	}
}

// close tells the watcher that it is not needed any more, if it was started.
func (w *watcherHandle) close() {
	if w.control == nil {
		return
	}
	_, _ = io.WriteString(w.control, "\n")
	_ = w.control.Close()
	if w.process != nil {
		ended := make(chan struct{})
		go func() {
			_, _ = w.process.Wait()
			close(ended)
		}()
		select {
		case <-ended: // so that its use of the processor counts as ours
		case <-time.After(KilledWithin): // it was stopped
		}
	}
	_ = w.reports.Close()
}
