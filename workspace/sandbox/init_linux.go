package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runInit is process 1 inside. It returns an error alone.
func runInit(s *spec) error {
	dropSignals()
	if os.Getpid() != 1 {
		return errors.New("init is not process 1")
	}
	if s.Mechanism == Namespaces {
		if err := enterRoot(s); err != nil {
			return err
		}
	}
	if err := listen(s.Inside); err != nil {
		return err
	}
	// The command runs as the same user: without this it could trace init, and use its files.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	keepThreads(initThreads)
	command, err := os.StartProcess("/proc/self/exe", []string{"interlock", argument, roleExec}, &os.ProcAttr{
		Env: os.Environ(), Files: handOn(),
	})
	if err != nil {
		return err
	}
	go untilCallerEnds(-1)
	var timeUp atomic.Bool
	if s.Limits.Time > 0 {
		go endAfter(s.Limits.Time, &timeUp)
	}
	code := reap(command.Pid)
	if timeUp.Load() {
		code = ExitTime
	}
	os.Exit(code)
	return nil
}

// initThreads is how many threads init keeps: those that wait for processes, for the caller and for time, that of the
// runtime's monitor, and as many more.
const initThreads = 8

// keepThreads has the runtime make threads, which it keeps. When the processes inside have used up their number, it
// can make none, and a runtime that needs one ends the process.
func keepThreads(n int) {
	var made sync.WaitGroup
	end := make(chan struct{})
	for range n {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			made.Done()
			<-end
			runtime.UnlockOSThread()
		}()
	}
	made.Wait()
	close(end)
}

// reap waits for all processes, and returns the exit code of one.
func reap(command int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return exitCannotRun
		case pid == command && status.Signaled():
			return exitSignal + int(status.Signal())
		case pid == command && status.Exited():
			return status.ExitStatus()
		}
	}
}

// untilCallerEnds ends this process, and with it the sandbox, when the caller has gone. It looks for so many
// milliseconds; below 0 it does not return.
func untilCallerEnds(timeout int) {
	end := []unix.PollFd{{Fd: controlFD}} // no events: a closed other end is always reported
	for {
		n, err := unix.Poll(end, timeout)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			os.Exit(exitSignal + int(unix.SIGKILL))
		}
		if n == 0 && err == nil {
			return
		}
	}
}

// endAfter ends all processes when the time is over.
func endAfter(limit time.Duration, up *atomic.Bool) {
	<-time.After(limit)
	up.Store(true)
	_ = send(message{Time: true})
	_ = unix.Kill(-1, unix.SIGTERM) // all but this one
	_ = unix.Kill(-1, unix.SIGCONT)
	<-time.After(TimeGrace)
	os.Exit(ExitTime)
}

// listen passes the listeners to the caller.
func listen(inside []Address) error {
	if len(inside) == 0 {
		return nil
	}
	var fds []int
	for _, a := range inside {
		if a.Network == "unix" {
			if err := os.MkdirAll(filepath.Dir(a.Address), 0o755); err != nil {
				return err
			}
		}
		l, err := net.Listen(a.Network, a.Address)
		if err != nil {
			return fmt.Errorf("listen inside: %w", err)
		}
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false)
		}
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			return err
		}
		l.Close()
		defer f.Close()
		fds = append(fds, int(f.Fd()))
	}
	return send(message{Listening: true}, fds...)
}

// runExec becomes the command. It returns an error alone.
func runExec(s *spec) error {
	if s.Join {
		if err := join(); err != nil {
			return err
		}
	}
	if err := os.Chdir(s.Dir); err != nil {
		return refuse(CodePath, "add it to the visible paths", "the working directory %s is not visible inside", s.Dir)
	}
	path, err := lookUp(s.Argv[0])
	if err != nil {
		return err
	}
	argv, env := s.Argv, os.Environ()
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if err := setLimits(s); err != nil {
		return err
	}
	if err := filterCalls(); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	err = syscall.Exec(path, argv, env)
	return refuse(CodeCannotRun, "", "%s cannot be run: %v", s.Argv[0], err)
}

// join asks the caller for the cgroup, and waits until this process is in it.
func join() error {
	if err := send(message{Join: true}); err != nil {
		return err
	}
	var answer [1]byte
	for {
		n, _, err := unix.Recvfrom(controlFD, answer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			return errors.New("the caller has ended")
		}
		if answer[0] != 'y' {
			return refuse(CodeUnenforced, "", "the process cannot be moved into its cgroup")
		}
		return nil
	}
}

// lookUp finds a command as a shell would.
func lookUp(name string) (string, error) {
	missing := refuse(CodeNotFound, "", "%s: there is no such command in the sandbox", name)
	candidates := []string{name}
	if filepath.Base(name) == name {
		candidates = nil
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if filepath.IsAbs(dir) {
				candidates = append(candidates, filepath.Join(dir, name))
			}
		}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			if unix.Access(path, unix.X_OK) == nil {
				return path, nil
			}
			missing = refuse(CodeCannotRun, "", "%s cannot be run: permission denied", name)
		}
	}
	return "", missing
}

// setLimits sets what the kernel counts for each process. Values above those of the caller stay as they are.
func setLimits(s *spec) error {
	l := s.Limits
	set := func(resource int, value, hard uint64) error {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(value, now.Max), Max: min(hard, now.Max)})
	}
	type limit struct {
		resource int
		value    uint64
		hard     uint64 // 0: value
	}
	limits := []limit{{unix.RLIMIT_CORE, 0, 0}}
	if l.FileSize > 0 {
		limits = append(limits, limit{unix.RLIMIT_FSIZE, uint64(l.FileSize), 0})
	}
	if l.CPUTime > 0 {
		seconds := uint64(l.CPUTime / time.Second)
		limits = append(limits, limit{unix.RLIMIT_CPU, seconds, seconds + 1}) // SIGXCPU, and then SIGKILL
	}
	if l.Processes > 0 && !s.GroupProcesses && !s.PIDMax {
		limits = append(limits, limit{unix.RLIMIT_NPROC, uint64(l.Processes + threads(1)), 0})
	}
	if l.Memory > 0 && !s.GroupMemory {
		limits = append(limits, limit{unix.RLIMIT_DATA, uint64(l.Memory), 0})
	}
	for _, one := range limits {
		if err := set(one.resource, one.value, cmp.Or(one.hard, one.value)); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	return nil
}

// threads counts those of a process: the kernel counts them as processes of the user.
func threads(pid int) int {
	list, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return 8
	}
	return len(list)
}
