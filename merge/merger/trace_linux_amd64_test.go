package merger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// A tracer runs a command and all that this starts, and kills or stops it at one of the system calls that change
// something outside of a process: a file, a connection, a pipe, another program. It counts them from the command's
// SIGUSR1 on, over all processes. It kills before the call is carried out.
//
//	parent: the test ─► tracer: this binary ─► victim: this binary ─► git
//
// The tracer is a process of its own, because it waits for every child.

// traceCall and traceFault are variables of the tracer's environment: the number of a call (0 for none), and
// what happens there.
const (
	traceCall  = "INTERLOCK_TEST_TRACE_CALL"
	traceFault = "INTERLOCK_TEST_TRACE_FAULT"
)

// The faults of a tracer.
const (
	killAlone = "kill alone" // a git that runs goes on
	killAll   = "kill all"
	stopAll   = "stop all" // until goOn
)

// traced is a command under a tracer.
type traced struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	in    io.WriteCloser
	at    chan struct{} // closed at the call, or at the end
	ended chan struct{}
	calls int
}

// trace starts the test named as the victim, which is this binary's, under a tracer.
func trace(t *testing.T, call int, fault string, env ...string) *traced {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestTracer$", "-test.count=1")
	env = append(env, traceCall+"="+strconv.Itoa(call), traceFault+"="+fault)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	out, errOut := cmd.StdoutPipe()
	in, errIn := cmd.StdinPipe()
	if err := errors.Join(errOut, errIn); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tr := &traced{
		t: t, cmd: cmd, lines: bufio.NewScanner(out), in: in, at: make(chan struct{}), ended: make(chan struct{}),
	}
	t.Cleanup(tr.end)
	return tr
}

// word waits for a line of the victim that begins with a word, and returns the rest.
func (tr *traced) word(word string) string {
	tr.t.Helper()
	for tr.lines.Scan() {
		if rest, ok := strings.CutPrefix(tr.lines.Text(), word+" "); ok {
			return rest
		}
	}
	tr.t.Fatalf("the victim ended without the word %q", word)
	return ""
}

// watch reads until the victim has ended.
func (tr *traced) watch() {
	at := sync.OnceFunc(func() { close(tr.at) })
	defer close(tr.ended)
	defer at()
	for tr.lines.Scan() {
		if tr.lines.Text() == "stopped" {
			at()
		}
		if n, _ := fmt.Sscanf(tr.lines.Text(), "victim ended calls=%d", &tr.calls); n == 1 {
			return
		}
	}
}

// goOn lets a command go on that was stopped.
func (tr *traced) goOn() { _, _ = io.WriteString(tr.in, "\n") }

// end kills the tracer, and the kernel kills with it all that it traces.
func (tr *traced) end() {
	_ = tr.cmd.Process.Kill()
	_ = tr.cmd.Wait()
}

// TestTracer is the tracer's process.
func TestTracer(t *testing.T) {
	call, err := strconv.Atoi(os.Getenv(traceCall))
	if err != nil {
		return // it was not started by trace
	}
	runtime.LockOSThread() // all calls of ptrace come from one thread
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestVictim$", "-test.count=1")
	cmd.Env = os.Environ()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tr := &tracer{victim: cmd.Process.Pid, call: call, fault: os.Getenv(traceFault), seen: map[int]bool{}}
	if err := tr.run(); err != nil {
		t.Fatal(err)
	}
}

type tracer struct {
	victim int
	call   int
	fault  string
	seen   map[int]bool // processes and threads
	counts bool
	calls  int
	done   bool
}

const (
	optExitKill  = 0x100000
	stopOfCall   = syscall.SIGTRAP | 0x80
	allThreads   = 0x40000000
	getCallInfo  = 0x420e
	entersCall   = 1
	createsAFile = syscall.O_CREAT
)

func (tr *tracer) run() error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tr.victim, &status, 0, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(
		tr.victim, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACEFORK|syscall.PTRACE_O_TRACEVFORK|
			syscall.PTRACE_O_TRACECLONE|syscall.PTRACE_O_TRACEEXEC|optExitKill,
	); err != nil {
		return err
	}
	tr.seen[tr.victim] = true
	_ = syscall.PtraceSyscall(tr.victim, 0)
	for {
		id, err := syscall.Wait4(-1, &status, allThreads, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			return nil
		case err != nil:
			return err
		case status.Exited() || status.Signaled():
			if delete(tr.seen, id); id == tr.victim {
				fmt.Printf("victim ended calls=%d\n", tr.calls)
			}
			continue
		case !status.Stopped():
			continue
		}
		signal := status.StopSignal()
		switch {
		case signal == stopOfCall:
			tr.count(id)
			signal = 0
		case signal == syscall.SIGTRAP: // an event of ptrace
			signal = 0
		case signal == syscall.SIGSTOP && !tr.seen[id]: // a new process or thread begins so
			signal = 0
		case signal == syscall.SIGUSR1:
			tr.counts, signal = true, 0
		}
		tr.seen[id] = true
		_ = syscall.PtraceSyscall(id, int(signal)) // it fails if the process was killed meanwhile
	}
}

// count counts a call if it changes something, and kills.
func (tr *tracer) count(id int) {
	var info [88]byte // struct ptrace_syscall_info
	if _, _, errno := syscall.Syscall6(
		syscall.SYS_PTRACE, getCallInfo, uintptr(id), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0,
	); errno != 0 || info[0] != entersCall || !tr.counts || tr.done {
		return
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(info[24+8*i:]) }
	if !changes(id, word(0), word) {
		return
	}
	if tr.calls++; tr.calls != tr.call {
		return
	}
	tr.done = true
	switch tr.fault {
	case stopAll: // each process stops at its next call, because it waits for the tracer
		fmt.Println("stopped")
		_, _ = os.Stdin.Read(make([]byte, 1))
	case killAll:
		for other := range tr.seen {
			_ = syscall.Kill(other, syscall.SIGKILL)
		}
	default:
		_ = syscall.Kill(tr.victim, syscall.SIGKILL)
	}
}

// changes reports whether a call changes something outside of its process.
func changes(id int, call uint64, word func(int) uint64) bool {
	switch call {
	case syscall.SYS_WRITE, syscall.SYS_WRITEV, syscall.SYS_PWRITE64, syscall.SYS_SENDTO, syscall.SYS_SENDMSG:
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", id, word(1)))
		return err == nil && !strings.HasPrefix(name, "anon_inode:") // the threads of Go wake each other so
	case syscall.SYS_OPEN:
		return word(2)&createsAFile != 0
	case syscall.SYS_OPENAT:
		return word(3)&createsAFile != 0
	case syscall.SYS_RENAME, syscall.SYS_RENAMEAT, syscall.SYS_LINK, syscall.SYS_LINKAT, syscall.SYS_UNLINK,
		syscall.SYS_UNLINKAT, syscall.SYS_MKDIR, syscall.SYS_MKDIRAT, syscall.SYS_RMDIR, syscall.SYS_FSYNC,
		syscall.SYS_FDATASYNC, syscall.SYS_FTRUNCATE, syscall.SYS_FLOCK, syscall.SYS_EXECVE, syscall.SYS_EXIT_GROUP:
		return true
	}
	return false
}
