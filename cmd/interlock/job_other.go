//go:build unix && !linux

package main

import "syscall"

// jobAttributes puts the command into a group of its own.
func jobAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
