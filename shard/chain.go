package shard

import (
	"context"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
)

// links keeps the hash chain of the journal up to what is durable. The committer adds an
// append to it when the answers of that append have left, so the chain covers what the
// shard has written and not what a disk shows later.
type links struct {
	mu    sync.Mutex
	chain *chain.Chain
	marks *chain.Marker
	grown chan struct{} // closed at the next append; nil without a waiter
}

// begin starts from the record of a snapshot.
func (l *links) begin(r chain.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chain, l.marks = chain.From(r.Last()), chain.MarkFrom(r)
}

// add adds one entry. The caller has the chain to itself.
func (l *links) add(e journal.Entry) {
	l.chain.Add(e)
	l.marks.Grow(l.chain.Last())
}

// head returns the head when it is not below index.
func (l *links) head(ctx context.Context, index interlock.Index) (chain.Head, error) {
	for {
		l.mu.Lock()
		last := l.chain.Last()
		if last.Index < index && l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		if last.Index >= index {
			return last.Head(), nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return chain.Head{}, ctx.Err()
		}
	}
}

// record returns the record of the present chain for a snapshot.
func (l *links) record(first interlock.Index) chain.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.marks.Record(l.chain.Last(), first)
}

// extend adds the entries of a group that are durable and not in the chain yet.
func (s *Shard) extend(g *group) {
	if g.linked == g.written {
		return
	}
	l := &s.links
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; g.linked < g.written; g.linked++ {
		l.add(journal.Entry{
			Index: g.first + interlock.Index(g.linked), Epoch: s.epoch, Data: g.out.Entry[g.at(g.linked):g.at(g.linked+1)],
		})
	}
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// Head returns the head of the journal's hash chain as it is published, and its index in
// at: it covers all that was answered before Head was called, and this shard was still the
// journal's owner after that.
func (s *Shard) Head(ctx context.Context) (head string, at interlock.At, err error) {
	if at, err = s.Read(ctx, "", func(*engine.Engine, engine.Time) {}); err != nil {
		return "", at, err
	}
	h, err := s.links.head(ctx, at.Index)
	if err != nil {
		return "", at, err
	}
	at.Index = h.Index
	return h.String(), at, nil
}
