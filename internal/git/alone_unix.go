//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// Alone puts a command into a process group of its own, so that the end of its context also ends what it started, such
// as merge drivers, and programs that reach a remote repository. It waits a moment for their pipes.
func Alone(cmd *exec.Cmd) {
	cmd.WaitDelay = patience
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// Detach is Alone, and takes the terminal away: a program that would ask a person there fails at once.
func Detach(cmd *exec.Cmd) {
	Alone(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}
