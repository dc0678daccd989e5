package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// floor is where members work on parts. It fails the test when two work on one, or
// when a part's fence goes back.
type floor struct {
	t      *testing.T
	mu     sync.Mutex
	who    map[int]string
	fences map[int]interlock.Fence
	moved  chan struct{} // has a value when something changed
}

func newFloor(t *testing.T) *floor {
	return &floor{t: t, who: map[int]string{}, fences: map[int]interlock.Fence{}, moved: make(chan struct{}, 1)}
}

// work takes a part until its context ends, and some time to stop.
func (f *floor) work(name string, stopping time.Duration) func(context.Context, client.Part) {
	return func(ctx context.Context, part client.Part) {
		f.mu.Lock()
		if other := f.who[part.Index]; other != "" {
			f.t.Errorf("%s begins part %d while %s is at it", name, part.Index, other)
		}
		if part.Fence <= f.fences[part.Index] {
			f.t.Errorf("%s has part %d under fence %d after %d", name, part.Index, part.Fence, f.fences[part.Index])
		}
		f.who[part.Index], f.fences[part.Index] = name, part.Fence
		f.mu.Unlock()
		f.ring()
		<-ctx.Done()
		if stopping > 0 {
			<-time.After(stopping)
		}
		f.mu.Lock()
		f.who[part.Index] = ""
		f.mu.Unlock()
		f.ring()
	}
}

func (f *floor) ring() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// until waits until each of these has so many parts and no other member has any.
func (f *floor) until(want map[string]int) {
	f.t.Helper()
	for {
		have := map[string]int{}
		f.mu.Lock()
		for _, name := range f.who {
			if name != "" {
				have[name]++
			}
		}
		f.mu.Unlock()
		same := len(have) == len(want)
		for name, n := range want {
			same = same && have[name] == n
		}
		if same {
			return
		}
		<-f.moved
	}
}

func (s *stage) join(c *client.Client, as client.Membership) *client.Member {
	s.t.Helper()
	as.Key, as.Parts = "crawl", 6
	m, err := c.Join(s.ctx, as)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

var memberScenarios = []scenario{
	{"parts move when members come and leave", func(t *testing.T, s *stage) {
		f := newFloor(t)
		a := s.join(s.client("a"), client.Membership{Work: f.work("a", 0)})
		f.until(map[string]int{"a": 6})
		b := s.join(s.client("b"), client.Membership{Work: f.work("b", 0)})
		f.until(map[string]int{"a": 3, "b": 3})
		c := s.join(s.client("c"), client.Membership{Work: f.work("c", 0)})
		f.until(map[string]int{"a": 2, "b": 2, "c": 2})
		if parts := c.Parts(); len(parts) != 2 || parts[0].Index >= parts[1].Index ||
			parts[0].Key != interlock.Key("crawl/"+string(rune('0'+parts[0].Index))) || parts[0].Fence == 0 {
			t.Errorf("parts %+v", parts)
		}
		if err := b.Leave(s.ctx); err != nil {
			t.Error(err)
		}
		f.until(map[string]int{"a": 3, "c": 3})
		if !isCode(context.Cause(b.Context()), interlock.CodeReleased) || len(b.Parts()) != 0 {
			t.Errorf("who left: %v, %v", context.Cause(b.Context()), b.Parts())
		}
		if err := a.Leave(s.ctx); err != nil {
			t.Error(err)
		}
		f.until(map[string]int{"c": 6})
		if err := c.Leave(s.ctx); err != nil {
			t.Error(err)
		}
		f.until(nil)
	}},
	{"a part is worked on under its member's flow", func(t *testing.T, s *stage) {
		c := s.client("a")
		got := make(chan error, 6)
		m := s.join(c, client.Membership{Work: func(ctx context.Context, part client.Part) {
			lease, err := c.Acquire(ctx, exclusively(part.Key+"/page"))
			if err == nil {
				err = lease.Release(ctx, client.Outcome{})
			}
			got <- err
		}})
		for range 6 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if err := m.Leave(s.ctx); err != nil {
			t.Error(err)
		}
	}},
	{"a key is shared out in one way", func(t *testing.T, s *stage) {
		f := newFloor(t)
		c := s.client("a")
		m := s.join(c, client.Membership{Flow: "one", Work: f.work("a", 0)})
		if _, err := s.client("b").Join(
			s.ctx, client.Membership{Key: "crawl", Parts: 7, Work: f.work("b", 0)},
		); !isCode(err, interlock.CodeMismatch) {
			t.Errorf("seven parts of six: %v", err)
		}
		if _, err := c.Join(
			s.ctx, client.Membership{Key: "crawl", Parts: 6, Flow: "one", Work: f.work("b", 0)},
		); !isCode(err, interlock.CodeInvalidRequest) {
			t.Errorf("twice in one flow: %v", err)
		}
		if _, err := c.Join(s.ctx, client.Membership{Key: "crawl", Parts: 6}); err == nil {
			t.Error("joined without work")
		}
		f.until(map[string]int{"a": 6})
		if err := m.Leave(s.ctx); err != nil {
			t.Error(err)
		}
	}},
}

// A member that stops slowly keeps the part until it has stopped, within its grace.
func TestPartIsStoppedBeforeItMoves(t *testing.T) {
	crowd(t, func(s *stage) {
		const stopping = 20 * time.Second
		f := newFloor(s.t)
		a := s.join(s.client("a"), client.Membership{Grace: time.Minute, Work: f.work("a", stopping)})
		f.until(map[string]int{"a": 6})
		began := time.Now()
		b := s.join(s.client("b"), client.Membership{Work: f.work("b", 0)})
		f.until(map[string]int{"a": 3, "b": 3})
		if took := time.Since(began); took != stopping {
			s.t.Errorf("parts moved after %v, to stop takes %v", took, stopping)
		}
		limit, cancel := context.WithTimeout(s.ctx, stopping/2)
		defer cancel()
		if err := a.Leave(limit); !errors.Is(err, context.DeadlineExceeded) {
			s.t.Errorf("left before its work had stopped: %v", err)
		}
		if a.Context().Err() != nil {
			s.t.Error("its membership is over")
		}
		for _, m := range []*client.Member{a, b} {
			if err := m.Leave(s.ctx); err != nil {
				s.t.Error(err)
			}
		}
	})
}

// A member that dies is replaced, and hears of it by its own clock.
func TestDeadMembersPartsMove(t *testing.T) {
	crowd(t, func(s *stage) {
		f := newFloor(s.t)
		b := &breaker{dial: s.w.inside}
		dead := s.join(
			s.w.connect(b.Dial, client.Config{Agent: "dead", SessionTTL: 6 * time.Second}),
			client.Membership{Work: f.work("dead", 0)},
		)
		other := s.join(s.client("b"), client.Membership{Work: f.work("b", 0)})
		f.until(map[string]int{"dead": 3, "b": 3})
		unblock := b.block()
		b.cut()
		f.until(map[string]int{"b": 6})
		if dead.Context().Err() == nil {
			s.t.Error("the dead member counts itself as one")
		}
		unblock()
		if err := other.Leave(s.ctx); err != nil {
			s.t.Error(err)
		}
	})
}

// Changes of parts while a member's link was broken are found when it is back.
func TestPartsAfterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		f := newFloor(t)
		a := s.join(c, client.Membership{Grace: time.Hour, Work: f.work("a", 0)})
		other := s.join(s.client("b"), client.Membership{Grace: time.Hour, Work: f.work("b", 0)})
		f.until(map[string]int{"a": 3, "b": 3})
		before := a.Parts()

		unblock := b.block()
		b.cut()
		synctest.Wait()
		if err := other.Leave(s.ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if now := a.Parts(); !slices.Equal(now, before) {
			t.Errorf("it was told without a link: %v", now)
		}
		unblock()
		f.until(map[string]int{"a": 6})

		unblock = b.block()
		b.cut()
		synctest.Wait()
		third := s.join(s.client("c"), client.Membership{Work: f.work("c", 0)})
		synctest.Wait()
		unblock()
		f.until(map[string]int{"a": 3, "c": 3})
		for _, m := range []*client.Member{a, third} {
			if err := m.Leave(s.ctx); err != nil {
				t.Error(err)
			}
		}
	})
}
