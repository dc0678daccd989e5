package launch

import (
	"os"
	"syscall"
)

// Attributes puts a child process into a process group of its own, so that Ctrl-C
// reaches the caller alone, which then stops the child in order.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate ends the process at once: there is no signal that asks for it.
func terminate(p *os.Process) error { return p.Kill() }

// Stop and Continue are no signals of this system: to send them fails.
var Stop, Continue os.Signal = syscall.Signal(-1), syscall.Signal(-1)

// PostgresAttributes are [Attributes] for a server of PostgreSQL.
func PostgresAttributes(string) (*syscall.SysProcAttr, error) { return Attributes(), nil }
