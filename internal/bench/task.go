package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

var taskScenario = Scenario{
	Name:  "task",
	Short: "submit, pull and acknowledge tasks",
	About: "Agents submit a task for a key of their own, and the next one when it has reached the worker, which has a " +
		"session and a stream of its own " +
		"and does each at once. A task is a submission, a pull with a lease and an acknowledgement.",
	Transports: []Transport{Stream},
	Own:        true, // it makes a queue
	cases: func(cfg Config, targets []Target) ([]Case, error) {
		return delegated(cfg, targets, tasks)
	},
}

var askScenario = Scenario{
	Name:  "ask",
	Short: "ask the single writer of a key",
	About: "Agents ask the single writer of a key of their own and wait for its reply, which comes with a commit: " +
		"mailbox, lease, " +
		"decision, document and reply.",
	Transports: []Transport{Stream},
	Own:        true, // it makes a queue and a pattern
	cases: func(cfg Config, targets []Target) ([]Case, error) {
		return delegated(cfg, targets, asks)
	},
}

// A dialer is a Site with sessions that have queues: Interlock.
type dialer interface {
	Dial(ctx context.Context, agent string) (*client.Client, error)
}

// delegated makes the cases of a workload of two sessions: the submitter's and the worker's.
func delegated(
	cfg Config, targets []Target,
	run func(ctx context.Context, caller, worker *client.Client, n int, d time.Duration) ([]Value, error),
) (cases []Case, err error) {
	for _, n := range cfg.agents(1, 64, 256) {
		for _, t := range targets {
			cases = append(cases, on(t, headcount(n), 3, func(ctx context.Context, site Site) ([]Value, error) {
				d, ok := site.(dialer)
				if !ok {
					return nil, fmt.Errorf("it has no queues")
				}
				caller, err := d.Dial(ctx, "caller")
				if err != nil {
					return nil, err
				}
				worker, err := d.Dial(ctx, "worker")
				if err != nil {
					return nil, err
				}
				if err := caller.SetQueue(ctx, interlock.TaskQueue{Name: queue}); err != nil {
					return nil, err
				}
				return run(ctx, caller, worker, n, cfg.duration(time.Second))
			}))
		}
	}
	return cases, nil
}

const queue = "bench"

// working has a worker handle tasks while something is done.
func working(
	ctx context.Context, worker *client.Client, concurrency int, handle func(*client.Job) (client.Done, error),
	do func(ctx context.Context) error,
) error {
	// The worker ends when the work is done, and the work when the worker fails.
	serving, enough := context.WithCancel(ctx)
	doing, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	ended := make(chan error, 1)
	go func() {
		err := worker.Work(serving, client.Worker{
			Queue: queue, Concurrency: concurrency,
			Handle:  func(_ context.Context, job *client.Job) (client.Done, error) { return handle(job) },
			OnError: func(_ *client.Job, err error) { failed(err) },
		})
		if err != nil {
			failed(err)
		}
		ended <- err
	}()
	err := do(doing)
	enough()
	if worked := <-ended; worked != nil {
		return worked
	}
	if cause := context.Cause(doing); cause != nil {
		return cause
	}
	return err
}

// tasks runs n submitters, each with one task under way.
func tasks(ctx context.Context, caller, worker *client.Client, n int, d time.Duration) ([]Value, error) {
	arrived := make([]chan struct{}, n)
	claims := make([][]interlock.Claim, n)
	for i, key := range keyed("bench-customer:", n) {
		arrived[i] = make(chan struct{}, 1)
		claims[i] = []interlock.Claim{{Key: interlock.Key(key)}}
	}
	var (
		took    *Histogram
		elapsed time.Duration
	)
	err := working(ctx, worker, n, func(job *client.Job) (client.Done, error) {
		var submitter int
		if err := job.Decode(&submitter); err != nil {
			return client.Done{}, err
		}
		select { // a task that comes a second time is not waited for
		case arrived[submitter] <- struct{}{}:
		default:
		}
		return client.Done{}, nil
	}, func(ctx context.Context) (err error) {
		took, elapsed, err = drive(ctx, n, d, func(ctx context.Context, i int) error {
			if _, err := caller.Submit(ctx, client.TaskSpec{Queue: queue, Claims: claims[i], Payload: i}); err != nil {
				return err
			}
			select {
			case <-arrived[i]:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return append([]Value{rate("tasks", took.Count(), elapsed)}, quantiles(took)...), nil
}

// asks runs n agents, each waiting for its replies.
func asks(ctx context.Context, caller, worker *client.Client, n int, d time.Duration) ([]Value, error) {
	pattern := interlock.Pattern{
		Name: queue, Shape: "bench-account:{id}", Write: interlock.WriteSingle, WriterQueue: queue,
	}
	if err := caller.SetPattern(ctx, pattern); err != nil {
		return nil, err
	}
	var (
		keys    = keyed("bench-account:", n)
		took    *Histogram
		elapsed time.Duration
	)
	err := working(ctx, worker, n, func(job *client.Job) (client.Done, error) {
		key := job.Lease().Key()
		return client.Done{
			Result: job.Attempt(),
			Writes: []interlock.Write{client.Put(key, job.Task().Payload)},
			Reads:  client.Seen(job.Document(key)),
		}, nil
	}, func(ctx context.Context) (err error) {
		took, elapsed, err = drive(ctx, n, d, func(ctx context.Context, i int) error {
			_, err := caller.Ask(ctx, client.Message{Key: interlock.Key(keys[i]), Body: i})
			return err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	return append([]Value{rate("replies", took.Count(), elapsed)}, quantiles(took)...), nil
}
