package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// logged has the default log for a test.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func listenToLog(t *testing.T) *logged {
	l, before := &logged{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// when returns the log once it has a text, which follows the end of a lease, or else after a while.
func (l *logged) when(text string) string {
	for range 2000 {
		if strings.Contains(l.String(), text) {
			break
		}
		runtime.GC()
	}
	return l.String()
}

// collected runs the collector until the client knows n leases.
func collected(t *testing.T, c *client.Client, n int) {
	t.Helper()
	for range 2000 {
		if client.Known(c) == n {
			return
		}
		runtime.GC()
	}
	t.Fatalf("the client knows %d leases, want %d", client.Known(c), n)
}

// A lease that the program has dropped ends by its ttl, and no other one does: not one with a handle or a Context that
// it has.
func TestDroppedHandle(t *testing.T) {
	log := listenToLog(t)
	crowd(t, func(s *stage) {
		c := s.client("a")
		kept := s.acquire(c, exclusively("kept"))
		handle, err := c.Acquire(s.t.Context(), exclusively("by its context"))
		if err != nil {
			s.t.Fatal(err)
		}
		work := handle.Context()
		child, stop := context.WithCancel(work)
		defer stop()
		drop := func(req client.Request) {
			if _, err := c.Acquire(s.t.Context(), req); err != nil {
				s.t.Fatal(err)
			}
		}
		drop(exclusively("dropped"))
		again := exclusively("twice")
		again.Flow = "f"
		drop(again)
		twice := s.acquire(c, again)
		collected(s.t, c, 3)
		if text := log.when("key=dropped"); !strings.Contains(text, "key=dropped") || strings.Count(text, "WARN") != 1 {
			s.t.Errorf("the log has %q", text)
		}
		for _, key := range []interlock.Key{"dropped", "kept", "by its context"} {
			req := exclusively(key)
			req.OnConflict = interlock.Fail
			began := time.Now()
			if key == "dropped" {
				req.OnConflict = interlock.Wait
				s.release(s.acquire(s.client("b"), req), "")
				// The next heartbeat, after a third of the ttl, is the first that tells of it.
				if took := time.Since(began); took > interlock.DefaultTTL*4/3+interlock.DefaultGrace {
					s.t.Errorf("it lived for %v", took)
				}
			} else if _, err := s.client("b").Acquire(s.t.Context(), req); err == nil {
				s.t.Errorf("%s is free", key)
			}
		}
		<-time.After(10 * time.Minute)
		if kept.Err() != nil || child.Err() != nil || twice.Err() != nil {
			s.t.Errorf("%v, %v, %v", kept.Err(), context.Cause(child), twice.Err())
		}
	})
}

// An attempt leaves no lease that lives on after the server has refused its report.
func TestForgottenAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, kept, _ := leased(t)
		ctx, stop := context.WithCancel(t.Context())
		told, worked := make(chan error, 1), make(chan struct{})
		go func() {
			defer close(worked)
			_ = c.Work(ctx, client.Worker{
				Queue: "q", OnError: func(_ *client.Job, err error) { told <- err },
				Handle: func(context.Context, *client.Job) (client.Done, error) { return client.Done{}, nil },
			})
		}()
		look := s.next(proto.OpListQueues)
		s.say(proto.Reply{Slot: look.Slot, Seq: look.Seq, Outcome: proto.Done, Queues: []interlock.QueueStatus{{
			TaskQueue: interlock.TaskQueue{Name: "q"},
		}}})
		pull := s.next(proto.OpPullTasks)
		s.say(proto.Reply{Slot: pull.Slot, Seq: pull.Seq, Outcome: proto.Granted, Handed: []interlock.Assignment{{
			Task: interlock.Task{ID: interlock.TaskID{9}, Queue: "q", State: interlock.TaskRunning},
			Lease: interlock.Lease{
				ID: interlock.LeaseID{9}, Fence: 2, Claims: on("task"), TTL: interlock.DefaultTTL, State: interlock.Held,
			},
		}}})
		ack := s.next(proto.OpAckTask)
		s.say(proto.Reply{Slot: ack.Slot, Seq: ack.Seq, Outcome: proto.Refused, Code: interlock.CodeTaskMoved})
		if err := <-told; !isCode(err, interlock.CodeTaskMoved) {
			t.Error(err)
		}
		synctest.Wait()
		if n := client.Known(c); n != 1 {
			t.Errorf("after the end of the attempt the client knows %d leases, want 1", n)
		}
		runtime.KeepAlive(kept)
		stop()
		pull = s.next(proto.OpPullTasks)
		s.say(proto.Reply{Slot: pull.Slot, Seq: pull.Seq, Outcome: proto.Refused, Code: interlock.CodeUnknownQueue})
		<-worked
		go func() { s.answer(s.next(proto.OpClose)) }()
		closeClient(t, c)
	})
}

// leased is a client of a scripted server, with one lease of a ttl of 30 s.
func leased(t *testing.T) (*script, *client.Client, *client.Lease, interlock.LeaseID) {
	t.Helper()
	s := &script{t: t, links: make(chan proto.ServerLink, 1)}
	opened := make(chan *client.Client)
	go func() {
		c, err := client.New(t.Context(), s.Dial, client.Config{Agent: "a"})
		if err != nil {
			t.Error(err)
		}
		opened <- c
	}()
	s.answer(s.next(proto.OpOpen))
	s.answer(s.next(proto.OpAttach))
	c := <-opened
	id := interlock.LeaseID{7}
	granted := make(chan *client.Lease)
	go func() {
		lease, err := c.Acquire(t.Context(), exclusively("k"))
		if err != nil {
			t.Error(err)
		}
		granted <- lease
	}()
	op := s.next(proto.OpAcquire)
	s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: interlock.Lease{
		ID: id, Fence: 1, Claims: op.Claims, TTL: interlock.DefaultTTL, State: interlock.Held, Flow: op.Flow,
	}})
	return s, c, <-granted, id
}

// A heartbeat tells which leases the client knows. An answer that wants a list confirms nothing: a client that only
// ever has such answers loses its leases by its own clock, and one with lists that are taken keeps them.
func TestOnlyTheListConfirms(t *testing.T) {
	for name, wants := range map[string]func(listed bool) bool{
		"always wants a list":     func(bool) bool { return true },
		"wants a list each time":  func(listed bool) bool { return !listed },
		"counts the same as here": func(bool) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, lease, id := leased(t)
				for end := time.Now().Add(2 * interlock.DefaultTTL); time.Now().Before(end); {
					op := s.read()
					if op.Kind != proto.OpHeartbeat { // of a lease that it has lost
						s.answer(op)
						continue
					}
					known := op.Known
					switch {
					case known == nil, known.Listed && (len(known.Leases) != 1 || known.Leases[0] != id),
						!known.Listed && (known.Count != 1 || known.Digest != [16]byte(id)):
						if lease.Err() == nil {
							t.Fatalf("it knows %+v", known)
						}
					}
					s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Done, WantsList: wants(known.Listed)})
					if known.Listed && wants(true) {
						<-time.After(time.Second) // it lists at once
					}
				}
				if lost := lease.Err() != nil; lost != wants(true) {
					t.Errorf("the lease: %v", lease.Err())
				}
				s.cut()
				go func() { // a server that is away
					for link := range s.links {
						link.Close(nil)
					}
				}()
				end, stop := context.WithTimeout(context.Background(), time.Second)
				defer stop()
				_ = c.Close(end)
				close(s.links)
			})
		})
	}
}

// A lease that a heartbeat did not count is not confirmed by its answer.
func TestALaterLeaseIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, first, _ := leased(t)
		beat := s.read()
		if beat.Kind != proto.OpHeartbeat {
			t.Fatalf("operation %d", beat.Kind)
		}
		// While it is on its way, another lease comes, with which the server counts from the heartbeat before.
		granted := make(chan *client.Lease)
		go func() {
			lease, err := c.Acquire(t.Context(), exclusively("later"))
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		op := s.read()
		s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: interlock.Lease{
			ID: interlock.LeaseID{8}, Fence: 2, Claims: op.Claims, TTL: interlock.DefaultTTL, State: interlock.Held,
			Flow: op.Flow,
		}})
		later := <-granted
		before := later.Left()
		s.say(proto.Reply{Slot: beat.Slot, Seq: beat.Seq, Outcome: proto.Done})
		synctest.Wait()
		if later.Left() != before || first.Left() <= before {
			t.Errorf("left %v, before %v; of the first one %v", later.Left(), before, first.Left())
		}
		go func() { s.answer(s.next(proto.OpClose)) }()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
