package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/record"
)

// Checks of the form of queues and tasks.

func checkQueue(q *interlock.TaskQueue) string {
	if problem := checkName("queue", q.Name); problem != "" {
		return problem
	}
	inside := func(name string, d, most time.Duration) string {
		if d < 0 || d > most {
			return fmt.Sprintf("%s %v is not between 0 and %v", name, d, most)
		}
		return ""
	}
	for _, problem := range []string{
		inside("backoff", q.Backoff, interlock.MaxDelay), inside("max_backoff", q.MaxBackoff, interlock.MaxDelay),
		inside("ttl", q.TTL, interlock.MaxTTL), inside("grace", q.Grace, interlock.MaxGrace),
		inside("max_hold", q.MaxHold, interlock.MaxMaxHold), inside("stall", q.Stall, interlock.MaxStall),
	} {
		if problem != "" {
			return problem
		}
	}
	switch {
	case q.TTL != 0 && q.TTL < interlock.MinTTL:
		return fmt.Sprintf("ttl %v is below %v", q.TTL, interlock.MinTTL)
	case q.MaxBackoff != 0 && q.MaxBackoff < q.Backoff:
		return fmt.Sprintf("max_backoff %v is below backoff %v", q.MaxBackoff, q.Backoff)
	case q.MaxAttempts < 0 || q.MaxAttempts > interlock.MaxAttempts:
		return fmt.Sprintf("max_attempts is not between 0 and %d", interlock.MaxAttempts)
	case q.MaxRunning < 0:
		return "max_running is below 0"
	case q.MaxTasks < 0 || q.MaxTasks > interlock.MaxTasks:
		return fmt.Sprintf("max_tasks is not between 0 and %d", interlock.MaxTasks)
	case len(q.Groups) > interlock.MaxShares:
		return fmt.Sprintf("%d groups: a queue lists at most %d", len(q.Groups), interlock.MaxShares)
	}
	seen := map[string]bool{}
	for _, g := range q.Groups {
		_, problem := checkTexts(text{"group", g.Group, interlock.MaxNameBytes})
		switch {
		case problem != "":
			return problem
		case seen[g.Group]:
			return fmt.Sprintf("group %q is listed twice", g.Group)
		case g.Weight < 0 || g.Weight > maxWeight:
			return fmt.Sprintf("weight %d of group %q is not between 0 and %d", g.Weight, g.Group, maxWeight)
		case g.Max < 0:
			return fmt.Sprintf("max %d of group %q is below 0", g.Max, g.Group)
		case q.MaxRunning > 0 && g.Max > q.MaxRunning:
			return fmt.Sprintf("group %q may run %d tasks at once, and the queue only %d", g.Group, g.Max, q.MaxRunning)
		}
		seen[g.Group] = true
	}
	for _, list := range []struct {
		name    string
		entries []string
	}{{"pull", q.Pull}, {"submit", q.Submit}, {"admin", q.Admin}} {
		if problem := checkAccess(list.entries); problem != "" {
			return list.name + ": " + problem
		}
	}
	return checkApprovers(q)
}

// checkAccess returns what is wrong with an access list, or "".
func checkAccess(list []string) string {
	if len(list) > interlock.MaxAccess {
		return fmt.Sprintf("%d entries: an access list has at most %d", len(list), interlock.MaxAccess)
	}
	for _, entry := range list {
		if problem := checkEntry(entry); problem != "" {
			return problem
		}
	}
	return ""
}

// checkEntry returns what is wrong with one entry of an access list, or "".
func checkEntry(entry string) string {
	name := strings.TrimPrefix(entry, interlock.GroupPrefix)
	if name == "" || len(name) > interlock.MaxNameBytes || !utf8.ValidString(name) {
		return fmt.Sprintf("entry %q: want the name of a credential, %sNAME, or * for everyone", keypath.Clip(entry, 64), interlock.GroupPrefix)
	}
	return ""
}

// checkName returns what is wrong with the name of a thing that stands in a path, or "".
func checkName(what, name string) string {
	if name == "" || len(name) > interlock.MaxNameBytes {
		return fmt.Sprintf("%s %q: a name has 1 to %d bytes", what, keypath.Clip(name, 64), interlock.MaxNameBytes)
	}
	for _, b := range []byte(name) {
		if b <= ' ' || b >= 0x7f || b == '/' {
			return fmt.Sprintf("%s %q: a name has visible ASCII characters other than '/'", what, keypath.Clip(name, 64))
		}
	}
	return ""
}

// checkTask normalises a task and returns a refusal if its form is wrong, or nil.
func checkTask(x *TaskSpec) *refusal {
	if x.Ask != nil {
		if no := checkQuestion(x.Ask); no != nil {
			return no
		}
	}
	if code, problem := checkTexts(
		text{"kind", x.Kind, interlock.MaxNameBytes}, text{"purpose", x.Purpose, interlock.MaxPurposeBytes}, text{"group", x.Group, interlock.MaxNameBytes},
	); code != "" {
		return &refusal{code: code, message: problem}
	}
	switch {
	case x.Message && (x.Queue != "" || len(x.Claims) > 0):
		return invalid(x.Key, "a message names its key, and neither a queue nor claims: those are its writer's")
	case !x.Message && x.Key != "":
		return invalid(x.Key, "only a message names a key: a task claims its keys")
	case len(x.Payload) > interlock.MaxPayloadBytes:
		return &refusal{code: interlock.CodeInvalidPayload, message: fmt.Sprintf(
			"the payload has %d bytes, of at most %d: keep it elsewhere, and name it here", len(x.Payload), interlock.MaxPayloadBytes,
		)}
	case len(x.Payload) > 0 && x.problemOfPayload() != "":
		return &refusal{code: interlock.CodeInvalidPayload, message: "the payload is not one JSON value"}
	case x.Priority < -interlock.MaxPriority || x.Priority > interlock.MaxPriority:
		return &refusal{code: interlock.CodeInvalidPriority, message: fmt.Sprintf("priority %d is not between %d and %d", x.Priority, -interlock.MaxPriority, interlock.MaxPriority)}
	case x.Delay < 0 || x.Delay > interlock.MaxDelay:
		return badTime("delay", x.Delay)
	case x.Deadline < 0 || x.Deadline > interlock.MaxDelay:
		return badTime("deadline", x.Deadline)
	case x.Deadline > 0 && x.Deadline <= x.Delay:
		return &refusal{code: interlock.CodeInvalidTTL, message: fmt.Sprintf("deadline %v is not after delay %v, so it could never run", x.Deadline, x.Delay)}
	case x.Backoff < 0 || x.Backoff > interlock.MaxDelay:
		return badTime("backoff", x.Backoff)
	case x.MaxBackoff < 0 || x.MaxBackoff > interlock.MaxDelay:
		return badTime("max_backoff", x.MaxBackoff)
	case x.MaxBackoff != 0 && x.MaxBackoff < x.Backoff:
		return &refusal{code: interlock.CodeInvalidTTL, message: fmt.Sprintf("max_backoff %v is below backoff %v", x.MaxBackoff, x.Backoff)}
	case x.MaxAttempts < 0 || x.MaxAttempts > interlock.MaxAttempts:
		return invalid("", fmt.Sprintf("max_attempts is not between 0 and %d", interlock.MaxAttempts))
	case len(x.Claims) > interlock.MaxClaims:
		return &refusal{code: interlock.CodeTooManyClaims, message: fmt.Sprintf("%d claims: a task has at most %d", len(x.Claims), interlock.MaxClaims)}
	}
	return checkTaskClaims(x.Claims)
}

func badTime(name string, d time.Duration) *refusal {
	return &refusal{code: interlock.CodeInvalidTTL, message: fmt.Sprintf("%s %v is not between 0 and %v", name, d, time.Duration(interlock.MaxDelay))}
}

func checkTaskClaims(claims []interlock.Claim) *refusal {
	counted := make(map[interlock.Key]bool, len(claims))
	for _, c := range claims {
		if c.Mode > interlock.Permits {
			return &refusal{code: interlock.CodeInvalidMode, key: c.Key, message: fmt.Sprintf("a task cannot claim %s in mode %s: it would have to wait for others in it", c.Key, c.Mode)}
		}
		if was, twice := counted[c.Key]; twice && was != c.Mode.Counts() {
			return &refusal{code: interlock.CodeNeverTogether, key: c.Key, message: fmt.Sprintf(
				"permits of %s and a mode on it can never be granted together: claim one of both", c.Key,
			)}
		}
		counted[c.Key] = c.Mode.Counts()
	}
	if code, problem := checkForm(claims); code != "" {
		return &refusal{code: code, key: badKey(claims), message: problem}
	}
	return nil
}

func checkPull(c *Pull) (interlock.Code, string) {
	if problem := checkNamespace(c.Namespace); problem != "" {
		return interlock.CodeInvalidNamespace, problem
	}
	switch {
	case c.Max < 1 || c.Max > interlock.MaxPull:
		return interlock.CodeInvalidRequest, fmt.Sprintf("%d tasks: a pull takes from 1 to %d", c.Max, interlock.MaxPull)
	case len(c.Leases) < c.Max:
		return interlock.CodeInvalidRequest, "a pull needs an id for each lease that it may give"
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL):
		return interlock.CodeInvalidTTL, fmt.Sprintf("ttl %v is not between %v and %v", c.TTL, interlock.MinTTL, interlock.MaxTTL)
	}
	return checkTexts(text{"agent", c.Agent, interlock.MaxNameBytes})
}

// AckEntryBytes is as long as the entry of an acknowledgement can be: that of its
// commit, the texts of the tasks that it submits, and as much again for its result, the
// end of its lease and what the events of those tasks say besides.
const AckEntryBytes = CommitEntryBytes + 2*interlock.MaxCommitBytes

// checkAck returns what is wrong with how an acknowledgement is written, beside its
// commit and its tasks.
func checkAck(c *Ack) *refusal {
	if code, problem := checkTexts(text{"note", c.Note, interlock.MaxNoteBytes}); code != "" {
		return &refusal{code: code, message: problem}
	}
	size := 0
	for i := range c.Tasks {
		x := &c.Tasks[i]
		size += len(x.Payload) + len(x.Purpose) + len(x.Key) + questionSize(x.Ask)
		for _, claim := range x.Claims {
			size += len(claim.Key)
		}
	}
	switch {
	case len(c.Result) > interlock.MaxResultBytes:
		return &refusal{code: interlock.CodeTooLong, message: fmt.Sprintf("the result has %d bytes, of at most %d", len(c.Result), interlock.MaxResultBytes)}
	case len(c.Result) > 0 && jsonProblem(c.Result) != "":
		return invalid("", "the result is not one JSON value")
	case len(c.Tasks) > interlock.MaxFollowUps:
		return invalid("", fmt.Sprintf("%d tasks: an acknowledgement submits at most %d", len(c.Tasks), interlock.MaxFollowUps))
	case size > interlock.MaxCommitBytes:
		return &refusal{code: interlock.CodeBodyTooLarge, message: fmt.Sprintf("the tasks of this acknowledgement have more than %d bytes together", interlock.MaxCommitBytes)}
	}
	return nil
}

// fullTurn is the stride of a group of weight 1.
const fullTurn = 1 << 20

// maxWeight bounds a group's weight, so that every stride is above 0.
const maxWeight = fullTurn

// checkApprovers returns a description of the first error in a queue's approval rules, or "".
func checkApprovers(q *interlock.TaskQueue) string {
	if q.MinApprovals < 0 || q.MinApprovals > interlock.MaxApprovals {
		return fmt.Sprintf("min_approvals is not between 0 and %d", interlock.MaxApprovals)
	}
	if problem := checkAccess(q.Approvers); problem != "" {
		return "approvers: " + problem
	}
	return ""
}

// checkQuestion normalises a question and returns a refusal if its form is wrong, or nil.
func checkQuestion(q *interlock.Question) *refusal {
	if code, problem := checkTexts(text{"question", q.Text, interlock.MaxQuestionBytes}); code != "" {
		return &refusal{code: code, message: problem}
	}
	switch {
	case q.Text == "":
		return invalid("", "what is the person to decide? say it in the question")
	case q.Limit < 0 || q.Limit > interlock.MaxDelay:
		return badTime("limit", q.Limit)
	case q.OnLimit > interlock.Denied:
		return invalid("", fmt.Sprintf("a question cannot answer itself with verdict %d, which does not exist", q.OnLimit))
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
