package run

import (
	"context"
	"errors"
	"os"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/job"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// Under is a command that another topic runs under a lease. Its exit codes are those of run.
type Under struct {
	Claims []interlock.Claim
	// Flags are how the lease is asked for.
	Flags acquire.Flags
	// Argv is the command. Its first element is looked up in PATH.
	Argv []string
	// Env has variables for the command besides those of run.
	Env []string
	// Pass has the flags of the connection as variables; see link.Repeated.
	Pass  []string
	Quiet bool
	// Files are the standard input, output and error. Nil means those of this process.
	Files []*os.File
	// Prepare is called when the lease is held, before the command is looked up and started. It may
	// change all of the above but Claims and Flags, and acquire more in the session of the client. It may be nil.
	Prepare func(ctx context.Context, c *client.Client, u *Under) error
	// Box makes the sandbox that the command runs in, from its arguments and its whole environment. It may be nil.
	Box func(argv, env []string) (*sandbox.Sandbox, error)
	// Reached tells which limits of the sandbox a command has reached that ended with an exit code. It goes with Box.
	Reached func(box *sandbox.Sandbox, code int) []string
}

// Run runs the command.
func (u *Under) Run(ctx context.Context, a *cli.App) error {
	r := &invocation{
		a: a, q: u.Flags, claims: u.Claims, argv: u.Argv, pass: u.Pass, quiet: u.Quiet, killAsGrace: true, under: u,
	}
	return r.run(ctx)
}

// box puts the command of a job into its sandbox. The function that it returns is called when the job has ended.
func (u *Under) box(a *cli.App, j *job.Job) (end func(code int, err error) error, err error) {
	box, err := u.Box(j.Argv, j.Env)
	if err != nil {
		return nil, err
	}
	j.Path, j.Argv, j.Env, j.Started = box.Path(), box.Args(), box.Environ(), box.Started
	j.Files = box.Files(j.Files[0], j.Files[1], j.Files[2])
	return func(code int, err error) error {
		if failed := box.Close(); err == nil {
			err = failed
		}
		for _, limit := range u.Reached(box, code) {
			a.Complain("%s: raise the limit, or leave it out", limit)
		}
		return BoxError(err)
	}, nil
}

// BoxError adds the exit code to a failure of a sandbox.
func BoxError(err error) error {
	failure, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case !ok:
		return err
	case failure.Code == sandbox.CodeNotFound:
		return cli.ExitWith(cli.ExitNotFound, err)
	case failure.Code == sandbox.CodeConfig || failure.Code == sandbox.CodePath:
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return cli.ExitWith(cli.ExitCannotRun, err)
}
