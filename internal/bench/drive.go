package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// drive lets n agents repeat step until d has passed, and returns how long each step took and
// all together. An agent's first step is not counted: it makes connections, and all begin to
// count when the last one has done it. Each counts at least one.
func drive(
	ctx context.Context, n int, d time.Duration, step func(ctx context.Context, agent int) error,
) (*Histogram, time.Duration, error) {
	var (
		running, ready sync.WaitGroup
		start          = make(chan struct{})
		end            time.Time
		took           = make([]Histogram, n)
		failures       = make([]error, n)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready.Add(n)
	for i := range n {
		running.Go(func() {
			err := step(ctx, i)
			ready.Done()
			<-start
			for err == nil && ctx.Err() == nil {
				began := time.Now()
				if !began.Before(end) && took[i].Count() > 0 {
					return
				}
				if err = step(ctx, i); err == nil {
					took[i].Record(time.Since(began))
				}
			}
			if failures[i] = err; err != nil {
				cancel() // what the others measure is of no use
			}
		})
	}
	ready.Wait()
	began := time.Now()
	end = began.Add(d)
	close(start)
	running.Wait()
	elapsed := time.Since(began)
	if err := first(failures); err != nil {
		return nil, 0, err
	}
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	all := &took[0]
	for i := range took[1:] {
		all.Add(&took[i+1])
	}
	return all, elapsed, nil
}

// each does something n times, at most width at a time, and returns the first error.
func each(ctx context.Context, n, width int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	next := make(chan int)
	for range min(n, width) {
		all.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

// first is the error that came of itself, and not because others had failed.
func first(errs []error) (found error) {
	for _, err := range errs {
		if err != nil && (found == nil || errors.Is(found, context.Canceled)) {
			found = err
		}
	}
	return found
}
