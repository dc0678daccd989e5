package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/shard"
)

// restore fills an empty journal from the backup of --restore. Nothing is written before all of the
// backup was read. The journal is then a copy, so fences jump when it is opened.
func (p *process) restore(ctx context.Context, cfg *serveConfig) error {
	if err := cfg.checkEmpty(ctx); err != nil {
		return err
	}
	files := []string{cfg.Restore}
	if info, err := os.Stat(cfg.Restore); err == nil && info.IsDir() {
		if files, err = datadir.ShardBackups(cfg.Restore); err != nil {
			return cli.Usagef("--restore: %w", err)
		}
		if len(files) > 1 && !cfg.place.Remote() {
			return cli.Usagef(
				"--restore: the backup has %d shards, and a directory has room for one: use a journal in an engine", len(files),
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
	var d placement.Directory
	if len(files) > 1 {
		var err error
		if d, err = datadir.BackedUpDirectory(cfg.Restore, len(files)); err != nil {
			return fmt.Errorf("--restore: %w; nothing was restored: use another backup", err)
		}
		for _, name := range d.More {
			if _, ok := cfg.stores[name]; !ok {
				return cli.Usagef("--restore: the backup has shards in store %s: name an engine with --store %s=URL", name, name)
			}
		}
		if err := cfg.prepare(ctx, d); err != nil {
			return err
		}
	}
	for number, f := range shards {
		began := time.Now()
		if err := cfg.fill(ctx, number, d.Store(number), f); err != nil {
			return err
		}
		debug.FreeOSMemory() // of the state, which is read again from the journal
		p.log.Info(
			"a backup was restored", "file", files[number], "shard", number, "index", f.Header.Index, "made", f.Header.Time,
			"bytes", f.Length, "took", time.Since(began),
		)
	}
	return nil
}

// openBackup checks the backup of a shard.
func openBackup(ctx context.Context, number int, path string) (*backup.File, error) {
	f, err := backup.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usagef("--restore: there is no file %s", cli.Clean(path))
	}
	if err == nil && f.Header.Shard != number {
		err = fmt.Errorf("%s is of shard %d, and not of %d", path, f.Header.Shard, number)
	}
	if err != nil {
		return nil, fmt.Errorf("--restore: %w; nothing was restored: use another backup", err)
	}
	return f, nil
}

// prepare makes the directory of shards.
func (c *serveConfig) prepare(ctx context.Context, d placement.Directory) error {
	return c.inEngine(func(store *remote.Store) error {
		_, done, err := store.Shared(cluster.DirectoryName).Swap(ctx, d.Encode(), "")
		if err == nil && !done {
			err = c.notEmpty()
		}
		return err
	})
}

// fill decodes a backup and writes its state to the journal, in the store of a name.
func (c *serveConfig) fill(ctx context.Context, number int, name string, f *backup.File) error {
	state, err := shard.ReadBackup(ctx, f)
	if err != nil {
		return datadir.ReplayError(fmt.Errorf("--restore: %w; nothing was restored: use another backup", err))
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
			return store.Shard(number).Seed(ctx, state.Epoch, state.Index, state.WriteSnapshot)
		})
	}
	if isNotEmpty(err) {
		return c.notEmpty()
	}
	if err != nil {
		return datadir.OpenError(c.where(), fmt.Errorf("--restore: %w", err))
	}
	return nil
}

// checkEmpty returns why the journal cannot be filled, before time is spent on the backup.
func (c *serveConfig) checkEmpty(ctx context.Context) error {
	if !c.place.Remote() {
		if err := filejournal.CheckEmpty(c.DataDir); isNotEmpty(err) {
			return c.notEmpty()
		} else if err != nil {
			return datadir.OpenError(c.DataDir, err)
		}
		return nil
	}
	return c.inEngine(func(store *remote.Store) error {
		empty, err := store.Empty(ctx)
		if err != nil {
			return err
		}
		directory, err := store.Shared(cluster.DirectoryName).Load(ctx)
		if err == nil && (!empty || directory.Version != "") {
			err = c.notEmpty()
		}
		return err
	})
}

func isNotEmpty(err error) bool {
	return errors.Is(err, filejournal.ErrNotEmpty) || errors.Is(err, remote.ErrNotEmpty)
}

func (c *serveConfig) notEmpty() error {
	return cli.Usagef(
		"--restore: there is a journal in %s, and nothing of it was changed: leave out --restore to go on with it, or choose an empty place",
		cli.Clean(c.where()),
	)
}

// where names the place of the journal.
func (c *serveConfig) where() string {
	if c.place.Remote() {
		return c.place.Text
	}
	return c.DataDir
}

func (c *serveConfig) inEngine(do func(*remote.Store) error) error { return inEngine(c.place, do) }

func inEngine(place datadir.Place, do func(*remote.Store) error) error {
	store, err := place.Connect()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return errors.Join(do(store), store.Close())
}
