//go:build unix && !linux

package launch

import "syscall"

// attributes puts the server into a process group of its own, so that Ctrl-C
// reaches the caller alone, which then stops the server in order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
