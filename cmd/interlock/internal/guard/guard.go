package guard

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// New holds the guards: what checks a fence where agents write.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"guard", "Check fences where agents write",
		`A lease keeps two agents from working on a resource at once, as long as both know whether
they still hold it. A paused agent does not know, and writes late. A guard is a check at the
resource: it refuses a write with a fence older than one that it has seen.`,
		newGuardPostgres(a), newGuardSQLite(a), newGuardRedis(a), newGuardHTTP(a), newGuardGit(a),
	)
}

// pruneIdle is how long a key has to be idle before its fence is forgotten, by default.
const pruneIdle = 30 * 24 * time.Hour

// pruneRule describes what prune keeps safe, and what it asks of leases.
const pruneRule = `A floor takes their place: the highest fence that is forgotten. Below it a fence is
refused for every key that has no row of its own, so a late writer stays refused. A
lease that is older than --idle, and has not entered its key within that time, is
refused with it and has to be acquired anew.

A fence above all that were entered since is not forgotten: it can only be a mistake,
and as the floor it would refuse every lease.`

// newGuardPrint prints the SQL that puts a guard into a database.
func newGuardPrint(a *cli.App, schema string) *cobra.Command {
	return &cobra.Command{
		Use:         "print",
		Short:       "Print the SQL that install runs",
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(*cobra.Command, []string) error {
			a.Say("%s", schema)
			return nil
		},
	}
}

// sqlCommand completes a command that prints what comes of some SQL, which is run in a
// database of the user's, or with --print the SQL alone.
func sqlCommand(
	a *cli.App, cmd *cobra.Command, sql func(cmd *cobra.Command) (string, error),
	answer func(ctx context.Context, sql string) (string, error),
) *cobra.Command {
	var print bool
	cmd.Args = cli.NoArgs
	cmd.Annotations = map[string]string{cli.Offline: "true", cli.TextOnly: "true"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text, err := sql(cmd)
		if err != nil {
			return err
		}
		if print {
			a.Say("%s", text)
			return nil
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		said, err := answer(ctx, text)
		if err != nil {
			return err
		}
		a.Say("%s", said)
		return nil
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the SQL, for a migration, and run nothing")
	return cmd
}

// fixed is SQL that no flag changes.
func fixed(text string) func(*cobra.Command) (string, error) {
	return func(*cobra.Command) (string, error) { return text, nil }
}
