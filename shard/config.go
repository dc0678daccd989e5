package shard

import (
	"errors"
	"log/slog"
	"time"

	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// Config is the configuration of Open. Only Journal must be set.
type Config struct {
	// Journal is the shard's log, opened for this owner. The shard takes it over once Open has
	// returned nil: it closes it in Close, and nothing else may append to it.
	Journal journal.Journal

	// Number names the shard in every answer.
	Number int

	// Clock tells the time; nil means real time. A Clock serves one shard.
	Clock Clock

	// Logger receives messages for the operator; nil discards them.
	Logger *slog.Logger

	// Observer receives committed events, for metrics and logs; nil discards them.
	Observer Observer

	// Unattributed is for an Observer that does not count waits and holds by pattern,
	// organisation and group: the events do not say them, which saves the engine to look up
	// the patterns of all claims. false means that they do.
	Unattributed bool

	// MaxWaiting bounds the commands that wait to be stepped. Submit refuses with
	// CodeOverloaded what would leave less room than its namespace then uses: so one
	// tenant alone gets half of it, and others still find room. 0 means 65,536.
	MaxWaiting int

	// SnapshotBytes is how many bytes of entries, more than the snapshot itself has,
	// may follow a snapshot before the next one is made. It bounds how long a start
	// takes: no more is read than that and twice the snapshot. And since a snapshot is of
	// the whole state, it bounds what an entry's share of one costs, however large the
	// state is. 0 means 64 MiB; a negative number means that no snapshot is ever made,
	// not even by Close.
	SnapshotBytes int64

	// PictureEvents bounds for how long the engine stands still when a snapshot is made:
	// by half a microsecond for each of so many events, which is about one for each
	// session, lease, waiter, document, task and answer that is remembered. A snapshot of a
	// state with more is made beside the engine, from the journal, which costs a second
	// processor as much as carrying everything out again. 0 means 4096; a negative number
	// means that all snapshots are made so.
	PictureEvents int

	// KeepBytes is about how many bytes of entries stay in the journal as history (for Follow, and
	// for audits) although a snapshot covers them. It is estimated from the mean size of an entry.
	// 0 means 1 GiB; a negative number keeps no more than a restart needs.
	KeepBytes int64

	// Desk is where the readers of the journal take turns, in all shards of the process; nil means one of its own.
	Desk *Desk

	// LowMemory reports whether the process has used up what memory it may have: then only commands
	// that return something are admitted, as when the journal is low on space. It is asked before
	// each turn. nil means never.
	LowMemory func() bool

	// MaxAhead bounds how far the clock may be ahead of the journal's newest entry at the
	// start: the shard may have been closed that long. A clock that is further ahead is taken
	// for a wrong one, and Open returns ErrClock: every deadline would come due, and the
	// journal would keep that time for good. 0 means any.
	MaxAhead time.Duration

	// FenceJump is how far fences jump at the start: 0, or a large number when the
	// journal is a copy or was restored, and may have been written on elsewhere.
	FenceJump uint64
}

// Observer receives events, from one goroutine at a time and before the answers of the same
// group leave. So its methods must be quick and must not call the shard. Saved alone may be
// called beside the others.
type Observer interface {
	// Committed tells the events of the steps that one append made durable: of none
	// when it was a piece of a large entry. They are valid during the call only.
	Committed(events []record.Event)
	// Appended reports the duration and the contents of one append.
	Appended(d time.Duration, entries, bytes int)
	// Lag reports how long the command of a group that waited longest had waited before it was
	// stepped.
	Lag(d time.Duration)
	// Saved reports how long it took to make and store a snapshot. One that failed is not
	// reported.
	Saved(d time.Duration)
}

const (
	defaultMaxWaiting    = 65_536
	defaultSnapshotBytes = 64 << 20
	defaultPictureEvents = 4096
	defaultKeepBytes     = 1 << 30
)

// check fills in the defaults.
func (c *Config) check() error {
	switch {
	case c.Journal == nil:
		return errors.New("shard: Config.Journal is not set")
	case c.MaxWaiting < 0:
		return errors.New("shard: Config.MaxWaiting is negative")
	case c.MaxAhead < 0:
		return errors.New("shard: Config.MaxAhead is negative")
	case c.Number < 0:
		return errors.New("shard: Config.Number is negative")
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = defaultMaxWaiting
	}
	if c.Desk == nil {
		c.Desk = NewDesk(0)
	}
	if c.LowMemory == nil {
		c.LowMemory = func() bool { return false }
	}
	if c.SnapshotBytes == 0 {
		c.SnapshotBytes = defaultSnapshotBytes
	}
	if c.PictureEvents == 0 {
		c.PictureEvents = defaultPictureEvents
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = defaultKeepBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
