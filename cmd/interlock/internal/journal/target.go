package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
)

// target is the journal that a state is moved to.
type target struct {
	at    datadir.Place
	store *remote.Store // nil for a directory
}

func newTarget(at datadir.Place) (t *target, err error) {
	t = &target{at: at}
	if at.Remote() {
		if t.store, err = at.Connect(); err != nil {
			return nil, cli.ExitWith(cli.ExitUsage, err)
		}
	}
	return t, nil
}

func (t *target) close() {
	if t.store != nil {
		t.store.Close()
	}
}

func (t *target) mustBeEmpty(ctx context.Context) error {
	if t.store == nil {
		err := filejournal.CheckEmpty(t.at.Dir)
		if isNotEmpty(err) {
			return notEmpty(t.at)
		}
		return err
	}
	empty, err := t.store.Empty(ctx)
	if err != nil {
		return unreachable("target", "--to", t.at, err)
	}
	directory, err := t.store.Shared(cluster.DirectoryName).Load(ctx)
	if err != nil {
		return unreachable("target", "--to", t.at, err)
	}
	if !empty || directory.Version != "" {
		return notEmpty(t.at)
	}
	return nil
}

// prepare makes the directory of shards. A journal without one gets one shard when a server starts.
func (t *target) prepare(ctx context.Context, d placement.Directory) error {
	if t.store == nil || d.Shards == 1 {
		return nil
	}
	_, done, err := t.store.Shared(cluster.DirectoryName).Swap(ctx, d.Encode(), "")
	if err == nil && !done {
		err = remote.ErrNotEmpty
	}
	return err
}

func (t *target) seed(ctx context.Context, number int, at interlock.At, write func(io.Writer) error) error {
	if t.store == nil {
		return filejournal.Seed(ctx, t.at.Dir, filejournal.Options{}, at.Epoch, at.Index, write)
	}
	return t.store.Shard(number).Seed(ctx, at.Epoch, at.Index, write)
}

func isNotEmpty(err error) bool {
	return errors.Is(err, filejournal.ErrNotEmpty) || errors.Is(err, remote.ErrNotEmpty)
}

func notEmpty(at datadir.Place) error {
	if !at.Remote() {
		return cli.Usagef("the target has a journal already: choose another directory")
	}
	return cli.Usagef("the target has a journal already: choose another name of the journal")
}

// unreachable is the error of an engine that could not be asked.
func unreachable(what, flag string, at datadir.Place, err error) error {
	return cli.ExitWith(cli.ExitFailure, fmt.Errorf(
		"the %s (%w): check the addresses of %s, and that %s runs there", what, err, flag, at.Engine(),
	))
}
