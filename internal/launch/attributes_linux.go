package launch

import "syscall"

// attributes puts the server into a process group of its own, so that Ctrl-C
// reaches the caller alone, which then stops the server in order; and lets the
// kernel end the server when the caller dies without doing so.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
