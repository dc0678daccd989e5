//go:build unix

package job

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal of this process.
type terminal struct {
	fd    int
	own   int // our process group
	state *term.State
}

// openTerminal returns nil when there is none: in a service, in CI, over ssh
// without -t.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	t := &terminal{fd: fd, own: unix.Getpgrp()}
	t.state, _ = term.GetState(fd)
	return t
}

func (t *terminal) close() { _ = unix.Close(t.fd) }

// foreground is the group that the terminal belongs to, or -1.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// give makes the terminal another group's. A process that does so from the background is stopped by
// SIGTTOU, unless that is ignored.
func (t *terminal) give(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	// It fails when the group has just ended, and then the terminal has no new group.
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// restore brings back the modes that the terminal had at first.
func (t *terminal) restore() {
	if t.state == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = term.Restore(t.fd, t.state)
}
