package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// capped sets a cap for workflow w of organisation o.
func (s *stage) capped(most uint32) {
	s.t.Helper()
	if err := s.client("operator").SetPattern(
		s.ctx, interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: most},
	); err != nil {
		s.t.Fatal(err)
	}
}

func TestRunsAreAdmitted(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.capped(2)
		c := s.client("a")
		var mu sync.Mutex
		var runs []*client.Lease
		var all sync.WaitGroup
		refused := 0
		for range 10 {
			all.Go(func() {
				run, err := c.StartRun(s.ctx, client.RunRequest{Org: "o", Workflow: "w", Purpose: "nightly", MaxWait: -1})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					runs = append(runs, run)
					return
				}
				if refused++; !isCode(err, interlock.CodeTooManyRuns) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(runs) != 2 || refused != 8 {
			t.Fatalf("%d admitted, %d refused", len(runs), refused)
		}
		began := time.Now()
		if _, err := c.StartRun(s.ctx, client.RunRequest{Org: "o"}); !isCode(err, interlock.CodeTooManyRuns) ||
			time.Since(began) != interlock.DefaultRunWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		late := make(chan *client.Lease, 1)
		go func() {
			run, err := c.StartRun(s.ctx, client.RunRequest{Org: "o", ID: "one", MaxWait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			late <- run
		}()
		<-time.After(10 * time.Second)
		s.release(runs[0], "")
		run := <-late
		again, err := c.StartRun(s.ctx, client.RunRequest{Org: "o", ID: "one", MaxWait: time.Minute})
		if err != nil || again.ID() != run.ID() {
			t.Fatalf("%v, %v", again, err)
		}
		s.release(again, "")
		if run.Err() != nil {
			t.Errorf("it ended with another handle: %v", run.Err())
		}
		s.release(run, "")
		s.release(runs[1], "")
		if queues, err := c.Queues(s.ctx); err != nil || len(queues) != 0 {
			t.Errorf("%v, %v", queues, err)
		}
	})
}

func TestRunWaitsOverReconnect(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.capped(1)
		b := &breaker{dial: s.w.inside}
		c := s.w.connect(b.Dial, client.Config{Agent: "b"})
		first, err := s.client("a").StartRun(s.ctx, client.RunRequest{Org: "o"})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() {
			_, err := c.StartRun(s.ctx, client.RunRequest{Org: "o", MaxWait: time.Minute})
			started <- err
		}()
		<-time.After(time.Second)
		b.cut()
		<-time.After(time.Second)
		s.release(first, "")
		if err := <-started; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(s.ctx)
		cancel(errStopped)
		if _, err := c.StartRun(ctx, client.RunRequest{Org: "o"}); !errors.Is(err, errStopped) {
			t.Error(err)
		}
	})
}

func TestCapsAreReverted(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.capped(2)
		s.capped(5)
		c := s.client("operator")
		if err := c.RevertPattern(s.ctx, "runs", 0); err != nil {
			t.Fatal(err)
		}
		if list, err := c.Patterns(s.ctx); err != nil || len(list) != 1 || list[0].Capacity != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if err := c.RevertPattern(s.ctx, "none", 0); !isCode(err, interlock.CodeUnknownPattern) {
			t.Error(err)
		}
	})
}
