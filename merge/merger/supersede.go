package merger

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// With an amended submission its author means the newer one. So the newest submission of a workspace, by the
// same agent and credential, is the one that counts: it takes the place of the one that waits, which ends as
// superseded. A document names the newest, so that an older one that comes late ends as well. Both records change in
// one commit, and the owner of the line alone decides: one that has been staged lands, and the newer one follows it.

// home is where a submission was made: its workspace, and which one of that name. It is "" for none.
func (s *Submission) home() string {
	if s.Workspace == "" || s.WorkspaceID == "" {
		return s.Workspace
	}
	return s.Workspace + "/" + s.WorkspaceID
}

// newest is the document at homeKey. Task is empty in those of earlier versions.
type newest struct {
	Submission string `json:"submission"`
	Task       string `json:"task,omitempty"`
}

// peer is what a submission finds of its workspace: the newest submission so far, and whether that is newer.
type peer struct {
	newest newest
	record *Record // nil: it has none any more
	newer  bool
}

// findNewest reads the newest submission of the same workspace and author besides a task, or nil.
func (l *line) findNewest(ctx context.Context, task interlock.Task, s *Submission) (*peer, error) {
	if s.Workspace == "" {
		return nil, nil
	}
	var st peer
	found, err := read(ctx, l.Client, l.Name.homeKey(s.home()), &st.newest)
	if err != nil || !found || st.newest.Task == task.ID.String() {
		return nil, err
	}
	var r Record
	if found, err = read(ctx, l.Client, l.Name.RecordKey(st.newest.Submission), &r); err != nil {
		return nil, err
	}
	if found {
		if r.Agent != task.Agent || r.Principal != task.Principal || r.home() != s.home() {
			return nil, nil
		}
		if r.Task == task.ID.String() {
			return nil, nil
		}
		st.record = &r
	}
	id, err := interlock.ParseTaskID(st.newest.Task)
	if err != nil {
		return &st, nil // of an earlier version
	}
	if st.newer, err = l.isOlder(ctx, task.ID, id); forgotten(err) {
		return &st, nil
	}
	return &st, err
}

// isOlder reports whether a task was submitted before another one of the same author, by the server's clock. The
// server tells ages, so the age of the one at the moment of the other's answer lies between those before and after.
func (l *line) isOlder(ctx context.Context, task, than interlock.TaskID) (bool, error) {
	for tries := 1; ; tries++ {
		before, err := l.Client.Task(ctx, task)
		if err != nil {
			return false, err
		}
		other, err := l.Client.Task(ctx, than)
		if err != nil {
			return false, err
		}
		after, err := l.Client.Task(ctx, task)
		if err != nil {
			return false, err
		}
		older, younger := before.Age > other.Age, after.Age < other.Age
		if !older && !younger && tries < 5 { // they came closer together than these answers
			continue
		}
		if !younger {
			older = (before.Age+after.Age)/2 > other.Age
		}
		return older && before.Agent == other.Agent && before.Principal == other.Principal, nil
	}
}

// superseded is the outcome of a submission with a newer one of its workspace.
func (l *line) superseded(id, by string) *Outcome {
	return &Outcome{
		Code: Superseded, Submission: id, Target: string(l.Name.Key()), By: by,
		Message: fmt.Sprintf("Superseded by %s, a newer submission of its workspace, which has its place.", by),
	}
}

// supersede returns the writes that end the submission which a new one replaces, and what to do when they are durable.
func (l *line) supersede(old, by *Record) (writes []interlock.Write, done func(context.Context) error) {
	o := l.superseded(old.ID, by.ID)
	r := *old
	r.State, r.Outcome = Superseded, o
	if comparePlaces(old, by) < 0 {
		by.Place, by.Ahead = old.Place, old.Ahead
	}
	by.Tries, by.Priority = max(by.Tries, old.Tries), max(by.Priority, old.Priority)
	return []interlock.Write{client.Put(l.Name.RecordKey(r.ID), encode(r))}, func(ctx context.Context) error {
		l.Log.Info("superseded", "submission", r.ID, "by", by.ID)
		delete(l.awaited, train.ID(r.Task))
		if e := l.records[train.ID(r.Task)]; e != nil {
			l.train.Withdraw(train.ID(r.Task))
			delete(l.records, train.ID(r.Task))
			e.reply <- reply{done: client.Done{Result: o}}
		}
		_, err := l.cancelResolver(ctx, &r, "superseded")
		return err
	}
}

// supersedeLate ends a submission that the merger gets behind the newer one of its workspace, since several tasks are
// handed out at once. The newer one gets its place, as if they had come in order.
func (l *line) supersedeLate(
	ctx context.Context, task interlock.Task, place uint64, s Submission, st *peer, o *Outcome,
) error {
	late := Record{
		Submission: s, State: Superseded, Task: task.ID.String(), Place: place, Agent: task.Agent,
		Principal: task.Principal, Purpose: task.Purpose, Outcome: o,
	}
	writes := []interlock.Write{client.Put(l.Name.RecordKey(late.ID), encode(late))}
	var id train.ID
	var newer Record
	if r := st.record; r != nil && r.State == Waiting && r.ID != late.ID && comparePlaces(&late, r) < 0 {
		id, newer = train.ID(r.Task), *r
		if e := l.records[id]; e != nil {
			newer = e.record
		}
		newer.Place, newer.Ahead = place, 0
		writes = append(writes, client.Put(l.Name.RecordKey(newer.ID), encode(newer)))
	}
	if err := l.commit(ctx, writes...); err != nil {
		return err
	}
	l.Log.Info("superseded", "submission", late.ID, "by", st.newest.Submission)
	if e := l.records[id]; e != nil {
		e.record = newer
		if l.train.Holds(id) {
			l.train.Withdraw(id)
			l.enter(id)
		}
	}
	return nil
}

// landedStill reports whether a landed submission is on the target: a rewind can have dropped it.
func (l *line) landedStill(ctx context.Context, r *Record) (bool, error) {
	if r.Outcome == nil || r.Outcome.Landing == nil {
		return true, nil
	}
	limited, cancel := l.limited(ctx)
	defer cancel()
	at, err := l.Config.Target.Read(limited)
	if err != nil {
		return false, err
	}
	if at.Head != l.target.Head { // moved by others since the seat was taken: a new seat takes that in
		return false, &merge.Stale{Ref: l.target.Ref, Want: l.target.Head, Have: at.Head}
	}
	return l.onTarget(ctx, r.Outcome.Landing.Commit)
}

// onTarget reports whether the target has a commit.
func (l *line) onTarget(ctx context.Context, commit string) (bool, error) {
	kind, err := l.Files.Kind(ctx, commit)
	if err != nil || kind == "" {
		return false, err
	}
	return l.Files.Contains(ctx, l.target.Head, commit)
}

// goesOn finds the last squash on the target from which a submission goes on: the target has the changes of its head,
// and history does not tell. The submission's changes are relative to that head.
func (l *line) goesOn(ctx context.Context, r *Record) error {
	r.From = r.Onto
	squashes := map[string]Landing{}
	for _, landing := range l.last {
		if landing.Style == merge.StyleSquash {
			squashes[landing.Head] = landing
		}
	}
	if len(squashes) == 0 {
		return nil
	}
	added, err := l.Files.Added(ctx, r.Head, l.target.Head)
	if err != nil {
		return err
	}
	for _, id := range added {
		landing, ok := squashes[id]
		if !ok {
			continue
		}
		if in, err := l.Files.Contains(ctx, r.Head, landing.Commit); err != nil {
			return err
		} else if in { // the author has taken the landing in
			return nil
		}
		if on, err := l.onTarget(ctx, landing.Commit); err != nil {
			return err
		} else if on {
			r.From = id
			return nil
		}
	}
	return nil
}
