package merger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

// An author cannot cancel the task of a submission that a merger has in line. So a withdrawal is a wish: a document
// beside the seat's lease that names the task. The merger looks for wishes each Config.Poll, before it lands or returns
// something, and when it takes a task. The wish stays, so that a merger that takes over finds it as well.

// withdrawKey is the key of a wish to withdraw. It lies outside the seat's lease, because authors write it.
func (n Name) withdrawKey(id string) interlock.Key {
	return interlock.Key("withdraw:" + n.Repo + "/" + n.Target + "/" + id)
}

// withdrawal asks the merger to end a submission that it has in line.
type withdrawal struct {
	Task string `json:"task"`
}

// Withdrawer is what Withdraw needs besides reading.
type Withdrawer interface {
	Reader
	CancelTask(ctx context.Context, id interlock.TaskID, reason string) (interlock.Task, error)
	// Put writes a document of JSON, whatever was there.
	Put(ctx context.Context, key interlock.Key, body []byte) error
}

// Withdraw takes a submission out of the line, and returns its task. If a merger has taken it, it is asked to end it
// (asked): the task's result is then an Outcome with the code Withdrawn, unless it lands or is returned in the same
// moment. The error has code "unknown_task" if there is no such submission, and "task_settled" if it has landed or was
// returned.
func Withdraw(ctx context.Context, c Withdrawer, name Name, id string) (task interlock.TaskID, asked bool, err error) {
	if task, err = Find(ctx, c, name, id); err != nil {
		return task, false, err
	}
	_, err = c.CancelTask(ctx, task, "withdrawn")
	if refused, ok := errors.AsType[*interlock.Error](err); !ok || refused.Code != interlock.CodeHeld {
		return task, false, err
	}
	// The merger looks for the wish under the name of the record, and id may be that of the task.
	t, err := c.Task(ctx, task)
	if err != nil {
		return task, false, err
	}
	var s Submission
	_ = json.Unmarshal(t.Payload, &s) // one that cannot be read goes back anyway
	r, found, err := Standing(ctx, c, name, task, s)
	if err != nil {
		return task, false, err
	}
	if found {
		id = r.ID
	}
	return task, true, c.Put(ctx, name.withdrawKey(id), encode(withdrawal{Task: task.String()}))
}

// withdraw ends the submissions among those in line that their authors have withdrawn, and reports whether there are
// some. Then a plan with them is void.
func (l *line) withdraw(ctx context.Context, ids []train.ID) (some bool, err error) {
	keys := make([]interlock.Key, len(ids))
	for i, id := range ids {
		keys[i] = l.Name.withdrawKey(l.records[id].record.ID)
	}
	got, err := l.Client.Documents(ctx, keys...)
	if err != nil {
		return false, err
	}
	for i, d := range got.Documents {
		e := l.records[ids[i]]
		var w withdrawal
		if d.Absent || json.Unmarshal(d.Body, &w) != nil || w.Task != e.record.Task {
			continue
		}
		o, err := l.endWithdrawn(ctx, &e.record)
		if err != nil {
			return false, err
		}
		some = true
		l.train.Withdraw(ids[i])
		delete(l.records, ids[i])
		e.reply <- reply{done: client.Done{Result: o}}
	}
	return some, nil
}

// isWithdrawn reports whether the author has withdrawn the submission with a name and a task.
func (l *line) isWithdrawn(ctx context.Context, name string, task train.ID) (bool, error) {
	var w withdrawal
	_, err := read(ctx, l.Client, l.Name.withdrawKey(name), &w)
	return w.Task == string(task), err
}

// withdrawn is the outcome of a withdrawn submission.
func (l *line) withdrawn(id string) *Outcome {
	return &Outcome{
		Code: Withdrawn, Submission: id, Target: string(l.Name.Key()), Message: "Withdrawn before it landed.",
	}
}

// endWithdrawn deletes the record of a withdrawn submission, and cancels the task of its resolver.
func (l *line) endWithdrawn(ctx context.Context, r *Record) (*Outcome, error) {
	o := l.withdrawn(r.ID)
	if r.Resolving != nil {
		id, err := interlock.ParseTaskID(r.Resolving.Task)
		if err != nil {
			return nil, err
		}
		_, err = l.Client.CancelTask(ctx, id, "the submission "+r.ID+" was withdrawn")
		refused, ok := errors.AsType[*interlock.Error](err)
		switch {
		case err == nil:
			o.Message += fmt.Sprintf(" The task of its resolver, %s, is cancelled.", id)
		case !ok:
			return nil, err
		case refused.Code == interlock.CodeHeld:
			o.Message += fmt.Sprintf(" A resolver has its conflict, as task %s: the result will be ignored.", id)
		}
	}
	if err := l.commit(ctx, client.Delete(l.Name.RecordKey(r.ID))); err != nil {
		return nil, err
	}
	l.Log.Info("withdrawn", "submission", r.ID)
	return o, nil
}
