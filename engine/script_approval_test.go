package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// questionOf reads what a person is asked.
func (s *script) questionOf(text string, w *words) interlock.Question {
	commit := engine.Commit{}
	s.commitWords(&commit, w)
	q := interlock.Question{Text: text, Limit: w.duration("limit"), Reads: commit.Reads}
	q.OnLimit, _ = interlock.ParseVerdict(w.get("on_limit"))
	return q
}

func (s *script) askHuman(w *words) error {
	c := &engine.AskHuman{Question: s.questionOf(w.get("question"), w)}
	c.Head, c.Lease = s.byFence(w)
	return s.tell(c)
}

func (s *script) answerTask(w *words) error {
	c := &engine.Answer{
		Head: s.head(w), Fence: interlock.Fence(w.number("fence")), By: w.get("by"), Reason: w.get("reason"),
	}
	if c.Fence == 0 {
		c.Task = s.taskID(w.get("task"))
	}
	if w.has("asked") {
		c.Asked = begin.Add(w.duration("asked"))
	}
	switch {
	case w.has("approved"):
		c.Verdict = interlock.Approved
	case w.has("denied"):
		c.Verdict = interlock.Denied
	}
	return s.tell(c)
}

func (s *script) printAnswered(ev *record.Event) {
	state := interlock.TaskState(ev.Op)
	verdict := interlock.Approved
	if state == interlock.TaskDead {
		verdict = interlock.Denied
	}
	if state == interlock.TaskAsking {
		s.printf("%s has the approval of %s", s.taskName(ev.ID), interlock.Answerer(ev.Actor, ev.Agent))
		return
	}
	text := fmt.Sprintf("%s is %v by %s", s.taskName(ev.ID), verdict, interlock.Answerer(ev.Actor, ev.Agent))
	if note := prose.EventNote(ev); note != "" {
		text += fmt.Sprintf(" %q", note)
	}
	if text += fmt.Sprintf(", it is %v", state); state == interlock.TaskScheduled {
		text += fmt.Sprintf(" in %v", ev.Due)
	}
	s.printf("%s", text)
}

func approvalText(a *engine.Approval) string {
	if a.Verdict != 0 {
		text := fmt.Sprintf(" %v by=%s", a.Verdict, a.By)
		if a.Principal != "" {
			text += " principal=" + a.Principal
		}
		if a.Reason != nil {
			text += fmt.Sprintf(" because=%q", prose.Sentence(a.Reason))
		}
		if a.UsedIn > 0 {
			text += fmt.Sprintf(" used_in=%d", a.UsedIn)
		}
		return text
	}
	text := fmt.Sprintf(" question=%q by=%s", a.Question, a.Agent)
	for i := range a.Approvals {
		text += fmt.Sprintf(" approval=%q", a.Approvals[i].Answerer())
	}
	if a.Needed > 0 {
		text += fmt.Sprintf(" needed=%d", a.Needed)
	}
	if a.Asked > 0 {
		text += fmt.Sprintf(" age=%v", a.Asked)
	}
	if a.Left > 0 {
		text += fmt.Sprintf(" left=%v then=%v", a.Left, a.OnLimit)
	}
	return text
}

// printApproval writes what has changed since a person was asked.
func (s *script) printApproval(t *engine.Task) {
	if t.Approval != nil {
		s.printStale(t.Approval.Stale, t.Approval.StaleMore)
	}
}

func (s *script) showApprovals(ns interlock.Namespace, w *words) {
	q := &engine.LeaseQuestions{Namespace: ns, Limit: int(w.number("limit"))}
	for !q.Look(s.e) {
	}
	for i := range q.Rows {
		s.printf("%s", questionLine(&q.Rows[i]))
	}
	if q.More {
		s.printf("and more leases")
	}
	l := &engine.Approvals{Namespace: ns, Limit: int(w.number("limit"))}
	if w.has("on") {
		l.After = s.asked
	}
	for !l.Look(s.e) {
	}
	s.asked = l.Next
	for i := range l.Rows {
		s.printf("%s", s.taskLine(&l.Rows[i]))
		s.printApproval(&l.Rows[i])
	}
	if l.More {
		s.printf("and more")
	}
}

func questionLine(q *engine.LeaseQuestion) string {
	text := fmt.Sprintf("fence=%d %s by %s asks %q", q.Fence, claimsText(q.Claims), q.Agent, q.Question)
	if q.Parking.Freed {
		text += " freed"
	}
	return text + fmt.Sprintf(" since=%v left=%v", q.Parking.Since, q.Parking.Left) + decisionText(q.Decision)
}

func decisionText(d *interlock.Decision) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf(" %v by %s", d.Verdict, interlock.Answerer(d.Principal, d.By))
	if d.Reason != "" {
		text += fmt.Sprintf(" reason=%q", d.Reason)
	}
	return text
}
