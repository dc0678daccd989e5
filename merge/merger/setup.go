package merger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
)

// pattern is the one of all targets: only the holder of the seat writes a target's documents.
var pattern = interlock.Pattern{Name: "merge", Shape: "merge:{repo}/{target...}", Write: interlock.WriteLease}

// submissionAttempts bounds how often a submission's task may lose its merger.
const submissionAttempts = interlock.MaxAttempts

// A task of a submission that has lost its merger pauses for up to submissionPause. That doubles with each attempt, up
// to submissionMaxPause. The next merger could take it at once, and a long pause would put it behind others.
const (
	submissionPause    = time.Millisecond
	submissionMaxPause = 5 * time.Second
)

// Setup registers the queues of a target and its checks, and the pattern of all targets' keys, where they are missing.
// It changes nothing that exists, and needs an operator's credential if something is missing.
func Setup(ctx context.Context, c *client.Client, name Name, checks ...string) error {
	if err := name.Check(); err != nil {
		return err
	}
	wanted := []interlock.TaskQueue{{
		Name: name.Queue(), MaxAttempts: submissionAttempts, Backoff: submissionPause, MaxBackoff: submissionMaxPause,
	}}
	for _, check := range checks {
		if err := git.CheckName(check); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		// A run has one attempt: the merger decides about repetitions.
		wanted = append(wanted, interlock.TaskQueue{Name: name.CheckQueue(check), MaxAttempts: 1})
	}
	patterns, err := c.Patterns(ctx)
	if err != nil {
		return err
	}
	var found bool
	for i := range patterns {
		found = found || patterns[i].Name == pattern.Name
	}
	if !found {
		if err := c.SetPattern(ctx, pattern); err != nil {
			return fmt.Errorf("pattern %s: %w", pattern.Name, err)
		}
	}
	return register(ctx, c, wanted)
}

// FreeWorkers has the queues of checks end a run that takes its worker longer than a limit, so that one that hangs is
// free for others. A queue with a limit keeps it. It returns a sentence for each queue that an operator should change:
// one with a shorter limit, and one that the own credential may not change.
func FreeWorkers(
	ctx context.Context, c *client.Client, name Name, within time.Duration, checks ...string,
) (todo []string, err error) {
	queues, err := c.Queues(ctx)
	if err != nil {
		return nil, err
	}
	within = min(within, interlock.MaxMaxHold)
	for i := range queues {
		q := queues[i].TaskQueue
		if !slices.ContainsFunc(checks, func(check string) bool { return name.CheckQueue(check) == q.Name }) {
			continue
		}
		why := ""
		switch {
		case q.MaxHold == 0:
			q.MaxHold = within
			err := c.SetQueue(ctx, q)
			if refused, ok := errors.AsType[*interlock.Error](err); ok && refused.Code == interlock.CodeForbidden {
				why = "a worker that hangs is never free"
			} else if err != nil {
				return nil, fmt.Errorf("queue %s: %w", q.Name, err)
			}
		case q.MaxHold < within:
			why = fmt.Sprintf("a run ends after %v", q.MaxHold)
		}
		if why != "" {
			todo = append(todo, fmt.Sprintf("%s: `interlock queue set %s --max-hold %v` changes that", why, q.Name, within))
		}
	}
	return todo, nil
}

// SetupResolver registers the queue of resolvers, if it is missing.
func SetupResolver(ctx context.Context, c *client.Client, queue string) error {
	return register(ctx, c, []interlock.TaskQueue{{Name: queue, MaxAttempts: 1}})
}

// register registers the queues that are missing.
func register(ctx context.Context, c *client.Client, wanted []interlock.TaskQueue) error {
	queues, err := c.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range wanted {
		found := false
		for i := range queues {
			found = found || queues[i].Name == q.Name
		}
		if found {
			continue
		}
		if err := c.SetQueue(ctx, q); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	return nil
}

// Submit puts a submission into the line of a target, and returns its task. With s.ID it can be repeated, and is one
// task. The task's result is an Outcome: client.Await waits for it.
func Submit(ctx context.Context, c *client.Client, name Name, s Submission, purpose string) (interlock.Task, error) {
	if err := name.Check(); err != nil {
		return interlock.Task{}, err
	}
	spec := client.TaskSpec{Queue: name.Queue(), Payload: s, Purpose: purpose}
	if s.ID != "" {
		spec.ID = fmt.Sprintf("%s/%s/%.12s", name.Queue(), s.ID, s.Head)
	}
	return c.Submit(ctx, spec)
}

// Reader reads what a line is made of: a *client.Client, or requests of another kind.
type Reader interface {
	Document(ctx context.Context, key interlock.Key) (interlock.Document, error)
	Task(ctx context.Context, id interlock.TaskID) (interlock.Task, error)
	// Tasks lists tasks by queue and state. It may leave their payloads out.
	Tasks(ctx context.Context, f client.TaskFilter) iter.Seq2[interlock.Task, error]
}

// Find returns the present task of a submission: by its ID, or by the id of its task.
func Find(ctx context.Context, c Reader, name Name, id string) (interlock.TaskID, error) {
	if err := git.CheckName(id); err != nil {
		return interlock.TaskID{}, fmt.Errorf("submission: %w", err)
	}
	var r Record
	found, err := read(ctx, c, name.RecordKey(id), &r)
	switch {
	case err != nil:
		return interlock.TaskID{}, err
	case found:
		return interlock.ParseTaskID(r.Task)
	}
	if task, err := interlock.ParseTaskID(id); err == nil {
		return task, nil
	}
	// The merger has not taken it yet, so only its task has the ID.
	for t, err := range c.Tasks(ctx, client.TaskFilter{Queue: name.Queue()}) {
		if err != nil {
			return interlock.TaskID{}, err
		}
		if t.State == interlock.TaskDone || t.State == interlock.TaskCancelled || t.State == interlock.TaskDead {
			continue
		}
		full, err := c.Task(ctx, t.ID) // the list has no payloads
		if err != nil {
			return interlock.TaskID{}, err
		}
		var s Submission
		if json.Unmarshal(full.Payload, &s) == nil && (s.ID == id || s.Resubmits == id) {
			return t.ID, nil
		}
	}
	return interlock.TaskID{}, &interlock.Error{
		Code:    interlock.CodeUnknownTask,
		Message: fmt.Sprintf("no submission %q is in the line of %s", id, name.Key()),
	}
}
