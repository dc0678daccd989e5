package job

import "golang.org/x/sys/unix"

// watchedGroup is the group that a watcher has, and when its first process was started.
type watchedGroup struct {
	id      int
	started unix.Timeval
}

// openGroup returns the group of a process that has not ended.
func openGroup(id int) *watchedGroup {
	g := &watchedGroup{id: id}
	if p, err := unix.SysctlKinfoProc("kern.proc.pid", id); err == nil {
		g.started = p.Proc.P_starttime
	}
	return g
}

func (g *watchedGroup) signal(s unix.Signal) error {
	// No process gets the number of a group that has members: one that has it is the first process, or a stranger.
	p, err := unix.SysctlKinfoProc("kern.proc.pid", g.id)
	if err == nil && int(p.Proc.P_pid) == g.id && p.Proc.P_starttime != g.started {
		return unix.ESRCH
	}
	return unix.Kill(-g.id, s)
}
