package workspace

import (
	"context"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge/merger"
)

const (
	// tellWithin is how long a submission waits for a merger to take it, to learn what it conflicts with.
	tellWithin = 2 * time.Second
	tellEvery  = 50 * time.Millisecond
)

// tellPlace tells the id that a submission has in line, names those in line that conflict with it, or the key that it
// waits for. Without a merger it returns at once.
func (s *submission) tellPlace(
	ctx context.Context, c *client.Client, name merger.Name, sent merger.Submission, task interlock.TaskID,
) error {
	late := time.After(tellWithin)
	for {
		r, found, err := merger.Standing(ctx, c, name, task, sent)
		if err != nil {
			return err
		}
		if found {
			if r.ID != sent.ID {
				s.a.Complain("it is in line as %s, in the place that was kept", r.ID)
			}
			if f, err := merger.FreezeOf(ctx, c, name); err != nil {
				return err
			} else if f != nil && !f.Lands(&r) {
				s.a.Complain("it waits: %s", cli.Clean(f.Text(name)))
			}
			for i := range r.Clashes {
				k := &r.Clashes[i]
				s.a.Complain("%s you in line is %s", k.Side(), cli.Clean(k.String()))
			}
			return nil
		}
		t, err := c.Task(ctx, task)
		if err != nil {
			return err
		}
		if t.Blocker != "" {
			s.a.Complain("it waits for the lease on %s: `interlock why %s` names its holder", t.Blocker, t.Blocker)
			return nil
		}
		if waits, err := stillWaits(ctx, c, &t); err != nil || !waits {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return nil
		case <-time.After(tellEvery):
		}
	}
}

// stillWaits reports whether a merger may yet take a task, and runs.
func stillWaits(ctx context.Context, c *client.Client, t *interlock.Task) (bool, error) {
	if t.State != interlock.TaskWaiting && t.State != interlock.TaskRunning {
		return false, nil
	}
	queues, err := c.Queues(ctx)
	if err != nil {
		return false, err
	}
	for i := range queues {
		if q := &queues[i]; q.Name == t.Queue {
			return q.Idle+q.Running > 0, nil
		}
	}
	return false, nil
}
