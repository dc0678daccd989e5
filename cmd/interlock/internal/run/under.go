package run

import (
	"context"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/acquire"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Under is a command that another topic runs under a lease. Its exit codes are those of run.
type Under struct {
	Claims []interlock.Claim
	// Flags are how the lease is asked for. Their TTL must be set.
	Flags acquire.Flags
	// Argv is the command. Its first element is looked up in PATH.
	Argv []string
	// Env has variables for the command besides those of run.
	Env []string
	// Pass has the flags of the connection as variables; see link.Repeated.
	Pass  []string
	Quiet bool
	// Prepare is called when the lease is held, before the command is looked up and started. It may
	// change all of the above but Claims and Flags, and acquire more in the session of the client. It may be nil.
	Prepare func(ctx context.Context, c *client.Client, u *Under) error
}

// Run runs the command.
func (u *Under) Run(ctx context.Context, a *cli.App) error {
	r := &invocation{
		a: a, q: u.Flags, claims: u.Claims, argv: u.Argv, pass: u.Pass, quiet: u.Quiet, killAsGrace: true, under: u,
	}
	return r.run(ctx)
}
