//go:build unix && !linux

package launch

import "syscall"

// Attributes puts a child process into a process group of its own, so that Ctrl-C
// reaches the caller alone, which then stops the child in order.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
