package merger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// forgetEvery is the time from one look for old documents to the next.
const forgetEvery = time.Hour

// forgetOld deletes what is older than Keep, now and from time to time, until ctx ends.
func (l *line) forgetOld(ctx context.Context) {
	for {
		if err := l.forget(ctx); err != nil && ctx.Err() == nil {
			l.Log.Warn("old documents cannot be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(forgetEvery):
		}
	}
}

// forget deletes documents older than Keep: verdicts, wishes to withdraw, records of submissions that were returned and
// not submitted again, and records of cancelled tasks. Landings and their records go by number, in finish.
func (l *line) forget(ctx context.Context) error {
	key := string(l.Name.Key())
	for _, from := range []struct {
		prefix string
		commit func(context.Context, client.Commit) (*client.CommitResult, error)
		over   func(context.Context, interlock.Document) (bool, error)
	}{
		{key + "/submission/", l.seat.Commit, l.over},
		{key + "/workspace/", l.seat.Commit, nil},
		{string(l.Name.withdrawKey("")), l.Client.Commit, nil},
		{"verdict:" + l.Name.Repo + "/", l.Client.Commit, nil},
	} {
		for d, err := range l.Client.List(ctx, client.ListRequest{Prefix: from.prefix, Bodies: from.over != nil}) {
			if err != nil {
				return err
			}
			if d.Age < l.Keep {
				continue
			}
			over := true
			if from.over != nil {
				if over, err = from.over(ctx, d); err != nil {
					return err
				}
			}
			if !over {
				continue
			}
			_, err = from.commit(ctx, client.Commit{
				Reads: client.Seen(d), Writes: []interlock.Write{client.Delete(d.Key)},
			})
			if _, stale := errors.AsType[*client.StaleError](err); err != nil && !stale {
				return err
			}
		}
	}
	return nil
}

// over reports whether a submission's record is one that no task and no landing needs.
func (l *line) over(ctx context.Context, d interlock.Document) (bool, error) {
	var r Record
	switch err := json.Unmarshal(d.Body, &r); {
	case err != nil || r.State == Landed:
		return false, nil
	case r.State == Returned || r.State == Superseded:
		return true, nil
	}
	waits, err := l.waits(ctx, r.Task)
	return !waits, err
}
