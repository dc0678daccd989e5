package merger

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

// After a take-over a submission does not land before one ahead of it that comes back later, and nothing is lost: both
// change the same line, and the one that was ahead lands.
func TestTakeOverKeepsTheOrder(t *testing.T) {
	r := newRig(t)
	first := r.submit(Submission{ID: "first", Head: r.commit(r.begin, files{"README": "one\n2\nthree\n"})})
	second := r.submit(Submission{ID: "second", Head: r.commit(r.begin, files{"README": "one\nzwei\nthree\n"})})
	stop := r.start(r.config("merger")) // no check runs
	a := r.waitFor("first", func(*Record) bool { return true })
	b := r.waitFor("second", func(*Record) bool { return true })
	if a.Place >= b.Place {
		t.Fatalf("the places are %d and %d", a.Place, b.Place)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	release := r.keep(first)
	overtakes := make(chan struct{})
	var once sync.Once
	r.work(func(tree files) bool {
		if tree["README"] == "one\nzwei\nthree" {
			once.Do(func() { close(overtakes) })
		}
		return true
	})
	r.start(r.config("second-merger"))
	for {
		task, err := r.author.Task(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		if task.State == interlock.TaskRunning {
			break // the second merger has it
		}
	}
	select {
	case <-overtakes:
	case <-time.After(time.Second): // several times what a landing takes
	}
	release()
	if o := r.result(first); o.Code != Landed {
		t.Errorf("the one ahead: %+v", o)
	}
	if o := r.result(second); o.Code != Returned || o.Reason != WhyConflict {
		t.Errorf("the one behind: %+v", o)
	}
}

// A submission waits for those ahead of it alone, and no longer than recallWithin.
func TestRecall(t *testing.T) {
	for _, c := range []struct {
		place   uint64
		awaited map[train.ID]uint64
		ago     time.Duration
		want    bool // it is held
	}{
		{place: 2},
		{place: 2, awaited: map[train.ID]uint64{"behind": 3}},
		{place: 2, awaited: map[train.ID]uint64{"behind": 3, "ahead": 1}, want: true},
		{place: 2, awaited: map[train.ID]uint64{"ahead": 1}, ago: recallWithin / 2, want: true},
		{place: 2, awaited: map[train.ID]uint64{"ahead": 1}, ago: recallWithin + 1},
	} {
		l := &line{
			since: time.Now().Add(-c.ago), train: train.New(train.Config{Runners: 1}), awaited: c.awaited,
			records: map[train.ID]*entry{"it": {record: Record{Place: c.place}}}, held: map[train.ID]bool{},
		}
		l.enter("it")
		if in := len(l.train.Plan().Start) > 0; l.held["it"] != c.want || in == c.want {
			t.Errorf("%+v: held %v, in the train %v", c, l.held["it"], in)
		}
	}
}

// keep takes a submission's task as another worker would, and returns it to the queue at release.
func (r *rig) keep(id interlock.TaskID) (release func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := r.hire("keeper")
	got, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.Work(ctx, client.Worker{
			Queue: web.Queue(), Concurrency: 1, Drain: time.Millisecond,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				if job.Task().ID == id {
					close(got)
					<-ctx.Done()
				}
				return client.Done{}, client.RetryAfter(0, context.Cause(ctx))
			},
		})
	}()
	<-got
	release = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(release)
	return release
}
