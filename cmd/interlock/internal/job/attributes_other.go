//go:build unix && !linux

package job

import "syscall"

// jobAttributes puts the command into a group of its own.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans is for systems on which a process can ask for that.
func adoptOrphans() {}
