//go:build unix

package main

import "syscall"

// become replaces this process: a harness waits for every process that has its output.
func become(program string, args, env []string) error { return syscall.Exec(program, args, env) }
