//go:build unix && !linux

package job

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// jobAttributes puts the command into a group of its own.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans is for systems on which a process can ask for that.
func adoptOrphans() {}

// processGroup is the group of a command.
type processGroup struct{ id int }

func (g *processGroup) start(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	g.id, err = syscall.ForkExec(path, argv, attr)
	return g.id, err
}

func (g *processGroup) signal(s unix.Signal) error { return unix.Kill(-g.id, s) }
