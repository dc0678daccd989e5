package main

import (
	"errors"
	"os"
	"os/exec"
)

// become runs a program in place of this one.
func become(program string, args, env []string) error {
	cmd := exec.Cmd{Path: program, Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err == nil {
		os.Exit(0)
	}
	return err
}
