package prose

import (
	"cmp"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Advice about tasks. Like advice.go, but for callers that do not wait themselves.

const howToFollow = "continue with other work, or wait for its result"

// taskAdvice is for a caller that looks at a task, or has just submitted it: one that is done needs
// none.
func taskAdvice(t *engine.Task) interlock.Advice {
	say := func(action interlock.Action, next string) interlock.Advice {
		return interlock.Advice{Action: action, Message: taskText(t) + "; " + next}
	}
	switch t.State {
	case interlock.TaskScheduled, interlock.TaskWaiting, interlock.TaskRunning:
		if t.Barred && t.Blocker == "" {
			return say(
				interlock.ActWorkElsewhere,
				"look up why one of its keys or its sender waits: the answer names the rule that prevents it; "+howToFollow,
			)
		}
		return say(interlock.ActWorkElsewhere, "you do not need to wait for it: "+howToFollow)
	case interlock.TaskAsking:
		if a := t.Approval; a != nil && len(a.Approvals) > 0 && a.Needed > len(a.Approvals) {
			return say(interlock.ActAskHuman, "further approvals are needed")
		}
		return say(interlock.ActAskHuman, "it continues when a person answers")
	case interlock.TaskDead:
		return say(interlock.ActAskHuman, "look at its attempts; replay it when the cause is fixed, or discard it")
	case interlock.TaskCancelled:
		return say(interlock.ActStop, "it will not run unless it is replayed")
	}
	return interlock.Advice{}
}

// taskText returns where a task stands: task q_... of queue fees waits for a worker.
func taskText(t *engine.Task) string {
	return fmt.Sprintf("task %s of queue %s %s", t.ID, quoteUnlessPlain(cleanText(t.Queue)), taskPlace(t))
}

func taskPlace(t *engine.Task) string {
	switch t.State {
	case interlock.TaskScheduled:
		text := "is due in " + short(t.Due)
		if n := len(t.Attempts); n > 0 {
			text += fmt.Sprintf(
				", after attempt %d of %d failed%s", t.Attempts[n-1].Number, t.MaxAttempts,
				saidWhy(cmp.Or(Sentence(t.Attempts[n-1].Reason), t.Attempts[n-1].EndedBy)),
			)
		}
		return text
	case interlock.TaskWaiting:
		switch {
		case t.Blocker == "" && t.Barred:
			return "waits for a worker with the required rights: no idle worker has them"
		case t.Blocker == "":
			return "waits for its keys or for a worker"
		case t.Position > 0:
			return fmt.Sprintf("is %s in line for %s", Ordinal(t.Position), cleanText(string(t.Blocker)))
		}
		return "waits for " + cleanText(string(t.Blocker))
	case interlock.TaskRunning:
		return fmt.Sprintf("is running, attempt %d of %d", t.Attempt, t.MaxAttempts)
	case interlock.TaskAsking:
		if t.Approval != nil {
			return fmt.Sprintf("waits for a decision on %q", cleanText(t.Approval.Question)) + approvedSoFar(t.Approval)
		}
		return "waits for a decision"
	case interlock.TaskDone:
		return "is done"
	case interlock.TaskDead:
		return "is dead" + saidWhy(Sentence(t.Reason))
	case interlock.TaskCancelled:
		return "is cancelled" + saidWhy(Sentence(t.Reason))
	}
	return "was settled and deleted"
}

// approvedSoFar returns how many of several approvals a question has, and how many it misses.
func approvedSoFar(a *engine.Approval) string {
	given := len(a.Approvals)
	if given == 0 || a.Needed <= given {
		return ""
	}
	return fmt.Sprintf(", with %d of %d approvals, %d missing", given, a.Needed, a.Needed-given)
}

// saidWhy puts a person's words behind a sentence.
func saidWhy(reason string) string {
	if reason = cleanText(reason); reason != "" {
		return fmt.Sprintf(" (%q)", reason)
	}
	return ""
}
