package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff paces a caller that can only ask again: a script without a stream, a client without
// its server. A caller that can stand in line does that instead: the grant then comes by
// itself, without a second request.
//
// The first try is made at once. After each one that brought nothing, Next returns the pause
// before the next: a random time between nothing and twice a mean (full jitter), so that
// callers that were turned away together do not come back together. The mean is the server's
// own estimate of how long it will take, and doubles from try to try while that estimate does
// not get shorter. So there is no fixed interval, into which a thousand callers could fall.
//
// The zero value is ready. A Backoff is one caller's, for one thing.
type Backoff struct {
	// Least is the least mean, and that of the first pause when nothing is known.
	// 0 means 50 ms.
	Least time.Duration
	// Most bounds each pause. 0 means 10 s: an offer to a place in line without a session stays
	// for interlock.BareOfferTTL, so a caller that asks that often does not miss it. With a
	// session it must be less than interlock.OfferTTL.
	Most time.Duration
	// Random returns a number from 0 to n-1. nil means the generator of math/rand/v2, which
	// every process seeds differently.
	Random func(n int64) int64

	tried     bool
	estimate  time.Duration
	doublings int
}

// Next returns the next pause. estimate is what the server reported last: the ETA of a ticket
// or of a refusal's queue, or the time after which it advised to retry; 0 when it reported
// none.
func (b *Backoff) Next(estimate time.Duration) time.Duration {
	switch {
	case estimate > 0 && estimate < b.estimate:
		b.doublings = 0 // it goes on as it was estimated
	case b.tried:
		b.doublings++
	}
	b.tried, b.estimate = true, estimate
	most := orElse(b.Most, 10*time.Second)
	mean := max(estimate, orElse(b.Least, 50*time.Millisecond))
	for i := 0; i < b.doublings && mean < most/2; i++ {
		mean *= 2
	}
	random := b.Random
	if random == nil {
		random = rand.Int64N
	}
	return time.Duration(random(int64(max(1, min(most, 2*mean))))) + 1
}

// Wait pauses for Next(estimate). When ctx ends before, it returns the cause.
func (b *Backoff) Wait(ctx context.Context, estimate time.Duration) error {
	return pause(ctx, b.Next(estimate))
}

func orElse(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// pause waits for d. When ctx ends before, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
