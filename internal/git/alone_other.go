//go:build !unix

package git

import "os/exec"

// alone leaves git as it is: here a program that git started ends when its pipes close.
func alone(*exec.Cmd) {}
