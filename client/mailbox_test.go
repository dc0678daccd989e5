package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// writer has accounts written by the workers of one queue only.
func (s *stage) writer(handle func(ctx context.Context, job *client.Job) (client.Done, error)) *runningWorker {
	s.t.Helper()
	s.queue(interlock.TaskQueue{Name: "accounts", MaxAttempts: 2})
	s.single("account", "account:{id}", "accounts")
	return s.work(s.client("writer"), client.Worker{Queue: "accounts", Concurrency: 8, Handle: handle})
}

// single has the keys of a pattern written by the workers of a queue.
func (s *stage) single(name, shape, queue string) {
	s.t.Helper()
	c := s.client("operator")
	if err := c.SetPattern(
		s.ctx, interlock.Pattern{Name: name, Shape: shape, Write: interlock.WriteSingle, WriterQueue: queue},
	); err != nil {
		s.t.Fatal(err)
	}
}

// credit adds the amount in a message to its key's document, and replies with the sum.
func credit(_ context.Context, job *client.Job) (client.Done, error) {
	key := job.Lease().Key()
	var amount, sum int
	if err := job.Decode(&amount); err != nil {
		return client.Done{}, err
	}
	old := job.Document(key)
	if !old.Absent {
		if _, err := fmt.Sscan(string(old.Body), &sum); err != nil {
			return client.Done{}, err
		}
	}
	if sum += amount; sum < 0 {
		return client.Done{}, client.Dead(errors.New("the account is empty"))
	}
	return client.Done{
		Result: sum, Reads: client.Seen(old), Writes: []interlock.Write{client.Put(key, fmt.Append(nil, sum))},
	}, nil
}

func TestAsk(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		worker := s.writer(credit)
		c := s.client("ann")
		for i, want := range []string{"5", "10", "15"} {
			if reply, err := c.Ask(s.ctx, client.Message{Key: "account:1", Kind: "credit", Body: 5}); err != nil ||
				string(reply) != want {
				t.Errorf("%d: %s, %v", i, reply, err)
			}
		}
		for range 2 {
			if reply, err := c.Ask(s.ctx, client.Message{Key: "account:1", Body: 1, ID: "once"}); err != nil ||
				string(reply) != "16" {
				t.Errorf("%s, %v", reply, err)
			}
		}
		_, err := c.Ask(s.ctx, client.Message{Key: "account:1", Body: -100})
		if dead, ok := errors.AsType[*client.TaskError](err); !ok || dead.Task.Reason != "the account is empty" ||
			dead.Task.Attempt != 1 {
			t.Errorf("%v", err)
		}
		sent, err := c.Send(s.ctx, client.Message{Key: "account:1", Body: 4, Delay: time.Minute})
		if err != nil || sent.State != interlock.TaskScheduled || sent.Queue != "accounts" {
			t.Fatalf("%+v, %v", sent, err)
		}
		if task, err := c.Await(s.ctx, sent.ID); err != nil || string(task.Result) != "20" {
			t.Errorf("%+v, %v", task, err)
		}
		if _, err := c.Commit(
			s.ctx, client.Commit{Writes: []interlock.Write{client.Put("account:1", []byte("1000000"))}},
		); !isCode(err, interlock.CodeWriterOnly) {
			t.Errorf("who goes around: %v", err)
		}
		if _, err := c.Ask(s.ctx, client.Message{Key: "other"}); !isCode(err, interlock.CodeNoWriter) {
			t.Errorf("without a writer: %v", err)
		}
		var states []string
		for entry, err := range c.Log(s.ctx, "account:1", 2) {
			if err != nil {
				t.Fatal(err)
			}
			states = append(
				states, fmt.Sprintf("%d %v %s %s %s", entry.Seq, entry.State, entry.Body, entry.Reply, entry.Document.Body),
			)
		}
		if want := "[2 done 5 10 10 3 done 5 15 15 4 done 1 16 16 5 dead -100   6 done 4 20 20]"; fmt.Sprint(states) != want {
			t.Errorf("%v", states)
		}
		worker.stop()
	})
}

// A writer sends messages to other writers, in the step in which it replies.
func TestWriterSendsOn(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.writer(func(ctx context.Context, job *client.Job) (client.Done, error) {
			if job.Task().Kind != "transfer" {
				return credit(ctx, job)
			}
			done := client.Done{Result: "on its way", Writes: []interlock.Write{client.Put(job.Lease().Key(), []byte("0"))}}
			done.Messages = []client.Message{{Key: "account:2", Kind: "credit", Body: 7}}
			return done, nil
		})
		c := s.client("ann")
		if reply, err := c.Ask(s.ctx, client.Message{Key: "account:1", Kind: "transfer"}); err != nil ||
			string(reply) != `"on its way"` {
			t.Errorf("%s, %v", reply, err)
		}
		if reply, err := c.Ask(s.ctx, client.Message{Key: "account:2", Kind: "credit", Body: 1}); err != nil ||
			string(reply) != "8" {
			t.Errorf("%s, %v", reply, err)
		}
	})
}

func TestApproval(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q"})
		c := s.client("ann")
		s.work(s.client("w"), client.Worker{Queue: "q", Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
			limit := job.Document("limit")
			asked := job.Task().Approval
			if asked == nil {
				return client.Done{}, client.NeedsApproval(client.Question{Text: "refund 900.00?", Reads: client.Seen(limit)})
			}
			return client.Done{
				Result: fmt.Sprintf(
					"%s by %s: %s, %d stale, attempt %d", asked.Verdict, asked.By, asked.Reason, len(asked.Stale), job.Attempt(),
				),
			}, nil
		}})
		task := s.submit(c, client.TaskSpec{Queue: "q", Claims: on("limit")})
		denied := s.submit(c, client.TaskSpec{Queue: "q", Approval: &client.Question{Text: "at all?"}})
		synctest.Wait()
		if got := s.task(c, task.ID); got.State != interlock.TaskAsking || got.Approval.Question != "refund 900.00?" {
			t.Fatalf("%+v", got)
		}
		if _, err := c.Commit(
			s.ctx, client.Commit{Writes: []interlock.Write{client.Put("limit", []byte("500"))}},
		); err != nil {
			t.Fatal(err)
		}
		if _, err := c.AnswerTask(s.ctx, task.ID, interlock.Approved, "Eve", "a good customer"); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Await(s.ctx, task.ID); err != nil ||
			string(got.Result) != `"approved by Eve: a good customer, 1 stale, attempt 1"` {
			t.Errorf("%s, %v", got.Result, err)
		}
		if _, err := c.AnswerTask(s.ctx, denied.ID, interlock.Denied, "Eve", "no"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Await(s.ctx, denied.ID); !isCode(err, interlock.CodeTaskSettled) {
			t.Errorf("%v", err)
		}
		if _, err := c.AnswerTask(s.ctx, denied.ID, interlock.Approved, "Eve", ""); !isCode(err, interlock.CodeNotAsking) {
			t.Errorf("%v", err)
		}
	})
}

// A holds the key K that B needs for its reply to A: the deadlock is found, A gets the error,
// and B continues when it has K.
func TestAskDeadlock(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.client("b")
		s.queue(interlock.TaskQueue{Name: "b"})
		s.single("b", "b:{id}", "b")
		s.work(w, client.Worker{Queue: "b", Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			lease, err := w.Acquire(ctx, exclusively("k"))
			if err != nil {
				return client.Done{}, err
			}
			defer func() { _ = lease.Release(ctx, client.Outcome{}) }()
			return client.Done{Result: "done"}, nil
		}})
		a := s.client("a")
		for _, id := range []string{"", "one"} {
			lease := s.acquire(a, exclusively("k"))
			_, err := a.Ask(lease.Context(), client.Message{Key: "b:1", ID: id})
			refusal, ok := errors.AsType[*interlock.Error](err)
			if !ok || refusal.Code != interlock.CodeDeadlock || len(refusal.Cycle) != 2 {
				t.Fatalf("%+v", err)
			}
			s.release(lease, "")
		}
		synctest.Wait()
		for task, err := range a.Tasks(s.ctx, client.TaskFilter{Key: "b:1"}) {
			if err != nil || task.State != interlock.TaskDone || task.Attempt != 1 || string(task.Result) != `"done"` {
				t.Errorf("the message: %+v, %v", task, err)
			}
		}
	})
}

// A call that was sent in a session that has ended since is not reported as never sent,
// whatever becomes of the next session.
func TestSentInAnEarlierSession(t *testing.T) {
	sends := map[string]func(ctx context.Context, c *client.Client) error{
		"ask": func(ctx context.Context, c *client.Client) error {
			_, err := c.Ask(ctx, client.Message{Key: "account:1"})
			return err
		},
		"send": func(ctx context.Context, c *client.Client) error {
			_, err := c.Send(ctx, client.Message{Key: "account:1", ID: "one"})
			return err
		},
	}
	for name, send := range sends {
		for _, retryFor := range []time.Duration{0, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: 6 * time.Second, RetryFor: retryFor})
				s.queue(interlock.TaskQueue{Name: "accounts"})
				s.single("account", "account:{id}", "accounts")
				var unblock func()
				if name == "send" { // with a lost answer; the caller has had the first one
					b.setLose(func(f *proto.ServerFrame) bool {
						lost := len(f.Replies) > 0 && len(f.Replies[0].Tasks) > 0
						if lost {
							unblock = b.blockLocked()
						}
						return lost
					})
				}
				ctx, cancel := context.WithTimeout(s.ctx, 5*time.Minute)
				defer cancel()
				told := make(chan error, 1)
				go func() { told <- send(ctx, c) }()
				synctest.Wait()
				if unblock == nil {
					unblock = b.block()
					b.cut()
				}
				<-time.After(30 * time.Second) // the session ends meanwhile
				b.setLose(func(f *proto.ServerFrame) bool {
					opened := len(f.Replies) > 0 && f.Replies[0].Session != nil
					if opened {
						b.deny = errors.New("no route")
					}
					return opened
				})
				unblock()
				if err := <-told; err == nil || errors.Is(err, client.ErrUnreachable) {
					t.Errorf("%s, %v: %v", name, retryFor, err)
				}
				b.refuse(nil)
				messages := 0
				for range s.client("b").Tasks(s.ctx, client.TaskFilter{}) {
					messages++
				}
				if messages != 1 {
					t.Errorf("%s, %v: %d messages", name, retryFor, messages)
				}
			})
		}
	}
}
