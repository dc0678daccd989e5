//go:build !unix

package git

import "os/exec"

// Alone bounds how long a command with a context that has ended may keep its pipes open. Here the programs that it
// started end with them.
func Alone(cmd *exec.Cmd) { cmd.WaitDelay = patience }

// Detach is Alone. Here programs cannot be kept from asking a person, only from waiting for ever.
func Detach(cmd *exec.Cmd) { Alone(cmd) }
