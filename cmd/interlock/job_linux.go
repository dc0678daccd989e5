package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// jobAttributes puts the command into a group of its own, and has the kernel ask it
// to end if this process is killed: nobody would renew its lease then.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// adoptOrphans makes processes whose parents have ended our children, so that we
// hear of their end. In many containers nobody else would bury them.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
