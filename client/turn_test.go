package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// watchedLink is a link that knows which goroutines call Recv and Send: callers, or the client's
// own.
type watchedLink struct {
	proto.ClientLink
	mu        sync.Mutex
	own, sent int // Recv that returned a frame, and Send, by callers
	all       int // both, by anybody
}

func (l *watchedLink) Interrupt() { l.ClientLink.(proto.Interruptible).Interrupt() }

func (l *watchedLink) Recv(f *proto.ServerFrame) error {
	err := l.ClientLink.Recv(f)
	if err == nil {
		l.count(&l.own)
	}
	return err
}

func (l *watchedLink) Send(f *proto.ClientFrame) error {
	l.count(&l.sent)
	return l.ClientLink.Send(f)
}

func (l *watchedLink) count(byCaller *int) {
	buf := make([]byte, 8<<10)
	stack := string(buf[:runtime.Stack(buf, false)])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all++
	if strings.Contains(stack, ").hear(") || strings.Contains(stack, ").launch(") {
		*byCaller++
	}
}

// counts returns the counts, and begins anew.
func (l *watchedLink) counts() (own, sent, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, sent, all = l.own, l.sent, l.all
	l.own, l.sent, l.all = 0, 0, 0
	return own, sent, all
}

// watch connects a client over a watched link.
func (w *world) watch(cfg client.Config) (*client.Client, *watchedLink) {
	var link *watchedLink
	c := w.connect(func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
		l, err := w.inside(ctx, hello)
		link = &watchedLink{ClientLink: l}
		return link, err
	}, cfg)
	return c, link
}

// A caller that is alone sends and reads itself, and several do not.
func TestAloneOneReadsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := broken(t, inMemory(t), client.Config{Agent: "other"})
		c, link := s.w.watch(client.Config{Agent: "a"})
		s.release(s.acquire(c, exclusively("k")), "") // the reader has the turn at first
		link.counts()
		const n = 10
		for range n {
			s.release(s.acquire(c, exclusively("k")), "")
		}
		if own, sent, all := link.counts(); own != 2*n || sent != 2*n || all != 4*n {
			t.Errorf("of %d frames one caller read %d itself and sent %d, want %d and %d of %d", all, own, sent, 2*n, 2*n, 4*n)
		}
		// Standing in line, it reads its grant itself.
		held := s.acquire(s.client("b"), exclusively("k"))
		place := s.wait(c, exclusively("k"))
		place.queued()
		s.release(held, "")
		lease := place.granted()
		if own, sent, all := link.counts(); own != 2 || sent != 1 || all != 3 {
			t.Errorf("in line it read %d itself and sent %d of %d, want 2 and 1 of 3", own, sent, all)
		}
		s.release(lease, "")
		// After a pause the reader has the turn once more, and lets it go again.
		<-time.After(time.Second)
		link.counts()
		s.release(s.acquire(c, exclusively("k")), "")
		if own, sent, _ := link.counts(); own != 1 || sent != 1 {
			t.Errorf("after a pause it read %d itself and sent %d, want the second of two", own, sent)
		}
	})
}

// What the server sends unasked comes through although the turn lies there.
func TestUnaskedWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		for i := range 5 {
			key := interlock.Key(fmt.Sprint("k", i))
			s.release(s.acquire(c, exclusively(key)), "")
			lease := s.acquire(c, exclusively(key))
			if eff, _, err := s.w.shard.Do(s.ctx, &engine.Revoke{Head: engine.Head{Namespace: "default"}, Key: key, Fence: lease.Fence(), Reason: "runaway"}); err != nil || eff.Outcome != engine.Done {
				t.Fatal(eff.Outcome, err)
			}
			began := time.Now()
			<-lease.Context().Done()
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("it was told after %v", took)
			}
			if !isCode(lease.Err(), interlock.CodeRevoked) {
				t.Errorf("it ended with %v", lease.Err())
			}
		}
	})
}

// A request of a caller that does not read itself does not wait until the turn has lain.
func TestAskedWhileNobodyReads(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q"})
		s.submit(s.client("b"), client.TaskSpec{Queue: "q"})
		c, _ := s.w.watch(client.Config{Agent: "a"})
		for range 3 { // until the turn lies there
			s.release(s.acquire(c, exclusively("mine")), "")
		}
		began, handed := time.Now(), make(chan time.Duration, 1)
		w := s.work(c, client.Worker{Queue: "q", Handle: func(context.Context, *client.Job) (client.Done, error) {
			handed <- time.Since(began)
			return client.Done{}, nil
		}})
		if took := <-handed; took > 0 {
			t.Errorf("a task was handed out after %v", took)
		}
		w.stop()
	})
}

// A caller that reads while standing in line reads for the others, too, leaves at once when
// called off, and the others go on.
func TestReaderInLineIsCalledOff(t *testing.T) {
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

// Close ends a caller that reads itself.
func TestCloseWhileACallerReads(t *testing.T) {
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

// A caller that reads itself when the link breaks has its answer over the next one.
func TestLinkBreaksWhileACallerReads(t *testing.T) {
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

// Callers come and go, alone and together, are called off, and lose their link. No answer is
// lost, and no caller waits for ever.
func TestTurnsAmongMany(t *testing.T) {
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
					lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{interlock.Key(fmt.Sprint("k", i))}, OnConflict: interlock.Wait})
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

// Close returns when it was answered, whichever goroutine has read that.
func TestCloseAlone(t *testing.T) {
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
