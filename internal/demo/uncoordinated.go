package demo

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// uncoordinated lets every agent read, think and write as if it were alone.
func uncoordinated(ctx context.Context, p *plan, dir string, s *story) (*outcome, error) {
	l, err := open(p, dir)
	if err != nil {
		return nil, err
	}
	watch := &recorder{ledger: l}
	began := time.Now()
	err = everybody(ctx, p.tasks, func(ctx context.Context, t task) error {
		if err := pause(ctx, t.at); err != nil {
			return err
		}
		a, err := l.read(t.update.Account)
		if err != nil {
			return err
		}
		if err := pause(ctx, t.think); err != nil {
			return err
		}
		if err := watch.write(a.with(t.update), t.update); err != nil {
			return err
		}
		s.written()
		return nil
	})
	if err != nil {
		return nil, err
	}
	o := &outcome{Took: time.Since(began)}
	return o, o.count(p, l, watch.writes)
}

// open makes the files of a run's accounts.
func open(p *plan, dir string) (ledger, error) {
	l := ledger{dir: dir}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return l, err
	}
	for _, name := range p.names {
		if err := l.write(account{Account: name, Balance: p.start[name], Updates: []update{}}); err != nil {
			return l, err
		}
	}
	return l, nil
}

// recorder sees each write and notes which updates it wipes out. It holds its lock for the
// moment of the write only, so it coordinates no thinking.
type recorder struct {
	ledger ledger
	mu     sync.Mutex
	writes []write
}

type write struct {
	by    update
	wiped []update
}

func (r *recorder) write(next account, by update) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.ledger.read(next.Account)
	if err != nil {
		return err
	}
	if err := r.ledger.write(next); err != nil {
		return err
	}
	w := write{by: by}
	for _, u := range before.Updates {
		if !slices.Contains(next.Updates, u) {
			w.wiped = append(w.wiped, u)
		}
	}
	r.writes = append(r.writes, w)
	return nil
}

// everybody runs do for each task at once and returns the first error, which ends the others.
func everybody(ctx context.Context, tasks []task, do func(context.Context, task) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, t := range tasks {
		all.Go(func() {
			if err := do(ctx, t); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// pause lets d pass, or ends with ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
