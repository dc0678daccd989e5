package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
	"github.com/interlockdev/interlock/workspace/database"
)

// clone is the file database.json in the folder of a workspace. Only its user can read it: the source as it was
// written may have a password.
type clone struct {
	Source string         `json:"source"`
	Clone  database.Clone `json:"clone"`
}

const cloneFile = "database.json"

// databaseFlags are those that name a source.
type databaseFlags struct {
	from   string
	method cli.Choice
}

func (d *databaseFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&d.from, "db", "",
		"the database to clone: postgres://USER@HOST/NAME, sqlite:PATH, or env:VARIABLE that has one of them as its `source`",
	)
	d.method.Value = string(database.Template)
	d.method.Among(
		cmd, "db-method", "how PostgreSQL clones it: template copies files while nothing is connected, dump works in use, "+
			"schema leaves the data out",
		string(database.Template), string(database.Dump), string(database.Schema), string(database.Empty),
	)
}

// resolve reads a source from the variable that it names.
func resolve(source string) (string, error) {
	name, ok := strings.CutPrefix(source, "env:")
	if !ok {
		return source, nil
	}
	value := os.Getenv(name)
	if value == "" {
		return "", cli.Usagef("--db: the variable %s is not set", cli.Clean(name))
	}
	return value, nil
}

func (c *clone) source() (string, error) { return resolve(c.Source) }

// owner marks a clone as that of a workspace on this host.
func owner(w *workspace.Workspace) database.Owner {
	host, _ := os.Hostname()
	return database.Owner{Repo: w.Repo, Name: w.Name, Place: host + ":" + w.Folder()}
}

// create clones the database for a new workspace. The name of a clone is derived, so one that a crash has left is found
// by the next attempt, which refuses it.
func (d *databaseFlags) create(ctx context.Context, w *workspace.Workspace) error {
	if d.from == "" {
		return nil
	}
	source, err := resolve(d.from)
	if err != nil {
		return err
	}
	folder := filepath.Join(w.Folder(), "db")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	made, err := database.Create(ctx, database.Options{
		Source: source, Owner: owner(w), Method: database.Method(d.method.Value), Folder: folder,
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(&clone{Source: d.from, Clone: *made})
	if err == nil {
		err = os.WriteFile(filepath.Join(w.Folder(), cloneFile), text, 0o600)
	}
	if err != nil {
		return errors.Join(err, made.Drop(context.WithoutCancel(ctx), source, true))
	}
	return nil
}

// cloneOf returns the clone of a workspace, nil if it has none.
func cloneOf(w *workspace.Workspace) (*clone, error) {
	text, err := os.ReadFile(filepath.Join(w.Folder(), cloneFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := new(clone)
	return c, json.Unmarshal(text, c)
}

// environ has the variables of the clone. The one that the source was named by leads to the clone, too: the command has
// no use for the source's address and password. host replaces that of a server elsewhere.
func (c *clone) environ(host string) ([]string, error) {
	source, err := c.source()
	if err != nil {
		return nil, err
	}
	env, err := c.Clone.Environ(source, host)
	if name, ok := strings.CutPrefix(c.Source, "env:"); ok && name != "DATABASE_URL" {
		for _, pair := range env {
			if address, ok := strings.CutPrefix(pair, "DATABASE_URL="); ok {
				env = append(env, name+"="+address)
			}
		}
	}
	return env, err
}

// drop drops the clone of a workspace that was deleted. One that cannot be dropped is left, and said.
func (c *clone) drop(ctx context.Context, a *cli.App, end bool) {
	source, err := c.source()
	if err == nil {
		err = c.Clone.Drop(ctx, source, end)
	}
	if err != nil {
		a.Complain(
			"the database %s is left (%v): interlock workspace databases --db SOURCE --drop %s", c.Clone.Name, err, c.Clone.Name,
		)
	}
}

func newDatabases(a *cli.App) *cobra.Command {
	var d databaseFlags
	var drop string
	var end bool
	cmd := &cobra.Command{
		Use:   "databases --db SOURCE",
		Short: "List and drop the database clones of workspaces on a server",
		Long: `List the clones on the PostgreSQL server of a source: those of workspaces on this host and on
others, and leftovers. Only a database with the mark of a clone is ever dropped.

A clone is dropped with its workspace. It is left if sessions were connected to it, or if the
server did not answer.`,
		Example: `  interlock workspace databases --db env:DATABASE_URL
  interlock workspace databases --db env:DATABASE_URL --drop interlock_web_fix_1_0f3c --end-sessions`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.from == "" {
				return cli.Usagef("name a source with --db")
			}
			source, err := resolve(d.from)
			if err != nil {
				return err
			}
			list, err := database.List(cmd.Context(), source)
			if err != nil {
				return err
			}
			if drop != "" {
				for _, l := range list {
					if l.Name == drop {
						if err := l.Drop(cmd.Context(), source, end); err != nil {
							return err
						}
						a.Say("dropped %s\n", drop)
						return nil
					}
				}
				return fmt.Errorf("the server has no clone %s", cli.Clean(drop))
			}
			return printClones(a, list)
		},
	}
	d.define(cmd)
	cmd.Flags().StringVar(&drop, "drop", "", "drop the clone of this `name`, whatever workspace it was made for")
	cmd.Flags().BoolVar(&end, "end-sessions", false, "end the connections to it first")
	return cmd
}

func printClones(a *cli.App, list []database.Leftover) error {
	// A clone has its workspace as long as that has its file.
	here, _ := os.Hostname()
	state := func(l *database.Leftover) string {
		host, folder, _ := strings.Cut(l.Owner.Place, ":")
		switch {
		case !l.Marked:
			return "not marked"
		case host != here:
			return "of host " + cli.Clean(host)
		}
		if _, err := os.Stat(filepath.Join(folder, cloneFile)); err != nil {
			return "left"
		}
		return "used"
	}
	if a.JSON() {
		type row struct {
			database.Leftover
			State string `json:"state"`
		}
		rows := []row{}
		for i := range list {
			rows = append(rows, row{list[i], state(&list[i])})
		}
		return a.Print(map[string]any{"databases": rows})
	}
	if len(list) == 0 {
		a.Complain("no clones")
		return nil
	}
	t := a.Table("DATABASE", "WORKSPACE", "SOURCE", "SIZE", "SESSIONS", "STATE")
	for i := range list {
		l := &list[i]
		t.Row(
			cli.Clean(l.Name), cli.OrDash(cli.Clean(strings.Trim(l.Owner.Repo+"/"+l.Owner.Name, "/"))),
			cli.OrDash(cli.Clean(l.Source)), cli.Bytes(l.Bytes), l.Sessions, state(l),
		)
	}
	return t.Write(a.Out)
}

func newMigrate(a *cli.App) *cobra.Command {
	var d databaseFlags
	cmd := &cobra.Command{
		Use:                   "migrate --db SOURCE [FLAGS] -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Try migrations on an empty and on a copied database",
		Long: `Run a command that migrates a database twice: on an empty database, and on a copy of the source.
It finds the database in DATABASE_URL (and PGHOST, PGDATABASE and so on), and INTERLOCK_MIGRATION
is "empty" or "copy". Both databases are dropped. As a check of the merge queue it runs on the
merged tree, so two migrations that pass alone and fail together are found before they land.

Exit codes: the command's own, if it fails on one of the two.`,
		Example: `  interlock workspace migrate --db env:DATABASE_URL -- alembic upgrade head
  interlock workspace migrate --db sqlite:db.sqlite3 -- ./manage.py migrate`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 || len(args) == 0 {
				return cli.Usagef("put -- before the command: %s", cli.UseLine(cmd))
			}
			return nil
		},
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.from == "" {
				return cli.Usagef("name a source with --db")
			}
			source, err := resolve(d.from)
			if err != nil {
				return err
			}
			folder, err := os.MkdirTemp("", "interlock-migrate-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			err = database.Migrate(cmd.Context(), database.Migration{
				Source: source, Method: database.Method(d.method.Value), Argv: args, Env: os.Environ(), Output: os.Stderr,
				Folder: folder,
			})
			refusal, _ := errors.AsType[*database.Error](err)
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && refusal != nil && exit.ExitCode() > 0 {
				return cli.ExitWith(exit.ExitCode(), refusal)
			}
			if err == nil {
				a.Say("the migrations work on an empty database and on a copy\n")
			}
			return err
		},
	}
	d.define(cmd)
	return cmd
}

// hostInside is the host of the clone's server in a sandbox with a loopback of its own, if it is not the source's.
func (c *clone) hostInside() (string, error) {
	source, err := c.source()
	if err != nil {
		return "", err
	}
	network, address, err := database.Endpoint(source)
	if err != nil || network != "tcp" {
		return "", err
	}
	if _, err := onLoopback(address); err != nil {
		return "127.0.0.1", nil
	}
	return "", nil
}
