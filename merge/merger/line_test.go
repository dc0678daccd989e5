package merger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

func lines(text string) iter.Seq[string] { return slices.Values(strings.Fields(text)) }

// A check that fails once and then passes returns nothing, and its verdict has both.
func TestFlakyCheck(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	r.work(func(tree files) bool {
		mu.Lock()
		defer mu.Unlock()
		before := seen["a"]
		seen["a"] = true
		return before
	})
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	r.start(r.config("merger"))
	o := r.result(a)
	if o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	var v Verdict
	if _, err := read(t.Context(), r.author, web.VerdictKey(o.Landing.Tree, "check"), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Passed || v.Failures != 1 || v.Runs != 2 {
		t.Errorf("the verdict is %+v, want one failure in two runs", v)
	}
}

// A tree that has passed is not checked again, whatever restarts.
func TestVerdictIsKept(t *testing.T) {
	r := newRig(t)
	head := r.commit(r.begin, files{"a": "1\n"})
	tree := r.run("rev-parse", head+"^{tree}")
	if _, err := r.author.Commit(t.Context(), client.Commit{
		Writes: []interlock.Write{client.Put(web.VerdictKey(tree, "check"), encode(Verdict{Passed: true, Runs: 1}))},
	}); err != nil {
		t.Fatal(err)
	}
	r.start(r.config("merger")) // and no worker
	if o := r.result(r.submit(Submission{ID: "a", Head: head})); o.Code != Landed || o.Landing.Tree != tree {
		t.Errorf("%+v", o)
	}
}

// A worker that dies is no verdict: the check runs again.
func TestLostWorkerIsNoFailure(t *testing.T) {
	r := newRig(t)
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	c := r.config("merger")
	c.Train = train.Config{Runners: 1, Repeats: -1} // a single failure would return it
	r.start(c)
	dying := r.hire("dying")
	got := make(chan struct{})
	go func() {
		_ = dying.Work(context.Background(), client.Worker{
			Queue: web.CheckQueue("check"),
			Handle: func(ctx context.Context, _ *client.Job) (client.Done, error) {
				close(got)
				<-ctx.Done()
				return client.Done{}, ctx.Err()
			},
		})
	}()
	<-got
	_ = dying.Close(t.Context())
	r.work(anything)
	if o := r.result(a); o.Code != Landed {
		t.Errorf("%+v", o)
	}
}

// A withdrawn submission leaves the line, also while it is checked, and its record goes.
func TestWithdraw(t *testing.T) {
	for _, by := range []string{"id", "task"} {
		t.Run(by, func(t *testing.T) { testWithdraw(t, by == "task") })
	}
}

func testWithdraw(t *testing.T, byTask bool) {
	r := newRig(t)
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	started, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.work(func(files) bool {
		once.Do(func() { close(started) })
		<-goOn
		return true
	})
	r.start(r.config("merger"))
	<-started
	id := "a"
	if byTask {
		id = a.String()
	}
	if task, asked, err := Withdraw(t.Context(), withdrawer{r.author}, web, id); err != nil || !asked || task != a {
		t.Fatal(task, asked, err)
	}
	if o := r.result(a); o.Code != Withdrawn { // while the check goes on
		t.Errorf("%+v", o)
	}
	close(goOn)
	b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
	if o := r.result(b); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if got := r.landings(); slices.Contains(got, "a") {
		t.Errorf("landed %v", got)
	}
	var record Record
	if found, err := read(t.Context(), r.author, web.RecordKey("a"), &record); err != nil || found {
		t.Errorf("the record of a withdrawn submission: %+v, %v", record, err)
	}
}

// A wish to withdraw that the merger has not read before it ended counts for the next one, also if the record is gone.
func TestWithdrawOutlivesTheMerger(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		t.Run(fmt.Sprintf("recorded=%v", recorded), func(t *testing.T) {
			r := newRig(t)
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			if recorded {
				stop := r.start(r.config("merger"))
				r.waitFor("a", func(*Record) bool { return true })
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			}
			wish := encode(withdrawal{Task: a.String()})
			if err := (withdrawer{r.author}).Put(t.Context(), web.withdrawKey("a"), wish); err != nil {
				t.Fatal(err)
			}
			r.work(good)
			r.start(r.config("second-merger"))
			if o := r.result(a); o.Code != Withdrawn || o.Submission != "a" {
				t.Errorf("%+v", o)
			}
			var record Record
			if found, err := read(t.Context(), r.author, web.RecordKey("a"), &record); err != nil || found {
				t.Errorf("the record of a withdrawn submission: %+v, %v", record, err)
			}
			again := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "2\n"})})
			if o := r.result(again); o.Code != Landed {
				t.Errorf("submitted under the same id: %+v", o)
			}
		})
	}
}

// A submission that no merger has taken is withdrawn at once, and its ID is free again.
func TestWithdrawBeforeTheMerger(t *testing.T) {
	r := newRig(t)
	r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	if _, asked, err := Withdraw(t.Context(), withdrawer{r.author}, web, "a"); err != nil || asked {
		t.Fatal(asked, err)
	}
	_, _, err := Withdraw(t.Context(), withdrawer{r.author}, web, "a")
	if refused, ok := errors.AsType[*interlock.Error](err); !ok || refused.Code != interlock.CodeUnknownTask {
		t.Errorf("withdrawn twice: %v", err)
	}
	r.work(good)
	r.start(r.config("merger"))
	again := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "2\n"})})
	if o := r.result(again); o.Code != Landed {
		t.Errorf("%+v", o)
	}
}

// Nothing lands while the queue is paused.
func TestPause(t *testing.T) {
	r := newRig(t)
	passed := make(chan struct{})
	var once sync.Once
	operator := r.hire("operator")
	queue := func(paused bool) {
		t.Helper()
		if err := operator.SetQueue(t.Context(), interlock.TaskQueue{
			Name: web.Queue(), MaxAttempts: submissionAttempts, Paused: paused,
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.work(func(files) bool {
		once.Do(func() {
			queue(true)
			close(passed)
		})
		return true
	})
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	r.start(r.config("merger"))
	<-passed
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := r.author.Await(ctx, a); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("it has ended while the queue is paused: %v", err)
	}
	if r.head() != r.begin {
		t.Error("the target has moved while its queue was paused")
	}
	queue(false)
	if o := r.result(a); o.Code != Landed {
		t.Errorf("%+v", o)
	}
}

// After three returns a person decides about another try.
func TestPersonDecidesAfterThreeTries(t *testing.T) {
	r := newRig(t)
	r.work(good)
	c := r.config("merger")
	c.MaxTries = 2
	r.start(c)
	s := Submission{ID: "a", Head: r.commit(r.begin, files{"bad": "1\n"})}
	for try := range 2 {
		o := r.result(r.submit(s))
		if o.Code != Returned || o.Tries != try+1 {
			t.Fatalf("try %d: %+v", try, o)
		}
		s = Submission{Resubmits: "a", Head: r.commit(r.begin, files{"bad": strings.Repeat("x", try+2)})}
	}
	s.Head = r.commit(r.begin, files{"a": "1\n"})
	task := r.submit(s)
	operator := r.hire("operator")
	for {
		got, err := operator.Task(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		if got.State == interlock.TaskAsking {
			if !strings.Contains(got.Approval.Question, "returned 2 times") {
				t.Errorf("the question: %q", got.Approval.Question)
			}
			break
		}
		if got.State != interlock.TaskWaiting && got.State != interlock.TaskRunning {
			t.Fatalf("the task is %v", got.State)
		}
	}
	if _, err := operator.AnswerTask(t.Context(), task, interlock.Approved, "operator", "once more"); err != nil {
		t.Fatal(err)
	}
	if o := r.result(task); o.Code != Landed || o.Submission != "a" {
		t.Errorf("%+v", o)
	}
}

// Another agent cannot take the place of a returned submission.
func TestPlaceBelongsToItsAgent(t *testing.T) {
	r := newRig(t)
	r.work(good)
	r.start(r.config("merger"))
	r.result(r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"bad": "1\n"})}))
	thief := r.hire("thief")
	s := Submission{Resubmits: "a", Head: r.commit(r.begin, files{"b": "1\n"})}
	task, err := Submit(t.Context(), thief, web, s, "")
	if err != nil {
		t.Fatal(err)
	}
	if o := r.result(task.ID); o.Reason != WhyPolicy || !strings.Contains(o.Message, `agent "author"`) {
		t.Errorf("%+v", o)
	}
}

// Several checks run beside each other, and all must pass.
func TestAllChecksMustPass(t *testing.T) {
	r := newRig(t)
	c := r.config("merger")
	c.Checks = []string{"unit", "lint"}
	ran := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	worker, done := r.hire("runner"), make(chan error, 1)
	for _, name := range c.Checks {
		go func() {
			done <- worker.Work(ctx, client.Worker{
				Queue: web.CheckQueue(name), Concurrency: 2, Drain: time.Millisecond,
				Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
					var check Check
					if err := job.Decode(&check); err != nil {
						return client.Done{}, err
					}
					ran <- check.Check
					tree, err := r.tree(ctx, check.Commit)
					if err == nil && check.Check == "lint" && !good(tree) {
						err = errors.New("lint: bad")
					}
					return client.Done{}, err
				},
			})
		}()
	}
	t.Cleanup(func() { cancel(); <-done; <-done })
	r.start(c)
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	if o := r.result(a); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if both := []string{<-ran, <-ran}; both[0] == both[1] {
		t.Errorf("the checks that ran: %v", both)
	}
	b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"bad": "1\n"})})
	o := r.result(b)
	if o.Reason != WhyChecks || len(o.Checks) != 1 || o.Checks[0].Name != "lint" {
		t.Errorf("%+v", o)
	}
}
