package merger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// settle makes outcomes durable, and ends the tasks of their submissions.
func (l *line) settle(ctx context.Context, outcomes []train.Outcome) error {
	ids := make([]train.ID, len(outcomes))
	for i, o := range outcomes {
		if ids[i] = o.ID; l.records[o.ID] == nil {
			return fmt.Errorf("submission %s is in line without a record", o.ID)
		}
	}
	if some, err := l.withdraw(ctx, ids); err != nil || some {
		return err
	}
	leases, held := l.holds(outcomes)
	if !held {
		return nil
	}
	staged := &Staged{Old: l.target.Head, New: l.target.Head}
	results := make([]*Outcome, len(outcomes))
	var chain []train.ID
	resolve := map[train.ID]bool{}
	for i, o := range outcomes {
		e := l.records[o.ID]
		against := &Against{l.target.Sequence + uint64(len(chain)), staged.New}
		if o.Reason == train.FailsCheck {
			results[i] = l.failed(ctx, e, against)
			staged.Returns = append(staged.Returns, results[i])
			continue
		}
		res, err := l.merged(ctx, staged.New, o.ID, against.Sequence+1)
		switch {
		case err != nil:
			return err
		case res.refused() && o.Reason == train.Landed:
			// Another lane has landed a change of the same lines since.
			l.train.Conflict(chain, o.ID)
			return nil
		case res.refused():
			results[i] = l.returned(e, res, against, staged.Landings)
			if l.resolvable(e, &res) {
				resolve[o.ID] = true
				continue
			}
			staged.Returns = append(staged.Returns, results[i])
		case o.Reason == train.Conflicts:
			return fmt.Errorf("submission %s conflicts, and merges onto %s", e.record.ID, staged.New)
		default:
			landing := Landing{
				Sequence: res.landing.Sequence, Submission: e.record.ID, Task: e.record.Task, Commit: res.landing.Commit,
				Tree: res.landing.Tree, Parent: res.landing.Parent, Profile: res.landing.Profile,
				Agent: e.record.Agent, Purpose: e.record.Purpose, Paths: res.landing.Paths, Renamed: res.landing.Renamed,
				Apart: o.Apart, Resolved: e.record.Resolved, Principal: e.record.Principal, Checks: l.Checks,
				Admitted: e.record.Admitted * 1000, At: time.Now().UnixMilli(),
			}
			if landing.More = max(0, len(landing.Paths)-maxNamedPaths); landing.More > 0 {
				landing.Paths = landing.Paths[:maxNamedPaths]
			}
			staged.Landings = append(staged.Landings, landing)
			staged.New = landing.Commit
			chain = append(chain, o.ID)
			results[i] = landed(l.Name, &landing)
		}
	}
	if n := len(staged.Landings); n > 0 {
		tip := staged.Landings[n-1]
		if passed, _ := l.passed.get(tip.Tree); !passed && !tip.Apart {
			return fmt.Errorf("tree %s of submission %s would land and was not checked", tip.Tree, tip.Submission)
		}
	}
	if err := l.write(ctx, staged, leases); err != nil {
		return err
	}
	for i, o := range outcomes {
		e := l.records[o.ID]
		l.train.Settle(o)
		if resolve[o.ID] {
			if err := l.resolve(ctx, o.ID, results[i]); err != nil {
				return err
			}
			continue
		}
		delete(l.records, o.ID)
		e.reply <- reply{done: client.Done{Result: results[i]}}
		l.Log.Info(string(results[i].Code), "submission", e.record.ID, "reason", string(results[i].Reason))
	}
	return nil
}

const (
	maxNamedPaths = 200
	keepLandings  = 1000
	keepRecent    = 200
)

// write carries out the three steps of a landing. The first one fails unless the leases are held.
func (l *line) write(ctx context.Context, s *Staged, leases []interlock.LeaseID) error {
	switch {
	case len(s.Landings) == 0 && len(s.Returns) == 0:
		return nil // all go to a resolver
	case len(s.Landings) == 0:
		return l.finish(ctx, s)
	}
	next := l.target
	next.Staged = s
	if _, err := l.seat.Commit(ctx, client.Commit{
		Writes: []interlock.Write{client.Put(l.Name.Key(), encode(next))}, Leases: leases,
	}); err != nil {
		return err
	}
	l.target = next
	if err := l.move(ctx, s); err != nil {
		return err
	}
	return l.finish(ctx, s)
}

// move is the second step.
func (l *line) move(ctx context.Context, s *Staged) error {
	return l.Target.Move(ctx, merge.Move{
		Token: uint64(l.seat.Fence()), Sequence: s.Landings[len(s.Landings)-1].Sequence, Old: s.Old, New: s.New,
	})
}

// finish is the third step: it writes the landings, the outcomes and the new head, and forgets old landings.
func (l *line) finish(ctx context.Context, s *Staged) error {
	next := l.target
	next.Staged, next.Head = nil, s.New
	outcomes := slices.Clone(s.Returns)
	var writes []interlock.Write
	var keys, old []interlock.Key
	for i := range s.Landings {
		landing := &s.Landings[i]
		next.Sequence = landing.Sequence
		writes = append(writes, client.Put(l.Name.LandingKey(landing.Sequence), encode(landing)))
		outcomes = append(outcomes, landed(l.Name, landing))
		if landing.Sequence > keepLandings {
			old = append(old, l.Name.LandingKey(landing.Sequence-keepLandings))
		}
	}
	for _, o := range outcomes {
		keys = append(keys, l.Name.RecordKey(o.Submission))
	}
	got, err := l.Client.Documents(ctx, append(keys, old...)...)
	if err != nil {
		return err
	}
	for i, d := range got.Documents {
		switch {
		case d.Absent:
		case i < len(outcomes):
			var r Record
			if err := json.Unmarshal(d.Body, &r); err != nil {
				return fmt.Errorf("the document %s is not the merger's: %w", d.Key, err)
			}
			r.State, r.Outcome = outcomes[i].Code, outcomes[i]
			if r.State == Returned {
				r.Tries = outcomes[i].Tries
			}
			writes = append(writes, client.Put(d.Key, encode(r)))
			if r.State == Returned && r.Workspace != "" {
				last := encode(previousReturn{r.ID})
				writes = append(writes, client.Put(l.Name.workspaceKey(r.Workspace), last))
			}
		default:
			var gone Landing
			if err := json.Unmarshal(d.Body, &gone); err == nil {
				writes = append(writes, client.Delete(l.Name.RecordKey(gone.Submission)))
			}
			writes = append(writes, client.Delete(d.Key))
		}
	}
	if err := l.commit(ctx, append(writes, client.Put(l.Name.Key(), encode(next)))...); err != nil {
		return err
	}
	l.target = next
	l.last = append(l.last, s.Landings...)
	l.last = l.last[max(0, len(l.last)-keepRecent):]
	return nil
}

// recover removes old locks, finds out where the target is, raises the fence, and ends what an earlier merger has
// staged.
func (l *line) recover(ctx context.Context) error {
	if err := l.removeLocks(ctx); err != nil {
		return err
	}
	before, err := l.Config.Target.Read(ctx)
	if err != nil {
		return err
	}
	at, err := l.Config.Target.Claim(ctx, uint64(l.seat.Fence()))
	if err != nil {
		return err
	}
	known, err := read(ctx, l.Client, l.Name.Key(), &l.target)
	if err != nil {
		return err
	}
	if err := l.readRecent(ctx); err != nil {
		return err
	}
	if s := l.target.Staged; s != nil {
		last := s.Landings[len(s.Landings)-1]
		switch {
		case at.Head == s.Old:
			if err := l.again(ctx, s); err != nil {
				return err
			}
			if err := l.move(ctx, s); err != nil {
				return err
			}
			at.Head = s.New
			fallthrough
		case at.Head == s.New || before.Fence.Sequence == last.Sequence && before.Fence.Commit == s.New:
			l.Log.Info("a staged landing is finished", "commit", s.New)
			if err := l.finish(ctx, s); err != nil {
				return err
			}
		}
	}
	if known && l.target.Head == at.Head && l.target.Staged == nil && l.target.Ref == l.Ref &&
		slices.Equal(l.target.Leases, l.Leases) {
		return nil
	}
	if known && l.target.Head != at.Head {
		l.Log.Warn("the target was moved by others", "from", l.target.Head, "to", at.Head)
	}
	l.target.Ref, l.target.Head, l.target.Profile, l.target.Staged = l.Ref, at.Head, l.Profile, nil
	l.target.Leases = l.Leases
	return l.commit(ctx, client.Put(l.Name.Key(), encode(l.target)))
}

// removeLocks removes the lock files of a git that was killed with an earlier merger, or in this one's earlier seat.
// A younger one may be of a program that runs; if it stays, the move fails, and Run takes the seat again.
func (l *line) removeLocks(ctx context.Context) error {
	removed, err := l.Config.Target.RemoveLocks(ctx, l.since.Add(-l.LockAge))
	if len(removed) > 0 {
		l.Log.Warn("removed lock files that a killed git has left", "files", removed)
	}
	if locked, ok := errors.AsType[*merge.Locked](err); ok {
		l.Log.Warn("lock files of git stay for now", "error", locked)
		return nil
	}
	return err
}

// again computes the commits of a staged move anew, in case that their objects were lost with the machine.
func (l *line) again(ctx context.Context, s *Staged) error {
	for _, landing := range s.Landings {
		var r Record
		if found, err := read(ctx, l.Client, l.Name.RecordKey(landing.Submission), &r); err != nil || !found {
			return errors.Join(err, fmt.Errorf("the record of staged submission %s is missing", landing.Submission))
		}
		got, err := l.Boundary.Land(ctx, turn(&r, landing.Parent, landing.Sequence))
		if err != nil {
			return err
		}
		if got.Commit != landing.Commit {
			return fmt.Errorf(
				"landing %d was staged as %s and is %s now: the profile was %s and is %s",
				landing.Sequence, landing.Commit, got.Commit, landing.Profile, got.Profile,
			)
		}
	}
	return nil
}

// readRecent reads the last landings.
func (l *line) readRecent(ctx context.Context) error {
	from := l.Name.LandingKey(l.target.Sequence - min(l.target.Sequence, keepRecent))
	for d, err := range l.Client.List(ctx, client.ListRequest{
		Prefix: string(l.Name.Key()) + "/landing/", After: from, Bodies: true,
	}) {
		if err != nil {
			return err
		}
		var landing Landing
		if json.Unmarshal(d.Body, &landing) == nil {
			l.last = append(l.last, landing)
		}
	}
	return nil
}
