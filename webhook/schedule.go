package webhook

import (
	"math/rand/v2"
	"time"
)

// pauses are those before the attempts after a failure; the last one stands for all later ones.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

const (
	// tryFor is how long a message is tried, from its event on; or from the first failure of its
	// webhook on, if the server was down meanwhile.
	tryFor = 3 * 24 * time.Hour
	// maxRetryAfter bounds the pause that a receiver asks for.
	maxRetryAfter = time.Hour
)

// pause returns how long to wait after so many failures in a row, with up to a fifth more, so
// that receivers that fail together are not tried together.
func pause(failures int, retryAfter time.Duration) time.Duration {
	d := pauses[min(failures, len(pauses))-1]
	return max(d, min(retryAfter, maxRetryAfter)) + rand.N(d/5)
}
