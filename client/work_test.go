package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// runningWorker is a worker that works until it is stopped.
type runningWorker struct {
	t      *testing.T
	cancel context.CancelFunc
	result chan error
}

// work has a worker work until the test ends, or until it is stopped before.
func (s *stage) work(c *client.Client, w client.Worker) *runningWorker {
	ctx, cancel := context.WithCancel(s.ctx)
	x := &runningWorker{t: s.t, cancel: cancel, result: make(chan error, 1)}
	go func() { x.result <- c.Work(ctx, w) }()
	s.t.Cleanup(cancel)
	return x
}

// stop ends the worker, and waits until it has ended.
func (x *runningWorker) stop() {
	x.t.Helper()
	x.cancel()
	if err := <-x.result; err != nil {
		x.t.Error("the worker:", err)
	}
}

func (s *stage) queue(q interlock.TaskQueue) {
	s.t.Helper()
	if err := s.client("operator").SetQueue(s.ctx, q); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) submit(c *client.Client, spec client.TaskSpec) interlock.Task {
	s.t.Helper()
	task, err := c.Submit(s.ctx, spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return task
}

// task looks at a task.
func (s *stage) task(c *client.Client, id interlock.TaskID) interlock.Task {
	s.t.Helper()
	task, err := c.Task(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return task
}

// on are exclusive claims.
func on(keys ...interlock.Key) (claims []interlock.Claim) {
	for _, key := range keys {
		claims = append(claims, interlock.Claim{Key: key})
	}
	return claims
}

// onStage runs a test in a bubble of its own, with a server in it.
func onStage(t *testing.T, play func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 24*time.Hour, errInVain) // of the bubble's clock
		defer cancel()
		play(t, &stage{t: t, w: w, ctx: ctx, patience: 24 * time.Hour, client: func(agent string) *client.Client {
			return w.dial(client.Config{Agent: agent})
		}})
	})
}

func TestWorkerDoesATask(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "mail"})
		ann := s.client("ann")
		if _, err := ann.Commit(
			s.ctx, client.Commit{Writes: []interlock.Write{client.Put("customer:1", []byte(`{"sent":0}`))}},
		); err != nil {
			t.Fatal(err)
		}
		worker := s.work(s.client("w"), client.Worker{Queue: "mail", Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			var payload struct{ To string }
			if err := job.Decode(&payload); err != nil {
				t.Error(err)
			}
			old := job.Document("customer:1")
			if string(old.Body) != `{"sent":0}` || job.Attempt() != 1 || payload.To != "ann" || job.Task().Agent != "ann" ||
				job.Lease().Fence() == 0 {
				t.Errorf("got %+v, %q, %+v", job.Task(), payload.To, old)
			}
			if !job.Document("customer:2").Absent {
				t.Error("customer:2 is there")
			}
			return client.Done{
				Result: map[string]bool{"sent": true}, Reads: client.Seen(old), Note: "sent",
				Writes: []interlock.Write{client.Put("customer:1", []byte(`{"sent":1}`))},
			}, nil
		}})
		task := s.submit(
			ann,
			client.TaskSpec{
				Queue: "mail", Kind: "letter", Claims: on("customer:1", "customer:2"), Payload: map[string]string{"to": "ann"},
				Purpose: "greet",
			},
		)
		done, err := ann.Await(s.ctx, task.ID)
		if err != nil || done.State != interlock.TaskDone || string(done.Result) != `{"sent":true}` {
			t.Fatalf("%+v, %v", done, err)
		}
		if doc, err := ann.Document(s.ctx, "customer:1"); err != nil || string(doc.Body) != `{"sent":1}` ||
			doc.Note != "sent" || doc.Agent != "w" {
			t.Errorf("%+v, %v", doc, err)
		}
		lease := s.acquire(ann, exclusively("customer:1"))
		if notes := lease.Notes(); len(notes) != 1 || notes[0].Text != "sent" {
			t.Errorf("notes %+v", notes)
		}
		worker.stop()
	})
}

// A thousand tasks on a hundred keys, and eight at a time: each is done once.
func TestWorkerDoesManyTasks(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const tasks, keys, atOnce = 1000, 100, 8
		s.queue(interlock.TaskQueue{Name: "count"})
		var now, most, runs atomic.Int32
		worker := s.work(s.client("w"), client.Worker{Queue: "count", Concurrency: atOnce, Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				was := most.Load()
				if n <= was || most.CompareAndSwap(was, n) {
					break
				}
			}
			runs.Add(1)
			<-time.After(time.Millisecond)
			key := job.Task().Claims[0].Key
			return client.Done{Writes: []interlock.Write{client.Add(key, 1)}, Reads: client.Seen(job.Document(key))}, nil
		}, OnError: func(job *client.Job, err error) { t.Error(err) }})
		c := s.client("ann")
		var all sync.WaitGroup
		for i := range tasks {
			all.Go(func() {
				task := s.submit(c, client.TaskSpec{Queue: "count", Claims: on(interlock.Key(fmt.Sprint("k", i%keys)))})
				if _, err := c.Await(s.ctx, task.ID); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		worker.stop()
		for i := range keys {
			if doc, err := c.Document(s.ctx, interlock.Key(fmt.Sprint("k", i))); err != nil ||
				string(doc.Body) != fmt.Sprint(tasks/keys) {
				t.Errorf("k%d: %s, %v", i, doc.Body, err)
			}
		}
		if runs.Load() != tasks || most.Load() != atOnce {
			t.Errorf("%d runs, %d at once", runs.Load(), most.Load())
		}
	})
}

func TestWorkerFailures(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 2, Backoff: time.Second})
		var mu sync.Mutex
		var told []string
		began := time.Now()
		worker := s.work(s.client("w"), client.Worker{Queue: "q", Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			switch kind := job.Task().Kind; {
			case kind == "panic" && job.Attempt() == 1:
				panic("no such\nthing")
			case kind == "gone" && job.Attempt() == 1:
				runtime.Goexit()
			case kind == "later" && job.Attempt() == 1:
				return client.Done{}, client.RetryAfter(time.Minute, errors.New("not yet"))
			case kind == "dead":
				return client.Done{}, fmt.Errorf("on the way: %w", client.Dead(errors.New("no use")))
			case kind == "fails":
				return client.Done{}, errors.New("it fails")
			case kind == "bad write":
				return client.Done{Writes: []interlock.Write{client.Put("k", []byte("{"))}}, nil
			}
			return client.Done{}, nil
		}, OnError: func(job *client.Job, err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%s %d: %v", job.Task().Kind, job.Attempt(), err))
			if thrown, ok := errors.AsType[*client.PanicError](err); ok != (job.Task().Kind == "panic") ||
				ok && !strings.Contains(string(thrown.Stack), "TestWorkerFailures") {
				t.Errorf("%s: %#v", job.Task().Kind, err)
			}
		}})
		c := s.client("ann")
		end := func(kind string) (interlock.Task, error) {
			return c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Kind: kind}).ID)
		}
		task, err := end("panic")
		if err != nil || task.Attempt != 2 || len(task.Attempts) != 1 || task.Attempts[0].Reason != "panic: no such" ||
			task.Attempts[0].EndedBy != "nack" {
			t.Errorf("panic: %+v, %v", task, err)
		}
		if task, err = end("gone"); err != nil || task.Attempt != 2 ||
			task.Attempts[0].Reason != "its handler ended its goroutine" {
			t.Errorf("gone: %+v, %v", task, err)
		}
		before := time.Now()
		if task, err = end("later"); err != nil || time.Since(before) != time.Minute {
			t.Errorf("later: %v after %v", err, time.Since(before))
		}
		for kind, attempts := range map[string]int{"dead": 1, "fails": 2, "bad write": 1} {
			_, err = end(kind)
			no, ok := errors.AsType[*client.TaskError](err)
			if !ok || no.Task.State != interlock.TaskDead || no.Task.Attempt != attempts ||
				!isCode(err, interlock.CodeTaskSettled) {
				t.Errorf("%s: %+v", kind, err)
			}
		}
		var dead []interlock.TaskID
		for task, err := range c.Tasks(s.ctx, client.TaskFilter{Queue: "q", State: interlock.TaskDead}) {
			if err != nil {
				t.Fatal(err)
			}
			dead = append(dead, task.ID)
		}
		if len(dead) != 3 {
			t.Fatalf("%d dead letters", len(dead))
		}
		if task, err := c.DiscardTask(s.ctx, dead[0], "seen"); err != nil || task.ID != dead[0] {
			t.Errorf("%+v, %v", task, err)
		}
		if _, err := c.Task(s.ctx, dead[0]); !isCode(err, interlock.CodeUnknownTask) {
			t.Errorf("discarded: %v", err)
		}
		if task, err := c.ReplayTask(s.ctx, dead[1], time.Hour); err != nil || task.State != interlock.TaskScheduled ||
			task.Due != time.Hour {
			t.Errorf("%+v, %v", task, err)
		}
		if task, err := c.CancelTask(s.ctx, dead[1], "enough"); err != nil || task.State != interlock.TaskCancelled {
			t.Errorf("%+v, %v", task, err)
		}
		worker.stop()
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 7 {
			t.Errorf("after %v told %q", time.Since(began), told)
		}
	})
}

// The work is done once with any result, and every failed attempt ends with any error.
func TestReportsOfAnyContent(t *testing.T) {
	for _, dead := range []bool{false, true} {
		onStage(t, func(t *testing.T, s *stage) {
			s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 2, Backoff: time.Second})
			results := map[string]any{
				"long": strings.Repeat("x", interlock.MaxResultBytes), "no JSON": func() {}, "panics": rude{},
				"not UTF-8": json.RawMessage("\"\xff\""),
			}
			errs := map[string]error{
				"Chinese": errors.New(strings.Repeat("錯", 200)), "a file's name": errors.New("open \xff: no such file"),
				"rude": rude{}, "never": client.RetryAfter(time.Hour*24*9999, errors.New("later")),
				"a long question": client.NeedsApproval(client.Question{Text: strings.Repeat("?", interlock.MaxQuestionBytes+1)}),
			}
			handle := func(_ context.Context, job *client.Job) (client.Done, error) {
				kind := job.Task().Kind
				return client.Done{Result: results[kind], Note: strings.Repeat("é", interlock.MaxNoteBytes) + "\xff"}, errs[kind]
			}
			worker := s.work(s.client("w"), client.Worker{Queue: "q", DeadUnstored: dead, Handle: handle})
			c := s.client("ann")
			for kind := range results {
				task, err := c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Kind: kind}).ID)
				no, isDead := errors.AsType[*client.TaskError](err)
				switch {
				case isDead != dead, isDead && !strings.HasPrefix(no.Task.Reason, "result not stored: "):
					t.Errorf("%s: %v, %v", kind, task.State, err)
				case !isDead && (task.Attempt != 1 || !strings.HasPrefix(string(task.Result), `{"interlock":"result not stored"`)):
					t.Errorf("%s: attempt %d, result %.99s", kind, task.Attempt, task.Result)
				}
			}
			for kind := range errs {
				id := s.submit(c, client.TaskSpec{Queue: "q", Kind: kind}).ID
				for s.task(c, id).Attempt < 1 || s.task(c, id).State == interlock.TaskRunning {
					<-time.After(time.Second)
				}
				if task := s.task(c, id); task.State == interlock.TaskRunning || len(task.Attempts) == 0 {
					t.Errorf("%s: %+v", kind, task)
				}
			}
			worker.stop()
		})
	}
}

// Tasks that have not finished in time when a worker is stopping are handed to the next one at once.
func TestWorkerDrains(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q"})
		started := make(chan string, 4)
		var mu sync.Mutex
		var told []error
		cause := make(chan error, 1)
		first := s.work(s.client("first"), client.Worker{
			Queue: "q", Concurrency: 3, Drain: 10 * time.Second,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				started <- job.Task().Kind
				if job.Task().Kind == "slow" {
					<-ctx.Done()
					<-time.After(time.Minute) // and does not listen to that
					cause <- context.Cause(ctx)
					return client.Done{Result: 1}, nil
				}
				<-time.After(5 * time.Second)
				return client.Done{Result: 2}, nil
			},
			OnError: func(_ *client.Job, err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err)
			},
		})
		c := s.client("ann")
		slow := s.submit(c, client.TaskSpec{Queue: "q", Kind: "slow", Claims: on("a")})
		quick := s.submit(c, client.TaskSpec{Queue: "q", Kind: "quick", Claims: on("b")})
		<-started
		<-started
		first.cancel()
		synctest.Wait()
		late := s.submit(c, client.TaskSpec{Queue: "q", Kind: "late"})
		synctest.Wait()
		if got := s.task(c, late.ID); got.State != interlock.TaskWaiting {
			t.Errorf("a worker that ends took %+v", got)
		}
		before := time.Now()
		s.work(s.client("second"), client.Worker{Queue: "q", Concurrency: 2, Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			return client.Done{Result: 3}, nil
		}})
		task, err := c.Await(s.ctx, slow.ID)
		if err != nil || string(task.Result) != "3" || time.Since(before) != 10*time.Second || len(task.Attempts) != 1 ||
			task.Attempts[0].EndedBy != "nack" {
			t.Errorf("slow: %+v, %v, after %v", task, err, time.Since(before))
		}
		if task := s.task(c, quick.ID); string(task.Result) != "2" {
			t.Errorf("quick: %+v", task)
		}
		if err := <-first.result; err != nil || time.Since(before) != 70*time.Second {
			t.Errorf("the worker: %v after %v", err, time.Since(before))
		}
		if err := <-cause; err == nil || !strings.Contains(err.Error(), "worker is stopping") {
			t.Errorf("cause %v", err)
		}
		if len(told) != 1 {
			t.Errorf("told %v", told)
		}
	})
}

// A worker that has lost its lease learns of it, and its result does not count any more.
func TestWorkerLosesItsLease(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q", MaxHold: 5 * time.Second})
		told := make(chan error, 4)
		worker := s.work(s.client("w"), client.Worker{
			Queue: "q", Concurrency: 2,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				if job.Attempt() == 2 {
					return client.Done{Result: "second"}, nil
				}
				<-ctx.Done()
				if !isCode(context.Cause(ctx), interlock.CodeInGrace) && !isCode(context.Cause(ctx), interlock.CodeExpired) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				<-time.After(time.Minute)
				return client.Done{Result: "first", Writes: []interlock.Write{client.Put("k", []byte("1"))}}, nil
			},
			OnError: func(_ *client.Job, err error) { told <- err },
		})
		c := s.client("ann")
		task, err := c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Claims: on("k")}).ID)
		if err != nil || string(task.Result) != `"second"` || task.Attempts[0].EndedBy != "max_hold" {
			t.Errorf("%+v, %v", task, err)
		}
		if err := <-told; !isCode(err, interlock.CodeTaskMoved) {
			t.Errorf("told %v", err)
		}
		if doc, err := c.Document(s.ctx, "k"); err != nil || !doc.Absent {
			t.Errorf("%+v, %v", doc, err)
		}
		worker.stop()
	})
}

// A stale commit is tried again at once, with the present documents.
func TestWorkerMeetsStaleState(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q", Backoff: time.Hour})
		s.pattern(interlock.Pattern{Name: "k", Shape: "k", Write: interlock.WriteOpen})
		other := s.client("other")
		told := make(chan error, 4)
		worker := s.work(s.client("w"), client.Worker{
			Queue: "q",
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				if job.Attempt() == 1 {
					if _, err := other.Commit(
						s.ctx, client.Commit{Writes: []interlock.Write{client.Put("k", []byte(`"other"`))}},
					); err != nil {
						t.Error(err)
					}
				}
				old := job.Document("k")
				return client.Done{
					Result: string(old.Body), Reads: client.Seen(old), Writes: []interlock.Write{client.Put("k", []byte(`"mine"`))},
				}, nil
			},
			OnError: func(_ *client.Job, err error) { told <- err },
		})
		c := s.client("ann")
		before := time.Now()
		task, err := c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Claims: on("k")}).ID)
		if err != nil || string(task.Result) != `"\"other\""` || time.Since(before) > time.Second {
			t.Errorf("%+v, %v, after %v", task, err, time.Since(before))
		}
		stale, ok := errors.AsType[*client.StaleError](<-told)
		if !ok || len(stale.Changes) != 1 || stale.Changes[0].Now.Agent != "other" {
			t.Errorf("told %+v", stale)
		}
		worker.stop()
	})
}

// Documents that are too large for one answer are there nevertheless.
func TestWorkerHasWholeDocuments(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q"})
		c := s.client("ann")
		const size = interlock.MaxDocumentBytes - 2
		big := []byte(`"` + strings.Repeat("x", size) + `"`)
		var keys []interlock.Key
		for i := range interlock.MaxReadBytes/len(big) + 2 {
			keys = append(keys, interlock.Key(fmt.Sprint("k", i)))
			if _, err := c.Commit(s.ctx, client.Commit{Writes: []interlock.Write{client.Put(keys[i], big)}}); err != nil {
				t.Fatal(err)
			}
		}
		s.work(s.client("w"), client.Worker{Queue: "q", Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
			whole := 0
			for _, doc := range job.Documents() {
				if len(doc.Body) == len(big) {
					whole++
				}
			}
			return client.Done{Result: whole}, nil
		}})
		task := s.submit(c, client.TaskSpec{Queue: "q", Claims: on(keys...)})
		if task, err := c.Await(s.ctx, task.ID); err != nil || string(task.Result) != fmt.Sprint(len(keys)) {
			t.Errorf("%s of %d, %v", task.Result, len(keys), err)
		}
	})
}

// Work under a job's context belongs to its flow: it has the task's keys.
func TestWorkerCarriesItsFlow(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "q"})
		w := s.client("w")
		worker := s.work(w, client.Worker{Queue: "q", Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			lease, err := w.Acquire(ctx, client.Request{Keys: []interlock.Key{"k"}})
			if err != nil || lease.Fence() != job.Lease().Fence() {
				t.Errorf("%v", err)
				return client.Done{}, err
			}
			return client.Done{}, lease.Release(ctx, client.Outcome{})
		}})
		c := s.client("ann")
		if _, err := c.Await(s.ctx, s.submit(c, client.TaskSpec{Queue: "q", Claims: on("k")}).ID); err != nil {
			t.Error(err)
		}
		worker.stop()
	})
}

// More tasks than one pull takes are handled at a time; all pulls end with the queue.
func TestWorkerPullsMoreThanOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const atOnce = 2*interlock.MaxPull + 1
		s.queue(interlock.TaskQueue{Name: "q"})
		var runs atomic.Int32
		finish := make(chan struct{})
		c := s.client("w")
		worker := s.work(c, client.Worker{Queue: "q", Concurrency: atOnce, Handle: func(context.Context, *client.Job) (client.Done, error) {
			runs.Add(1)
			<-finish
			return client.Done{}, nil
		}})
		idle := func(pulls int) {
			synctest.Wait()
			if queues, err := c.Queues(s.ctx); err != nil || len(queues) != 1 || queues[0].Idle != pulls {
				t.Errorf("%+v, %v; %d pulls expected", queues, err, pulls)
			}
		}
		idle(3)
		for i := range atOnce + 1 {
			s.submit(c, client.TaskSpec{Queue: "q", Claims: on(interlock.Key(fmt.Sprint("k", i)))})
		}
		if idle(0); runs.Load() != atOnce {
			t.Errorf("%d at once", runs.Load())
		}
		close(finish)
		if idle(3); runs.Load() != atOnce+1 {
			t.Errorf("%d runs", runs.Load())
		}
		if err := c.DropQueue(s.ctx, "q"); err != nil {
			t.Error(err)
		}
		if err := <-worker.result; !isCode(err, interlock.CodeUnknownQueue) {
			t.Error(err)
		}
	})
}

func TestWorkerNeedsAQueue(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		handle := func(context.Context, *client.Job) (client.Done, error) { return client.Done{}, nil }
		c := s.client("w")
		if err := c.Work(s.ctx, client.Worker{Queue: "none", Handle: handle}); !isCode(err, interlock.CodeUnknownQueue) {
			t.Error(err)
		}
		if err := c.Work(s.ctx, client.Worker{Queue: "none"}); err == nil {
			t.Error("a worker without a handler works")
		}
		s.queue(interlock.TaskQueue{Name: "q"})
		worker := s.work(c, client.Worker{Queue: "q", Handle: handle})
		synctest.Wait()
		if queues, err := c.Queues(s.ctx); err != nil || len(queues) != 1 || queues[0].Idle != 1 {
			t.Errorf("%+v, %v", queues, err)
		}
		if err := c.DropQueue(s.ctx, "q"); err != nil {
			t.Error(err)
		}
		if err := <-worker.result; !isCode(err, interlock.CodeUnknownQueue) {
			t.Error(err)
		}
	})
}

// A task with a lost hand-out is handed out again to the same pull.
func TestLostHandOutIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, waits := range []bool{false, true} {
			s, b, w := broken(t, inMemory(t), client.Config{Agent: "w"})
			s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 1})
			var lost interlock.Fence
			b.setLose(func(f *proto.ServerFrame) bool {
				for i := range f.Replies {
					if len(f.Replies[i].Handed) > 0 {
						lost = f.Replies[i].Handed[0].Lease.Fence
						return true
					}
				}
				return false
			})
			c := s.client("ann")
			begin := func() {
				s.work(w, client.Worker{Queue: "q", Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
					return client.Done{Result: job.Lease().Fence()}, nil
				}})
				synctest.Wait()
			}
			if waits {
				begin()
			}
			task := s.submit(c, client.TaskSpec{Queue: "q", Claims: on("k")})
			if !waits {
				begin()
			}
			done, err := c.Await(s.ctx, task.ID)
			if err != nil || lost == 0 || string(done.Result) != fmt.Sprint(lost) || done.Attempt != 1 {
				t.Errorf("lost fence %d, then %+v, %v", lost, done, err)
			}
		}
	})
}

// A worker that ends while it is away takes nothing, or finishes its assigned tasks.
func TestWorkerEndsWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, w := broken(t, inMemory(t), client.Config{Agent: "w"})
		s.queue(interlock.TaskQueue{Name: "q"})
		worker := s.work(
			w,
			client.Worker{
				Queue: "q", Handle: func(context.Context, *client.Job) (client.Done, error) { return client.Done{}, nil },
			},
		)
		synctest.Wait()
		unblock := b.block()
		b.cut()
		synctest.Wait()
		worker.cancel()
		synctest.Wait()
		unblock()
		if err := <-worker.result; err != nil {
			t.Error(err)
		}
		c := s.client("ann")
		task := s.submit(c, client.TaskSpec{Queue: "q"})
		<-time.After(time.Second)
		if got := s.task(c, task.ID); got.State != interlock.TaskWaiting {
			t.Errorf("%+v", got)
		}
		if queues, err := c.Queues(s.ctx); err != nil || queues[0].Idle != 0 {
			t.Errorf("%+v, %v", queues, err)
		}
	})
}

// A worker is stopping, too, when the server does not come back; tasks that it may have been assigned
// are returned when there is one again.
func TestWorkerEndsWithoutAServer(t *testing.T) {
	for _, given := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, b, w := broken(t, inMemory(t), client.Config{Agent: "w", SessionTTL: 5 * time.Minute})
			s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 2})
			worker := s.work(
				w,
				client.Worker{
					Queue: "q", Handle: func(context.Context, *client.Job) (client.Done, error) { return client.Done{}, nil },
				},
			)
			synctest.Wait()
			var unblock func()
			c := s.client("ann")
			var task interlock.Task
			if given {
				b.setLose(func(f *proto.ServerFrame) bool {
					lost := len(f.Replies) > 0 && len(f.Replies[0].Handed) > 0
					if lost {
						unblock = b.blockLocked()
					}
					return lost
				})
				task = s.submit(c, client.TaskSpec{Queue: "q"})
			} else {
				unblock = b.block()
				b.cut()
			}
			synctest.Wait()
			worker.cancel()
			began := time.Now()
			select {
			case err := <-worker.result:
				if err != nil || time.Since(began) > time.Minute {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			case <-time.After(2 * time.Minute):
				t.Error("the worker waits for a server that may never come")
			}
			unblock()
			<-time.After(10 * time.Second)
			if !given {
				task = s.submit(c, client.TaskSpec{Queue: "q"})
			}
			<-time.After(time.Second)
			if got := s.task(c, task.ID); got.State != interlock.TaskWaiting {
				t.Errorf("given %v: %+v", given, got)
			}
			if queues, err := c.Queues(s.ctx); err != nil || queues[0].Idle != 0 {
				t.Errorf("%+v, %v", queues, err)
			}
		})
	}
}

// A lost answer to a submission, or to an acknowledgement, does not double it.
func TestLostTaskAnswersHappenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		s.queue(interlock.TaskQueue{Name: "q"})
		told := func(state interlock.TaskState) func(*proto.ServerFrame) bool {
			return func(f *proto.ServerFrame) bool {
				for i := range f.Replies {
					if r := &f.Replies[i]; len(r.Tasks) == 1 && r.Tasks[0].State == state {
						return true
					}
				}
				return false
			}
		}
		b.setLose(told(interlock.TaskWaiting))
		task := s.submit(c, client.TaskSpec{Queue: "q"})
		if again := s.submit(c, client.TaskSpec{Queue: "q", ID: "one"}); again.ID == task.ID || again.Session != "" ||
			again.Agent != "a" {
			t.Errorf("%+v", again)
		} else if twice := s.submit(s.client("a"), client.TaskSpec{Queue: "q", ID: "one"}); twice.ID != again.ID {
			t.Errorf("%+v", twice)
		}
		if _, err := c.Submit(
			s.ctx, client.TaskSpec{Queue: "q", Kind: "other", ID: "one"},
		); !isCode(err, interlock.CodeRequestIDReused) {
			t.Error(err)
		}
		n := 0
		for range c.Tasks(s.ctx, client.TaskFilter{}) {
			n++
		}
		if n != 2 {
			t.Errorf("%d tasks", n)
		}
		b.setLose(told(interlock.TaskDone))
		worker := s.work(c, client.Worker{Queue: "q", Concurrency: 2, Handle: func(context.Context, *client.Job) (client.Done, error) {
			return client.Done{Writes: []interlock.Write{client.Add("n", 1)}}, nil
		}, OnError: func(_ *client.Job, err error) { t.Error(err) }})
		for task := range c.Tasks(s.ctx, client.TaskFilter{}) {
			if _, err := c.Await(s.ctx, task.ID); err != nil {
				t.Error(err)
			}
		}
		worker.stop()
		if doc, err := c.Document(s.ctx, "n"); err != nil || string(doc.Body) != "2" {
			t.Errorf("%s, %v", doc.Body, err)
		}
	})
}

// A caller that waits for the end of a task continues over a broken connection, and does not
// block other callers after it stops waiting.
func TestAwaitSurvivesReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		s.queue(interlock.TaskQueue{Name: "q"})
		task := s.submit(c, client.TaskSpec{Queue: "q", Delay: time.Minute})
		ctx, cancel := context.WithCancelCause(s.ctx)
		gaveUp := make(chan error, 1)
		go func() {
			_, err := c.Await(ctx, task.ID)
			gaveUp <- err
		}()
		ends := make(chan error, 1)
		go func() {
			_, err := c.Await(s.ctx, task.ID)
			ends <- err
		}()
		synctest.Wait()
		cancel(errStopped)
		if err := <-gaveUp; !errors.Is(err, errStopped) {
			t.Error(err)
		}
		b.cut()
		<-time.After(30 * time.Second)
		b.cut()
		s.work(
			s.client("w"),
			client.Worker{
				Queue: "q", Handle: func(context.Context, *client.Job) (client.Done, error) { return client.Done{}, nil },
			},
		)
		if err := <-ends; err != nil {
			t.Error(err)
		}
	})
}
