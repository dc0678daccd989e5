package merge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/merge/train"
)

// New returns the command merge.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"merge", "Land the work of many agents on one branch",
		`A merge queue takes submissions in order, has the merged trees checked, and moves the branch
to trees that passed. What conflicts or fails goes back to its author, and keeps its place.

  submitted ─► waiting ─► checked ─► landed
                   ▲          │
                   └─ again ─ returned

A target is a branch of a repository, named REPO/TARGET, such as web/main or web/release/1.0.
"interlock workspace submit" submits.`,
		newServe(a), newList(a), newShow(a), newWhy(a), newWithdraw(a), newPause(a), newResume(a), newFreeze(a), newThaw(a),
		newVerify(a), newReport(a), newReplay(a), newCompare(a),
	)
}

// nameArg reads REPO/TARGET.
func nameArg(text string) (merger.Name, error) {
	repo, target, ok := strings.Cut(text, "/")
	n := merger.NameOf(repo, target)
	if !ok {
		return n, cli.Usagef("%s: name the target as REPO/TARGET, such as web/main", cli.Quote(text))
	}
	if err := n.Check(); err != nil {
		return n, cli.Usagef("%s: %w", cli.Quote(text), err)
	}
	return n, nil
}

// entry is a submission in line, or one that has left it.
type entry struct {
	Submission string `json:"submission"`
	Task       string `json:"task"`
	// State is that of the task, or of the record once there is an outcome.
	State    string `json:"state"`
	Position int    `json:"position,omitempty"`
	Tries    int    `json:"tries"`
	Agent    string `json:"agent"`
	Purpose  string `json:"purpose,omitempty"`
	Head     string `json:"head"`
	AgeMS    int64  `json:"age_ms"`

	// ExpectedMS is in how long it is expected to land; absent if that is not known.
	ExpectedMS *int64 `json:"expected_ms,omitempty"`
	// Blocker is a key that it claims and waits for.
	Blocker string `json:"blocker,omitempty"`
	// Priority is that of its task, and On the submission that it builds on.
	Priority int    `json:"priority,omitempty"`
	On       string `json:"on,omitempty"`
	// Frozen is set if a freeze of the target keeps it from landing.
	Frozen bool `json:"frozen,omitempty"`
	// Resolving is the task of a resolver that has a conflict of it.
	Resolving string `json:"resolving,omitempty"`
	// Clashes are submissions that were in line when it came, and conflict with it.
	Clashes []merger.Clash `json:"clashes,omitempty"`

	Outcome *merger.Outcome `json:"outcome,omitempty"`
}

// look reads a submission by its task, with its record if a merger has taken it.
func look(ctx context.Context, r *requests, n merger.Name, id interlock.TaskID) (entry, *merger.Record, error) {
	t, err := r.Task(ctx, id)
	if err != nil {
		return entry{}, nil, err
	}
	if t.Queue != n.Queue() {
		return entry{}, nil, fmt.Errorf(
			"task %s is in queue %s, and not a submission to %s", id, cli.Clean(t.Queue), n,
		)
	}
	var s merger.Submission
	_ = json.Unmarshal(t.Payload, &s) // a settled task has none any more, and one that cannot be read goes back
	e := entry{
		Submission: cmp.Or(s.Resubmits, s.ID, id.String()), Task: id.String(), State: t.State.String(), Agent: t.Agent,
		Purpose: t.Purpose, Head: s.Head, AgeMS: t.Age.Milliseconds(),
		Blocker: string(t.Blocker), Priority: t.Priority, On: s.On,
	}
	var o merger.Outcome
	if t.State == interlock.TaskDone && json.Unmarshal(t.Result, &o) == nil {
		e.Outcome, e.State, e.Tries, e.Submission = &o, string(o.Code), o.Tries, o.Submission
	}
	s.ID = e.Submission
	record, found, err := merger.Standing(ctx, r, n, id, s)
	if err != nil || !found {
		return e, nil, err
	}
	e.Submission, e.Tries, e.Head = record.ID, record.Tries, record.Head
	if e.Outcome == nil {
		e.Clashes, e.Priority, e.On = record.Clashes, record.Priority, record.On
		if record.Resolving != nil {
			e.Resolving = record.Resolving.Task
		}
	}
	return e, &record, nil
}

// inLine lists the submissions of a target that wait, the first one first.
func inLine(ctx context.Context, r *requests, n merger.Name) ([]entry, error) {
	type withPlace struct {
		entry
		place, ahead uint64 // the merger has not taken those without: they follow in the order of their tasks
	}
	var list []withPlace
	freeze, err := merger.FreezeOf(ctx, r, n)
	if err != nil {
		return nil, err
	}
	for _, state := range []interlock.TaskState{
		interlock.TaskRunning, interlock.TaskWaiting, interlock.TaskScheduled, interlock.TaskAsking,
	} {
		for t, err := range r.Tasks(ctx, client.TaskFilter{Queue: n.Queue(), State: state}) {
			if err != nil {
				return nil, err
			}
			e, record, err := look(ctx, r, n, t.ID)
			if err != nil {
				return nil, err
			}
			at := withPlace{e, math.MaxUint64, 0}
			if record == nil { // what it will be
				record = &merger.Record{Agent: t.Agent, Principal: t.Principal, Priority: t.Priority}
				record.ID = e.Submission
			} else {
				at.place, at.ahead = record.Place, record.Ahead
			}
			at.Frozen = freeze != nil && !freeze.Lands(record)
			list = append(list, at)
		}
	}
	slices.SortStableFunc(list, func(a, b withPlace) int {
		return train.ComparePlaces(a.place, a.ahead, b.place, b.ahead)
	})
	entries := make([]entry, len(list))
	for i := range list {
		entries[i] = list[i].entry
		entries[i].Position = i + 1
	}
	return entries, nil
}
