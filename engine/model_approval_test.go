package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// question is the last one that a person was asked about a task.
type question struct {
	interlock.Question // with its keys in their one spelling
	agent              string
	asked              engine.Time
	idle               time.Duration // since then, while no answer was possible

	given   []interlock.Endorsement // before the answer
	acted   []string                // the principals that gave those
	least   int                     // that its queue required when it was asked
	verdict interlock.Verdict       // 0 while it is open
	by      string
	name    string // of the principal that answered
	words   *message.Text
	barred  []string // principals that cannot answer, besides the submitter

	usedIn int      // the attempt that has used the answer; 0: none
	user   *request // its lease
}

// question is a question asked now.
func (m *model) question(ns interlock.Namespace, q *interlock.Question, agent string) *question {
	x := &question{Question: *q, agent: agent, asked: m.now}
	x.Reads = m.spelledCommit(&engine.Commit{Head: engine.Head{Namespace: ns}, CommitRequest: interlock.CommitRequest{
		Reads: q.Reads,
	}}).Reads
	if x.OnLimit == 0 {
		x.OnLimit = interlock.Denied
	}
	return x
}

// until is when it answers itself; ok is false when it does not.
func (q *question) until() (end engine.Time, ok bool) {
	return q.asked.Add(q.Limit + q.idle), q.Limit > 0
}

// isUnapproved reports whether a task has a question that was not answered with yes.
func (t *task) isUnapproved() bool {
	return t.question != nil && t.question.verdict != interlock.Approved
}

// asksAgain reports whether a task asks when it is taken up again: its question was not answered with yes, or the
// answer was for an attempt that has been.
func (m *model) asksAgain(t *task, replay bool) bool {
	return t.isUnapproved() ||
		replay && t.question != nil && t.question.usedIn > 0 && m.queueOf(t).Approval == interlock.ApprovalOnce
}

// wrongQuestion names the rules that a question breaks.
func (m *model) wrongQuestion(ns interlock.Namespace, q *interlock.Question) (codes []interlock.Code) {
	if q.Text == "" || q.OnLimit > interlock.Denied {
		codes = append(codes, interlock.CodeInvalidRequest)
	}
	if q.Limit < 0 || q.Limit > interlock.MaxDelay {
		codes = append(codes, interlock.CodeInvalidTTL)
	}
	reads := &engine.Commit{Head: engine.Head{Namespace: ns}, CommitRequest: interlock.CommitRequest{Reads: q.Reads}}
	codes = append(codes, m.malformed(reads)...)
	return append(codes, m.notAdmitted(m.spelledCommit(reads))...)
}

// permitQuestion: only the holder of a task asks about it, and its attempt does not count.
func (m *model) permitQuestion(cmd engine.Command, ev *record.Event) error {
	t := m.task(ev.Namespace, ev.ID)
	c, ok := cmd.(*engine.AskHuman)
	switch {
	case !ok || t == nil || t.state != interlock.TaskRunning || c.Lease != t.request.ask.ID || !t.request.active():
		return fmt.Errorf("the worker of %v does not ask", t)
	case interlock.TaskState(ev.Op) != interlock.TaskAsking || int(ev.Generation) != t.attempt-1:
		return fmt.Errorf("%v is %v after %d attempts when its worker asks", t, interlock.TaskState(ev.Op), ev.Generation)
	case ev.Agent != m.agentOf(t.request) || ev.Fence != t.request.fence:
		return fmt.Errorf("%q with fence %d has not asked about %v", ev.Agent, ev.Fence, t)
	}
	return nil
}

// permitVerdict: a person's word decides, or the asker's when the time is over.
func (m *model) permitVerdict(cmd engine.Command, ev *record.Event) error {
	t := m.task(ev.Namespace, ev.ID)
	if t == nil || t.state != interlock.TaskAsking {
		return fmt.Errorf("%v asks nobody", t)
	}
	verdict, partial := m.onLimit(t), false
	if c, ok := cmd.(*engine.Answer); ok && c.Task == t.id && c.Namespace == t.ns && !m.byTime(ev) {
		if verdict = c.Verdict; ev.Agent != answerer(c) || ev.Actor != c.Actor || ev.Note != c.Reason {
			return fmt.Errorf("%q of %q did not say %q", ev.Agent, ev.Actor, ev.Note)
		}
		if principals, ok := m.actsFor(c); !ok || slices.ContainsFunc(principals, t.isInvolved) {
			return fmt.Errorf("%q answers its own question about %v, or has no right to", c.Actor, t)
		}
		twice := t.question.gave(c) || m.counts(t.question, c)
		if !listed(m.queueOf(t).Approvers, principalOf(c.Actor)) || verdict == interlock.Approved && twice {
			return fmt.Errorf("%q is no approver of %v, or has approved", c.Actor, t)
		}
		partial = verdict == interlock.Approved && len(t.question.given)+1 < m.leastOf(t)
	} else if end, limited := t.question.until(); ev.Agent != interlock.ByPolicy || ev.Actor != "" || !limited ||
		end > m.now {
		return fmt.Errorf("nobody has answered %v", t)
	}
	state, wait := interlock.TaskWaiting, time.Duration(0)
	switch {
	case partial:
		state = interlock.TaskAsking
	case verdict == interlock.Denied:
		state = interlock.TaskDead
	case t.due > m.now:
		state, wait = interlock.TaskScheduled, t.due.Sub(m.now)
	}
	if interlock.TaskState(ev.Op) != state || ev.Due != wait || int(ev.Generation) != t.attempt {
		return fmt.Errorf(
			"%v that is %v is to be %v in %v, not %v in %v", t, verdict, state, wait, interlock.TaskState(ev.Op), ev.Due,
		)
	}
	why := verdictReason(ev)
	if given := len(t.question.given); ev.Agent == interlock.ByPolicy {
		want := message.New(message.AnsweredByNone, message.Dur(t.question.Limit))
		if given > 0 {
			want = message.New(
				message.AnsweredByFew, message.Num(given), message.Num(m.leastOf(t)),
				message.Dur(t.question.Limit),
			)
		}
		if !reflect.DeepEqual(why, want) {
			return fmt.Errorf("%v is answered by policy with %v, want %v", t, why, want)
		}
	}
	if state != interlock.TaskDead {
		return nil
	}
	want := message.New(message.TaskDenied, message.Str(interlock.Answerer(ev.Actor, ev.Agent)))
	if why != nil {
		want.ID, want.Args = message.TaskDeniedSaying, append(want.Args, message.Sub(why))
	}
	if got := ev.Why(); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%v is denied with %v, want %v", t, got, want)
	}
	return nil
}

// verdictReason returns why a question was answered as it was. The store refuses an event that
// cannot be read.
func verdictReason(ev *record.Event) *message.Text {
	_, _, why, _ := ev.Verdict()
	return why
}

// gave reports whether the answering person has approved before.
func (q *question) gave(c *engine.Answer) bool {
	for _, x := range q.given {
		if x.Principal == c.Actor && (c.Actor != "" || x.By == answerer(c)) {
			return true
		}
	}
	return false
}

// counts reports whether an approval counts already for a principal of the answer.
func (m *model) counts(q *question, c *engine.Answer) bool {
	principals, _ := m.actsFor(c)
	return slices.ContainsFunc(principals, func(name string) bool { return name != "" && slices.Contains(q.acted, name) })
}

// leastOf is the number of approvals that a task needs: what its queue said when it asked, or more.
func (m *model) leastOf(t *task) int { return max(t.question.least, leastApprovals(m.queueOf(t))) }

// leastApprovals is the number that a queue requires.
func leastApprovals(q *interlock.TaskQueue) int {
	if len(q.Approvers) > 0 && q.MinApprovals == 0 {
		return 1
	}
	return q.MinApprovals
}

// onLimit returns the default answer to a question about a task: no, if its queue restricts
// approvals.
func (m *model) onLimit(t *task) interlock.Verdict {
	if m.leastOf(t) > 0 {
		return interlock.Denied
	}
	return t.question.OnLimit
}

// isInvolved reports whether a principal submitted a task, or asked about it.
func (t *task) isInvolved(name string) bool {
	return name != "" && (name == t.principal || slices.Contains(t.question.barred, name))
}

// ownerOf returns the principal that owns a lease or an offer, "" for none.
func (r *request) ownerOf() string {
	if r.session != nil {
		return r.session.owner
	}
	return r.ask.Actor
}

// answerer returns the answering person.
func answerer(c *engine.Answer) string {
	if c.By != "" {
		return c.By
	}
	return c.Actor
}

// foldQuestion takes in that a person is asked.
func (m *model) foldQuestion(cmd engine.Command, ev *record.Event) {
	c, t := cmd.(*engine.AskHuman), m.task(ev.Namespace, ev.ID)
	t.question = m.question(t.ns, &c.Question, m.agentOf(t.request))
	t.question.barred, t.question.least = []string{c.Actor, t.request.ownerOf()}, leastApprovals(m.queueOf(t))
	m.foldStanding(cmd, ev)
}

// foldIdle records that no answer was possible for a while before a term began.
func (m *model) foldIdle(idle time.Duration) {
	for _, t := range m.tasks {
		if q := t.question; q != nil && q.Limit > 0 && t.state == interlock.TaskAsking {
			q.idle = min(q.idle+idle, m.now.Sub(q.asked)) // a limit counts anew at most
		}
	}
	for _, r := range m.requests {
		if r.phase == parked && r.question != "" {
			r.parkUntil = r.parkUntil.Add(min(idle, m.now.Sub(r.parkedAt)))
			r.setParkEnd()
		}
	}
}

// foldVerdict records a person's answer.
func (m *model) foldVerdict(cmd engine.Command, ev *record.Event) {
	q := m.task(ev.Namespace, ev.ID).question
	if interlock.TaskState(ev.Op) == interlock.TaskAsking {
		q.given = append(q.given, interlock.Endorsement{Principal: ev.Actor, By: ev.Agent, Reason: ev.Note})
		principals, _ := m.actsFor(cmd.(*engine.Answer))
		q.acted = append(q.acted, principals...)
		return
	}
	q.verdict, q.by, q.name, q.words = interlock.Approved, ev.Agent, ev.Actor, verdictReason(ev)
	if interlock.TaskState(ev.Op) == interlock.TaskDead {
		q.verdict = interlock.Denied
	}
	m.foldStanding(cmd, ev)
}

func (m *model) expectAsk(c *engine.AskHuman) answer {
	ask := func(codes []interlock.Code) answer {
		return m.withAttempt(&c.Head, c.Lease, func(r *request) answer {
			if len(codes) > 0 {
				return refusalKey(codes...)
			}
			return answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(r.task.id, got) }}
		})
	}
	codes := m.wrongQuestion(c.Namespace, &c.Question)
	want := ask(codes)
	if want.outcome == engine.Refused && len(codes) > 0 {
		want.codes = append(want.codes, codes...) // whichever is seen first
	}
	return want
}

func (m *model) expectAnswer(c *engine.Answer) answer {
	if by := answerer(c); by == "" || by == interlock.ByPolicy ||
		c.Verdict != interlock.Approved && c.Verdict != interlock.Denied {
		return refusalKey(interlock.CodeInvalidRequest)
	}
	if c.Fence != 0 {
		return m.expectDecision(c)
	}
	return m.withTask(&c.Head, c.Task, func(t *task) answer {
		q := t.question
		if t.state != interlock.TaskAsking &&
			(q == nil || q.verdict != c.Verdict || q.by != answerer(c) || q.name != c.Actor) {
			return refusalKey(interlock.CodeNotAsking)
		}
		if t.state == interlock.TaskAsking && c.Asked != 0 && c.Asked != q.asked {
			return refusalKey(interlock.CodeNotAsking)
		}
		if principals, ok := m.actsFor(c); t.state == interlock.TaskAsking &&
			(!ok || slices.ContainsFunc(principals, t.isInvolved) || !listed(m.queueOf(t).Approvers, principalOf(c.Actor)) ||
				c.Verdict == interlock.Approved && !q.gave(c) && m.counts(q, c)) {
			return refusalKey(interlock.CodeForbidden)
		}
		return answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(t.id, got) }}
	})
}

// approval is how the question about a task is shown, nil for none.
func (m *model) approval(t *task) *engine.Approval {
	q := t.question
	if q == nil {
		return nil
	}
	a := &engine.Approval{Reason: q.words, Approval: interlock.Approval{
		Question: q.Text, Agent: q.agent, Asked: m.now.Sub(q.asked), OnLimit: m.onLimit(t), Verdict: q.verdict, By: q.by,
		Principal: q.name, Approvals: q.given,
	}}
	if n := m.leastOf(t); n > 1 && t.state == interlock.TaskAsking {
		a.Needed = n
	}
	if t.request == nil || t.request != q.user {
		a.UsedIn = q.usedIn
	}
	if end, ok := q.until(); ok && t.state == interlock.TaskAsking {
		a.Left = max(1, end.Sub(m.now))
	}
	return a
}

// checkReread compares what the answering person learns of changes to the documents that the
// task's asker had read.
func (m *model) checkReread(t *task, got *engine.Approval) error {
	if t.question == nil {
		if got != nil {
			return fmt.Errorf("nobody asked about %v, but it has %+v", t, got)
		}
		return nil
	}
	want := m.staleIn(&engine.Commit{Head: engine.Head{Namespace: t.ns}, CommitRequest: interlock.CommitRequest{
		Reads: t.question.Reads,
	}})
	if t.isSettled() {
		want = nil // it does not matter any more
	}
	if shown := min(len(want), interlock.MaxStale); len(got.Stale) != shown || got.StaleMore != (len(want) > shown) {
		return fmt.Errorf("%v: told of %d documents that moved, want %d", t, len(got.Stale), len(want))
	}
	return m.sameStale(want, got.Stale)
}

// checkApprovals compares the tasks that ask a person with the listing of them.
func (m *model) checkApprovals(e *engine.Engine, ns interlock.Namespace) error {
	l := engine.Approvals{Namespace: ns, Limit: 1000}
	for !l.Look(e) {
	}
	var list []*task
	for _, t := range m.tasks {
		if t.ns == ns && t.state == interlock.TaskAsking {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *task) int {
		if a.question.asked != b.question.asked {
			return int(a.question.asked.Sub(b.question.asked))
		}
		return int(a.num) - int(b.num)
	})
	if len(l.Rows) != len(list) {
		return fmt.Errorf("%d tasks are listed as asking, want %v", len(l.Rows), list)
	}
	for i, t := range list {
		row := l.Rows[i]
		if err := m.checkReread(t, row.Approval); err != nil {
			return err
		}
		row.Approval.Stale, row.Approval.StaleMore = nil, false
		if err := m.checkTask(t, row); err != nil {
			return err
		}
	}
	if err := m.checkQuestions(e, ns); err != nil {
		return err
	}
	for _, t := range list[:min(len(list), 2)] {
		if err := m.checkHeldBack(e, &engine.HeldBack{Namespace: ns, Agent: t.agent}); err != nil {
			return err
		}
		if claims := t.spec.Claims; len(claims) > 0 {
			if err := m.checkHeldBack(e, &engine.HeldBack{Namespace: ns, Key: claims[0].Key}); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkHeldBack compares what explains why nothing happens at a key, or for an agent.
func (m *model) checkHeldBack(e *engine.Engine, l *engine.HeldBack) error {
	for !l.Look(e) {
	}
	at := 0
	for _, t := range m.tasks {
		about := t.agent == l.Agent
		if l.Key != "" {
			about = slices.ContainsFunc(t.spec.Claims, func(c interlock.Claim) bool { return c.Key == l.Key })
		}
		behind := 0
		for _, o := range m.tasks {
			if t.sender != "" && o.ns == t.ns && o.sender == t.sender && o.mailbox() == t.mailbox() && o.num > t.num &&
				!o.isSettled() {
				behind++
			}
		}
		stuck := t.state == interlock.TaskAsking || t.state == interlock.TaskScheduled && behind > 0 || m.isBarred(t)
		if t.ns != l.Namespace || !about || m.ahead(t) != nil {
			continue
		}
		shown := at < len(l.Rows) && l.Rows[at].Task.ID == t.id
		if !stuck && !(shown && m.mayBeBarred(t)) {
			continue
		}
		switch {
		case at == len(l.Rows) && l.More:
			return nil
		case at == len(l.Rows):
			return fmt.Errorf("%v explains nothing about %q%q, with %d behind it", t, l.Key, l.Agent, behind)
		case l.Rows[at].Task.ID != t.id || l.Rows[at].Behind != behind:
			return fmt.Errorf(
				"%v holds back %d about %q%q, want %v with %d", l.Rows[at].Task.ID, l.Rows[at].Behind, l.Key, l.Agent, t, behind,
			)
		}
		if err := m.checkBars(t, l.Rows[at].Bars); err != nil {
			return err
		}
		at++
	}
	if at != len(l.Rows) || l.More {
		return fmt.Errorf("%d tasks explain something about %q%q, want %d", len(l.Rows), l.Key, l.Agent, at)
	}
	return nil
}
