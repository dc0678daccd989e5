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
	fill  *cluster.Fill // likewise; set by begin
}

// migrateAct is what fills a target, as it is typed.
const migrateAct = "interlock admin migrate"

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
	if t.fill != nil {
		t.fill.Stop(context.Background())
	}
	if t.store != nil {
		t.store.Close()
	}
}

// begin marks the target as one that is not whole: see cluster.Fill.
func (t *target) begin(ctx context.Context) (err error) {
	if t.store == nil {
		err := filejournal.CheckEmpty(t.at.Dir)
		if isNotEmpty(err) {
			return notEmpty(t.at)
		}
		return err
	}
	t.fill, err = cluster.BeginFill(ctx, t.store.Shared(cluster.DirectoryName), migrateAct, t.store.Empty)
	var other *placement.FillingError
	switch {
	case isNotEmpty(err):
		return notEmpty(t.at)
	case errors.As(err, &other):
		return datadir.OpenError(t.at.Text, err)
	case err != nil:
		return unreachable("target", "--to", t.at, err)
	}
	return nil
}

// prepare makes the directory of shards.
func (t *target) prepare(ctx context.Context, d placement.Directory) error {
	if t.fill == nil {
		return nil
	}
	return t.fill.Fill(ctx, d)
}

// mustBeUnused checks that an earlier try has not filled a shard that has no state in this source.
func (t *target) mustBeUnused(ctx context.Context, number int) error {
	if t.fill == nil {
		return nil
	}
	empty, err := t.store.Shard(number).Empty(ctx)
	if err == nil && !empty {
		err = fmt.Errorf("an earlier try has filled shard %d from another source: choose an empty target", number)
	}
	return err
}

// finish makes the target whole.
func (t *target) finish(ctx context.Context) error {
	if t.fill == nil {
		return nil
	}
	return t.fill.Finish(ctx)
}

func (t *target) seed(ctx context.Context, number int, at interlock.At, write func(io.Writer) error) error {
	if t.store == nil {
		return filejournal.Seed(ctx, t.at.Dir, filejournal.Options{}, at.Epoch, at.Index, write)
	}
	return t.store.Shard(number).Seed(ctx, t.fill.Holds, at.Epoch, at.Index, write)
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
