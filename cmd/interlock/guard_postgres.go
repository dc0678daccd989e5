package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/postgres"
)

func newGuardPostgres(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Let a PostgreSQL database refuse stale writers",
		Long: `Let a PostgreSQL database (14 or later) refuse stale writers, in the transaction in
which they write. A schema interlock is put into it once, and attached to each table
that it is to guard. A transaction then begins with

  SELECT interlock.enter('default', 'account:12345', FENCE)

which fails when a higher fence was seen, and rows whose key was not entered are
refused. docs/guards.md says what that promises, and what it does not.

The database is found as psql finds it: by --dsn, else by PGHOST, PGPORT, PGUSER,
PGDATABASE, PGSERVICE, ~/.pgpass and so on.`,
		Example: `  interlock guard postgres print | less
  interlock guard postgres install --dsn 'host=db1 dbname=bank user=owner'
  interlock guard postgres attach --table account --key 'account:{id}'`,
		Args:        noCommand,
		Annotations: map[string]string{offline: "true", textOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardPostgresPrint(a), newGuardPostgresInstall(a), newGuardPostgresAttach(a), newGuardPostgresDetach(a), newGuardPostgresUninstall(a))
	return cmd
}

// database is SQL for a database of the user's, to be run there or printed.
type database struct {
	dsn   string
	print bool
}

func (d *database) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.dsn, "dsn", "", "the database, as a `URL` or as key=value words (default: what PGHOST and so on say)")
	f.BoolVar(&d.print, "print", false, "print the SQL, for a migration, and run nothing")
}

// command makes a command that runs SQL and then says that it is done.
func (d *database) command(a *app, cmd *cobra.Command, sql func(cmd *cobra.Command) (string, error), done func() string) *cobra.Command {
	cmd.Args = noArgs
	cmd.Annotations = map[string]string{offline: "true", textOnly: "true"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text, err := sql(cmd)
		if err != nil {
			return err
		}
		if d.print {
			a.say("%s", text)
			return nil
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := d.run(ctx, text); err != nil {
			return err
		}
		a.say("%s\n", done())
		return nil
	}
	d.flags(cmd)
	return cmd
}

// fixed is SQL that no flag changes.
func fixed(text string) func(*cobra.Command) (string, error) {
	return func(*cobra.Command) (string, error) { return text, nil }
}

func (d *database) run(ctx context.Context, sql string) error {
	config, err := pgconn.ParseConfig(d.dsn)
	if err != nil {
		return usage("--dsn: %w", err) // it leaves the password out
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	// Whatever Close says, the transaction has ended by then.
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		return refusedByPostgres(err)
	}
	return nil
}

// The SQLSTATEs of what is not there, and of what may not be done.
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
	message := strings.TrimPrefix(refusal.Message, "interlock: ") // the command says that, too
	missing := refusal.Code == invalidSchemaName || refusal.Code == undefinedFunction
	switch {
	case missing && strings.Contains(message, "interlock"):
		return fmt.Errorf("%s: put the guard into this database first: interlock guard postgres install", message)
	case refusal.Code == insufficientPrivilege:
		return exitWith(exitForbidden, errors.New(message))
	case refusal.Code == postgres.Malformed:
		return exitWith(exitUsage, errors.New(message))
	}
	return errors.New(message)
}

func newGuardPostgresPrint(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "print",
		Short:       "Print the SQL that install runs",
		Args:        noArgs,
		Annotations: map[string]string{offline: "true", textOnly: "true"},
		RunE: func(*cobra.Command, []string) error {
			a.say("%s", postgres.Schema)
			return nil
		},
	}
}

func newGuardPostgresInstall(a *app) *cobra.Command {
	return new(database).command(a, &cobra.Command{
		Use:   "install",
		Short: "Put the guard into a database",
		Long: `Put the schema interlock into a database: a table of the highest fences, and the
functions that compare. Running it again brings an older one up to date and forgets
nothing. It guards no table until it is attached to one.`,
	}, fixed(postgres.Schema), func() string { return "installed" })
}

func newGuardPostgresAttach(a *app) *cobra.Command {
	var table, key, namespace string
	cmd := new(database).command(a, &cobra.Command{
		Use:   "attach --table TABLE --key KEY",
		Short: "Guard a table",
		Long: `Guard a table: from now on a row is written only by a transaction that has entered
the row's key, or one above it. {column} in the key stands for a column's value as one
segment of a key, {column...} for one of several segments; a key without either is
that of all rows. Columns of type integer, text or uuid make good keys.

A table may be attached several times, and a row then needs each of its keys. It takes
a short lock on the table.`,
		Example: `  interlock guard postgres attach --table account --key 'account:{id}'
  interlock guard postgres attach --table shop.item --key 'org:{org}/item:{id}' --for '{tenant}'
  interlock guard postgres attach --table file --key 'repo:{repo}/{path...}' --print`,
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" || key == "" || namespace == "" {
				return "", usage("name a table and the key of its rows: %s", useLine(cmd))
			}
			return postgres.Attach(table, key, namespace), nil
		},
		func() string { return "attached: a row of " + clean(table) + " needs a fence of " + clean(key) })
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "the `table`, as SQL spells it")
	f.StringVar(&key, "key", "", "the `key` of a row, with columns in braces")
	f.StringVar(&namespace, "for", string(interlock.DefaultNamespace), "the `namespace` of the key; columns in braces may stand here too")
	return cmd
}

func newGuardPostgresDetach(a *app) *cobra.Command {
	var table string
	cmd := new(database).command(a, &cobra.Command{
		Use:   "detach --table TABLE",
		Short: "Guard a table no more",
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" {
				return "", usage("name the table: %s", useLine(cmd))
			}
			return postgres.Detach(table), nil
		},
		func() string { return "detached: everybody may write " + clean(table) })
	cmd.Flags().StringVar(&table, "table", "", "the `table`, as SQL spells it")
	return cmd
}

func newGuardPostgresUninstall(a *app) *cobra.Command {
	return new(database).command(a, &cobra.Command{
		Use:   "uninstall",
		Short: "Take the guard out of a database",
		Long: `Take the schema interlock out of a database, with all that it knows of fences. It
refuses while a table is guarded.`,
	}, fixed(postgres.Uninstall), func() string { return "uninstalled" })
}
