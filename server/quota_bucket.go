package server

import "time"

// bucket is a token bucket in whole numbers: so many tokens come back a second, and
// it holds those of one second. The zero bucket is full.
type bucket struct {
	spent int64         // what is missing: tokens times a billion
	at    time.Duration // when that was so
}

// tokenParts is the value of one token in bucket.spent: with a rate of n tokens a second, n
// parts come back each nanosecond.
const tokenParts = int64(time.Second)

// maxRate bounds a rate, so that a bucket's parts fit an int64.
const maxRate = 1 << 31

// refill lets time pass.
func (b *bucket) refill(rate int64, now time.Duration) {
	elapsed := int64(now - b.at)
	b.at = now
	if elapsed > b.spent/rate {
		b.spent = 0
	} else {
		b.spent -= elapsed * rate
	}
}

// wait is how long it takes until there is a token; 0 when there is one.
func (b *bucket) wait(rate int64) time.Duration {
	missing := b.spent - (rate-1)*tokenParts
	if missing <= 0 {
		return 0
	}
	return time.Duration((missing + rate - 1) / rate)
}

// take takes n tokens, also those that are not there: what comes back goes into the
// debt first. So a body may be larger than what is allowed in a second, and is paid
// for all the same.
func (b *bucket) take(n int64) { b.spent += n * tokenParts }

// count takes n tokens for an operation that is never refused. Its debt is bounded by those of
// a second, so that heartbeats alone cannot shut everything else out for long.
func (b *bucket) count(rate, n int64) {
	b.spent = max(b.spent, min(b.spent+n*tokenParts, 2*rate*tokenParts))
}
