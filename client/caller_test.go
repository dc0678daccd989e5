package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// A cancelled waiter leaves the line at once, and other callers of the client go on.
func TestCancelledWaiterLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		held := s.acquire(s.client("b"), exclusively("k"))
		s.release(s.acquire(c, exclusively("mine")), "")
		ctx, stop := context.WithCancelCause(s.ctx)
		waited := make(chan error, 1)
		go func() {
			_, err := c.Acquire(ctx, exclusively("k"))
			waited <- err
		}()
		synctest.Wait()
		for range 3 {
			s.release(s.acquire(c, exclusively("mine")), "")
		}
		began := time.Now()
		stop(errStopped)
		if err := <-waited; !errors.Is(err, errStopped) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it left after %v", took)
		}
		s.release(held, "")
		s.release(s.acquire(c, exclusively("mine", "k")), "")
	})
}

// Close ends a caller that waits in line, at once.
func TestCloseEndsWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		s.acquire(s.client("b"), exclusively("k"))
		s.release(s.acquire(c, exclusively("mine")), "")
		waited := make(chan error, 1)
		go func() {
			_, err := c.Acquire(s.ctx, exclusively("k"))
			waited <- err
		}()
		synctest.Wait()
		began := time.Now()
		closeClient(t, c)
		if err := <-waited; !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A caller that waits in line when the link breaks gets its grant over the next link.
func TestWaiterOutlivesLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		s.patience = 24 * time.Hour
		held := s.acquire(s.client("b"), exclusively("k"))
		for range 3 {
			s.release(s.acquire(c, exclusively("mine")), "")
			waited := make(chan *client.Lease, 1)
			go func() { waited <- s.acquire(c, exclusively("k")) }()
			synctest.Wait()
			b.cut()
			<-time.After(time.Minute) // and it stands in line again
			s.release(held, "")
			held = <-waited
			s.release(held, "")
			held = s.acquire(s.client("b"), exclusively("k"))
		}
	})
}

// Callers come and go, are cancelled, and lose their link. No answer is lost, no two callers hold
// one key, and no caller waits for ever.
func TestCallersLoseLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		const callers, rounds = 4, 200
		var (
			done   sync.WaitGroup
			inside [2]bool
			mu     sync.Mutex
		)
		enter := func(i int, in bool) {
			mu.Lock()
			defer mu.Unlock()
			if inside[i] == in {
				t.Errorf("two hold key %d", i)
			}
			inside[i] = in
		}
		for n := range callers {
			done.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(n)))
				for range rounds {
					<-time.After(time.Duration(rng.IntN(8)) * time.Millisecond)
					ctx, cancel := s.ctx, context.CancelFunc(func() {})
					if rng.IntN(3) == 0 {
						ctx, cancel = context.WithTimeout(s.ctx, time.Duration(rng.IntN(10))*time.Millisecond)
					}
					i := rng.IntN(len(inside))
					lease, err := c.Acquire(
						ctx, client.Request{Keys: []interlock.Key{interlock.Key(fmt.Sprint("k", i))}, OnConflict: interlock.Wait},
					)
					if err == nil {
						enter(i, true)
						<-time.After(time.Duration(rng.IntN(4)) * time.Millisecond)
						enter(i, false)
						err = lease.Release(s.ctx, client.Outcome{})
					} else if ctx.Err() != nil {
						err = nil
					}
					cancel()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 20 {
			<-time.After(50 * time.Millisecond)
			b.cut()
		}
		done.Wait()
	})
}

// Close returns as soon as it is answered.
func TestCloseReturnsWithItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		for range 5 {
			c, err := client.New(t.Context(), w.inside, client.Config{Agent: "a"})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				lease, err := c.Acquire(t.Context(), exclusively("k"))
				if err == nil {
					err = lease.Release(t.Context(), client.Outcome{})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			closeClient(t, c)
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
		}
	})
}
