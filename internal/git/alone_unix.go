//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// alone puts git into a process group of its own, so that the end of its context also ends what it started: merge
// drivers, and programs that reach a remote repository.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
