package main

import (
	"context"
	"io"
	"log"
	"os"
	"strings"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:])) }

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	// Package net/http logs messages there that no person wants to read. Important ones go to
	// slog, in serve, or to standard error.
	log.SetOutput(io.Discard)
	a := newApp(args)
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if code == exitFailure && !a.started {
		// The command never began, so what is wrong is how it was typed.
		code = exitUsage
	}
	if text := a.sentence(err); text != "" {
		a.complain("%s", text)
	}
	if code == exitUsage && !a.started && cmd != nil {
		a.complain("try: %s --help", strings.TrimSpace(cmd.CommandPath()))
	}
	return code
}
