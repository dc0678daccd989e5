package launch

import "syscall"

// Attributes puts a child process into a process group of its own, so that Ctrl-C
// reaches the caller alone, which then stops the child in order; and lets the
// kernel end the child when the caller dies without doing so.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
