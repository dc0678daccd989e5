package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal/etcdjournal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/shard"
)

func newMigrate(a *cli.App) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "migrate --from DIR --to etcd://HOST:PORT,HOST:PORT/NAME",
		Short: "Move a stopped server's state to another journal",
		Long: `Move a stopped server's state to another journal: leases, places in line, sessions,
documents, tasks, and the answers of requests that may be repeated. Its history stays
where it is: print it with "interlock admin journal dump DIR".

The source must not be in use, and the target must be empty. At the target fences begin far
above all that the source has assigned, so a write under an old lease that was ended
meanwhile is refused also if the source is started again by mistake. Servers of the target
sign fences with new keys.

Exit codes: 0 moved, 2 wrong flags or a target that is not empty, 3 the source is
damaged, 4 a server has the source open, 5 a newer version wrote it, 1 anything else.`,
		Example:     `  interlock admin migrate --from data --to etcd://10.0.0.1,10.0.0.2,10.0.0.3/main`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return cli.Usagef("name the source and the target: interlock admin migrate --from DIR --to etcd://HOST:PORT/NAME")
			}
			place, err := etcdjournal.ParsePlace(to)
			if err != nil {
				return cli.Usagef("--to %s: %w", cli.Clean(to), err)
			}
			if _, err := os.Stat(from); err != nil {
				return datadir.NoJournal(from, fs.ErrNotExist)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return migrate(ctx, a, from, place)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `directory` of the stopped server, as serve --data-dir was given it")
	f.StringVar(&to, "to", "", "the new journal as a `URL`, as serve --journal will be given it")
	cli.BindAll(cmd)
	return cmd
}

// migrate reads the source by opening it as a server would, so that it is locked, whole
// and replayed, and seeds the target with its state.
func migrate(ctx context.Context, a *cli.App, from string, to etcdjournal.Place) (err error) {
	store, err := etcdjournal.Connect(to)
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	defer store.Close()
	if err := mustBeEmpty(ctx, store); err != nil {
		return err
	}
	began := time.Now()
	j, err := filejournal.Open(ctx, from, filejournal.Options{Accept: datadir.Readable()})
	if err != nil {
		return datadir.OpenError(from, err)
	}
	source, err := shard.Open(ctx, shard.Config{Journal: j, SnapshotBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return errors.Join(datadir.ReplayError(err), j.Close())
	}
	defer func() {
		err = errors.Join(err, source.Close(context.WithoutCancel(ctx)))
	}()
	at, err := seed(ctx, source, store)
	if errors.Is(err, remote.ErrNotEmpty) {
		return mustBeEmpty(ctx, store)
	}
	if err != nil {
		return err
	}
	if a.JSON() {
		return a.Print(struct {
			Moved bool            `json:"moved"`
			Index interlock.Index `json:"index,string"`
			Epoch interlock.Epoch `json:"epoch,string"`
		}{true, at.Index, at.Epoch})
	}
	a.Say("moved the state after entry %d in %v; start the servers with --journal, and do not start one with --data-dir %s again\n",
		uint64(at.Index), time.Since(began).Round(time.Millisecond), cli.Quote(from))
	return nil
}

// seed writes the state of a shard, as of one moment, to an empty store.
func seed(ctx context.Context, source *shard.Shard, store *remote.Store) (at interlock.At, err error) {
	// Into memory, because the engine stands still meanwhile, and etcd may be slow.
	var state bytes.Buffer
	var failed error
	at, err = source.Read(ctx, "", func(e *engine.Engine, _ engine.Time) { failed = e.WriteSnapshot(&state) })
	if err = errors.Join(err, failed); err != nil {
		return at, err
	}
	return at, store.Seed(ctx, at.Epoch, at.Index, func(w io.Writer) error {
		_, err := w.Write(state.Bytes())
		return err
	})
}

func mustBeEmpty(ctx context.Context, store *remote.Store) error {
	empty, err := store.Empty(ctx)
	if err != nil {
		return cli.ExitWith(
			cli.ExitFailure, fmt.Errorf("the target (%w): check the addresses of --to, and that etcd runs there", err),
		)
	}
	if !empty {
		return cli.Usagef("the target has a journal already: choose another name behind the hosts")
	}
	return nil
}
