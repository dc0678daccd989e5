//go:build unix && !linux

package job

import "syscall"

// jobAttributes puts the command into a group of its own.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// endWithParent is for systems on which the kernel does that.
func endWithParent() {}

// adoptOrphans is for systems on which a process can ask for that.
func adoptOrphans() {}
