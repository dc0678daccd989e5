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
	if some, err := l.objectBefore(ctx, outcomes); err != nil || some {
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
		if o.Reason == train.FailsCheck || o.Reason == train.Refused {
			if o.Reason == train.Refused {
				results[i] = l.faulty(e, e.fault, against)
			} else {
				results[i] = l.failed(ctx, e, against)
			}
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
			signed, err := l.Boundary.Sign(ctx, res.landing)
			if err != nil {
				return err
			}
			if signed.Signature != "" {
				staged.Signatures = append(staged.Signatures, signed.Signature)
			}
			landing := Landing{
				Sequence: res.landing.Sequence, Submission: e.record.ID, Task: e.record.Task, Commit: signed.Commit,
				Tree: res.landing.Tree, Parent: res.landing.Parent, Profile: res.landing.Profile,
				Style: e.record.Style, Head: e.record.Head, Agent: e.record.Agent, Purpose: e.record.Purpose,
				Paths: res.landing.Paths, Renamed: res.landing.Renamed,
				Apart: o.Apart, Resolved: e.record.Resolved, Principal: e.record.Principal, Checks: l.Checks,
				Admitted: e.record.Admitted * 1000, At: time.Now().UnixMilli(),
			}
			landing.Allowed, landing.Held = res.allowed, e.holders[:min(len(e.holders), maxNamedHolders)]
			if landing.More = max(0, len(landing.Paths)-maxNamedPaths); landing.More > 0 {
				landing.Paths = landing.Paths[:maxNamedPaths]
			}
			results[i] = landed(l.Name, &landing)
			landing.fit(maxStaged / len(outcomes))
			staged.Landings = append(staged.Landings, landing)
			staged.New = landing.Commit
			chain = append(chain, o.ID)
		}
	}
	if n := len(staged.Landings); n > 0 {
		tip := staged.Landings[n-1]
		if _, passed := l.passed.get(tip.Tree); !passed && !tip.Apart {
			return fmt.Errorf("tree %s of submission %s would land and was not checked", tip.Tree, tip.Submission)
		}
		l.prove(staged.Landings, chain)
		k := 0
		for _, o := range results {
			if o.Code == Landed {
				o.Landing.Passed = staged.Landings[k].Passed
				k++
			}
		}
	}
	if err := l.write(ctx, staged, leases); err != nil {
		no, ok := errors.AsType[*merge.Rejected](err)
		if !ok {
			return err
		}
		head, err := l.rejected(ctx, no, staged, chain)
		if err != nil || head == "" {
			return err
		}
		if err := l.finish(ctx, staged, head); err != nil {
			return err
		}
	}
	for _, o := range results {
		if o.Code == Landed && l.target.Head != staged.New {
			o.Landing.Carrier = l.target.Head
		}
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

// rejected takes back a landing that the repository has refused. Several are cut, as after a failed check. One goes
// back, unless the repository refuses each landing, or takes it after all: then head has it.
func (l *line) rejected(
	ctx context.Context, no *merge.Rejected, s *Staged, chain []train.ID,
) (head string, err error) {
	if len(chain) == 1 {
		f, head, err := l.refused(ctx, no, s)
		if err != nil || f == nil {
			return head, err
		}
		l.records[chain[0]].fault = f
	}
	if _, head, err = l.takeBack(ctx, s); err != nil || head != "" {
		return head, err
	}
	next := l.target
	next.Staged = nil
	if err := l.commit(ctx, client.Put(l.Name.Key(), encode(next))); err != nil {
		return "", err
	}
	l.target = next
	l.train.Refuse(chain)
	l.Log.Warn("the repository refuses a landing", "landings", len(chain), "words", no.Words)
	return "", nil
}

// takeBack sees to it that what is staged does not land any more. It may have landed: then head has it.
func (l *line) takeBack(ctx context.Context, s *Staged) (at merge.Position, head string, err error) {
	ctx, cancel := l.limited(ctx)
	defer cancel()
	if at, err = l.Config.Target.Revoke(ctx, uint64(l.seat.Fence())); err != nil {
		return at, "", err
	}
	head, err = l.Config.Target.Taken(ctx, l.moveOf(s), at.Head)
	return at, head, err
}

// prove adds to landings the verdicts that let them land: those of the own tree, or of the nearest later one that has
// passed, or of the lane of a landing that was checked apart.
func (l *line) prove(landings []Landing, chain []train.ID) {
	var passes []Pass
	for i := len(landings) - 1; i >= 0; i-- {
		o := &landings[i]
		own, passed := l.passed.get(o.Tree)
		if passed {
			passes = own
		}
		if o.Passed = passes; o.Apart && !passed || len(passes) == 0 {
			o.Passed = l.records[chain[i]].passed
		}
	}
}

// KeepLandings is of how many landings the documents stay.
const KeepLandings = 1000

const (
	maxNamedPaths   = 200
	maxNamedHolders = 20
	keepLandings    = KeepLandings
	keepRecent      = 200
)

// write carries out the three steps of a landing. The first one fails unless the leases are held.
func (l *line) write(ctx context.Context, s *Staged, leases []interlock.LeaseID) error {
	switch {
	case len(s.Landings) == 0 && len(s.Returns) == 0:
		return nil // all go to a resolver
	case len(s.Landings) == 0:
		return l.finish(ctx, s, s.New)
	}
	next := l.target
	s.By, next.Staged = l.principal, s
	body := encode(next)
	if len(body) > maxCommit { // what goes back is decided again, if this merger dies
		staged := *s
		staged.Returns, next.Staged = nil, &staged
		body = encode(next)
	}
	if _, err := l.seat.Commit(ctx, client.Commit{
		Writes: []interlock.Write{client.Put(l.Name.Key(), body)}, Leases: leases,
	}); err != nil {
		return err
	}
	l.target = next
	head, err := l.move(ctx, s)
	if err != nil {
		return err
	}
	return l.finish(ctx, s, head)
}

// move is the second step. It returns the target's commit that has the landings. What it waits for is in the health.
func (l *line) move(ctx context.Context, s *Staged) (head string, err error) {
	try := func() (string, error) {
		ctx, cancel := l.limited(ctx)
		defer cancel()
		return l.Config.Target.Move(ctx, l.moveOf(s))
	}
	if no := l.refusals[s.New]; no != nil { // when this seat was taken: nothing has changed since
		delete(l.refusals, s.New)
		return "", no
	}
	for until := time.Now().Add(l.MoveWithin); ; {
		head, err := try()
		waits, ok := errors.AsType[*Pending](err)
		if !ok {
			return head, err
		}
		if time.Now().After(until) {
			return "", fmt.Errorf("it has waited for %v: %s", l.MoveWithin, waits.For) // told again, with each try
		}
		if err := l.tell(ctx, waits.Error()); err != nil {
			return "", err
		}
	}
}

func (l *line) moveOf(s *Staged) merge.Move {
	return merge.Move{
		Token: uint64(l.seat.Fence()), Sequence: s.Landings[len(s.Landings)-1].Sequence, Old: s.Old, New: s.New,
	}
}

// finish is the third step: it writes the landings, the outcomes and the new head, and forgets old landings. head is
// where the target has them.
func (l *line) finish(ctx context.Context, s *Staged, head string) error {
	next := l.target
	next.Staged, next.Head = nil, head
	outcomes := slices.Clone(s.Returns)
	var writes []interlock.Write
	var keys, old []interlock.Key
	for i := range s.Landings {
		landing := &s.Landings[i]
		if head != s.New {
			landing.Carrier = head
		}
		next.Sequence = landing.Sequence
		writes = append(writes, client.Put(l.Name.LandingKey(landing.Sequence), encode(landing)))
		outcomes = append(outcomes, landed(l.Name, landing))
		if landing.Sequence > keepLandings {
			old = append(old, l.Name.LandingKey(landing.Sequence-keepLandings))
		}
	}
	for _, o := range outcomes {
		o.fit()
		keys = append(keys, l.Name.RecordKey(o.Submission))
	}
	got, err := l.Client.Documents(ctx, append(keys, old...)...)
	if err != nil {
		return err
	}
	var ended []string
	for i, d := range got.Documents {
		switch {
		case d.Absent:
		case i < len(outcomes):
			var r Record
			if json.Unmarshal(d.Body, &r) != nil {
				continue
			}
			ended = append(ended, r.Task)
			r.State, r.Outcome = outcomes[i].Code, outcomes[i]
			if r.State == Returned {
				r.Tries = outcomes[i].Tries
			}
			writes = append(writes, client.Put(d.Key, encode(r)))
			if r.State == Returned && r.Workspace != "" {
				writes = append(writes, client.Put(l.Name.homeKey(r.home()), encode(newest{r.ID, r.Task})))
			}
		default:
			var gone Landing
			if err := json.Unmarshal(d.Body, &gone); err == nil {
				writes = append(writes, client.Delete(l.Name.RecordKey(gone.Submission)))
			}
			writes = append(writes, client.Delete(d.Key))
		}
	}
	if err := l.commitAll(ctx, append(writes, client.Put(l.Name.Key(), encode(next)))); err != nil {
		return err
	}
	l.target = next
	l.last = append(l.last, s.Landings...)
	l.last = l.last[max(0, len(l.last)-keepRecent):]
	return l.progress(ctx, ended...)
}

// giveBack returns a submission, and lands nothing.
func (l *line) giveBack(ctx context.Context, o *Outcome) error {
	return l.finish(ctx, &Staged{Returns: []*Outcome{o}}, l.target.Head)
}

// recover finds out where the target is, raises the fence, and ends what an earlier merger has staged, if the fence
// shows that it has moved the ref, or if it was computed and checked. Else the submissions are in line, and land anew.
func (l *line) recover(ctx context.Context) error {
	limited, cancel := l.limited(ctx)
	defer cancel()
	before, err := l.Config.Target.Read(limited)
	if err != nil {
		return err
	}
	if _, err := l.readFreeze(ctx); err != nil {
		return err
	}
	at, err := l.Config.Target.Claim(limited, uint64(l.seat.Fence()))
	if err != nil {
		return err
	}
	d, err := l.Client.Document(ctx, l.Name.Key())
	if err != nil {
		return err
	}
	known := !d.Absent && json.Unmarshal(d.Body, &l.target) == nil
	if !known {
		l.target = Target{}
	}
	// Numbers of landings are in commits, so none is given twice, whatever became of the document.
	if number := before.Fence.Sequence; l.target.Staged == nil && l.target.Sequence < number {
		known, l.target.Sequence = false, number
	}
	if err := l.readRecent(ctx); err != nil {
		return err
	}
	if s := l.target.Staged; s != nil && len(s.Landings) > 0 {
		if at.Head, err = l.recoverStaged(ctx, s, before.Fence, at.Head, l.wrote(d, s.By)); err != nil {
			return err
		}
	} else if at.Fence.Offer != "" { // of a document that is lost
		if at, err = l.Config.Target.Revoke(limited, uint64(l.seat.Fence())); err != nil {
			return err
		}
	}
	if known && l.target.Head == at.Head && l.target.Staged == nil && l.target.Ref == l.Name.Ref() &&
		l.target.Repository == l.repository && slices.Equal(l.target.Leases, l.Leases) {
		return nil
	}
	if known && l.target.Head != at.Head {
		l.Log.Warn("the target was moved by others", "from", l.target.Head, "to", at.Head)
	}
	l.target.Ref, l.target.Head, l.target.Profile, l.target.Staged = l.Name.Ref(), at.Head, l.Profile, nil
	l.target.Leases, l.target.Repository = l.Leases, l.repository
	return l.commit(ctx, client.Put(l.Name.Key(), encode(l.target)))
}

// recoverStaged ends what an earlier merger has staged, or takes it back, and returns the target's head. fence is as
// the earlier merger has left it.
func (l *line) recoverStaged(
	ctx context.Context, s *Staged, fence merge.Fence, at string, ours bool,
) (string, error) {
	limited, cancel := l.limited(ctx)
	defer cancel()
	m := l.moveOf(s)
	head, doubt := "", ""
	var err error
	moved := fence.Sequence == m.Sequence && fence.Commit == s.New
	if moved {
		head = s.New
	} else if fence.Sequence == m.Sequence && fence.Offer == "" {
		head, err = l.Config.Target.Taken(limited, m, fence.Commit)
		moved = head != ""
	}
	if err == nil && !moved {
		head, err = l.Config.Target.Taken(limited, m, at)
	}
	if err != nil {
		return at, err
	}
	if !moved && (at == s.Old || head != "") {
		if doubt, err = l.doubts(ctx, s, ours); err != nil {
			return at, err
		}
	}
	if doubt == "" && head == "" && at == s.Old {
		head, err = l.move(ctx, s)
		if no, ok := errors.AsType[*merge.Rejected](err); ok {
			var then merge.Position
			if then, head, err = l.takeBack(ctx, s); err != nil {
				return at, err
			}
			if at = then.Head; head == "" {
				doubt = no.Words
				l.refusals = map[string]*merge.Rejected{s.New: no}
			}
		} else if err != nil {
			return at, err
		} else {
			at, moved = head, true
		}
	}
	if doubt == "" && head != "" {
		if !moved && fence.Offer != "" { // a forge has it, and nothing has noted that
			if _, err := l.move(ctx, s); err != nil {
				return at, err
			}
		}
		l.Log.Info("a staged landing is finished", "commit", s.New)
		return at, l.finish(ctx, s, head)
	}
	if doubt != "" {
		l.Log.Warn("a staged landing is taken back: its submissions are in line again", "commit", s.New, "why", doubt)
	}
	then, _, err := l.takeBack(ctx, s)
	return then.Head, err
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

// doubts returns why a staged move must not be finished, "" if it may: a merger has written it (ours), and each landing
// comes out as it is there and has passed all checks. It also makes the objects again that were lost with the machine.
func (l *line) doubts(ctx context.Context, s *Staged, ours bool) (string, error) {
	if !ours {
		return "no merger has staged it", nil
	}
	parent := s.Old
	for i, landing := range s.Landings {
		if landing.Parent != parent || landing.Sequence != l.target.Sequence+uint64(i)+1 {
			return fmt.Sprintf("landing %d does not follow the one before", landing.Sequence), nil
		}
		parent = landing.Commit
		var r Record
		if found, err := read(ctx, l.Client, l.Name.RecordKey(landing.Submission), &r); err != nil {
			return "", err
		} else if !found || r.Task != landing.Task || r.State != Waiting {
			return fmt.Sprintf("submission %s is not in line", landing.Submission), nil
		} else if l.freeze != nil && !l.freeze.Lands(&r) {
			return "the target is frozen", nil
		}
		turn := l.turn(&r, landing.Parent, landing.Sequence, landing.Checks)
		if i < len(s.Signatures) {
			turn.Signature = s.Signatures[i]
		}
		var got merge.Landing
		f, err := l.attempt(ctx, landing.Submission, func(ctx context.Context) (err error) {
			got, err = l.Boundary.Land(ctx, turn)
			return err
		})
		switch no := refusal(err); {
		case no != nil:
			return fmt.Sprintf("landing %d: %v", landing.Sequence, no), nil
		case err != nil:
			return "", err
		case f != nil:
			return fmt.Sprintf("landing %d: %s", landing.Sequence, f.words), nil
		}
		if got.Commit != landing.Commit || got.Tree != landing.Tree {
			return fmt.Sprintf(
				"landing %d was staged as %s and is %s now: the profile was %s and is %s",
				landing.Sequence, landing.Commit, got.Commit, landing.Profile, got.Profile,
			), nil
		}
		if unchecked, err := l.unchecked(ctx, s.Landings[i:]); err != nil || unchecked != "" {
			return unchecked, err
		}
	}
	if parent != s.New {
		return "its last landing is not where it moves the target", nil
	}
	return "", nil
}

// unchecked returns which check the first of some landings has not passed, "" for none.
func (l *line) unchecked(ctx context.Context, landings []Landing) (string, error) {
	o := &landings[0]
	for _, name := range l.Checks {
		i := slices.IndexFunc(o.Passed, func(p Pass) bool { return p.Check == name })
		if i < 0 {
			return fmt.Sprintf("landing %d has not passed check %q", o.Sequence, name), nil
		}
		p := o.Passed[i]
		if !o.Apart && !slices.ContainsFunc(landings, func(x Landing) bool { return x.Tree == p.Tree }) {
			return fmt.Sprintf("landing %d has passed check %q with another tree", o.Sequence, name), nil
		}
		v, err := l.verdict(ctx, l.Name.VerdictKey(p.Tree, name))
		if err != nil {
			return "", err
		}
		if !v.Passed {
			return fmt.Sprintf("there is no verdict of check %q on tree %s", name, p.Tree), nil
		}
	}
	return "", nil
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
