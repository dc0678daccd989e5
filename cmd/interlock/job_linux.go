package main

import "syscall"

// jobAttributes puts the command into a group of its own, and has the kernel ask it
// to end if this process is killed: nobody would renew its lease then.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
