package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// refuseUnservable refuses a request that can never be granted because its own flow has the
// permits, and reports whether it did.
func (e *Engine) refuseUnservable(r *store.Request) bool {
	var lacking *store.Need
	for way := range r.EachAlternative {
		if lacking = way.Lacking(); lacking == nil {
			return false
		}
	}
	if lacking == nil {
		return false
	}
	own, most := lacking.Req.KeptAt(lacking.Node).Used(), uint64(lacking.Node.Pool().Policy.MostHeld(r.Group))
	left := most - min(most, own)
	advice := message.New(message.GiveBackOrAskFor, message.Num(left))
	if left == 0 {
		advice = message.New(message.GiveBackFirst)
	}
	e.refuse(
		interlock.CodeTooManyPermits,
		message.New(
			message.PermitsNeverFree, message.Num(own), message.Str(lacking.Node.Key), message.Num(most),
			message.Num(lacking.Req.CountOf(lacking)), message.Sub(advice),
		),
	)
	return true
}

// armPool sets the timer for when the waiters for tokens get theirs: the first watched one of
// each bucket, and those that are watched one by one.
func (e *Engine) armPool(p *store.Pool) {
	if p != nil {
		p.CatchUp()
	}
	if p == nil || p.Policy == nil || p.Policy.Rate == 0 || p.Node.Line == nil {
		return
	}
	next := record.Never
	consider := func(w *store.QueueEntry) {
		n := p.Ahead(w.Req) + uint64(w.Count)
		if n > uint64(p.Policy.BurstLimit()) {
			return // it waits for those ahead
		}
		if at := p.TokensAt(n); at > e.Clock {
			next = min(next, at)
		}
	}
	for c := p.Node.Line.First; c != nil; c = c.Next {
		e.Visited++
		if c.Counts != interlock.Permits {
			continue
		}
		if w := c.FirstWatched(); w != nil {
			consider(w)
		}
		for _, w := range c.WatchedAlone {
			consider(w)
		}
	}
	if next == record.Never {
		e.Timers.Clear(p.Timer)
		return
	}
	if p.Timer == nil {
		var ord record.Fingerprint
		ord.Text(p.Node.Key)
		p.Timer = &store.Timer{Pos: -1, Ord: uint64(ord), Pool: p}
	}
	e.Timers.Set(p.Timer, next)
}

// fireRates fires the pools with a rate that a new lease has taken tokens from.
func (e *Engine) fireRates(r *store.Request) {
	for i := range r.Needs() {
		if p := r.Needs()[i].Node.Pool(); p != nil && p.Policy != nil && p.Policy.Rate > 0 {
			e.firePool(p)
		}
	}
}

// firePool checks the waiters for tokens.
func (e *Engine) firePool(p *store.Pool) {
	if p.Node == nil || p.Node.Line == nil {
		return
	}
	for c := p.Node.Line.First; c != nil; c = c.Next {
		e.Visited++
		if c.Counts == interlock.Permits {
			e.ReadyClass(c)
		}
	}
	e.armPool(p)
}
