package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/shard"
)

// restoreAct is the act as it is typed. admin restore is the same one: each begins anew what the other left.
const restoreAct = "interlock serve --restore"

// NewRestore returns the command admin restore: what serve --restore does, without a server.
func NewRestore(a *cli.App) *cobra.Command {
	var cfg serveConfig
	cmd := &cobra.Command{
		Use:   "restore BACKUP --to JOURNAL",
		Short: "Fill an empty journal from a backup",
		Long: `Fill an empty journal from a backup, a file or a directory that "interlock admin backup" has
made. It does what "interlock serve --restore" does before it starts a server, and ends: for a
job that must end, such as one of Kubernetes.

JOURNAL is a directory, or a URL as for --journal of "interlock serve". No server opens it
until the last write. If it is killed, run the same command again: it begins anew.

Exit codes: 0 restored, 2 wrong flags or a journal that is not empty, 3 the backup is damaged,
5 a newer version made it, 7 the journal is being filled by something else, 1 anything else.`,
		Example: `  interlock admin restore interlock-2026-05-01.backup --to data
  interlock admin restore backups/2026-05-01 --to postgres://interlock@db.internal/interlock?journal=second`,
		Args:        cli.OneArg("the file or the directory of the backup"),
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.Journal == "" {
				return cli.Usagef("name the journal: interlock admin restore BACKUP --to DIR or a URL")
			}
			if cfg.place, err = datadir.PlaceOf("--to", cfg.Journal, cfg.AllowLoss); err != nil {
				return err
			}
			if err := cfg.checkStores(); err != nil {
				return err
			}
			cfg.Restore, cfg.DataDir = args[0], cfg.place.Dir
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if err := cfg.restore(ctx, cfg.logger(a.Err)); err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(struct {
					Restored string `json:"restored"`
				}{cfg.where()})
			}
			a.Say("restored to %s: start a server with it\n", cli.Clean(cfg.where()))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Journal, "to", "", "the empty `journal`, as serve --data-dir or --journal will be given it")
	f.StringArrayVar(&cfg.Stores, "store", nil, "another engine, as serve --store will be given it: `NAME=URL`")
	f.BoolVar(
		&cfg.AllowLoss, "allow-loss", false,
		"accept an engine with settings under which a crash may lose acknowledged entries",
	)
	cli.BindAll(cmd)
	return cmd
}

// restore fills an empty journal from the backup of --restore, as one act: see cluster.Fill. All of the backup is read
// before anything but the act's mark is written. The journal is then a copy, so fences jump when it is opened.
func (c *serveConfig) restore(ctx context.Context, log *slog.Logger) (err error) {
	var fill *cluster.Fill
	if !c.place.Remote() {
		if err := filejournal.CheckEmpty(c.DataDir); isNotEmpty(err) {
			return c.notEmpty()
		} else if err != nil {
			return datadir.OpenError(c.DataDir, err)
		}
	} else {
		store, err := c.place.Connect()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		defer store.Close()
		fill, err = cluster.BeginFill(ctx, store.Shared(cluster.DirectoryName), restoreAct, store.Empty)
		if isNotEmpty(err) {
			return c.notEmpty()
		}
		if err != nil {
			return datadir.OpenError(c.where(), err)
		}
		defer fill.Stop(ctx)
	}
	files := []string{c.Restore}
	if info, err := os.Stat(c.Restore); err == nil && info.IsDir() {
		if files, err = datadir.ShardBackups(c.Restore); err != nil {
			return cli.Usagef("restore: %w", err)
		}
		if len(files) > 1 && !c.place.Remote() {
			return cli.Usagef(
				"restore: the backup has %d shards, and a directory has room for one: use a journal in an engine", len(files),
			)
		}
	}
	shards := make([]*backup.File, len(files))
	for number, path := range files {
		var err error
		if shards[number], err = openBackup(ctx, number, path); err != nil {
			return err
		}
	}
	d, err := placement.NewDirectory(1)
	if err != nil {
		return err
	}
	if len(files) > 1 {
		if d, err = datadir.BackedUpDirectory(c.Restore, len(files)); err != nil {
			return fmt.Errorf("restore: %w; nothing was restored: use another backup", err)
		}
		for _, name := range d.More {
			if _, ok := c.stores[name]; !ok {
				return cli.Usagef("restore: the backup has shards in store %s: name an engine with --store %s=URL", name, name)
			}
		}
	}
	if fill != nil {
		if err := fill.Fill(ctx, d); err != nil {
			return datadir.OpenError(c.where(), fmt.Errorf("restore: %w", err))
		}
	}
	for number, f := range shards {
		began := time.Now()
		if err := c.fill(ctx, fill, number, d.Store(number), f); err != nil {
			return err
		}
		debug.FreeOSMemory() // of the state, which is read again from the journal
		log.Info(
			"a backup was restored", "file", files[number], "shard", number, "index", f.Header.Index, "made", f.Header.Time,
			"bytes", f.Length, "took", time.Since(began),
		)
	}
	if fill != nil {
		if err := fill.Finish(ctx); err != nil {
			return datadir.OpenError(c.where(), fmt.Errorf("restore: %w", err))
		}
	}
	return nil
}

// openBackup checks the backup of a shard.
func openBackup(ctx context.Context, number int, path string) (*backup.File, error) {
	f, err := backup.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usagef("restore: there is no file %s", cli.Clean(path))
	}
	if err == nil && f.Header.Shard != number {
		err = fmt.Errorf("%s is of shard %d, and not of %d", path, f.Header.Shard, number)
	}
	if err != nil {
		return nil, fmt.Errorf("restore: %w; nothing was restored: use another backup", err)
	}
	return f, nil
}

// fill decodes a backup and writes its state to the journal, in the store of a name.
func (c *serveConfig) fill(
	ctx context.Context, act *cluster.Fill, number int, name string, f *backup.File,
) error {
	state, err := shard.ReadBackup(ctx, f)
	if err != nil {
		return datadir.ReplayError(fmt.Errorf("restore: %w; nothing was restored: use another backup", err))
	}
	if !c.place.Remote() {
		err = filejournal.Seed(
			ctx, c.DataDir, filejournal.Options{SegmentBytes: c.SegmentBytes}, state.Epoch, state.Index, state.WriteSnapshot,
		)
	} else {
		place := c.place
		if name != "" {
			place = c.stores[name]
		}
		err = inEngine(place, func(store *remote.Store) error {
			return store.Shard(number).Seed(ctx, act.Holds, state.Epoch, state.Index, state.WriteSnapshot)
		})
	}
	switch {
	case isNotEmpty(err) && act == nil:
		return c.notEmpty()
	case isNotEmpty(err):
		return datadir.FilledByOthers(c.where(), number)
	case err != nil:
		return datadir.OpenError(c.where(), fmt.Errorf("restore: %w", err))
	}
	return nil
}

func isNotEmpty(err error) bool {
	return errors.Is(err, filejournal.ErrNotEmpty) || errors.Is(err, remote.ErrNotEmpty)
}

func (c *serveConfig) notEmpty() error {
	return cli.Usagef(
		"there is a journal in %s, and nothing of it was changed: leave out --restore to go on, or choose an empty place",
		datadir.Shown(c.where()),
	)
}

// where names the place of the journal.
func (c *serveConfig) where() string {
	if c.place.Remote() {
		return c.place.Text
	}
	return c.DataDir
}

func inEngine(place datadir.Place, do func(*remote.Store) error) error {
	store, err := place.Connect()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return errors.Join(do(store), store.Close())
}
