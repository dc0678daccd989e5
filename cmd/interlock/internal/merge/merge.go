package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/merge/merger"
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

A target is named REPO/TARGET, such as web/main. "interlock workspace submit" submits.`,
		newServe(a), newList(a), newShow(a), newWhy(a), newWithdraw(a), newPause(a), newResume(a), newVerify(a),
		newReplay(a), newCompare(a),
	)
}

// nameArg reads REPO/TARGET.
func nameArg(text string) (merger.Name, error) {
	repo, target, ok := strings.Cut(text, "/")
	n := merger.Name{Repo: repo, Target: target}
	if !ok {
		return n, cli.Usagef("%s: name the target as REPO/TARGET, such as web/main", cli.Quote(text))
	}
	if err := n.Check(); err != nil {
		return n, cli.Usagef("%s: %w", cli.Quote(text), err)
	}
	return n, nil
}

// with calls do with a session for a target.
func with(
	ctx context.Context, a *cli.App, target string, do func(ctx context.Context, c *client.Client, n merger.Name) error,
) error {
	n, err := nameArg(target)
	if err != nil {
		return err
	}
	c, err := link.Dial(ctx, a, "", interlock.DefaultTTL)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	return do(ctx, c, n)
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

	// Blocker is a key that it claims and waits for.
	Blocker string `json:"blocker,omitempty"`
	// Clashes are submissions that were in line when it came, and conflict with it.
	Clashes []merger.Clash `json:"clashes,omitempty"`

	Outcome *merger.Outcome `json:"outcome,omitempty"`
}

// look reads a submission by its task.
func look(ctx context.Context, c *client.Client, n merger.Name, id interlock.TaskID) (entry, error) {
	t, err := c.Task(ctx, id)
	if err != nil {
		return entry{}, err
	}
	if t.Queue != n.Queue() {
		return entry{}, fmt.Errorf("task %s is in queue %s, and not a submission to %s/%s", id, t.Queue, n.Repo, n.Target)
	}
	var s merger.Submission
	_ = json.Unmarshal(t.Payload, &s)
	e := entry{
		Submission: s.ID, Task: id.String(), State: t.State.String(), Agent: t.Agent, Purpose: t.Purpose, Head: s.Head,
		AgeMS: t.Age.Milliseconds(), Blocker: string(t.Blocker),
	}
	if e.Submission == "" {
		e.Submission = e.Task
	}
	if s.Resubmits != "" {
		e.Submission = s.Resubmits
	}
	var o merger.Outcome
	if t.State == interlock.TaskDone && json.Unmarshal(t.Result, &o) == nil {
		// A settled task has no payload any more.
		e.Outcome, e.State, e.Tries, e.Submission = &o, string(o.Code), o.Tries, o.Submission
	}
	s.ID = e.Submission
	r, found, err := merger.Standing(ctx, c, n, id, s)
	if found {
		e.Submission, e.Tries, e.Head = r.ID, r.Tries, r.Head
		if e.Outcome == nil {
			e.Clashes = r.Clashes
		}
	}
	return e, err
}

// inLine lists the submissions of a target that wait, the first one first.
func inLine(ctx context.Context, c *client.Client, n merger.Name) ([]entry, error) {
	type withPlace struct {
		entry
		place uint64
	}
	var taken []withPlace
	var rest []entry
	for _, state := range []interlock.TaskState{
		interlock.TaskRunning, interlock.TaskWaiting, interlock.TaskScheduled, interlock.TaskAsking,
	} {
		for t, err := range c.Tasks(ctx, client.TaskFilter{Queue: n.Queue(), State: state}) {
			if err != nil {
				return nil, err
			}
			e, err := look(ctx, c, n, t.ID)
			if err != nil {
				return nil, err
			}
			var r merger.Record
			d, err := c.Document(ctx, n.RecordKey(e.Submission))
			if err != nil {
				return nil, err
			}
			if !d.Absent && json.Unmarshal(d.Body, &r) == nil && r.Task == e.Task {
				taken = append(taken, withPlace{e, r.Place})
			} else {
				rest = append(rest, e)
			}
		}
	}
	sortPlaces(taken, func(p withPlace) uint64 { return p.place })
	list := make([]entry, 0, len(taken)+len(rest))
	for _, p := range taken {
		list = append(list, p.entry)
	}
	list = append(list, rest...)
	for i := range list {
		list[i].Position = i + 1
	}
	return list, nil
}
