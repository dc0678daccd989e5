package job

import (
	"errors"

	"golang.org/x/sys/unix"
)

// watchedGroup is the group that a watcher has. The number of a group that has ended may become another's, but a pidfd
// of its first process means that process for ever, and from Linux 6.9 on its group.
type watchedGroup struct{ id, fd int }

// openGroup returns the group of a process that has not ended.
func openGroup(id int) *watchedGroup {
	fd, err := unix.PidfdOpen(id, 0)
	if err != nil {
		fd = -1 // before Linux 5.3
	}
	return &watchedGroup{id, fd}
}

func (g *watchedGroup) signal(s unix.Signal) error {
	if g.fd >= 0 {
		err := unix.PidfdSendSignal(g.fd, s, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
		if err == nil || errors.Is(err, unix.ESRCH) {
			return err
		}
		// No process gets the number of a group that has members: one that has it is the first process, or a stranger.
		if unix.PidfdSendSignal(g.fd, 0, nil, 0) != nil && unix.Kill(g.id, 0) == nil {
			return unix.ESRCH
		}
	}
	return unix.Kill(-g.id, s)
}
