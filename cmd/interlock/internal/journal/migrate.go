package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/shard"
)

func newMigrate(a *cli.App) *cobra.Command {
	var from, to string
	var allowLoss bool
	cmd := &cobra.Command{
		Use:   "migrate --from JOURNAL --to JOURNAL",
		Short: "Move a stopped server's state to another journal",
		Long: `Move a stopped server's state to another journal: leases, places in line, sessions,
documents, tasks, and the answers of requests that may be repeated. Its history stays
where it is: print that of a directory with "interlock admin journal dump DIR".

A journal is a directory, or a URL as for --journal of "interlock serve", such as
etcd://10.0.0.1/main. The source must not be in use, and the target must be empty. At the
target fences begin far above all that the source has assigned, so a write under an old
lease that was ended meanwhile is refused also if the source is started again by mistake.
Servers of the target sign fences with new keys.

Exit codes: 0 moved, 2 wrong flags or a target that is not empty, 3 the source is
damaged, 4 a server has the source open, 5 a newer version wrote it, 7 the source is not
whole or the target is being filled by something else, 1 anything else.

If it is killed, no server opens the target: run the same command again.`,
		Example: `  interlock admin migrate --from data --to etcd://10.0.0.1,10.0.0.2,10.0.0.3/main
  interlock admin migrate --from etcd://10.0.0.1/main --to postgres://interlock@db.internal/interlock`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return cli.Usagef("name the source and the target: interlock admin migrate --from DIR --to %s", datadir.Engines())
			}
			source, err := datadir.PlaceOf("--from", from, allowLoss)
			if err != nil {
				return err
			}
			target, err := datadir.PlaceOf("--to", to, allowLoss)
			if err != nil {
				return err
			}
			if !source.Remote() {
				if _, err := os.Stat(source.Dir); err != nil {
					return datadir.NoJournal(source.Dir, fs.ErrNotExist)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return migrate(ctx, a, source, target)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `journal` of the stopped server, as serve --data-dir or --journal was given it")
	f.StringVar(&to, "to", "", "the new `journal`, as serve --data-dir or --journal will be given it")
	f.BoolVar(
		&allowLoss, "allow-loss", false, "accept an engine with settings under which a crash may lose acknowledged entries",
	)
	cli.BindAll(cmd)
	return cmd
}

// migrate reads the source by opening it as a server would, so that it is locked, whole
// and replayed, and seeds the target with its state, shard by shard.
func migrate(ctx context.Context, a *cli.App, from, to datadir.Place) (err error) {
	target, err := newTarget(to)
	if err != nil {
		return err
	}
	defer target.close()
	if err := target.begin(ctx); err != nil {
		return err
	}
	began := time.Now()
	source, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer source.leave()
	if err := source.inOneEngine(); err != nil {
		return err
	}
	if source.directory.Shards > 1 && !to.Remote() {
		return cli.Usagef(
			"the source has %d shards, and a directory has room for one: move it to an engine, such as %s",
			source.directory.Shards, datadir.Engines(),
		)
	}
	if err := target.prepare(ctx, source.directory); err != nil {
		return datadir.OpenError(to.Text, err)
	}
	var at interlock.At
	for number := range source.directory.Shards {
		moved, err := source.move(ctx, number, target)
		if isNotEmpty(err) && !to.Remote() {
			return notEmpty(to)
		}
		if isNotEmpty(err) {
			return datadir.FilledByOthers(to.Text, number)
		}
		if err != nil {
			return err
		}
		if number == 0 {
			at = moved
		}
	}
	if err := target.finish(ctx); err != nil {
		return datadir.OpenError(to.Text, err)
	}
	if a.JSON() {
		return a.Print(struct {
			Moved  bool            `json:"moved"`
			Shards int             `json:"shards"`
			Index  interlock.Index `json:"index,string"`
			Epoch  interlock.Epoch `json:"epoch,string"`
		}{true, source.directory.Shards, at.Index, at.Epoch})
	}
	what := fmt.Sprintf("state after entry %d", uint64(at.Index))
	if n := source.directory.Shards; n > 1 {
		what = fmt.Sprintf("state of %d shards", n)
	}
	a.Say("moved the %s in %v; start the servers with --journal %s, and do not start one with %s again\n",
		what, time.Since(began).Round(time.Millisecond), cli.Quote(to.URL()), cli.Quote(from.URL()))
	return nil
}

// source is the journal of stopped servers.
type source struct {
	from      datadir.Place
	directory placement.Directory
	store     *remote.Store // nil for a directory
	leave     func()        // ends what openSource has taken
}

// inOneEngine leaves out the shards in other stores, in which there must be no namespace.
func (s *source) inOneEngine() error {
	d := &s.directory
	for _, name := range slices.Sorted(maps.Keys(d.Exceptions)) {
		if d.Exceptions[name] >= d.Shards {
			return cli.Usagef(
				"namespace %s is in store %s: move it to a shard below %d first, with interlock admin move",
				cli.Clean(name), d.Store(d.Exceptions[name]), d.Shards,
			)
		}
	}
	if len(d.Moves) > 0 {
		return cli.Usagef("namespace %s moves: let the move end first", cli.Clean(d.Moves[0].Namespace))
	}
	d.More = nil
	return nil
}

// openSource keeps servers away from a journal.
func openSource(ctx context.Context, from datadir.Place) (s *source, err error) {
	s = &source{from: from, leave: func() {}}
	if !from.Remote() {
		s.directory, err = placement.NewDirectory(1)
		return s, err
	}
	if s.store, err = from.Connect(); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	empty, err := s.store.Empty(ctx)
	switch {
	case err != nil:
		err = unreachable("source", "--from", from, err)
	case empty:
		err = fmt.Errorf("there is no journal at %s: check the name in --from", cli.Clean(from.Text))
	}
	if err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	reserved, err := cluster.Reserve(ctx, s.store.Shared(cluster.DirectoryName), s.store.Shared(cluster.ServersName),
		"interlock admin migrate")
	if inUse, ok := errors.AsType[*cluster.InUseError](err); ok {
		err = fmt.Errorf("%w: %w: stop all servers of the source first", journal.ErrLocked, inUse)
	}
	if err != nil {
		return nil, errors.Join(datadir.OpenError(from.Text, err), s.store.Close())
	}
	s.directory = reserved.Directory
	s.leave = func() {
		reserved.Release(context.WithoutCancel(ctx))
		s.store.Close()
	}
	return s, nil
}

// move seeds a shard of the target with the state of the source's. A shard that was never used has none.
func (s *source) move(ctx context.Context, number int, to *target) (at interlock.At, err error) {
	var j journal.Journal
	if s.store == nil {
		j, err = filejournal.Open(ctx, s.from.Dir, filejournal.Options{Accept: datadir.Readable()})
	} else {
		store := s.store.Shard(number)
		empty, failed := store.Empty(ctx)
		if failed != nil {
			return at, failed
		}
		if empty {
			return at, to.mustBeUnused(ctx, number)
		}
		j, err = store.Open(ctx)
	}
	if err != nil {
		return at, datadir.OpenError(s.from.Text, err)
	}
	opened, err := shard.Open(
		ctx, shard.Config{Journal: j, Number: number, SnapshotBytes: -1, Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		return at, errors.Join(datadir.ReplayError(err), j.Close())
	}
	defer func() { err = errors.Join(err, opened.Close(context.WithoutCancel(ctx))) }()
	return seed(ctx, opened, to, number)
}

// seed writes the state of a shard, as of one moment, to an empty journal.
func seed(ctx context.Context, source *shard.Shard, to *target, number int) (at interlock.At, err error) {
	// Into memory, because the engine stands still meanwhile, and the target may be slow.
	var state bytes.Buffer
	var failed error
	at, err = source.Read(ctx, "", func(e *engine.Engine, _ engine.Time) { failed = e.WriteSnapshot(&state) })
	if err = errors.Join(err, failed); err != nil {
		return at, err
	}
	return at, to.seed(ctx, number, at, func(w io.Writer) error {
		_, err := w.Write(state.Bytes())
		return err
	})
}
