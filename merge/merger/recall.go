package merger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

// The tasks of a dead merger are handed out again one by one, each after a pause of its own. So after a take-over a
// submission could come back before those ahead of it, and land first. It waits for them, at most recallWithin.

// recallWithin is how long after the seat was taken a submission waits for those ahead of it that were in line before.
// It is longer than submissionMaxPause.
const recallWithin = 10 * time.Second

// recall finds the submissions that an earlier merger had in line, if their tasks will be handed out soon.
func (l *line) recall(ctx context.Context) error {
	for d, err := range l.Client.List(ctx, client.ListRequest{
		Prefix: string(l.Name.Key()) + "/submission/", Bodies: true,
	}) {
		if err != nil {
			return err
		}
		var r Record
		if json.Unmarshal(d.Body, &r) != nil || r.State != Waiting {
			continue
		}
		id, err := interlock.ParseTaskID(r.Task)
		if err != nil {
			continue // no merger wrote that
		}
		t, err := l.Client.Task(ctx, id)
		if forgotten(err) {
			continue
		} else if err != nil {
			return err
		}
		switch t.State {
		case interlock.TaskWaiting, interlock.TaskScheduled, interlock.TaskRunning:
			if t.Blocker == "" { // else a key that it needs may be another one's for long
				l.awaited[train.ID(r.Task)] = r.Place
			}
		}
	}
	return nil
}

// enter lets the train have a submission that is in line, now or when those ahead of it are back.
func (l *line) enter(id train.ID) {
	l.held[id] = true
	l.release()
}

// release lets the train have the submissions that need not wait for others to come back.
func (l *line) release() {
	if time.Since(l.since) > recallWithin {
		clear(l.awaited)
	}
	for more := true; more; { // a base lets what builds on it in
		more = false
		for id := range l.held {
			e := l.records[id]
			if e == nil {
				delete(l.held, id)
				continue
			}
			after, ready := l.onto(e)
			if !ready || l.awaits(e.record.Place) {
				continue
			}
			delete(l.held, id)
			r := &e.record
			l.train.Add(train.Submission{ID: id, Place: r.Place, Ahead: r.Ahead, After: after, Impacts: r.Impacts})
			more = true
		}
	}
	l.hold()
}

// awaits reports whether a submission ahead of a place has not come back.
func (l *line) awaits(place uint64) bool {
	for _, ahead := range l.awaited {
		if ahead < place {
			return true
		}
	}
	return false
}
