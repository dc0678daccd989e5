package job

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// group is the job object of the command: the kernel puts all processes that the command starts into it, and kills
// them when its last handle is closed, so also when this process is killed.
//
// The command has a console group of its own, which Ctrl-C does not reach. It gets Ctrl-Break instead, the only
// event that can be sent to a group.
type group struct {
	id     uint32 // of the command, and of its console group
	object windows.Handle
}

// Main is for systems without job objects.
func Main() {}

// passedOn are the signals that the command gets when we get them, as Ctrl-Break. SIGINT is Ctrl-C or Ctrl-Break,
// and SIGTERM the end of the console or of the user's session.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM}

// begin starts the command. It may not run before it is in the job object, so that nothing it starts is outside.
func (j *Job) begin() (<-chan change, error) {
	if err := j.create(); err != nil {
		return nil, os.NewSyscallError("job object", err)
	}
	process, err := os.StartProcess(j.Path, j.Argv, &os.ProcAttr{
		Env: j.Env, Files: j.Files,
		Sys: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED},
	})
	if err != nil {
		return nil, err
	}
	j.id = uint32(process.Pid)
	assigned := process.WithHandle(func(handle uintptr) {
		err = windows.AssignProcessToJobObject(j.object, windows.Handle(handle))
	})
	if err = errors.Join(assigned, os.NewSyscallError("job object", err)); err == nil {
		err = resume(j.id)
	}
	if err != nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return nil, err
	}
	changes := make(chan change)
	go waitChanges(process, changes)
	return changes, nil
}

func (j *Job) create() (err error) {
	if j.object, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(
		j.object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)),
	)
	return err
}

// resume lets a process run that was started suspended: it has one thread.
func resume(process uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("threads", err)
	}
	defer windows.CloseHandle(threads)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != process {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("thread", err)
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return os.NewSyscallError("thread", err)
	}
	return os.NewSyscallError("threads", err)
}

// counters is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type counters struct {
	times                             [4]int64
	faults, total, active, terminated uint32
}

// left reports whether the job object has processes.
func (j *Job) left() bool {
	var c counters
	err := windows.QueryInformationJobObject(
		j.object, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&c)), uint32(unsafe.Sizeof(c)), nil,
	)
	return err == nil && c.active > 0
}

// kill ends the group at once.
func (j *Job) kill() {
	_ = windows.TerminateJobObject(j.object, uint32(cli.ExitSignal+int(syscall.SIGKILL)))
}

// terminate asks the group to end. Without a console it cannot be asked, and is killed after KillAfter.
func (j *Job) terminate() { _ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, j.id) }

func (j *Job) pass(syscall.Signal) { j.terminate() }

// stopped is for systems with job control.
func (*Job) stopped(syscall.Signal) {}

// close closes the job object.
func (j *Job) close(Result) {
	if j.object != 0 {
		_ = windows.CloseHandle(j.object)
	}
}

// waitChanges reports the end of the command.
func waitChanges(process *os.Process, changes chan<- change) {
	defer close(changes)
	state, err := process.Wait()
	if err != nil {
		return
	}
	var c change
	if c.exit = state.ExitCode(); uint32(c.exit) == uint32(windows.STATUS_CONTROL_C_EXIT) {
		c.signal = syscall.SIGINT // Ctrl-C or Ctrl-Break ended it
	}
	changes <- c
}
