package merger

import (
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
	paused  bool
	awaited map[train.ID]uint64 // places of submissions that an earlier merger had in line, until they are back
	held    map[train.ID]bool   // submissions in line that wait for those

	trees    recent[step, stepResult]      // what was computed
	reported recent[string, int]           // failures that the train knows, by tree and check
	passed   recent[string, bool]          // by tree
	failures recent[string, []CheckResult] // by tree
}

// event is what happened elsewhere, carried out by the owner.
type event func(ctx context.Context) error

// entry is a submission in line. Its id in the train is that of its task, so that each content has another.
type entry struct {
	record Record
	paths  []string // that it touches, in order; none if it cannot land
	lease  *client.Lease
	alone  *aloneRun // nil until one of its trees has failed
	reply  chan<- reply
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
	for {
		l.release()
		if err := l.step(ctx); err != nil {
			return err
		}
		var poll, recheck <-chan time.Time
		if len(l.records) > 0 {
			poll = look.C
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
	back := func(why Why, format string, args ...any) error {
		o := &Outcome{
			Code: Returned, Submission: s.ID, Target: string(l.Name.Key()), Reason: why,
			Message: fmt.Sprintf(format, args...),
		}
		replies <- reply{done: client.Done{Result: o}}
		return nil
	}
	if err := decodeSubmission(task, &s); err != nil {
		return back(WhyPolicy, "The submission cannot be read: %v. Correct it, and submit again.", err)
	}
	if err := l.findPlace(ctx, task, &s); err != nil {
		return err
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
	withdrawn, err := l.isWithdrawn(ctx, key, id)
	if err != nil {
		return err
	}
	e := &entry{lease: lease, reply: replies}
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
		if e.paths, _, err = l.unfit(ctx, &r); err != nil {
			return err
		}
		if why := l.unclaimed(e, task.Claims); why != "" { // the rule is newer
			e.record = r
			o := l.back(e, WhyPolicy, &Against{l.target.Sequence, l.target.Head})
			o.Message = why
			if err := l.finish(ctx, &Staged{Old: l.target.Head, New: l.target.Head, Returns: []*Outcome{o}}); err != nil {
				return err
			}
			replies <- reply{done: client.Done{Result: o}}
			return nil
		}
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
		r.Measured = false
		r.Resolving, r.Resolutions, r.Resolved, r.Unresolved = nil, 0, nil, ""
		var why string
		if e.paths, why, err = l.unfit(ctx, &r); err != nil {
			return err
		} else if why != "" {
			return back(WhyPolicy, "%s", why)
		}
		if why = l.unclaimed(e, task.Claims); why != "" {
			return back(WhyPolicy, "%s", why)
		}
		r.Clashes = l.clashes(ctx, &r, e.paths)
		if err := l.commit(ctx, client.Put(l.Name.RecordKey(key), encode(r))); err != nil {
			return err
		}
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

// unfit returns the paths that a submission touches, or why it can never land. What it finds would stop the whole
// line later.
func (l *line) unfit(ctx context.Context, r *Record) (paths []string, why string, err error) {
	for _, id := range []string{r.Head, r.Base} {
		if id == "" {
			continue
		}
		kind, err := l.Files.Kind(ctx, id)
		if err == nil && kind == "" && l.Fetch != nil {
			var found bool
			if found, err = l.Fetch(ctx, r.ID); found {
				kind, err = l.Files.Kind(ctx, id)
			}
		}
		switch {
		case err != nil:
			return nil, "", err
		case kind == "":
			return nil, missing(id), nil
		case kind != "commit":
			return nil, fmt.Sprintf("The object %s is a %s: submit a commit.", id, kind), nil
		}
	}
	paths, err = l.Boundary.Admit(ctx, turn(r, l.target.Head, l.target.Sequence+1))
	if gone, ok := errors.AsType[*merge.Missing](err); ok {
		return nil, missing(gone.Object), nil
	}
	if refused, ok := errors.AsType[*merge.Refusal](err); ok {
		return nil, "The submission cannot land: " + refused.Error() + ".", nil
	}
	return paths, "", err
}

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

// findPlace has a submission of a workspace take the place of the workspace's one that was returned last.
func (l *line) findPlace(ctx context.Context, task interlock.Task, s *Submission) error {
	if s.Workspace == "" || s.Resubmits != "" {
		return nil
	}
	var last previousReturn
	if found, err := read(ctx, l.Client, l.Name.workspaceKey(s.Workspace), &last); err != nil || !found {
		return err
	}
	var r Record
	_, err := read(ctx, l.Client, l.Name.RecordKey(last.Submission), &r)
	mine := r.Agent == task.Agent && r.Principal == task.Principal && r.Workspace == s.Workspace
	if mine && (r.State == Returned && r.Submission.ID != s.ID || r.Task == task.ID.String()) {
		s.Resubmits = last.Submission
	}
	return err
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
	if s.Base != "" {
		err = errors.Join(err, git.CheckObject(s.Base))
	}
	if s.Resubmits != "" {
		err = errors.Join(err, git.CheckName(s.Resubmits))
	}
	if s.Workspace != "" {
		err = errors.Join(err, git.CheckName(s.Workspace))
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
			if l.awaitsAlone(ctx, p.Settle) {
				return nil
			}
			if err := l.settle(ctx, p.Settle); err != nil {
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
