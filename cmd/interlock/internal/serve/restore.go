package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/shard"
)

// restore fills an empty journal from the backup of --restore. Nothing is written before all of the
// backup was read. The journal is then a copy, so fences jump when it is opened.
func (p *process) restore(ctx context.Context, cfg *serveConfig) error {
	if err := cfg.checkEmpty(ctx); err != nil {
		return err
	}
	began := time.Now()
	f, err := backup.Open(ctx, cfg.Restore)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("--restore: there is no file %s", cli.Clean(cfg.Restore))
	}
	if err != nil {
		return fmt.Errorf("--restore: %w; nothing was restored: use another backup", err)
	}
	if err := cfg.fill(ctx, f); err != nil {
		return err
	}
	debug.FreeOSMemory() // of the state, which is read again from the journal
	p.log.Info(
		"a backup was restored", "file", cfg.Restore, "index", f.Header.Index, "made", f.Header.Time, "bytes", f.Length,
		"took", time.Since(began),
	)
	return nil
}

// fill decodes a backup and writes its state to the journal.
func (c *serveConfig) fill(ctx context.Context, f *backup.File) error {
	state, err := shard.ReadBackup(ctx, f)
	if err != nil {
		return datadir.ReplayError(fmt.Errorf("--restore: %w; nothing was restored: use another backup", err))
	}
	if !c.place.Remote() {
		err = filejournal.Seed(
			ctx, c.DataDir, filejournal.Options{SegmentBytes: c.SegmentBytes}, state.Epoch, state.Index, state.WriteSnapshot,
		)
	} else {
		err = c.inEngine(func(store *remote.Store) error {
			return store.Seed(ctx, state.Epoch, state.Index, state.WriteSnapshot)
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
		if err == nil && !empty {
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

func (c *serveConfig) inEngine(do func(*remote.Store) error) error {
	store, err := c.place.Connect()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return errors.Join(do(store), store.Close())
}
