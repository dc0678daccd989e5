package merger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// An author resolving a conflict tends to overwrite the other side, or to give up its own change. A resolver is a
// third agent that reads what both sides wanted. It gets a conflict as a task, and answers with a commit that has both
// sides among its ancestors. That commit becomes the submission's head, and is merged and checked like any other.
//
//	conflict ─► task of the resolver's queue ─► commit ─► in line again, in its old place
//	                    └─► no answer in time, an error, another commit ─► returned to the author

// maxResolutions is how many conflicts of one submission go to a resolver before it is returned to its author.
const maxResolutions = 3

// maxDiff bounds each diff that a resolver gets.
const maxDiff = 32 << 10

// Resolution is the payload of a resolver's task. All texts and diffs are other agents'.
type Resolution struct {
	Repo       string `json:"repo"`
	Target     string `json:"target"`
	Submission string `json:"submission"`
	// Ours is the target's commit, and Theirs that of the submission. Base is where the two parted.
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
	Base   string `json:"base,omitempty"`
	// Author is what the submission wanted, and Landed what the target's side wanted, newest first.
	Author Intent   `json:"author"`
	Landed []Intent `json:"landed,omitempty"`
	// OursDiff and TheirsDiff are the changes of both sides since Base in the paths in conflict, at most 32 KiB each.
	OursDiff   string `json:"ours_diff"`
	TheirsDiff string `json:"theirs_diff"`
	// Conflicts are the paths in conflict, with hunks.
	Conflicts []Conflict `json:"conflicts"`
	// Push is the ref to push the result to.
	Push string `json:"push"`
}

// Intent is what one side of a conflict wanted.
type Intent struct {
	// Sequence is the number of a landing, and 0 for the submission.
	Sequence uint64 `json:"seq,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Purpose  string `json:"purpose,omitempty"`
	// Message is that of the submission.
	Message string `json:"message,omitempty"`
}

// Answer is the result of a resolver's task.
type Answer struct {
	// Commit has Ours and Theirs among its ancestors, and is in the repository.
	Commit string `json:"commit"`
	// Note is what the resolver did, for the author.
	Note string `json:"note,omitempty"`
}

// Resolving is the task of a resolver, in the record of its submission.
type Resolving struct {
	Task   string `json:"task"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// Resolved is what a resolver made of a submission.
type Resolved struct {
	Commit string `json:"commit"`
	Note   string `json:"note,omitempty"`
}

// resolvable reports whether a refused submission goes to a resolver.
func (l *line) resolvable(e *entry, res *stepResult) bool {
	return l.Resolver != "" && res.refusal != nil && res.refusal.Reason == merge.ReasonConflict &&
		e.record.Unresolved == "" && e.record.Resolutions < maxResolutions
}

// resolve makes the task of a resolver, and waits for it aside. The submission stays in line without a part in the
// train.
func (l *line) resolve(ctx context.Context, id train.ID, o *Outcome) error {
	e := l.records[id]
	r := e.record
	p, err := l.resolution(ctx, &r, o)
	if err != nil {
		return err
	}
	task, err := l.Client.Submit(ctx, client.TaskSpec{
		Queue: l.Resolver, Payload: p, MaxAttempts: 1, Deadline: l.ResolveWithin,
		Purpose: fmt.Sprintf("resolve %s with %s", r.ID, l.Name),
		// One that is submitted again goes to a resolver again, also with the same conflict.
		ID: fmt.Sprintf("resolve/%s/%s/%.12s/%.12s", l.Name.Queue(), r.Task, p.Ours, p.Theirs),
	})
	if err != nil {
		return err
	}
	r.Resolving = &Resolving{task.ID.String(), p.Ours, p.Theirs}
	if err := l.commit(ctx, client.Put(l.Name.RecordKey(r.ID), encode(r))); err != nil {
		return err
	}
	e.record = r
	l.Log.Info("given to a resolver", "submission", r.ID, "task", r.Resolving.Task)
	l.awaitResolver(ctx, id)
	return nil
}

// resolution collects what a resolver has to know.
func (l *line) resolution(ctx context.Context, r *Record, o *Outcome) (*Resolution, error) {
	p := &Resolution{
		Repo: l.Name.Repo, Target: l.Name.Target, Submission: r.ID, Ours: o.Against.Commit, Theirs: r.Head,
		Author:    Intent{Agent: r.Agent, Purpose: r.Purpose, Message: clip(r.Message, maxTail)},
		Conflicts: o.Conflicts, Push: "refs/interlock/resolved/" + r.ID,
	}
	var paths []string
	for _, c := range o.Conflicts {
		paths = append(paths, c.Path)
		for _, by := range c.LandedBy {
			in := Intent{Sequence: by.Sequence, Agent: by.Agent, Purpose: by.Purpose}
			if !slices.Contains(p.Landed, in) {
				p.Landed = append(p.Landed, in)
			}
		}
	}
	var err error
	if p.Base, err = l.Files.Base(ctx, p.Ours, p.Theirs); err != nil || p.Base == "" {
		return p, err
	}
	if p.OursDiff, err = l.Files.Diff(ctx, p.Base, p.Ours, paths); err != nil {
		return nil, err
	}
	if p.TheirsDiff, err = l.Files.Diff(ctx, p.Base, p.Theirs, paths); err != nil {
		return nil, err
	}
	p.OursDiff, p.TheirsDiff = clip(p.OursDiff, maxDiff), clip(p.TheirsDiff, maxDiff)
	return p, nil
}

// clip leaves at most n bytes of a text.
func clip(text string, n int) string { return strings.ToValidUTF8(text[:min(len(text), n)], "") }

// awaitResolver waits for a resolver's task, by this merger or an earlier one. The owner gets its end as an event.
func (l *line) awaitResolver(ctx context.Context, id train.ID) {
	e := l.records[id]
	want := *e.record.Resolving
	go func() {
		var a Answer
		task, err := l.awaitTask(ctx, want.Task)
		if err == nil && json.Unmarshal(task.Result, &a) != nil {
			a = Answer{}
		}
		l.send(ctx, func(ctx context.Context) error {
			if l.records[id] != e {
				return nil // it has left the line
			}
			if _, settled := errors.AsType[*client.TaskError](err); err != nil && !settled && !forgotten(err) {
				return err
			}
			return l.resolved(ctx, id, Resolved{a.Commit, clip(a.Note, maxTail)}, err)
		})
	}()
}

func (l *line) awaitTask(ctx context.Context, name string) (interlock.Task, error) {
	id, err := interlock.ParseTaskID(name)
	if err != nil {
		return interlock.Task{}, err
	}
	return l.Client.Await(ctx, id)
}

// forgotten reports whether the server does not know a task any more.
func forgotten(err error) bool {
	refused, ok := errors.AsType[*interlock.Error](err)
	return ok && refused.Code == interlock.CodeUnknownTask
}

// resolved puts a submission back into line: with the resolver's commit, or without, so that its next conflict goes to
// its author.
func (l *line) resolved(ctx context.Context, id train.ID, by Resolved, failed error) error {
	e := l.records[id]
	r := e.record
	was := *r.Resolving
	r.Resolving = nil
	r.Resolutions++
	why := ""
	paths := e.paths
	if failed != nil {
		why = failed.Error()
	} else if fault, err := l.fault(ctx, by.Commit, was); err != nil {
		return err
	} else if why = fault; why == "" {
		r.Head, r.Base, r.From, r.Resolved, r.Measured = by.Commit, "", "", &by, false
		next := &entry{record: r}
		var o *Outcome
		if paths, o, err = l.unfit(ctx, next); err != nil {
			return err
		}
		if o != nil {
			why = o.Message
		} else {
			why = l.unclaimed(&entry{paths: paths}, e.lease.Claims())
		}
	}
	if why != "" {
		r = e.record
		r.Resolving, r.Unresolved = nil, clip(why, maxTail)
		paths = e.paths
	}
	if err := l.commit(ctx, client.Put(l.Name.RecordKey(r.ID), encode(r))); err != nil {
		return err
	}
	e.record, e.paths, e.alone = r, paths, nil
	l.place(ctx, id, e)
	l.Log.Info("back from a resolver", "submission", r.ID, "commit", by.Commit, "failure", why)
	return nil
}

// fault returns why a commit is no resolution of two others, or "".
func (l *line) fault(ctx context.Context, commit string, of Resolving) (string, error) {
	if git.CheckObject(commit) != nil {
		return "the result names no commit", nil
	}
	if kind, err := l.Files.Kind(ctx, commit); err != nil {
		return "", err
	} else if kind != "commit" {
		return "the repository has no commit " + commit, nil
	}
	for _, side := range []string{of.Ours, of.Theirs} {
		if in, err := l.Files.Contains(ctx, commit, side); err != nil {
			return "", err
		} else if !in {
			return fmt.Sprintf("commit %s does not descend from %s", commit, side), nil
		}
	}
	return "", nil
}
