package remote

import (
	"context"
	"crypto/rand"
	"time"
)

// Surroundings are time and chance, as a store needs them. All functions may be called concurrently.
type Surroundings struct {
	// Pause waits between two attempts of a request, and reports whether there is to be another one.
	Pause func(ctx context.Context, d time.Duration) bool

	// Word returns a word that no other call returns, in any process.
	Word func() string

	// Every calls do at once, and then each d until ctx ends. The channel is closed when do is not called any more.
	Every func(ctx context.Context, d time.Duration, do func()) (done <-chan struct{})
}

var actual = Surroundings{Pause: pause, Word: rand.Text, Every: every}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func every(ctx context.Context, d time.Duration, do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ok := true; ok; ok = pause(ctx, d) {
			do()
		}
	}()
	return done
}
