package job

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// jobAttributes puts the command into a group of its own.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endWithParent makes the kernel kill this process, and the command that it becomes, when interlock is killed. The
// watcher does that, too, but may have been killed with it.
func endWithParent() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }

// adoptOrphans makes orphaned processes our children, so that we learn of their end. In many
// containers no other process would reap them.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
