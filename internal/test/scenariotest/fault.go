package scenariotest

import (
	"context"
	"regexp"
	"sync"
	"time"
)

// The faults that meet single requests.
const (
	loseRequest = "lose_request"
	loseAnswer  = "lose_answer"
	repeated    = "repeat"
	delayed     = "delay"
	killing     = "kill"
)

// fault is one that waits for its request.
type fault struct {
	kind  string
	path  *regexp.Regexp // of the method and the path; nil for any request
	times int
	pause time.Duration
}

// faults are those of one scenario. Its proxies share them.
type faults struct {
	mu     sync.Mutex
	armed  []*fault
	silent chan struct{} // closed at the end of the silence; nil without one
	kill   func()        // kills the active server
}

func (f *faults) arm(x *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.times = max(x.times, 1)
	f.armed = append(f.armed, x)
}

// next takes the fault of a request, or returns one without a kind.
func (f *faults) next(fits func(*fault) bool) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, x := range f.armed {
		if !fits(x) {
			continue
		}
		taken := *x
		if x.times--; x.times == 0 {
			f.armed = append(f.armed[:i], f.armed[i+1:]...)
		}
		return taken
	}
	return fault{}
}

func (f *faults) silence(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case on && f.silent == nil:
		f.silent = make(chan struct{})
	case !on && f.silent != nil:
		close(f.silent)
		f.silent = nil
	}
}

// quiet waits for the end of a silence, and reports whether there was one: then the connection is of no use any more.
func (f *faults) quiet(ctx context.Context) bool {
	f.mu.Lock()
	silent := f.silent
	f.mu.Unlock()
	if silent == nil {
		return false
	}
	select {
	case <-silent:
	case <-ctx.Done():
	}
	return true
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
