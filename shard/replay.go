package shard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
)

// replayResult is an engine made from the journal.
type replayResult struct {
	engine   *engine.Engine
	links    *links          // the entries that are read are added to it; may be nil
	snapshot interlock.Index // where it began; 0 without a snapshot
	size     byteCount       // of the snapshot
	at       interlock.Index // up to where it goes
	entries  int
	bytes    int64
}

// replay makes an engine with the state after index target, from the newest snapshot and the
// entries after it. Both stand where a step's entry ends, and so no snapshot's index is in the
// middle of pieces.
//
// It has two stages, and each takes about half of the time:
//
//	┌───────────────────────────────┐  portions of events  ┌──────────────────────┐
//	│ read, check the sums, decode  │ ──────────────────▶ │ fold into the engine │
//	└───────────────────────────────┘                     └──────────────────────┘
//
// The hash chain begins with the snapshot's record and goes as far, if links is not nil.
func (s *Shard) replay(ctx context.Context, target interlock.Index, stages stages, links *links) (replayResult, error) {
	return replay(ctx, s.journal, engine.New(s.options...), target, stages, links)
}

// Source is the part of a journal that a replay reads. It may have another owner.
type Source interface {
	Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error)
	Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error
}

// replay does it with any source, into an empty engine.
func replay(
	ctx context.Context, from Source, into *engine.Engine, target interlock.Index, stages stages, links *links,
) (replayResult, error) {
	r := replayResult{engine: into, links: links}
	at, snapshot, err := from.Snapshot(ctx)
	if err != nil {
		return r, fmt.Errorf("shard: the snapshot cannot be opened: %w", err)
	}
	r.snapshot, r.at = at, at
	if snapshot == nil && links != nil {
		links.begin(chain.Record{Marks: []chain.Link{chain.Start(0)}})
	}
	err = stages(ctx, func(ctx context.Context, hand handOver) error {
		p := new(portion)
		if snapshot != nil {
			if p, err = r.readSnapshot(snapshot, p, hand); err != nil {
				return err
			}
		}
		if at >= target {
			return nil
		}
		return r.readLog(ctx, from, target, p, hand)
	}, r.engine)
	return r, err
}

// portion is the unit that one stage hands to the next: the events of some entries.
type portion struct {
	events []record.Event
	ends   []entryEnd
}

// entryEnd returns up to which of the events they are those of the entry at an index, or of the
// snapshot after it.
type entryEnd struct {
	at       interlock.Index
	snapshot bool
	events   int
}

// portionEvents is about how many events a portion has: enough that handing it over costs
// nothing, and few enough that they are still in the processor's cache.
const portionEvents = 256

func (p *portion) full() bool { return len(p.events) >= portionEvents }

func (p *portion) clear() { p.events, p.ends = p.events[:0], p.ends[:0] }

// fold folds the events of a portion. The engine expects all of them at first, so the limit
// portionEvents bounds what they are about, too.
func (p *portion) fold(e *engine.Engine) error {
	e.Expect(p.events)
	from := 0
	for _, end := range p.ends {
		if err := e.Fold(p.events[from:end.events]); err != nil {
			return end.unfit(err)
		}
		from = end.events
	}
	return nil
}

// unfit adds the place of an entry that could not be decoded or folded to its error.
func (x entryEnd) unfit(err error) error {
	if x.snapshot {
		return fmt.Errorf("shard: the snapshot after entry %d cannot be read: %w", x.at, err)
	}
	return fmt.Errorf("shard: entry %d cannot be replayed: %w", x.at, err)
}

// readSnapshot hands over the events of a snapshot, and closes it. It returns the portion to go on
// with.
func (r *replayResult) readSnapshot(snapshot io.ReadCloser, p *portion, hand handOver) (*portion, error) {
	end := entryEnd{at: r.snapshot, snapshot: true}
	buf := bufio.NewReaderSize(io.TeeReader(snapshot, &r.size), 1<<16)
	record, err := chain.Read(buf, r.snapshot)
	if err != nil {
		return p, end.unfit(errors.Join(err, snapshot.Close()))
	}
	if r.links != nil {
		r.links.begin(record)
	}
	reader := engine.NewSnapshotReader(buf)
	for {
		var err error
		if p.events, err = reader.Append(p.events); err == io.EOF {
			err = snapshot.Close()
			if err == nil {
				return hand(p)
			}
			return p, end.unfit(err)
		} else if err != nil {
			return p, end.unfit(errors.Join(err, snapshot.Close()))
		}
		end.events = len(p.events)
		p.ends = append(p.ends, end)
		if p.full() {
			if p, err = hand(p); err != nil {
				return p, errors.Join(err, snapshot.Close())
			}
		}
	}
}

// readLog hands over the events of the entries behind r.at, up to target, and counts
// them in r.
func (r *replayResult) readLog(
	ctx context.Context, from Source, target interlock.Index, p *portion, hand handOver,
) error {
	var (
		pieces  Joiner
		decoder record.Reader
	)
	err := from.Read(ctx, r.at+1, func(e journal.Entry) error {
		if e.Index > target {
			return errReplayed
		}
		r.at = e.Index
		if r.links != nil {
			r.links.add(e)
		}
		if len(e.Data) > 0 { // else it opens an epoch, which Recover journals in the engine's words
			r.entries++
			r.bytes += int64(len(e.Data))
		}
		entry, err := pieces.Join(e)
		if entry == nil {
			return err
		}
		end := entryEnd{at: e.Index}
		if p.events, err = decoder.Append(p.events, entry); err != nil {
			return end.unfit(err)
		}
		end.events = len(p.events)
		p.ends = append(p.ends, end)
		if p.full() {
			p, err = hand(p)
		}
		return err
	})
	if err != nil && !errors.Is(err, errReplayed) {
		return err
	}
	_, err = hand(p)
	return err
}

var errReplayed = errors.New("shard: replayed up to the target")

// handOver hands a portion to the fold, and returns an empty one.
type handOver func(*portion) (*portion, error)

// stages has one stage of a replay read, and does the other, the fold.
type stages func(ctx context.Context, read func(context.Context, handOver) error, into *engine.Engine) error

// inTurn does both stages by turns.
func inTurn(ctx context.Context, read func(context.Context, handOver) error, into *engine.Engine) error {
	return read(ctx, func(p *portion) (*portion, error) {
		err := p.fold(into)
		p.clear()
		return p, err
	})
}

// portionsAhead is how many portions may wait for the fold.
const portionsAhead = 2

// ahead has a goroutine of its own read, which has ended when ahead returns.
func ahead(ctx context.Context, read func(context.Context, handOver) error, into *engine.Engine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	full, free := make(chan *portion, portionsAhead), make(chan *portion, portionsAhead+2)
	for range portionsAhead + 1 { // and the one with which the reader begins
		free <- new(portion)
	}
	var unread error
	go func() {
		defer close(full)
		unread = read(ctx, func(p *portion) (*portion, error) {
			full <- p
			return <-free, ctx.Err()
		})
	}()
	var unfit error
	for p := range full {
		if unfit == nil {
			if unfit = p.fold(into); unfit != nil {
				cancel()
			}
		}
		p.clear()
		free <- p
	}
	if unfit != nil {
		return unfit
	}
	return unread
}
