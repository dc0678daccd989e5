package merger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// A submission may build on another one, its base. It has the base's commits, so it is in no chain without the base,
// and lands after it. What becomes of the base decides:
//
//	landed                       ─► it goes on alone
//	superseded, with its commit  ─► the newer one is the base from now on
//	returned, withdrawn, gone    ─► it goes back with the reason base_returned, and keeps its place and its tries
//
// A base may come later than what builds on it, since several tasks are handed out at once. The record of the base, or
// its task while there is no record, tells what became of it, so a merger that takes over finds the same.

// baseState is where the base of a submission is.
type baseState struct {
	id     string
	record *Record // nil: no merger has taken it yet
	landed bool
	gone   string // why it will not land, in words behind its name
}

// findBase finds what became of a base. Of one that was superseded it follows the newer ones, as long as they have its
// commit.
func (l *line) findBase(ctx context.Context, id string) (*baseState, error) {
	b := &baseState{id: id}
	for range maxStack {
		r, found, err := l.recordOf(ctx, b.id)
		if err != nil {
			return nil, err
		}
		if !found {
			return l.findNewBase(ctx, b)
		}
		if b.record != nil { // it is superseded by r
			if in, err := l.contains(ctx, r, b.record); err != nil {
				return nil, err
			} else if !in {
				b.gone = fmt.Sprintf("was superseded by %q, which lacks its commit", r.ID)
				return b, nil
			}
		}
		b.record = r
		if l.byID(b.id) != nil {
			return b, nil
		}
		switch r.State {
		case Landed:
			b.landed = true
			return b, nil
		case Superseded:
			if r.Outcome == nil || r.Outcome.By == "" {
				b.gone = "was superseded"
				return b, nil
			}
			b.id = r.Outcome.By
			continue
		case Returned:
			b.gone = "was returned"
			if r.Outcome != nil {
				b.gone += fmt.Sprintf(" (%s)", r.Outcome.Reason)
			}
			return b, nil
		}
		if waits, err := l.waits(ctx, r.Task); err != nil {
			return nil, err
		} else if !waits {
			b.gone = "was cancelled"
		}
		return b, nil
	}
	b.gone = "was superseded too often"
	return b, nil
}

// findNewBase looks for the task of a base that has no record.
func (l *line) findNewBase(ctx context.Context, b *baseState) (*baseState, error) {
	task, err := Find(ctx, l.Client, l.Name, b.id)
	if err == nil {
		var waits bool
		if waits, err = l.waits(ctx, task.String()); err == nil && waits {
			var t interlock.Task
			if t, err = l.Client.Task(ctx, task); err == nil && t.State != interlock.TaskDone && t.Queue == l.Name.Queue() {
				return b, nil
			}
		}
	}
	if _, refused := errors.AsType[*interlock.Error](err); err != nil && !refused {
		return nil, err
	}
	b.record, b.gone = nil, "is not in line: it was withdrawn, was never there, or ended long ago"
	return b, nil
}

// recordOf returns the record of a submission, as it is in line or in its document.
func (l *line) recordOf(ctx context.Context, id string) (r *Record, found bool, err error) {
	if e := l.byID(id); e != nil {
		return &e.record, true, nil
	}
	r = &Record{}
	found, err = read(ctx, l.Client, l.Name.RecordKey(id), r)
	return r, found, err
}

// contains reports whether a submission has the commit of another one. One that git fails on has none.
func (l *line) contains(ctx context.Context, r, other *Record) (in bool, err error) {
	f, err := l.attempt(ctx, r.ID, func(ctx context.Context) (err error) {
		in, err = l.Files.Contains(ctx, r.Head, other.Submission.Head)
		return err
	})
	return in && f == nil, err
}

// byID returns a submission in line, or nil.
func (l *line) byID(id string) *entry {
	for _, e := range l.records {
		if e.record.ID == id {
			return e
		}
	}
	return nil
}

// maxStack bounds how many submissions build on each other.
const maxStack = 100

// inCircle reports whether a stack that begins at a submission leads to one of some others, or has no end.
func (l *line) inCircle(ctx context.Context, from string, others ...string) (bool, error) {
	for range maxStack {
		if slices.Contains(others, from) {
			return true, nil
		}
		r, found, err := l.recordOf(ctx, from)
		if err != nil || !found || r.State == Landed {
			return false, err
		}
		if from = r.On; r.State == Superseded && r.Outcome != nil {
			from = r.Outcome.By
		}
		if from == "" {
			return false, nil
		}
	}
	return true, nil
}

// unbased returns the outcome of a new submission that cannot build on what it names, or nil. replaced is the one that
// it supersedes, if any.
func (l *line) unbased(ctx context.Context, r *Record, replaced string) (*Outcome, error) {
	if r.On == "" {
		return nil, nil
	}
	policy := func(format string, args ...any) (*Outcome, error) {
		return &Outcome{Reason: WhyPolicy, Cause: CauseStack, By: r.On, Message: fmt.Sprintf(format, args...)}, nil
	}
	if circle, err := l.inCircle(ctx, r.On, r.ID, replaced); err != nil {
		return nil, err
	} else if circle && r.On != replaced {
		return policy("Submission %q builds on itself by way of %q: submit without --on, or on another one.", r.ID, r.On)
	}
	if r.On == replaced {
		return policy(
			"Submission %q would supersede %q, which it builds on: both are of one workspace. Submit without --on.", r.ID, r.On,
		)
	}
	b, err := l.findBase(ctx, r.On)
	if err != nil {
		return nil, err
	}
	if b.gone != "" {
		return &Outcome{Reason: WhyBase, By: r.On, Message: baseGone(r, b)}, nil
	}
	if o, err := l.without(ctx, r, b); o != nil || err != nil {
		return o, err
	}
	if b.record != nil && b.record.Style == merge.StyleSquash {
		r.Onto = b.record.Submission.Head
	}
	return nil, nil
}

// without returns the outcome of a submission that lacks the commit of its base, or nil.
func (l *line) without(ctx context.Context, r *Record, b *baseState) (*Outcome, error) {
	if b.record == nil || b.record.Resolved != nil || b.id != r.On {
		return nil, nil
	}
	if in, err := l.contains(ctx, r, b.record); err != nil || in {
		return nil, err
	}
	return &Outcome{Reason: WhyPolicy, Cause: CauseStack, By: r.On, Message: fmt.Sprintf(
		"Submission %q does not build on %q: its history lacks commit %.12s. Merge that commit, or submit without --on.",
		r.ID, r.On, b.record.Head,
	)}, nil
}

func baseGone(r *Record, b *baseState) string {
	name := r.On
	if b.record != nil {
		name = cmp.Or(b.record.ID, name)
	}
	return fmt.Sprintf(
		"Your change is kept. Submission %q, which it builds on, %s. Take into your branch what became of that one, and "+
			"submit again: with --on if that one is in line again, else without.", name, b.gone,
	)
}

// restack finds what became of bases that are not in line. It looks again for those that will be only if poll is set.
func (l *line) restack(ctx context.Context, poll bool) error {
	for {
		moved := false
		for _, id := range slices.Sorted(maps.Keys(l.records)) {
			e := l.records[id]
			if e == nil || e.record.On == "" || e.based {
				continue
			}
			if l.byID(e.record.On) != nil {
				e.seeks = false
				continue
			}
			if e.seeks && !poll {
				continue
			}
			b, err := l.findBase(ctx, e.record.On)
			if err != nil {
				return err
			}
			e.seeks = b.gone == "" && !b.landed
			if b.gone == "" && b.id != e.record.On {
				circle, err := l.inCircle(ctx, b.id, e.record.ID)
				if err != nil {
					return err
				}
				if circle {
					b.gone = "builds on yours by now"
				} else if err := l.rebase(ctx, id, b.id); err != nil {
					return err
				}
			}
			switch {
			case b.gone != "":
				moved = true
				if err := l.unstack(ctx, id, b); err != nil {
					return err
				}
			case b.landed:
				e.based = true // the train knows it, if it has this one
			}
		}
		if l.release(); !moved {
			return nil
		}
	}
}

// rebase sets another base of a submission: one that has superseded the former.
func (l *line) rebase(ctx context.Context, id train.ID, on string) error {
	e := l.records[id]
	r := e.record
	r.On = on
	if err := l.commit(ctx, client.Put(l.Name.RecordKey(r.ID), encode(r))); err != nil {
		return err
	}
	l.Log.Info("another base", "submission", r.ID, "was", e.record.On, "is", on)
	e.record = r
	if l.train.Holds(id) {
		l.train.Withdraw(id)
		l.held[id] = true
	}
	return nil
}

// unstack returns a submission with a base that does not land.
func (l *line) unstack(ctx context.Context, id train.ID, b *baseState) error {
	e := l.records[id]
	o := l.back(e, WhyBase, &Against{l.target.Sequence, l.target.Head})
	o.Tries, o.By, o.Message = e.record.Tries, e.record.On, baseGone(&e.record, b)
	if _, err := l.cancelResolver(ctx, &e.record, "returned"); err != nil {
		return err
	}
	if err := l.giveBack(ctx, o); err != nil {
		return err
	}
	l.train.Withdraw(id)
	delete(l.records, id)
	e.reply <- reply{done: client.Done{Result: o}}
	l.Log.Info(string(Returned), "submission", e.record.ID, "reason", string(WhyBase), "base", o.By)
	return nil
}

// onto returns what a submission must follow in the train, and whether it may enter that.
func (l *line) onto(e *entry) (after train.ID, ready bool) {
	if e.record.On == "" || e.based {
		return "", true
	}
	b := l.byID(e.record.On)
	if b == nil {
		return "", false
	}
	after = train.ID(b.record.Task)
	return after, l.train.Holds(after)
}
