package main

import (
	"context"
	"io"
	"log"
	"os"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

func main() {
	sandbox.Main()
	job.Main()
	os.Exit(execute(context.Background(), os.Args[1:]))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	// Package net/http logs messages there that no person wants to read. Important ones go to
	// slog, in serve, or to standard error.
	log.SetOutput(io.Discard)
	a := cli.NewApp(args)
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cli.ExitOK
	}
	code := cli.ExitCode(err)
	if code == cli.ExitFailure && !a.Started {
		// The command never began, so what is wrong is how it was typed.
		code = cli.ExitUsage
	}
	if text := a.Sentence(err); text != "" {
		a.Complain("%s", text)
	}
	if code == cli.ExitUsage && !a.Started && cmd != nil {
		a.Complain("try: %s --help", strings.TrimSpace(cmd.CommandPath()))
	}
	return code
}
