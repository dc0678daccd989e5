package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// fenceJump is how far fences jump when the journal may lack entries that were written elsewhere. A
// shard that grants a million leases a second needs twelve days for as many, and there is room for
// sixteen million such jumps.
const fenceJump = 1 << 40

// ownedJournal is a journal that was opened. It may be a copy, and then fences must jump before
// it is adopted.
type ownedJournal interface {
	journal.Journal
	Copied() bool
	Adopt() error
}

// fenceKeysName is where the keys that sign fences are kept: a file of the data
// directory, or a value beside the journal.
const fenceKeysName = "fence-keys.json"

// directory is the journal of a data directory.
type directory struct {
	*filejournal.Journal
	dir string
}

func (d *directory) keeper() signed.Keeper { return signed.File(filepath.Join(d.dir, fenceKeysName)) }

func openDirectory(ctx context.Context, cfg *serveConfig) (*directory, error) {
	j, err := filejournal.Open(
		ctx, cfg.DataDir, filejournal.Options{SegmentBytes: cfg.SegmentBytes, Accept: datadir.Readable()},
	)
	if err != nil {
		return nil, datadir.OpenError(cfg.DataDir, err)
	}
	return &directory{j, cfg.DataDir}, nil
}

// leadership is the time in which this server owns the shard, and what serves it.
type leadership struct {
	log      *slog.Logger
	observer *server.Observer
	shard    *shard.Shard
	server   *server.Server
	streams  *server.Streams
	sending  sync.WaitGroup // of messages of webhooks
	sibling  func(shard int) (*remote.Store, error)

	mu     sync.Mutex
	closed map[uint64]interlock.Index // by move: see closedAt
}

// openLeadership makes the shard and its APIs over a journal, which it closes when it fails.
// Where the journal is a copy, fences jump. A copy also gets keys of its own: signed by
// it, a fence that has jumped would lock out the original's holders.
func openLeadership(
	ctx context.Context, p *process, number int, j ownedJournal, keys signed.Keeper, restored bool,
) (_ *leadership, err error) {
	lines := &collector{to: os.Stderr}
	t := &leadership{log: p.log, observer: server.NewObserver(p.cfg.logger(lines), lines.flush)}
	shards := 1
	if p.fleet != nil {
		shards = p.fleet.shards()
	}
	t.observer.LimitSeries(server.SeriesOfShard(p.cfg.MetricSeries, shards))
	defer func() {
		if err == nil {
			return
		}
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if t.shard == nil {
			err = errors.Join(err, j.Close())
		}
		t.abandon(short)
	}()
	jump := uint64(0)
	if copied := j.Copied(); copied || restored {
		jump = fenceJump
		t.observer.FencesJumped()
		p.log.Warn(
			"the journal is a copy, was restored, or has another primary: fences jump ahead, so that none is given out twice",
			"copied", copied, "jump", jump,
		)
	}
	fences, err := signed.OpenRing(keys, jump > 0)
	if err != nil {
		return nil, datadir.DiskError(p.cfg.DataDir, err)
	}
	collect := collectLater()
	t.shard, err = shard.Open(ctx, shard.Config{
		Journal: j, Number: number, Logger: p.log, Observer: t.observer, Unattributed: p.cfg.MetricSeries == 0,
		FenceJump:     jump,
		SnapshotBytes: p.cfg.SnapshotBytes, KeepBytes: p.cfg.KeepBytes, MaxWaiting: p.cfg.MaxWaiting,
		Desk: p.desk, LowMemory: p.memory.low.Load, MaxAhead: p.cfg.MaxDowntime,
	})
	collect()
	if errors.Is(err, shard.ErrClock) {
		return nil, cli.ExitWith(
			cli.ExitClock,
			fmt.Errorf(
				"%w: set the clock; or, if it is right and the server was down for so long, start it once with --max-downtime 0",
				err,
			),
		)
	}
	if err != nil {
		return nil, datadir.ReplayError(datadir.DiskError(p.cfg.DataDir, err))
	}
	if j.Copied() {
		// Only now is the jump durable.
		if err := j.Adopt(); err != nil {
			return nil, datadir.DiskError(p.cfg.DataDir, fmt.Errorf("the copied journal cannot be adopted: %w", err))
		}
	}
	cfg := p.serverConfig()
	_, alone := j.(*directory)
	if cfg.Shared = !alone; alone {
		cfg.Disk = func() (used, free int64, ok bool) { return filejournal.Usage(p.cfg.DataDir) }
	}
	cfg.Shard, cfg.Observer, cfg.Fences = t.shard, t.observer, fences
	if t.server, err = server.New(cfg); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	t.streams = server.NewStreams(t.server, p.streamConfig())
	t.sending.Go(t.server.SendWebhooks)
	return t, nil
}

// collectLater makes the garbage collector rest until the function that it returns is called. A
// replay makes state that stays, and next to no garbage, so that collections while it runs find
// little and cost most of its time. A limit of the memory (GOMEMLIMIT) still makes it collect.
func collectLater() (collect func()) {
	replays.Lock()
	defer replays.Unlock()
	if replays.running++; replays.running == 1 {
		replays.percent = debug.SetGCPercent(-1)
	}
	return func() {
		replays.Lock()
		defer replays.Unlock()
		if replays.running--; replays.running == 0 {
			debug.SetGCPercent(replays.percent)
		}
	}
}

// replays counts those that run, since shards are replayed at the same time.
var replays struct {
	sync.Mutex
	running int
	percent int // of the collector, without replays
}

// drain grants nothing more and asks waiters to come back.
func (t *leadership) drain(ctx context.Context) {
	t.server.Drain()
	if err := t.shard.Drain(ctx); err != nil {
		t.log.Warn("the shard could not be drained", "error", err)
	}
}

// close ends the tenure in order. end is a way to close the shard.
func (t *leadership) close(ctx context.Context, end func(context.Context) error) error {
	t.server.Drain() // ends the sending
	t.sending.Wait()
	err := end(ctx)
	t.observer.Close()
	if err == nil {
		return nil
	}
	if t.shard.Err() != nil {
		return shardFailed(t.shard.Err())
	}
	return fmt.Errorf("the server did not stop in order: %w", err)
}

// abandon ends the parts of a tenure after its shard has failed, or before there was one.
func (t *leadership) abandon(ctx context.Context) {
	if t.server != nil {
		t.server.Drain()
		t.sending.Wait()
	}
	if t.shard != nil {
		_ = t.shard.Close(ctx)
	}
	t.observer.Close()
}
