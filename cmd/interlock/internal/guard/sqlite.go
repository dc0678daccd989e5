package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/sqlite"
)

func newGuardSQLite(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sqlite",
		Short: "Let a SQLite file refuse stale writers",
		Long: `Let a SQLite file refuse stale writers, in the transaction in which they write. Install the
guard's tables into the file once, and attach its triggers to each table to guard. A
connection then begins with

  PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON

and a transaction with

  INSERT INTO interlock_entered VALUES ('account:12345', FENCE)

which fails when a higher fence was seen. Writes to rows of keys that were not entered are
refused. Before it commits, the transaction removes its entries again:

  DELETE FROM interlock_entered

docs/guards.md states the guarantees and their limits.

The commands run the program sqlite3 on the file, or print the SQL with --print.`,
		Example: `  interlock guard sqlite print | less
  interlock guard sqlite install --file bank.db
  interlock guard sqlite attach --file bank.db --table account --key 'account:{id}'`,
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardPrint(
		a, sqlite.Schema,
	), newGuardSQLiteInstall(a), newGuardSQLiteAttach(a), newGuardSQLiteDetach(a),
		newGuardSQLitePrune(a), newGuardSQLiteUninstall(a))
	return cmd
}

// sqliteFile is where SQL is to be run.
type sqliteFile struct {
	file string
}

// command makes a command that runs SQL and prints what done makes of its rows.
func (s *sqliteFile) command(
	a *cli.App, cmd *cobra.Command, sql func(cmd *cobra.Command) (string, error), done func(rows string) (string, error),
) *cobra.Command {
	cmd.Flags().StringVar(&s.file, "file", "", "the database `file`")
	return sqlCommand(a, cmd, sql, func(ctx context.Context, text string) (string, error) {
		rows, err := s.run(ctx, text)
		if err != nil {
			return "", err
		}
		said, err := done(rows)
		if err != nil {
			return "", err
		}
		return said + "\n", nil
	})
}

// run runs SQL with the program sqlite3, to its first error. An absolute path is
// neither an option nor a URI to it, and it reads no start-up file.
func (s *sqliteFile) run(ctx context.Context, sql string) (rows string, err error) {
	if s.file == "" {
		return "", cli.Usagef("name the database with --file, or print the SQL with --print")
	}
	if _, err := os.Stat(s.file); err != nil {
		return "", cli.Usagef("--file: %w", err) // sqlite3 would make a new database
	}
	path, err := filepath.Abs(s.file)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sqlite3", "-batch", "-bail", "-init", os.DevNull, "-cmd", ".timeout 30000", path)
	cmd.Stdin = strings.NewReader(sql)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
		return "", errors.New(
			"the program sqlite3 is not installed here: install it, or print the SQL with --print and run it in another way",
		)
	} else if err != nil || complaint.Len() > 0 {
		return "", refusedBySQLite(complaint.String(), err)
	}
	return strings.TrimSpace(out.String()), nil
}

// sqliteComplaint matches how sqlite3 reports an error of a statement.
var sqliteComplaint = regexp.MustCompile(`^(?:Parse error|Runtime error|Error)[^:\n]*: ([^\n]*?)(?: \(\d+\))?(?:\n|$)`)

func refusedBySQLite(complaint string, err error) error {
	message := strings.TrimSpace(complaint)
	if m := sqliteComplaint.FindStringSubmatch(complaint); m != nil {
		message = m[1]
	}
	if _, ours, found := strings.Cut(message, "interlock: "); found { // the command begins with that, too
		message = ours
	}
	switch {
	case message == "" && err != nil:
		return err
	case strings.Contains(message, "no such table: interlock_"):
		return fmt.Errorf("%s: put the guard into this file first: interlock guard sqlite install --file FILE", message)
	}
	return errors.New(message)
}

// prints returns a text whatever the rows are.
func prints(format string, args ...any) func(string) (string, error) {
	return func(string) (string, error) { return fmt.Sprintf(format, args...), nil }
}

func newGuardSQLiteInstall(a *cli.App) *cobra.Command {
	return new(sqliteFile).command(a, &cobra.Command{
		Use:   "install --file FILE",
		Short: "Put the guard into a database file",
		Long: `Put the tables of the guard into a SQLite file: the highest fence of each key, and the
entries of the running transaction. Running it again brings an older guard up to date
and forgets nothing. It guards no table until it is attached to one.`,
	}, fixed(sqlite.Schema), prints("installed"))
}

func newGuardSQLiteAttach(a *cli.App) *cobra.Command {
	var table, key string
	cmd := new(sqliteFile).command(a, &cobra.Command{
		Use:   "attach --file FILE --table TABLE --key KEY",
		Short: "Guard a table",
		Long: `Guard a table: from now on a row is written only by a transaction that has entered
the row's key. {column} in the key stands for a column's value as one segment of a
key, {column...} for one of several segments; a key without either is that of all
rows. A table has one key: attaching it again changes the key.`,
		Example: `  interlock guard sqlite attach --file bank.db --table account --key 'account:{id}'
  interlock guard sqlite attach --table file --key 'repo:{repo}/{path...}' --print`,
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" || key == "" {
				return "", cli.Usagef("name a table and the key of its rows: %s", cli.UseLine(cmd))
			}
			sql, err := sqlite.Attach(table, key)
			if err != nil {
				return "", cli.ExitWith(cli.ExitUsage, err)
			}
			return sql, nil
		},
		func(string) (string, error) {
			return "attached: a row of " + cli.Clean(table) + " needs a fence of " + cli.Clean(key), nil
		})
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "the name of the `table`")
	f.StringVar(&key, "key", "", "the `key` of a row, with columns in braces")
	return cmd
}

func newGuardSQLiteDetach(a *cli.App) *cobra.Command {
	var table string
	cmd := new(sqliteFile).command(a, &cobra.Command{
		Use:   "detach --file FILE --table TABLE",
		Short: "Stop guarding a table",
	},
		func(cmd *cobra.Command) (string, error) {
			if table == "" {
				return "", cli.Usagef("name the table: %s", cli.UseLine(cmd))
			}
			sql, err := sqlite.Detach(table)
			if err != nil {
				return "", cli.ExitWith(cli.ExitUsage, err)
			}
			return sql, nil
		},
		func(left string) (string, error) {
			if left != "" {
				return "", fmt.Errorf("%s is still guarded, by triggers from when it had another name: drop them: %s",
					cli.Clean(table), cli.Clean(strings.Join(strings.Fields(left), ", ")))
			}
			return "detached: " + cli.Clean(table) + " is written without a fence", nil
		})
	cmd.Flags().StringVar(&table, "table", "", "the name of the `table`")
	return cmd
}

func newGuardSQLitePrune(a *cli.App) *cobra.Command {
	var idle time.Duration
	cmd := new(sqliteFile).command(a, &cobra.Command{
		Use:   "prune --file FILE",
		Short: "Forget the fences of idle keys",
		Long:  "Forget the fences of keys that no transaction has entered for some time.\n\n" + pruneRule,
	},
		func(*cobra.Command) (string, error) {
			if idle < time.Minute {
				return "", cli.Usagef("--idle: want a minute or more, such as 720h")
			}
			return sqlite.Prune(idle), nil
		},
		func(rows string) (string, error) { return "forgotten: " + rows, nil })
	cli.DurationVar(cmd.Flags(), &idle, "idle", pruneIdle, "forget keys that were not entered for this `time`")
	return cmd
}

func newGuardSQLiteUninstall(a *cli.App) *cobra.Command {
	return new(sqliteFile).command(a, &cobra.Command{
		Use:   "uninstall --file FILE",
		Short: "Remove the guard from a database file",
		Long: `Remove the tables of the guard from a SQLite file, with the fences that they have seen. It
fails while a table is guarded.`,
	}, fixed(sqlite.Uninstall), prints("uninstalled"))
}
