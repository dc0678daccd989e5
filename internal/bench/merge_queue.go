package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/merge/train"
)

var (
	benchMain  = merger.Name{Repo: "bench", Target: "main"}
	benchCheck = "check"
)

// queue lands all submissions through a merger, with checks that wait and then look at the tree.
func (w *mergeWork) queue(ctx context.Context, site Site, m Merge, trains train.Config) (n mergeCount, err error) {
	d, ok := site.(dialer)
	if !ok {
		return n, errors.New("it has no queues")
	}
	var clients [3]*client.Client
	for i, agent := range []string{"author", "merger", "runner"} {
		if clients[i], err = d.Dial(ctx, agent); err != nil {
			return n, err
		}
	}
	author := clients[0]
	if err := merger.Setup(ctx, author, benchMain, benchCheck); err != nil {
		return n, err
	}
	tasks := make([]interlock.TaskID, len(w.list))
	for i := range w.list {
		c := &w.list[i]
		task, err := merger.Submit(ctx, author, benchMain, merger.Submission{ID: c.id, Head: c.head}, "change "+c.id)
		if err != nil {
			return n, err
		}
		tasks[i] = task.ID
	}
	b, profile, err := w.open(ctx)
	if err != nil {
		return n, err
	}
	defer b.Close()
	merging, err := merger.New(merger.Config{
		Client: clients[1], Name: benchMain, Boundary: b, Checks: []string{benchCheck}, Train: trains,
		Target: &merge.Target{Repository: w.repo, Ref: mergeRef}, Files: &merger.Repository{Git: w.repo}, Profile: profile,
	})
	if err != nil {
		return n, err
	}
	var checks atomic.Int64
	working, failed := context.WithCancelCause(ctx)
	var both sync.WaitGroup
	began := time.Now()
	both.Go(func() { failed(merging.Run(working)) })
	both.Go(func() {
		failed(clients[2].Work(working, client.Worker{
			Queue: benchMain.CheckQueue(benchCheck), Concurrency: m.Runners, Drain: time.Millisecond,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				checks.Add(1)
				return w.check(ctx, job, m.Check)
			},
		}))
	})
	for i, id := range tasks {
		if err = n.await(working, author, id, &w.list[i]); err != nil {
			break
		}
	}
	n.took, n.checks = time.Since(began), int(checks.Load())
	failed(nil)
	both.Wait()
	return n, err
}

// check is the work of a runner.
func (w *mergeWork) check(ctx context.Context, job *client.Job, wait time.Duration) (client.Done, error) {
	var c merger.Check
	if err := job.Decode(&c); err != nil {
		return client.Done{}, err
	}
	if err := pause(ctx, wait); err != nil {
		return client.Done{}, err
	}
	red, err := w.red(ctx, c.Commit)
	if err != nil || !red {
		return client.Done{}, err
	}
	return client.Done{Result: merger.Report{Failed: true, Tail: "a call has no definition"}}, nil
}

// await waits for the outcome of a submission, and counts it.
func (n *mergeCount) await(ctx context.Context, author *client.Client, id interlock.TaskID, c *change) error {
	task, err := author.Await(ctx, id)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	var o merger.Outcome
	if err := json.Unmarshal(task.Result, &o); err != nil {
		return err
	}
	switch {
	case o.Code == merger.Landed:
		n.landed = append(n.landed, *c)
	case o.Reason == merger.WhyConflict || o.Reason == merger.WhyChecks:
		n.returned++
	default:
		return fmt.Errorf("submission %s: %s", c.id, o.Message)
	}
	return nil
}

// open opens a merge boundary, and returns the digest of its profile.
func (w *mergeWork) open(ctx context.Context) (*merge.Boundary, string, error) {
	profile, err := merge.NewProfile(ctx, "")
	if err != nil {
		return nil, "", err
	}
	b, err := merge.Open(ctx, merge.Config{Repository: w.repo.Dir, Profile: profile})
	return b, profile.Digest(), err
}

// boundaryBatch is how many landings one movement of the ref has when there is no queue.
const boundaryBatch = 32

// boundary lands all submissions by the merge boundary alone: no server, no line, no check.
func (w *mergeWork) boundary(ctx context.Context) (n mergeCount, err error) {
	b, _, err := w.open(ctx)
	if err != nil {
		return n, err
	}
	defer b.Close()
	target := &merge.Target{Repository: w.repo, Ref: mergeRef}
	const token = 1
	if _, err := target.Claim(ctx, token); err != nil {
		return n, err
	}
	began := time.Now()
	at, head := w.first, w.first
	for i := range w.list {
		c := &w.list[i]
		l, err := b.Land(ctx, merge.Turn{
			Submission: merge.Submission{ID: c.id, Head: c.head, Submitted: began.Unix()},
			Sequence:   uint64(len(n.landed) + 1), Parent: head, Staged: began.Unix(),
		})
		if _, refused := errors.AsType[*merge.Refusal](err); refused {
			n.returned++
		} else if err != nil {
			return n, err
		} else {
			n.landed, head = append(n.landed, *c), l.Commit
		}
		if head != at && (len(n.landed)%boundaryBatch == 0 || i == len(w.list)-1) {
			move := merge.Move{Token: token, Sequence: uint64(len(n.landed)), Old: at, New: head}
			if _, err := target.Move(ctx, move); err != nil {
				return n, err
			}
			at = head
		}
	}
	n.took = time.Since(began)
	return n, nil
}
