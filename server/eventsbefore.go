package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// The journal is read forwards alone, so events are listed backwards by stretches of entries: the newest
// first, and each read forwards.
const (
	firstStretch = 1 << 12 // entries
	maxStretch   = 1 << 16
	maxBackwards = 1 << 18 // that one call looks at
	maxPieces    = 1 << 8  // more than an entry has
)

// eventsBefore lists the newest events before an index, newest first, as JSON lines. The header
// Interlock-Before is where the next page begins; without it there are no more. A page ends when it has
// limit events, with all of the last entry, or when maxBackwards entries were looked at, and may then have
// fewer events, or none.
func (c *call) eventsBefore(filter eventFilter, newest interlock.Index) {
	done, ok := c.enterHistories()
	if !ok {
		return
	}
	defer done()
	before, ok := c.beforeParam(&filter, newest)
	if !ok {
		return
	}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	leave, ok := c.enterPage()
	if !ok {
		return
	}
	defer leave()
	first := c.s.shard.First()
	stop := max(first, before-min(before, maxBackwards))
	var page []byte
	shown, next := 0, interlock.Index(0)
	x := stretch{from: before, low: before}
	size := interlock.Index(firstStretch)
	for ; x.from > stop && shown < int(limit) && !x.older; size = min(2*size, maxStretch) {
		var err error
		if x, err = c.stretch(&filter, max(stop, x.from-min(x.from, size)), x.low); err != nil {
			c.failWith(c.whyEnded(c.r.Context(), err))
			return
		}
		for ; len(x.entries) > 0 && shown < int(limit); x.entries = x.entries[:len(x.entries)-1] {
			e := &x.entries[len(x.entries)-1]
			for _, line := range slices.Backward(e.lines) {
				page = append(page, line...)
			}
			shown, next = shown+len(e.lines), e.index
		}
	}
	switch {
	case len(x.entries) > 0: // the page is full
	case x.older, x.from <= first:
		next = 0
	default:
		next = min(x.low, x.from+maxPieces)
	}
	if next > 0 {
		c.w.Header().Set("Interlock-Before", next.String())
	}
	done()
	c.beginStream("application/x-ndjson")
	c.write(page)
}

// beforeParam reads where a list backwards begins.
func (c *call) beforeParam(filter *eventFilter, newest interlock.Index) (before interlock.Index, ok bool) {
	for _, other := range []string{"from", "follow"} {
		if c.query.Has(other) {
			c.refuse(interlock.CodeInvalidRequest, "parameter before or limit: list backwards, or forwards with "+other)
			return 0, false
		}
	}
	before = newest + 1
	if text := c.query.Get("before"); text != "" && text != "newest" {
		index, err := parseDecimal(text)
		if err != nil || index == 0 {
			c.refuse(
				interlock.CodeInvalidRequest,
				fmt.Sprintf("parameter before: want an index such as 1041, or newest, found %q", clipped(text)),
			)
			return 0, false
		}
		before = min(before, interlock.Index(index))
	}
	if filter.until > 0 {
		last, err := c.s.shard.IndexAt(c.r.Context(), filter.until, seekMargin)
		if err != nil {
			c.failWith(c.whyEnded(c.r.Context(), err))
			return 0, false
		}
		before = min(before, last+1)
	}
	return before, true
}

// stretch is a part of the journal. All entries from low on were looked at, and those from from on, but for one
// that is stored as pieces and begins before that: the stretch before this one gets it.
type stretch struct {
	from, low interlock.Index
	entries   []entryLines
	older     bool // it has an event before the first that is asked for
}

// entryLines are the events of an entry, as lines.
type entryLines struct {
	index interlock.Index
	lines [][]byte
}

// stretch reads the entries from an index on, and before another one.
func (c *call) stretch(f *eventFilter, from, before interlock.Index) (x stretch, err error) {
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	x = stretch{from: from, low: before}
	err = c.s.shard.Follow(ctx, shard.Follower{
		Namespace: c.namespace, From: from,
		Visit: func(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
			if index >= before {
				return errEnough
			}
			x.low = min(x.low, index)
			e := entryLines{index: index}
			for i := range events {
				ev := &events[i]
				x.older = x.older || ev.Namespace != "" && ev.At < f.since
				if f.shows(ev) {
					var j jsonOut
					writeEvent(&j, ev, index, epoch)
					e.lines = append(e.lines, append(j.b, '\n'))
				}
			}
			if len(e.lines) > 0 {
				x.entries = append(x.entries, e)
			}
			return nil
		},
		Reached: func(index interlock.Index) error {
			if index+1 >= before {
				return errEnough
			}
			return nil
		},
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return x, err
}
