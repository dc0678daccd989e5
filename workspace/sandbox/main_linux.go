package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main is called first by every program that uses New: by main, and by TestMain. It returns at once, unless this
// process belongs to a sandbox; then it never returns.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	runtime.LockOSThread() // several settings are of a thread, and exec keeps those of its own
	if os.Args[2] == roleTry {
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	s, err := readSpec()
	if err != nil {
		fail(exitCannotRun, err)
	}
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(specFD)
	switch os.Args[2] {
	case roleStart:
		fail(exitCannotRun, start(s))
	case roleOverlay:
		if err := mountOverlays(s.Overlays); err != nil {
			fail(exitCannotRun, err)
		}
		// Bubblewrap makes a namespace of its own, and refuses capabilities that it has not asked for.
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			fail(exitCannotRun, err)
		}
		keepFiles()
		fail(exitCannotRun, execBubblewrap(s))
	case roleInit:
		fail(exitCannotRun, runInit(s))
	case roleExec:
		err := runExec(s)
		var e *Error
		if errors.As(err, &e) && e.Code == CodeNotFound {
			fail(exitNotFound, err)
		}
		fail(exitCannotRun, err)
	}
	os.Exit(exitCannotRun)
}

// The exit codes of shells.
const (
	exitCannotRun = 126
	exitNotFound  = 127
	exitSignal    = 128
)

// start is the caller's child. It becomes bubblewrap, or waits for its child in new namespaces.
func start(s *spec) error {
	// The control socket ends the sandbox, too, but bubblewrap does not look at it before init does.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	untilCallerEnds(0) // it may have ended before
	var flags uintptr = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	role := roleOverlay
	if s.Mechanism == Namespaces {
		flags, role = namespaceFlags(s.Net), roleInit
	} else if len(s.Overlays) == 0 {
		keepFiles()
		return execBubblewrap(s)
	}
	dropSignals()
	cmd := inNamespaces(flags, role)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = handOn()[controlFD:]
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		os.Exit(exitSignal + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
	return nil
}

// keepFiles lets bubblewrap pass on the files that init needs.
func keepFiles() {
	for _, fd := range []int{controlFD, specFD} {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	}
}

func namespaceFlags(net Net) uintptr {
	var flags uintptr = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if net != NetHost {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// inNamespaces is this program in new namespaces, with the same user and group, and all capabilities in them.
func inNamespaces(flags uintptr, role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", argument, role)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  flags,
		Pdeathsig:   syscall.SIGKILL,
		AmbientCaps: allCapabilities(),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

func allCapabilities() (list []uintptr) {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil && has == 1 {
			list = append(list, c)
		}
	}
	return list
}

// tryNamespaces reports why namespaces cannot be used here.
func tryNamespaces() error {
	if out, err := inNamespaces(namespaceFlags(NetOff), roleTry).CombinedOutput(); err != nil {
		return refuse(
			CodeUnavailable, "allow user namespaces, or install bubblewrap", "user namespaces do not work here: %s",
			firstLine(out, err),
		)
	}
	return nil
}
