//go:build unix && !linux && !darwin

package job

import "golang.org/x/sys/unix"

// watchedGroup is the group that a watcher has.
type watchedGroup struct{ id int }

func openGroup(id int) *watchedGroup { return &watchedGroup{id} }

func (g *watchedGroup) signal(s unix.Signal) error { return unix.Kill(-g.id, s) }
