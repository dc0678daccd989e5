package guard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/postgres"
)

func newGuardPostgres(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Let a PostgreSQL database refuse stale writers",
		Long: `Let a PostgreSQL database (14 or later) refuse stale writers, in the transaction in
which they write. Install the schema interlock into it once, and attach it to each
table to guard. A transaction then begins with

  SELECT interlock.enter('default', 'account:12345', FENCE)

which fails when a higher fence was seen; writes to rows of keys that were not entered are
refused. docs/guards.md states the guarantees and their limits.

The database is found as psql finds it: by --dsn, else by PGHOST, PGPORT, PGUSER,
PGDATABASE, PGSERVICE, ~/.pgpass and so on.`,
		Example: `  interlock guard postgres print | less
  interlock guard postgres install --dsn 'host=db1 dbname=bank user=owner'
  interlock guard postgres attach --table account --key 'account:{id}'`,
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardPrint(
		a, postgres.Schema,
	), newGuardPostgresInstall(a), newGuardPostgresAttach(a), newGuardPostgresDetach(a),
		newGuardPostgresList(a), newGuardPostgresPrune(a), newGuardPostgresUninstall(a))
	return cmd
}

// database is where SQL is to be run.
type database struct {
	dsn string
}

// command makes a command that runs SQL and then prints that it is done.
func (d *database) command(
	a *cli.App, cmd *cobra.Command, sql func(cmd *cobra.Command) (string, error), done func() string,
) *cobra.Command {
	return d.query(a, cmd, sql, func(ctx context.Context, text string) (string, error) {
		if _, err := d.run(ctx, text); err != nil {
			return "", err
		}
		return done() + "\n", nil
	})
}

// query makes a command that prints what comes of some SQL.
func (d *database) query(
	a *cli.App, cmd *cobra.Command, sql func(cmd *cobra.Command) (string, error),
	answer func(ctx context.Context, sql string) (string, error),
) *cobra.Command {
	cmd.Flags().StringVar(
		&d.dsn, "dsn", "", "the database, as a `URL` or as key=value words (default: from PGHOST and so on)",
	)
	return sqlCommand(a, cmd, sql, answer)
}

// run runs SQL and returns the rows of its last statement.
func (d *database) run(ctx context.Context, sql string) (rows [][][]byte, err error) {
	config, err := pgconn.ParseConfig(d.dsn)
	if err != nil {
		return nil, cli.Usagef("--dsn: %w", err) // it leaves the password out
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUnreachable, err)
	}
	// Whatever Close returns, the transaction has ended by then.
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, refusedByPostgres(err)
	}
	return results[len(results)-1].Rows, nil
}

// The SQLSTATEs of missing objects, and of missing rights.
const (
	invalidSchemaName     = "3F000"
	undefinedFunction     = "42883"
	insufficientPrivilege = "42501"
)

func refusedByPostgres(err error) error {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	message := strings.TrimPrefix(refusal.Message, "interlock: ") // the command prints that, too
	missing := refusal.Code == invalidSchemaName || refusal.Code == undefinedFunction
	switch {
	case missing && strings.Contains(message, "interlock"):
		return fmt.Errorf("%s: put the guard into this database first: interlock guard postgres install", message)
	case refusal.Code == insufficientPrivilege:
		return cli.ExitWith(cli.ExitForbidden, errors.New(message))
	case refusal.Code == postgres.Malformed:
		return cli.ExitWith(cli.ExitUsage, errors.New(message))
	}
	return errors.New(message)
}

func newGuardPostgresInstall(a *cli.App) *cobra.Command {
	return new(database).command(a, &cobra.Command{
		Use:   "install",
		Short: "Put the guard into a database",
		Long: `Put the schema interlock into a database: a table of the highest fences, and the
functions that compare. Running it again brings an older one up to date and forgets
nothing. It guards no table until it is attached to one.`,
	}, fixed(postgres.Schema), func() string { return "installed" })
}

func newGuardPostgresAttach(a *cli.App) *cobra.Command {
	var table, key, namespace string
	cmd := new(database).command(a, &cobra.Command{
		Use:   "attach --table TABLE --key KEY",
		Short: "Guard a table",
		Long: `Guard a table: from now on a row is written only by a transaction that has entered
the row's key, or one above it. {column} in the key stands for a column's value as one
segment of a key, {column...} for one of several segments; a key without either is
that of all rows. Columns of type integer, text or uuid make good keys.

A table may be attached several times, and a row then needs each of its keys. Tables
that inherit from it are guarded with it; attach it again when one is added. It takes a
short lock on the table.`,
		Example: `  interlock guard postgres attach --table account --key 'account:{id}'
  interlock guard postgres attach --table shop.item --key 'org:{org}/item:{id}' --for '{tenant}'
  interlock guard postgres attach --table file --key 'repo:{repo}/{path...}' --print`,
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" || key == "" || namespace == "" {
				return "", cli.Usagef("name a table and the key of its rows: %s", cli.UseLine(cmd))
			}
			return postgres.Attach(table, key, namespace), nil
		},
		func() string { return "attached: a row of " + cli.Clean(table) + " needs a fence of " + cli.Clean(key) })
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "the `table`, as SQL spells it")
	f.StringVar(&key, "key", "", "the `key` of a row, with columns in braces")
	f.StringVar(
		&namespace, "for", string(interlock.DefaultNamespace),
		"the `namespace` of the key; columns in braces may stand here too",
	)
	return cmd
}

func newGuardPostgresDetach(a *cli.App) *cobra.Command {
	var table string
	cmd := new(database).command(a, &cobra.Command{
		Use:   "detach --table TABLE",
		Short: "Stop guarding a table",
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" {
				return "", cli.Usagef("name the table: %s", cli.UseLine(cmd))
			}
			return postgres.Detach(table), nil
		},
		func() string { return "detached: every client may write " + cli.Clean(table) })
	cmd.Flags().StringVar(&table, "table", "", "the `table`, as SQL spells it")
	return cmd
}

func newGuardPostgresList(a *cli.App) *cobra.Command {
	d := new(database)
	return d.query(a, &cobra.Command{
		Use:   "list",
		Short: "List the guarded tables, and the unguarded ones beside them",
		Long: `List the guarded tables with the keys of their rows. A table that inherits from one of
them and is not guarded, because it came later or its triggers are disabled, is listed
with it: attach the guarded table again, or enable the triggers. Exit code 1 then.`,
	}, fixed(postgres.Tables), func(ctx context.Context, sql string) (string, error) {
		rows, err := d.run(ctx, sql)
		if err != nil {
			return "", err
		}
		var text strings.Builder
		open := 0
		for _, row := range rows {
			table, key, child := cli.Clean(string(row[0])), cli.Clean(string(row[1])), cli.Clean(string(row[2]))
			if child != "" {
				open++
				fmt.Fprintf(&text, "%s: not guarded, though it inherits from %s\n", child, table)
				continue
			}
			fmt.Fprintf(&text, "%s: %s\n", table, key)
		}
		if open > 0 {
			a.Say("%s", text.String())
			return "", fmt.Errorf("not guarded: %d: attach the tables that they inherit from again", open)
		}
		return text.String(), nil
	})
}

func newGuardPostgresPrune(a *cli.App) *cobra.Command {
	var idle time.Duration
	d := new(database)
	cmd := d.query(a, &cobra.Command{
		Use:   "prune",
		Short: "Forget the fences of idle keys",
		Long: "Forget the fences of keys that no transaction has entered for some time, as the owner\nof the schema interlock. " +
			"It deletes 100,000 rows in a transaction, until there are no more.\n\n" + pruneRule,
	},
		func(*cobra.Command) (string, error) {
			if idle < time.Minute {
				return "", cli.Usagef("--idle: want a minute or more, such as 720h")
			}
			return postgres.Prune(idle), nil
		},
		func(ctx context.Context, sql string) (string, error) {
			for total := 0; ; {
				rows, err := d.run(ctx, sql)
				if err != nil {
					return "", err
				}
				n, err := strconv.Atoi(string(rows[0][0]))
				if err != nil {
					return "", err
				}
				if total += n; n == 0 {
					return fmt.Sprintf("forgotten: %d\n", total), nil
				}
			}
		})
	cli.DurationVar(cmd.Flags(), &idle, "idle", pruneIdle, "forget keys that were not entered for this `time`")
	return cmd
}

func newGuardPostgresUninstall(a *cli.App) *cobra.Command {
	return new(database).command(a, &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the guard from a database",
		Long: `Remove the schema interlock from a database, with the fences that it has seen. It fails
while a table is guarded.`,
	}, fixed(postgres.Uninstall), func() string { return "uninstalled" })
}
