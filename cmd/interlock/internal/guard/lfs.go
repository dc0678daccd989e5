package guard

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/git/lfs"
	"github.com/interlockdev/interlock/server"
)

// guardLFS is the flags of guard git lfs.
type guardLFS struct {
	listenFlags
	repoKeys
	ttl         time.Duration
	path, users string
	hosts       []string
}

func newGuardGitLFS(a *cli.App) *cobra.Command {
	var g guardLFS
	cmd := &cobra.Command{
		Use:   "lfs --repo NAME",
		Short: "Keep Git LFS locks as leases",
		Long: `Serve the locking API of Git LFS (git lfs lock, locks, unlock, and the check before git
push) with leases, so that a stock client is refused when it pushes a file that another
agent holds. The guard has no state: a lock is a lease in the user's name, and files that
agents hold without Git LFS are locked too.

A lock ends after --ttl, because it is not renewed. --force takes it from any user.

With --users a user needs a secret made by "interlock credential create"; the file has the
lines that it printed. Without, every user name is accepted, on loopback only.`,
		Example:     `  interlock guard git lfs --repo web --path /team/web.git/info/lfs`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), a) },
	}
	g.repoKeys.flags(cmd)
	g.listenFlags.flags(cmd, "127.0.0.1:7431")
	f := cmd.Flags()
	cli.DurationVar(f, &g.ttl, "ttl", interlock.MaxTTL, "how long a lock lives")
	f.StringVar(&g.path, "path", "", "the `path` that stands before /locks in requests")
	f.StringVar(&g.users, "users", "", "`file` of credentials")
	f.StringSliceVar(&g.hosts, "host", nil, "further `names` of the guard, such as git.example.com")
	return cmd
}

func (g *guardLFS) run(ctx context.Context, a *cli.App) error {
	if err := g.check(); err != nil {
		return err
	}
	if err := server.CheckListen(g.addr, g.users != "", false); err != nil {
		return cli.Usagef(
			"--listen: other machines can reach it, and every user name would be accepted: set --users, or listen on 127.0.0.1",
		)
	}
	keys, err := g.keys()
	if err != nil {
		return err
	}
	d, err := serverAPI(a)
	if err != nil {
		return err
	}
	cfg := lfs.Config{API: d, Keys: keys, TTL: g.ttl, Path: g.path, Hosts: g.hosts}
	if g.users != "" {
		if cfg.Users, err = lfs.LoadUsers(g.users); err != nil {
			return cli.Usagef("--users: %w", err)
		}
	}
	h, err := lfs.New(cfg)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	return g.serve(ctx, a, h.Server())
}
