//go:build unix

package workspace

import "syscall"

// noWait keeps an open from waiting for the other end of a named pipe; onlyFolder refuses all but folders.
const (
	noWait     = syscall.O_NONBLOCK | syscall.O_NOCTTY
	onlyFolder = syscall.O_DIRECTORY
)
