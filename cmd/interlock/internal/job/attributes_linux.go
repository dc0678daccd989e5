package job

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// jobAttributes puts the command into a group of its own, and makes the kernel kill it if its watcher is killed.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes orphaned processes our children, so that we learn of their end. In many
// containers no other process would reap them.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// processGroup is the group of a command. A pidfd means this group for ever: the number of a group that has ended may
// become another's. Linux takes it for a group from 6.9 on.
type processGroup struct{ id, fd int }

func (g *processGroup) start(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	attr.Sys.PidFD = &g.fd
	g.fd = -1
	g.id, err = syscall.ForkExec(path, argv, attr)
	return g.id, err
}

func (g *processGroup) signal(s unix.Signal) error {
	if g.fd >= 0 {
		err := unix.PidfdSendSignal(g.fd, s, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
		if err == nil || errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return unix.Kill(-g.id, s)
}
