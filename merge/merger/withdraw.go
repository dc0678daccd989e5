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
	key := name.withdrawKey(id)
	if err := c.Put(ctx, key, encode(withdrawal{Task: task.String()})); err != nil {
		return task, false, err
	}
	if d, err := c.Document(ctx, key); err == nil && d.Principal != t.Principal {
		return task, true, &interlock.Error{Code: interlock.CodeForbidden, Message: fmt.Sprintf(
			"submission %q is that of credential %q, and you are %q: only the former and that of the merger withdraw what "+
				"a merger has in line", id, t.Principal, d.Principal,
		)}
	}
	return task, true, nil
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
		if !l.wishes(d, e.record.Task, e.record.Principal) {
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

// isWithdrawn reports whether the author has withdrawn the submission with a name, a task and a principal.
func (l *line) isWithdrawn(ctx context.Context, name string, task train.ID, principal string) (bool, error) {
	d, err := l.Client.Document(ctx, l.Name.withdrawKey(name))
	return err == nil && l.wishes(d, string(task), principal), err
}

// wishes reports whether a document is the wish of a submission's author, or of our own credential, to withdraw it.
// Other agents can write such a document as well.
func (l *line) wishes(d interlock.Document, task, principal string) bool {
	var w withdrawal
	return !d.Absent && json.Unmarshal(d.Body, &w) == nil && w.Task == task &&
		(d.Principal == principal || d.Principal == l.principal)
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
	text, err := l.cancelResolver(ctx, r, "withdrawn")
	if err != nil {
		return nil, err
	}
	o.Message += text
	if err := l.commit(ctx, client.Delete(l.Name.RecordKey(r.ID))); err != nil {
		return nil, err
	}
	l.Log.Info("withdrawn", "submission", r.ID)
	return o, nil
}

// cancelResolver cancels the task of the resolver that has a submission's conflict, and returns a sentence about it.
func (l *line) cancelResolver(ctx context.Context, r *Record, how string) (string, error) {
	if r.Resolving == nil {
		return "", nil
	}
	id, err := interlock.ParseTaskID(r.Resolving.Task)
	if err != nil {
		return "", err
	}
	_, err = l.Client.CancelTask(ctx, id, "the submission "+r.ID+" was "+how)
	refused, ok := errors.AsType[*interlock.Error](err)
	switch {
	case err == nil:
		return fmt.Sprintf(" The task of its resolver, %s, is cancelled.", id), nil
	case !ok:
		return "", err
	case refused.Code == interlock.CodeHeld:
		return fmt.Sprintf(" A resolver has its conflict, as task %s: the result will be ignored.", id), nil
	}
	return "", nil
}
