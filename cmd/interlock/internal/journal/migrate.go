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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
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

A journal is a directory, etcd://HOST:PORT,HOST:PORT/NAME,
postgres://USER@HOST/DATABASE?journal=NAME, firestore://PROJECT/DATABASE/NAME or
s3://BUCKET/PREFIX?region=REGION. The source must not be in use, and the target must be
empty. At the target fences begin far above all that the source has assigned, so a write
under an old lease that was ended meanwhile is refused also if the source is started again
by mistake. Servers of the target sign fences with new keys.

Exit codes: 0 moved, 2 wrong flags or a target that is not empty, 3 the source is
damaged, 4 a server has the source open, 5 a newer version wrote it, 1 anything else.`,
		Example: `  interlock admin migrate --from data --to etcd://10.0.0.1,10.0.0.2,10.0.0.3/main
  interlock admin migrate --from etcd://10.0.0.1/main --to postgres://interlock@db.internal/interlock`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return cli.Usagef("name the source and the target: interlock admin migrate --from DIR --to %s", datadir.Engines)
			}
			source, err := place("--from", from, allowLoss)
			if err != nil {
				return err
			}
			target, err := place("--to", to, allowLoss)
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
		&allowLoss, "allow-loss", false, "accept a database with settings under which a crash may lose acknowledged entries",
	)
	cli.BindAll(cmd)
	return cmd
}

// place reads a directory or the URL of a journal.
func place(flag, text string, allowLoss bool) (datadir.Place, error) {
	if scheme, _, ok := strings.Cut(text, ":"); !ok || strings.ContainsAny(scheme, `/\`) {
		return datadir.Place{Kind: "file", Text: text, Dir: text}, nil
	}
	p, err := datadir.ParsePlace(text, allowLoss)
	if err != nil {
		return p, cli.Usagef("%s %s: %w", flag, cli.Clean(text), err)
	}
	return p, nil
}

// migrate reads the source by opening it as a server would, so that it is locked, whole
// and replayed, and seeds the target with its state.
func migrate(ctx context.Context, a *cli.App, from, to datadir.Place) (err error) {
	target, err := newTarget(to)
	if err != nil {
		return err
	}
	defer target.close()
	if err := target.mustBeEmpty(ctx); err != nil {
		return err
	}
	began := time.Now()
	j, leave, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer leave()
	source, err := shard.Open(ctx, shard.Config{Journal: j, SnapshotBytes: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return errors.Join(datadir.ReplayError(err), j.Close())
	}
	defer func() {
		err = errors.Join(err, source.Close(context.WithoutCancel(ctx)))
	}()
	at, err := seed(ctx, source, target)
	if isNotEmpty(err) {
		return notEmpty(to)
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
	a.Say("moved the state after entry %d in %v; start the servers with --journal %s, and do not start one with %s again\n",
		uint64(at.Index), time.Since(began).Round(time.Millisecond), cli.Quote(to.URL()), cli.Quote(from.URL()))
	return nil
}

// openSource opens the journal of a stopped server. leave ends what it has taken.
func openSource(ctx context.Context, from datadir.Place) (j journal.Journal, leave func(), err error) {
	if !from.Remote() {
		j, err := filejournal.Open(ctx, from.Dir, filejournal.Options{Accept: datadir.Readable()})
		if err != nil {
			return nil, nil, datadir.OpenError(from.Dir, err)
		}
		return j, func() {}, nil
	}
	store, err := from.Connect()
	if err != nil {
		return nil, nil, cli.ExitWith(cli.ExitUsage, err)
	}
	empty, err := store.Empty(ctx)
	switch {
	case err != nil:
		err = unreachable("source", "--from", from, err)
	case empty:
		err = fmt.Errorf("there is no journal at %s: check the name in --from", cli.Clean(from.Text))
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	seat, err := takeSeat(ctx, store)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	leave = func() {
		seat.Leave(context.WithoutCancel(ctx))
		store.Close()
	}
	opened, err := store.Open(ctx)
	if err != nil {
		leave()
		return nil, nil, datadir.OpenError(from.Text, err)
	}
	return opened, leave, nil
}

// takeSeat keeps servers from the source meanwhile. A server that holds the seat is in the way.
func takeSeat(ctx context.Context, store *remote.Store) (*remote.Seat, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seat, err := store.Take(ctx, remote.Holder{HTTP: "interlock admin migrate"}, 0, func(h remote.Holder) {
		cancel(fmt.Errorf("%w: the server at %s has the source open: stop all its servers first", journal.ErrLocked, h.HTTP))
	}, func(err error) { cancel(err) })
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return seat, nil
}

// seed writes the state of a shard, as of one moment, to an empty journal.
func seed(ctx context.Context, source *shard.Shard, to *target) (at interlock.At, err error) {
	// Into memory, because the engine stands still meanwhile, and the target may be slow.
	var state bytes.Buffer
	var failed error
	at, err = source.Read(ctx, "", func(e *engine.Engine, _ engine.Time) { failed = e.WriteSnapshot(&state) })
	if err = errors.Join(err, failed); err != nil {
		return at, err
	}
	return at, to.seed(ctx, at, func(w io.Writer) error {
		_, err := w.Write(state.Bytes())
		return err
	})
}
