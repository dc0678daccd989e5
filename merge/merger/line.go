package merger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// line is one time in the seat. One goroutine owns it: run. Others send it events.
type line struct {
	*Merger
	seat    *client.Lease
	since   time.Time // when the seat was taken, by the clock that also dates files
	target  Target
	train   *train.Train
	records map[train.ID]*entry
	events  chan event
	ended   chan struct{} // closed when the owner has ended
	last    []Landing     // the last landings, oldest first
	checks  map[uint64]context.CancelFunc
	quiet   *quiet
	paused  bool
	freeze  *Frozen             // nil: the target is not frozen
	awaited map[train.ID]uint64 // places of submissions that an earlier merger had in line, until they are back
	held    map[train.ID]bool   // submissions in line that wait for those

	// refusals are those of landings that were staged before the seat was taken, by commit.
	refusals map[string]*merge.Rejected

	health  Health
	settled bool // it has recovered
	worked  bool // a submission has ended

	trees    recent[step, stepResult]      // what was computed
	reported recent[string, int]           // failures that the train knows, by tree and check
	passed   recent[string, []Pass]        // by tree
	failures recent[string, []CheckResult] // by tree
}

// event is what happened elsewhere, carried out by the owner.
type event func(ctx context.Context) error

// entry is a submission in line. Its id in the train is that of its task, so that each content has another.
type entry struct {
	record Record
	paths  []string // that it touches, in order; none if it cannot land
	lease  *client.Lease
	// sound is a head of the target that reverts nothing under it. holders are leases of others on its paths, as far as
	// they are known.
	sound   string
	holders []Holder
	based   bool      // the submission that it builds on has landed
	seeks   bool      // that one is not in line, and will be
	alone   *aloneRun // nil until one of its trees has failed
	fault   *fault    // why the repository has refused it
	reply   chan<- reply
	passed  []Pass // of the last chain with it that has passed
}

// reply ends the attempt of a submission's task.
type reply struct {
	done client.Done
	err  error
}

// run takes submissions and merges until ctx ends or something fails.
func (l *line) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() {
		worked <- l.Client.Work(ctx, client.Worker{
			Queue: l.Name.Queue(), Concurrency: l.Window, Drain: time.Millisecond, Handle: l.handle,
		})
	}()
	defer func() {
		cancel()
		close(l.ended)
		<-worked
	}()
	look := time.NewTicker(l.Poll)
	defer look.Stop()
	polled := true
	for {
		if err := l.restack(ctx, polled); err != nil {
			return err
		}
		polled = false
		if err := l.step(ctx); err != nil {
			return err
		}
		var poll, recheck <-chan time.Time
		switch {
		case len(l.records) > 0:
			poll = look.C
		case l.health.Failure == nil:
		case time.Since(l.since) < recallWithin:
			poll = look.C // what it failed at may come back
		default:
			if err := l.progress(ctx); err != nil {
				return err
			}
		}
		if fails := l.train.HeadFails(); fails {
			l.Log.Warn("the head itself fails its checks: nothing is returned until it passes", "head", l.target.Head)
			recheck = time.After(l.Recheck)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-worked:
			worked <- nil
			return err
		case <-poll: // the queue may be paused no more
			polled = true
			if _, err := l.readFreeze(ctx); err != nil {
				return err
			}
			if _, err := l.withdraw(ctx, slices.Sorted(maps.Keys(l.records))); err != nil {
				return err
			}
		case <-recheck:
			l.train.Recheck()
		case e := <-l.events:
			if err := e(ctx); err != nil {
				return err
			}
		}
	}
}

// send passes an event to the owner, unless ctx ends first.
func (l *line) send(ctx context.Context, e event) bool {
	select {
	case l.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// handle holds a submission's task until the submission has landed, is returned or is withdrawn.
func (l *line) handle(ctx context.Context, job *client.Job) (client.Done, error) {
	replies := make(chan reply, 1)
	task := job.Task()
	if l.send(ctx, func(ctx context.Context) error { return l.admit(ctx, task, job.Lease(), replies) }) {
		select {
		case r := <-replies:
			return r.done, r.err
		case <-ctx.Done():
		}
	}
	id := train.ID(task.ID.String())
	select {
	case l.events <- func(context.Context) error { return l.leave(id, replies) }:
	case <-l.ended:
	}
	return client.Done{}, client.RetryAfter(0, context.Cause(ctx))
}

// admit puts a task into the line, or ends it at once.
func (l *line) admit(ctx context.Context, task interlock.Task, lease *client.Lease, replies chan<- reply) error {
	var s Submission
	id := train.ID(task.ID.String())
	delete(l.awaited, id)
	end := func(o *Outcome) error {
		o.Code, o.Submission, o.Target = Returned, s.ID, string(l.Name.Key())
		replies <- reply{done: client.Done{Result: o}}
		if l.health.Deaths[string(id)] == 0 {
			return nil
		}
		return l.progress(ctx, string(id))
	}
	back := func(why Why, format string, args ...any) error {
		return end(&Outcome{Reason: why, Message: fmt.Sprintf(format, args...)})
	}
	if err := decodeSubmission(task, &s); err != nil {
		return back(WhyPolicy, "The submission cannot be read: %v. Correct it, and submit again.", err)
	}
	st, err := l.findNewest(ctx, task, &s)
	if err != nil {
		return err
	}
	if st != nil && st.record != nil && st.record.State == Returned && !st.newer && s.Resubmits == "" &&
		st.record.ID != s.ID {
		s.Resubmits = st.record.ID
	}
	key := s.ID
	if s.Resubmits != "" {
		key = s.Resubmits
	}
	var r Record
	found, err := read(ctx, l.Client, l.Name.RecordKey(key), &r)
	if err != nil {
		return err
	}
	if found && r.Task != string(id) && r.State == Waiting {
		if found, err = l.waits(ctx, r.Task); err != nil {
			return err
		}
		if !found {
			r = Record{} // its task was cancelled before a merger had it again
		}
	}
	own := found && r.Agent == task.Agent && r.Principal == task.Principal && r.Task != string(id)
	switch {
	case own && r.State == Landed:
		there, err := l.landedStill(ctx, &r)
		if err != nil {
			return err
		}
		if !there { // the target was set back
			found, r, s.Resubmits = false, Record{}, ""
		}
	case own && r.State == Superseded && s.Resubmits == "" && s.Head == r.Head: // it comes back as a new one
		found, r = false, Record{}
	}
	withdrawn, err := l.isWithdrawn(ctx, key, id, task.Principal)
	if err != nil {
		return err
	}
	e := &entry{lease: lease, reply: replies}
	done := func(context.Context) error { return nil } // when the record is durable
	switch again := found && r.Task != string(id); {
	case found && !again && r.State != Waiting:
		replies <- reply{done: client.Done{Result: r.Outcome}} // the result was lost with its merger
		return nil
	case withdrawn: // while an earlier merger had it
		o := l.withdrawn(key)
		if found && !again {
			if o, err = l.endWithdrawn(ctx, &r); err != nil {
				return err
			}
		}
		replies <- reply{done: client.Done{Result: o}}
		return nil
	case found && !again: // it was in line before this merger took the seat
		e.record = r
		var o *Outcome
		if e.paths, o, err = l.unfit(ctx, e); err != nil {
			return err
		}
		if why := l.unclaimed(e, task.Claims); o == nil && why != "" { // the rule is newer
			o = l.back(e, WhyPolicy, &Against{l.target.Sequence, l.target.Head})
			o.Message = why
		}
		if o != nil && !contained(o) { // what the target has meanwhile, it returns when its turn comes
			if err := l.giveBack(ctx, o); err != nil {
				return err
			}
			replies <- reply{done: client.Done{Result: o}}
			return nil
		}
	case st != nil && st.newer && !(found && !again):
		o := l.superseded(key, st.newest.Submission)
		if !found {
			s.ID = key
			if err := l.supersedeLate(ctx, task, place(task, lease), s, st, o); err != nil {
				return err
			}
		}
		replies <- reply{done: client.Done{Result: o}}
		return nil
	case again && own && r.State == Landed && s.Resubmits == "" && s.Head == r.Head:
		return back(WhyPolicy, "Submission %q has landed: nothing is left to submit.", key)
	case again && (s.Resubmits == "" || r.Agent != task.Agent || r.Principal != task.Principal):
		return back(WhyPolicy, "Submission %q belongs to agent %q: submit under another id.", key, r.Agent)
	case again && r.State != Returned:
		return back(WhyPolicy, "Submission %q is %s: only a returned one can be submitted again.", key, r.State)
	case again && r.Tries >= l.MaxTries && !approved(task):
		replies <- reply{err: client.NeedsApproval(client.Question{Text: fmt.Sprintf(
			"Submission %q of agent %q was returned %d times, last: %.400s Try it again?",
			key, r.Agent, r.Tries, r.Outcome.Message,
		)})}
		return nil
	case !found && s.Resubmits != "":
		return back(WhyPolicy, "No submission %q was returned: submit without \"resubmits\".", key)
	default:
		now := time.Now().Unix()
		if !found {
			r = Record{
				Place: place(task, lease), Agent: task.Agent, Principal: task.Principal,
				Submitted: now - int64(task.Age/time.Second),
			}
		}
		s.ID = key
		r.Submission, r.State, r.Task, r.Outcome = s, Waiting, string(id), nil
		r.Admitted, r.Purpose = now, task.Purpose
		r.Measured, r.Onto = false, ""
		r.Priority = max(r.Priority, task.Priority)
		r.Resolving, r.Resolutions, r.Resolved, r.Unresolved = nil, 0, nil, ""
		e.record = r
		var o *Outcome
		if e.paths, o, err = l.unfit(ctx, e); err != nil {
			return err
		} else if o != nil {
			if no, err := l.objectsNow(ctx, e, nil); contained(o) && err == nil && no != nil && no.Reason == WhyReverted {
				o = no // the target has had all of it
			}
			o.Against, o.Tries = nil, 0 // it has no place to keep
			return end(o)
		}
		if why := l.unclaimed(e, task.Claims); why != "" {
			return back(WhyPolicy, "%s", why)
		}
		if task.Priority > 0 && !l.mayHavePriority(task.Principal) {
			return end(notPrior(task.Principal))
		}
		replaced := ""
		if st != nil && st.record != nil && st.record.State == Waiting && st.record.ID != key {
			replaced = st.record.ID
		}
		if o, err = l.unbased(ctx, &r, replaced); err != nil {
			return err
		} else if o != nil {
			return end(o)
		}
		if o, err = l.objectsNow(ctx, e, nil); err != nil {
			return err
		} else if o != nil {
			return end(o)
		}
		r.From = cmp.Or(e.record.From, r.Onto)
		if first := l.goAhead(&r, place(task, lease), replaced); first != nil {
			l.Log.Info("goes ahead by its priority", "submission", key, "priority", r.Priority, "of", first.ID)
		}
		var writes []interlock.Write
		if replaced != "" {
			writes, done = l.supersede(st.record, &r)
		}
		if r.Workspace != "" {
			writes = append(writes, client.Put(l.Name.homeKey(r.home()), encode(newest{key, r.Task})))
		}
		r.Clashes = slices.DeleteFunc(l.clashes(ctx, &r, e.paths), func(c Clash) bool {
			return len(writes) > 1 && c.Submission == st.record.ID // it is superseded
		})
		f, err := l.attempt(ctx, key, func(ctx context.Context) error {
			return l.commit(ctx, append(writes, client.Put(l.Name.RecordKey(key), encode(r)))...)
		})
		if err != nil {
			return err
		} else if f != nil {
			o := l.faulty(e, f, nil)
			o.Tries = 0
			return end(o)
		}
	}
	if err := done(ctx); err != nil {
		return err
	}
	e.record = r
	l.records[id] = e
	l.Log.Info("in line", "submission", r.ID, "place", r.Place)
	if r.Resolving != nil { // by an earlier merger
		l.awaitResolver(ctx, id)
	} else {
		l.place(ctx, id, e)
	}
	return nil
}

// unfit returns the paths that a submission touches, or the outcome of one that can never land.
func (l *line) unfit(ctx context.Context, e *entry) (paths []string, o *Outcome, err error) {
	r := &e.record
	against := &Against{l.target.Sequence, l.target.Head}
	if f := l.doomed(train.ID(r.Task)); f != nil {
		return nil, l.faulty(e, f, against), nil
	}
	before := l.health.Working
	if err := l.working(ctx, r.Task); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, l.working(ctx, before)) }()
	policy := func(cause Cause, words, format string, args ...any) *Outcome {
		o := l.back(e, WhyPolicy, against)
		o.Cause, o.Words, o.Message = cause, words, fmt.Sprintf(format, args...)
		return o
	}
	f, err := l.attempt(ctx, r.ID, func(ctx context.Context) (err error) {
		for _, id := range []string{r.Head, r.Base} {
			if id == "" {
				continue
			}
			kind, err := l.Files.Kind(ctx, id)
			if err == nil && kind == "" && l.Fetch != nil {
				var found bool
				if found, err = l.Fetch(ctx, r.ID); found && err == nil {
					kind, err = l.Files.Kind(ctx, id)
				}
			}
			switch {
			case err != nil:
				return err
			case kind == "":
				return &merge.Missing{Object: id}
			case kind != "commit":
				o = policy(CauseObjects, "", "The object %s is a %s: submit a commit.", id, kind)
				return nil
			}
		}
		if err := l.goesOn(ctx, r); err != nil {
			return err
		}
		paths, err = l.Boundary.Admit(ctx, l.turn(r, l.target.Head, l.target.Sequence+1, l.Checks))
		return err
	})
	refused := refusal(err)
	switch {
	case err == nil && f == nil:
		return paths, o, nil
	case err == nil:
		return nil, l.faulty(e, f, against), nil
	case refused == nil:
		return nil, nil, err
	case refused.Reason == whyMissing:
		return nil, policy(CauseMissing, "", "%s", missing(strings.Join(refused.Paths, ", "))), nil
	case refused.Reason == merge.ReasonObjects:
		return nil, policy(CauseObjects, refused.Detail, "The submission cannot land: %s.", refused.Error()), nil
	}
	return nil, policy(Cause(refused.Reason), "", "The submission cannot land: %s.", refused.Error()), nil
}

// contained reports whether a submission cannot land because the target has all of it.
func contained(o *Outcome) bool { return o.Cause == Cause(merge.ReasonEmpty) }

func missing(object string) string {
	return fmt.Sprintf("The repository lacks the commit or file %s: push it to the repository of the merge queue, "+
		"which interlock workspace new --upstream names, and submit again.", object)
}

// place is the fence of a task's first lease. A merger may have died after that and before it wrote a record.
func place(task interlock.Task, lease *client.Lease) uint64 {
	first := lease.Fence()
	for _, a := range task.Attempts {
		first = min(first, a.Fence)
	}
	return uint64(first)
}

// waits reports whether a task may still be handed out.
func (l *line) waits(ctx context.Context, task string) (bool, error) {
	id, err := interlock.ParseTaskID(task)
	if err != nil {
		return false, err
	}
	t, err := l.Client.Task(ctx, id)
	if forgotten(err) {
		return false, nil
	}
	return err == nil && t.State != interlock.TaskCancelled && t.State != interlock.TaskDead, err
}

func approved(t interlock.Task) bool {
	return t.Approval != nil && t.Approval.Verdict == interlock.Approved
}

// maxMessage is how many bytes the boundary takes for a message.
const maxMessage = 64 << 10

// decodeSubmission reads a payload and checks its form.
func decodeSubmission(task interlock.Task, s *Submission) error {
	if err := json.Unmarshal(task.Payload, s); err != nil {
		return err
	}
	if s.ID == "" {
		s.ID = task.ID.String()
	}
	err := errors.Join(git.CheckName(s.ID), git.CheckObject(s.Head))
	switch s.Style {
	case "", merge.StyleMerge:
		s.Base = "" // a merge finds its own bases
	case merge.StyleSquash:
	default:
		err = errors.Join(err, fmt.Errorf("the style %q is unknown: want merge or squash", s.Style))
	}
	if len(s.Message) > maxMessage || strings.ContainsRune(s.Message, 0) {
		err = errors.Join(err, fmt.Errorf("the message is no text of at most %d bytes", maxMessage))
	}
	for _, w := range s.Allow {
		if !slices.Contains(Allowable(), w) {
			err = errors.Join(err, fmt.Errorf("%q cannot be allowed: want one of %s", w, join(Allowable())))
		}
	}
	if s.Base != "" {
		err = errors.Join(err, git.CheckObject(s.Base))
	}
	if s.Resubmits != "" {
		err = errors.Join(err, git.CheckName(s.Resubmits))
	}
	if s.On != "" {
		err = errors.Join(err, git.CheckName(s.On))
	}
	if s.Workspace != "" {
		err = errors.Join(err, git.CheckName(s.Workspace))
	}
	if s.WorkspaceID != "" {
		err = errors.Join(err, git.CheckName(s.WorkspaceID))
	}
	return err
}

// leave takes a submission out of the line: its task will be handed out again.
func (l *line) leave(id train.ID, replies chan<- reply) error {
	e := l.records[id]
	if e == nil || e.reply != replies {
		return nil // it has ended, or is here in another attempt
	}
	delete(l.records, id)
	l.train.Withdraw(id)
	return nil
}

// step carries out plans until there is nothing more to do now.
func (l *line) step(ctx context.Context) error {
	for {
		p := l.train.Plan()
		if len(p.Settle) > 0 {
			var err error
			if l.paused, err = l.isPaused(ctx); err != nil || l.paused {
				return err
			}
			if changed, err := l.readFreeze(ctx); err != nil {
				return err
			} else if changed {
				l.hold()
				continue // another plan may land
			}
			if l.awaitsAlone(ctx, p.Settle) {
				return nil
			}
			if err := l.settle(ctx, p.Settle); err != nil {
				return err
			}
			if err := l.restack(ctx, false); err != nil {
				return err
			}
			continue
		}
		for _, number := range p.Cancel {
			l.train.Cancel(number)
			if cancel := l.checks[number]; cancel != nil {
				cancel()
				delete(l.checks, number)
			}
		}
		tips := make([]tip, 0, len(p.Start))
		conflict := false
		for _, c := range p.Start {
			t, clean, err := l.chain(ctx, c.Chain)
			if err != nil {
				return err
			}
			if conflict = !clean; conflict {
				break
			}
			tips = append(tips, t)
		}
		if conflict {
			continue // the train knows it, and plans another chain
		}
		for i, c := range p.Start {
			l.train.Start(c)
			l.startCheck(ctx, c, tips[i])
		}
		if len(p.Start)+len(p.Cancel) == 0 {
			return nil
		}
	}
}

// isPaused reports whether an operator has paused the queue.
func (l *line) isPaused(ctx context.Context) (bool, error) {
	queues, err := l.Client.Queues(ctx)
	if err != nil {
		return false, err
	}
	for i := range queues {
		if queues[i].Name == l.Name.Queue() {
			return queues[i].Paused, nil
		}
	}
	return false, nil
}

// commit writes documents of the target, under the seat's lease.
func (l *line) commit(ctx context.Context, writes ...interlock.Write) error {
	_, err := l.seat.Commit(ctx, client.Commit{Writes: writes})
	return err
}
