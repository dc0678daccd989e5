package bench

import (
	"context"
	"sync"
	"sync/atomic"
)

// holdWidth is how many requests are under way while leases are taken, and while agents
// come into line.
const holdWidth = 256

// holdings are leases that agents hold.
type holdings struct {
	keys  []string
	locks []Lock
}

// hold makes agents take keys, which are shared out evenly.
func hold(ctx context.Context, agents []Agent, keys []string) (*holdings, error) {
	n := len(keys)
	h := &holdings{keys: keys, locks: make([]Lock, n)}
	err := each(ctx, len(agents), holdWidth, func(ctx context.Context, i int) (err error) {
		for ; i < n && err == nil; i += len(agents) {
			h.locks[i], err = agents[i%len(agents)].Acquire(ctx, h.keys[i], nil)
		}
		return err
	})
	return h, err
}

// keyBytes is how long a key is in the mean.
func (h *holdings) keyBytes() float64 {
	sum := 0
	for _, key := range h.keys {
		sum += len(key)
	}
	return float64(sum) / float64(len(h.keys))
}

// crowd makes agents wait for keys that another agent holds, and calls do when all stand in
// line. Then they leave.
func (h *holdings) crowd(ctx context.Context, agents []Agent, keys int, do func() error) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var (
		left   atomic.Int64
		inLine = make(chan struct{})
		room   = make(chan struct{}, holdWidth)
		failed = make(chan error, len(agents))
	)
	left.Store(int64(len(agents)))
	for i, a := range agents {
		go func() {
			room <- struct{}{}
			there := sync.OnceFunc(func() { <-room })
			defer there()
			_, err := a.Acquire(ctx, h.keys[i%keys], func() {
				there()
				if left.Add(-1) == 0 {
					close(inLine)
				}
			})
			failed <- err
		}()
	}
	gone := 0
	var err error
	select {
	case <-inLine:
		err = do()
	case err = <-failed:
		gone++
	}
	leave()
	for ; gone < len(agents); gone++ {
		<-failed // that they were called off
	}
	return err
}
