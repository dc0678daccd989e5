package engine

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Checks of the form of queues and tasks.

func checkQueue(q *interlock.TaskQueue) *message.Text {
	if problem := store.CheckName("queue", q.Name); problem != nil {
		return problem
	}
	inside := func(name string, d, most time.Duration) *message.Text {
		if d < 0 || d > most {
			return message.New(message.NotUpTo, message.Str(name), message.Dur(d), message.Dur(most))
		}
		return nil
	}
	for _, problem := range []*message.Text{
		inside("backoff", q.Backoff, interlock.MaxDelay), inside("max_backoff", q.MaxBackoff, interlock.MaxDelay),
		inside("ttl", q.TTL, interlock.MaxTTL), inside("grace", q.Grace, interlock.MaxGrace),
		inside("max_hold", q.MaxHold, interlock.MaxMaxHold), inside("stall", q.Stall, interlock.MaxStall),
	} {
		if problem != nil {
			return problem
		}
	}
	switch {
	case q.TTL != 0 && q.TTL < interlock.MinTTL:
		return message.New(message.BelowMinimum, message.Str("ttl"), message.Dur(q.TTL), message.Dur(interlock.MinTTL))
	case q.MaxBackoff != 0 && q.MaxBackoff < q.Backoff:
		return belowOther("max_backoff", q.MaxBackoff, "backoff", q.Backoff)
	case q.MaxAttempts < 0 || q.MaxAttempts > interlock.MaxAttempts:
		return message.New(message.CountNotUpTo, message.Str("max_attempts"), message.Num(interlock.MaxAttempts))
	case q.MaxRunning < 0:
		return message.New(message.BelowZero, message.Str("max_running"))
	case q.MaxTasks < 0 || q.MaxTasks > interlock.MaxTasks:
		return message.New(message.CountNotUpTo, message.Str("max_tasks"), message.Num(interlock.MaxTasks))
	case len(q.Groups) > interlock.MaxShares:
		return message.New(message.QueueGroupCount, message.Num(len(q.Groups)), message.Num(interlock.MaxShares))
	}
	seen := map[string]bool{}
	for _, g := range q.Groups {
		_, problem := store.CheckTexts(store.Text{Name: "group", Value: g.Group, Limit: interlock.MaxNameBytes})
		switch {
		case problem != nil:
			return problem
		case seen[g.Group]:
			return message.New(message.QueueGroupTwice, message.Str(g.Group))
		case g.Weight < 0 || g.Weight > maxWeight:
			return message.New(message.GroupWeight, message.Num(g.Weight), message.Str(g.Group), message.Num(maxWeight))
		case g.Max < 0:
			return message.New(message.GroupMaxNegative, message.Num(g.Max), message.Str(g.Group))
		case q.MaxRunning > 0 && g.Max > q.MaxRunning:
			return message.New(message.GroupMaxAboveQueue, message.Str(g.Group), message.Num(g.Max), message.Num(q.MaxRunning))
		}
		seen[g.Group] = true
	}
	for _, list := range []struct {
		name    string
		entries []string
	}{{"pull", q.Pull}, {"submit", q.Submit}, {"admin", q.Admin}} {
		if problem := checkAccess(list.entries); problem != nil {
			return message.New(message.InField, message.Str(list.name), message.Sub(problem))
		}
	}
	return checkApprovers(q)
}

// checkAccess returns the fault of an access list, or "".
func checkAccess(list []string) *message.Text {
	if len(list) > interlock.MaxAccess {
		return message.New(message.AccessCount, message.Num(len(list)), message.Num(interlock.MaxAccess))
	}
	for _, entry := range list {
		if problem := checkEntry(entry); problem != nil {
			return problem
		}
	}
	return nil
}

// checkEntry returns the fault of one entry of an access list, or "".
func checkEntry(entry string) *message.Text {
	name := strings.TrimPrefix(entry, interlock.GroupPrefix)
	if name == "" || len(name) > interlock.MaxNameBytes || !utf8.ValidString(name) {
		return message.New(message.AccessEntry, message.Str(keypath.Clip(entry, 64)), message.Str(interlock.GroupPrefix))
	}
	return nil
}

// checkTask normalises a task and returns a refusal if its form is wrong, or nil.
func checkTask(x *TaskSpec) *store.Refusal {
	if x.Ask != nil {
		if no := checkQuestion(x.Ask); no != nil {
			return no
		}
	}
	if code, problem := store.CheckTexts(
		store.Text{Name: "kind", Value: x.Kind, Limit: interlock.MaxNameBytes},
		store.Text{Name: "purpose", Value: x.Purpose, Limit: interlock.MaxPurposeBytes},
		store.Text{Name: "group", Value: x.Group, Limit: interlock.MaxNameBytes},
		store.Text{Name: "trace", Value: x.Trace, Limit: interlock.MaxNameBytes},
	); code != "" {
		return &store.Refusal{Code: code, Message: problem}
	}
	switch {
	case x.Message && (x.Queue != "" || len(x.Claims) > 0):
		return invalid(x.Key, message.New(message.MessageWithQueue))
	case !x.Message && x.Key != "":
		return invalid(x.Key, message.New(message.TaskWithKey))
	case len(x.Payload) > interlock.MaxPayloadBytes:
		return &store.Refusal{
			Code:    interlock.CodeInvalidPayload,
			Message: message.New(message.PayloadTooLarge, message.Num(len(x.Payload)), message.Num(interlock.MaxPayloadBytes)),
		}
	case len(x.Payload) > 0 && x.problemOfPayload() != nil:
		return &store.Refusal{Code: interlock.CodeInvalidPayload, Message: message.New(message.PayloadNotJSON)}
	case x.Priority < -interlock.MaxPriority || x.Priority > interlock.MaxPriority:
		return &store.Refusal{
			Code: interlock.CodeInvalidPriority,
			Message: message.New(
				message.NotBetween, message.Str("priority"), message.Num(x.Priority), message.Num(-interlock.MaxPriority),
				message.Num(interlock.MaxPriority),
			),
		}
	case x.Delay < 0 || x.Delay > interlock.MaxDelay:
		return badTime("delay", x.Delay)
	case x.Deadline < 0 || x.Deadline > interlock.MaxDelay:
		return badTime("deadline", x.Deadline)
	case x.Deadline > 0 && x.Deadline <= x.Delay:
		return &store.Refusal{
			Code:    interlock.CodeInvalidTTL,
			Message: message.New(message.DeadlineBeforeDelay, message.Dur(x.Deadline), message.Dur(x.Delay)),
		}
	case x.Backoff < 0 || x.Backoff > interlock.MaxDelay:
		return badTime("backoff", x.Backoff)
	case x.MaxBackoff < 0 || x.MaxBackoff > interlock.MaxDelay:
		return badTime("max_backoff", x.MaxBackoff)
	case x.MaxBackoff != 0 && x.MaxBackoff < x.Backoff:
		return &store.Refusal{
			Code: interlock.CodeInvalidTTL, Message: belowOther("max_backoff", x.MaxBackoff, "backoff", x.Backoff),
		}
	case x.MaxAttempts < 0 || x.MaxAttempts > interlock.MaxAttempts:
		return invalid("", message.New(message.CountNotUpTo, message.Str("max_attempts"), message.Num(interlock.MaxAttempts)))
	case len(x.Claims) > interlock.MaxClaims:
		return &store.Refusal{
			Code:    interlock.CodeTooManyClaims,
			Message: message.New(message.TaskClaimCount, message.Num(len(x.Claims)), message.Num(interlock.MaxClaims)),
		}
	}
	return checkTaskClaims(x.Claims)
}

func belowOther(name string, d time.Duration, other string, least time.Duration) *message.Text {
	return message.New(message.BelowOther, message.Str(name), message.Dur(d), message.Str(other), message.Dur(least))
}

func badTime(name string, d time.Duration) *store.Refusal {
	return &store.Refusal{
		Code: interlock.CodeInvalidTTL,
		Message: message.New(
			message.NotUpTo, message.Str(name), message.Dur(d), message.Dur(time.Duration(interlock.MaxDelay)),
		),
	}
}

func checkTaskClaims(claims []interlock.Claim) *store.Refusal {
	counted := make(map[interlock.Key]bool, len(claims))
	for _, c := range claims {
		if c.Mode > interlock.Permits {
			return &store.Refusal{
				Code: interlock.CodeInvalidMode, Key: c.Key,
				Message: message.New(message.TaskMode, message.Str(c.Key), message.Str(c.Mode.String())),
			}
		}
		if was, twice := counted[c.Key]; twice && was != c.Mode.Counts() {
			return &store.Refusal{
				Code: interlock.CodeNeverTogether, Key: c.Key, Message: message.New(message.NeverTogether, message.Str(c.Key)),
			}
		}
		counted[c.Key] = c.Mode.Counts()
	}
	if code, problem := checkForm(claims); code != "" {
		return &store.Refusal{Code: code, Key: badKey(claims), Message: problem}
	}
	return nil
}

func checkPull(c *Pull) (interlock.Code, *message.Text) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		return interlock.CodeInvalidNamespace, problem
	}
	switch {
	case c.Max < 1 || c.Max > interlock.MaxPull:
		return interlock.CodeInvalidRequest, message.New(
			message.PullCount, message.Num(c.Max), message.Num(interlock.MaxPull),
		)
	case len(c.Leases) < c.Max:
		return interlock.CodeInvalidRequest, message.New(message.PullWithoutIDs)
	}
	if code, problem := checkTTL(c.TTL); code != "" {
		return code, problem
	}
	return store.CheckTexts(store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes})
}

// AckEntryBytes is as long as the entry of an acknowledgement can be: that of its
// commit, the texts of the tasks that it submits, and as much again for its result, the
// end of its lease and what the events of those tasks say besides.
const AckEntryBytes = CommitEntryBytes + 2*interlock.MaxCommitBytes

// checkAck returns what is wrong with how an acknowledgement is written, beside its
// commit and its tasks.
func checkAck(c *Ack) *store.Refusal {
	if code, problem := store.CheckTexts(store.Text{
		Name: "note", Value: c.Note, Limit: interlock.MaxNoteBytes,
	}); code != "" {
		return &store.Refusal{Code: code, Message: problem}
	}
	size := 0
	for i := range c.Tasks {
		x := &c.Tasks[i]
		size += len(x.Payload) + len(x.Purpose) + len(x.Trace) + len(x.Key) + questionSize(x.Ask)
		for _, claim := range x.Claims {
			size += len(claim.Key)
		}
	}
	switch {
	case len(c.Result) > interlock.MaxResultBytes:
		return &store.Refusal{
			Code:    interlock.CodeTooLong,
			Message: message.New(message.ResultTooLarge, message.Num(len(c.Result)), message.Num(interlock.MaxResultBytes)),
		}
	case len(c.Result) > 0 && jsonProblem(c.Result) != nil:
		return invalid("", message.New(message.ResultNotOneJSON))
	case len(c.Tasks) > interlock.MaxFollowUps:
		return invalid("", message.New(message.FollowUpCount, message.Num(len(c.Tasks)), message.Num(interlock.MaxFollowUps)))
	case size > interlock.MaxCommitBytes:
		return &store.Refusal{
			Code:    interlock.CodeBodyTooLarge,
			Message: message.New(message.FollowUpsTooLarge, message.Num(interlock.MaxCommitBytes)),
		}
	}
	return nil
}

// maxWeight bounds a group's weight, so that every stride is above 0.
const maxWeight = store.FullTurn

// checkApprovers returns a description of the first error in a queue's approval rules, or "".
func checkApprovers(q *interlock.TaskQueue) *message.Text {
	if q.MinApprovals < 0 || q.MinApprovals > interlock.MaxApprovals {
		return message.New(message.CountNotUpTo, message.Str("min_approvals"), message.Num(interlock.MaxApprovals))
	}
	if problem := checkAccess(q.Approvers); problem != nil {
		return message.New(message.InField, message.Str("approvers"), message.Sub(problem))
	}
	return nil
}

// checkQuestion normalises a question and returns a refusal if its form is wrong, or nil.
func checkQuestion(q *interlock.Question) *store.Refusal {
	if code, problem := store.CheckTexts(store.Text{
		Name: "question", Value: q.Text, Limit: interlock.MaxQuestionBytes,
	}); code != "" {
		return &store.Refusal{Code: code, Message: problem}
	}
	switch {
	case q.Text == "":
		return invalid("", message.New(message.QuestionEmpty))
	case q.Limit < 0 || q.Limit > interlock.MaxDelay:
		return badTime("limit", q.Limit)
	case q.OnLimit > interlock.Denied:
		return invalid("", message.New(message.QuestionLimitVerdict, message.Num(q.OnLimit)))
	}
	q.OnLimit = cmp.Or(q.OnLimit, interlock.Denied)
	return checkReads(q.Reads)
}

// questionSize returns the cost of remembering a question.
func questionSize(q *interlock.Question) int {
	if q == nil {
		return 0
	}
	return (&record.Approval{Text: q.Text, Reads: q.Reads}).Size()
}
