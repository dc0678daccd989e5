package job

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// jobAttributes puts the command into a group of its own, and makes the kernel ask it to end if
// this process is killed: its lease would not be renewed then.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// adoptOrphans makes orphaned processes our children, so that we learn of their end. In many
// containers no other process would reap them.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
