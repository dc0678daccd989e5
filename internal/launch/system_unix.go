//go:build unix

package launch

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// Stop and Continue are the signals that let a process stand still and go on.
var Stop, Continue os.Signal = syscall.SIGSTOP, syscall.SIGCONT
