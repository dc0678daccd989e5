package merger

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Each check ends within a limit, with a reason: one that hangs or ends its workers returns its own submission, and
// the others land. Workers that are always lost, hang or are not there return none: the health tells it, and all land
// when they work.
func TestChecksWithoutResult(t *testing.T) {
	has := func(tree files, text string) bool {
		for _, line := range tree {
			if strings.HasSuffix(line, text) {
				return true
			}
		}
		return false
	}
	var broken atomic.Bool
	lost := Report{Lost: true, Tail: "no disk"}
	type try = func(ctx context.Context, p *process, tree files) (Report, error)
	for name, c := range map[string]struct {
		try    try
		words  string // of the check of the one that comes back; "": none does
		health string // until the workers are mended
		limit  time.Duration
		slots  int // of the worker, if not many
	}{
		"a tree hangs": {
			try: func(ctx context.Context, _ *process, tree files) (Report, error) {
				if has(tree, "odd") {
					<-ctx.Done()
				}
				return Report{}, nil
			},
			words: "the check timed out: no result within 1h0m0s", limit: 6 * time.Hour,
		},
		"a tree hangs in the only slot": {
			try: func(ctx context.Context, _ *process, tree files) (Report, error) {
				if has(tree, "odd") {
					<-ctx.Done()
				}
				return Report{}, nil
			},
			words: "the check timed out", limit: 12 * time.Hour, slots: 1,
		},
		"a tree ends its workers": {
			try: func(_ context.Context, p *process, tree files) (Report, error) {
				if has(tree, "odd") {
					return Report{}, p.die()
				}
				return Report{}, nil
			},
			words: "its workers were lost 4 times in a row on this tree, and not on the target's head", limit: 2 * time.Hour,
		},
		"a tree cannot be tried": {
			try: func(_ context.Context, _ *process, tree files) (Report, error) {
				if has(tree, "odd") {
					return lost, nil
				}
				return Report{}, nil
			},
			words: "last: no disk", limit: time.Hour,
		},
		"the workers are always lost": {
			try: func(_ context.Context, p *process, _ files) (Report, error) {
				if broken.Load() {
					return Report{}, p.die()
				}
				return Report{}, nil
			},
			health: `check "check" has no result: its workers were lost 4 times in a row, also on the target's head`,
			limit:  time.Hour,
		},
		"no worker can try": {
			try: func(context.Context, *process, files) (Report, error) {
				if broken.Load() {
					return lost, nil
				}
				return Report{}, nil
			},
			health: "last: no disk", limit: time.Hour,
		},
		"there is no worker": {health: `check "check" has no workers`, limit: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, author, endWorld := newWorld(t, 1, 0)
				defer endWorld()
				ctx, end := context.WithCancel(context.Background())
				var running sync.WaitGroup
				defer running.Wait()
				defer end()
				begin := w.head
				broken.Store(true)
				if c.slots > 0 {
					w.slots = c.slots
					if todo, err := FreeWorkers(ctx, author, web, time.Hour+time.Minute, "check"); len(todo) > 0 || err != nil {
						t.Fatalf("left to do: %q, %v", todo, err)
					}
				}
				if c.try != nil {
					running.Go(func() { w.keepWorker(ctx, c.try) })
				}
				running.Go(func() { w.keepMerger(ctx, "merger") })
				tasks := map[string]interlock.TaskID{}
				for _, id := range []string{"a", "odd", "z"} {
					w.mu.Lock()
					head := w.add(modelCommit{parent: begin, tree: files{"README": "1", id: id}, submission: id})
					w.mu.Unlock()
					task, err := Submit(ctx, author, web, Submission{ID: id, Head: head}, "change")
					if err != nil {
						t.Fatal(err)
					}
					tasks[id] = task.ID
				}
				limit, cancel := context.WithTimeout(ctx, c.limit)
				defer cancel()
				if c.health != "" {
					waitTrouble(limit, t, author, c.health)
					broken.Store(false)
					if c.try == nil {
						running.Go(func() {
							w.keepWorker(ctx, func(context.Context, *process, files) (Report, error) { return Report{}, nil })
						})
					}
				}
				for id, task := range tasks {
					settled, err := author.Await(limit, task)
					if err != nil {
						t.Fatalf("%s: %v", id, err)
					}
					var o Outcome
					if err := json.Unmarshal(settled.Result, &o); err != nil {
						t.Fatal(err)
					}
					if id != "odd" || c.words == "" {
						if o.Code != Landed {
							t.Errorf("%s: %+v", id, o)
						}
					} else if o.Reason != WhyChecks || len(o.Checks) != 1 || !strings.Contains(o.Checks[0].Tail, c.words) {
						t.Errorf("%s: %+v", id, o)
					}
				}
				if h, err := HealthOf(ctx, author, web); err != nil || h.Failure != nil {
					t.Errorf("the health at the end: %+v, %v", h.Failure, err)
				}
			})
		})
	}
}

// waitTrouble waits until the health has a failure with some words, and fails when ctx ends before.
func waitTrouble(ctx context.Context, t *testing.T, c *client.Client, words string) {
	t.Helper()
	for {
		h, err := HealthOf(ctx, c, web)
		if err != nil || ctx.Err() != nil {
			t.Fatalf("the health is %+v, %v", h.Failure, err)
		}
		if h.Failure != nil && strings.Contains(h.Failure.Message, words) {
			return
		}
		<-time.After(time.Second)
	}
}
