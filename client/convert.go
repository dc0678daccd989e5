package client

import (
	"context"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Conversion is the new claims of a lease.
type Conversion struct {
	// Claims are all that it is to claim, of modes without a count or of permits.
	Claims []interlock.Claim

	// OnConflict is the action when the conversion cannot be granted at once: refuse (the zero
	// value), wait, or wait and ask the blocking holders to yield.
	OnConflict interlock.OnConflict
	MaxWait    time.Duration // how long it may stand in line; 0: the pattern's value

	// OnQueued is as in Request.
	OnQueued func(ticket interlock.Ticket, holders []interlock.Holder)
}

// Convert changes the claims of the lease: to a stronger or a weaker mode, to more keys or to
// fewer. A conversion that only drops claims is granted at once; one that asks for more waits
// while the lease stays as it is, ahead of new requests for the keys that it has already. The
// lease then has a new fence, and so have its other handles.
//
// Two readers of one key that both want to write cannot both wait: the second is
// refused with code "deadlock" at once, and should release and acquire again. An
// error leaves the lease as it was, except one with CodeOutcomeUnknown.
func (l *Lease) Convert(ctx context.Context, to Conversion) error {
	return l.change(ctx, to.OnQueued, func() *call {
		k := l.g.c.newCall(proto.OpConvert)
		k.op.ID, k.op.OnConflict, k.op.MaxWait = l.g.id, to.OnConflict, to.MaxWait
		k.op.Claims = slices.Clone(to.Claims)
		return k
	})
}

// Arrival is how long to wait for the other parties of a barrier.
type Arrival struct {
	MaxWait time.Duration // 0: the pattern's value, and as long as the context allows

	// OnQueued is as in Request.
	OnQueued func(ticket interlock.Ticket, holders []interlock.Holder)
}

// Arrive reports that the holder of a barrier's lease has come to the barrier again, and waits
// until all other parties have. Generation then counts one more, and the lease has a new fence.
//
// When a party dies or releases its lease, the others are refused with code "barrier_broken" at
// once, and so is each later Arrive: the set can never be whole again. A party that stops
// waiting breaks it, too.
func (l *Lease) Arrive(ctx context.Context, at Arrival) error {
	return l.change(ctx, at.OnQueued, func() *call {
		k := l.g.c.newCall(proto.OpArrive)
		k.op.ID, k.op.MaxWait = l.g.id, at.MaxWait
		return k
	})
}

// change carries out an operation on a held lease that may stand in line.
func (l *Lease) change(
	ctx context.Context, queued func(interlock.Ticket, []interlock.Holder), prepare func() *call,
) error {
	if err := l.Err(); err != nil {
		return err
	}
	_, err := l.g.c.insist(ctx, askAgain, queued, prepare)
	return l.reason(err)
}
