package server

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// writeEvent writes one event of the journal. No id and no request id is in it: it contains the
// agent, the action and the keys, and numbers that tell requests and sessions apart. Nor is the
// body of a document or the result of an effect: callers that may read them ask for them. Empty
// fields are left out.
func writeEvent(j *jsonOut, ev *record.Event, index interlock.Index, epoch interlock.Epoch) {
	number := func(name string, n uint64) {
		if n != 0 {
			j.decimal(name, n)
		}
	}
	flag := func(name string, on bool) {
		if on {
			j.bool(name, true)
		}
	}
	j.open("")
	j.str("event", ev.Kind.String())
	j.decimal("index", uint64(index))
	j.decimal("epoch", uint64(epoch))
	j.moment("time", ev.At)
	if ev.Kind == record.NamespaceMoved {
		j.said("actor", ev.Actor)
		writeMove(j, ev)
		j.close()
		return
	}

	// The owner and the object.
	switch ev.Kind {
	case record.EffectsForgotten:
		number("forgotten", ev.Num)
	case record.Refused:
		number("left_out", ev.Num)
	default:
		number("request", ev.Num)
	}
	number("session_number", ev.Session)
	j.said("agent", ev.Agent)
	j.said("flow", ev.Flow)
	if len(ev.Claims) > 0 {
		writeClaims(j, ev.Claims)
	}
	number("fence", uint64(ev.Fence))
	j.said("actor", ev.Actor)
	j.said("asker", ev.Asker)
	switch ev.Kind {
	case record.PatternSet, record.PatternDropped:
		j.said("pattern", ev.PatternName)
		j.count("revision", ev.Generation)
		j.count("reverted", ev.By)
	case record.QueueSet, record.QueueDropped:
		j.said("queue", ev.QueueName)
	case record.Written, record.EffectChanged, record.AttemptFailed, record.TaskMoved, record.ApprovalRequested,
		record.ApprovalDecided:
		j.said("session", ev.SessionName)
	case record.WebhookSet, record.WebhookDeleted, record.WebhookRotated, record.WebhookDelivered:
		j.said("webhook", ev.WebhookName)
	case record.Refused:
		j.said("pattern", ev.PatternName)
		j.said("operation", ev.Outcome)
		j.str("code", string(ev.Code))
	case record.Configured:
	default:
		j.said("purpose", ev.Purpose)
	}
	writePolicy(j, ev)
	if ev.Kind == record.Decided {
		j.str("verdict", interlock.Verdict(ev.Op).String())
	}

	// The request.
	j.said("trace", ev.Trace)
	j.duration("ttl_ms", ev.TTL)
	j.duration("grace_ms", ev.Grace)
	j.duration("max_hold_ms", ev.MaxHold)
	j.duration("stall_ms", ev.Stall)
	j.duration("lock_delay_ms", ev.LockDelay)
	j.duration("max_wait_ms", ev.MaxWait)
	if ev.Priority != 0 {
		j.int("priority", int64(ev.Priority))
	}
	flag("any", ev.Any && ev.Kind != record.SessionOpened) // of a session it is no matter of claims
	j.said("group", ev.Group)
	if len(ev.Claims) > 0 && ev.Claims[0].Mode == interlock.Member {
		j.str("divide", ev.Division.String())
	}
	flag("lead", ev.Lead)
	number("base", ev.Base)
	flag("part", ev.Part)
	number("target_session", ev.Target)
	j.said("target_flow", ev.TargetFlow)
	if ev.Kind != record.PatternSet && ev.Kind != record.PatternDropped {
		number("by", ev.By)
	}
	if org, workflow := ev.Run(); org != "" {
		j.open("run")
		writeRunNames(j, org, workflow)
		j.close()
	}

	// The outcome.
	flag("offer", ev.Offer)
	j.said("reason", ev.Reason.String())
	if ev.Kind != record.Refused { // there it is the operation
		j.said("outcome", prose.Sentence(ev.Why()))
	}
	if note := prose.EventNote(ev); note != "" {
		j.note("note", note)
	}
	j.duration("held_ms", ev.Held)
	switch {
	case writeTaskEvent(j, ev):
	case ev.Kind == record.Opened:
		j.duration("waited_ms", ev.Idle)
	case ev.Kind == record.EffectChanged, ev.Kind == record.PatternSet, ev.Kind == record.PatternDropped:
	default:
		j.duration("waited_ms", ev.Waited)
		j.count("generation", ev.Generation)
	}
	flag("freed", ev.Freed)
	flag("queued", ev.Queued)
	number("version", uint64(ev.Version))
	number("as_of", uint64(ev.AsOf))
	j.said("content_type", ev.ContentType)
	switch ev.Kind {
	case record.Written:
		op := interlock.WriteOp(ev.Op)
		if j.str("op", op.String()); op != interlock.Delete {
			j.int("size", int64(len(ev.Blob)))
		}
	case record.EffectChanged:
		writeSettled(j, ev)
	}
	if len(ev.Cycle) > 0 {
		j.openArray("cycle")
		for i := range ev.Cycle {
			writeCycleStep(j, "", &ev.Cycle[i])
		}
		j.closeArray()
	}
	j.close()
}

// writePolicy writes an operator's settings, if the event has any. Unreadable ones were refused
// when the journal was replayed.
func writePolicy(j *jsonOut, ev *record.Event) {
	switch ev.Kind {
	case record.PatternSet:
		if p, err := ev.Pattern(); err == nil {
			j.open("policy")
			writePattern(j, &p)
			j.close()
		}
	case record.Configured:
		if s, err := ev.Settings(); err == nil {
			j.open("settings")
			writeSettings(j, &s)
			j.close()
		}
	case record.WebhookSet, record.WebhookRotated:
		if w, err := ev.Webhook(); err == nil {
			j.count("generation", w.Generation)
		}
	case record.WebhookDelivered:
		if p, err := ev.WebhookProgress(); err == nil {
			j.count("delivered", p.Delivered)
			j.count("given_up", p.GivenUp)
			if p.Gone {
				j.bool("gone", true)
			}
		}
	case record.QueueSet:
		if q, err := ev.Queue(); err == nil {
			j.open("queue_settings")
			writeQueue(j, &q)
			j.close()
		}
	}
}

// writeTaskEvent writes what happened to a task, and reports whether that is what happened. Its
// content is left out: callers that may read it ask for the task.
func writeTaskEvent(j *jsonOut, ev *record.Event) bool {
	id := ev.ID
	switch ev.Kind {
	case record.TaskSubmitted:
		if queue, kind, err := ev.Task(); err == nil {
			j.said("queue", queue)
			j.said("kind", kind)
		}
	case record.TaskDispatched:
		id = ev.BaseID
		j.duration("waited_ms", ev.Waited)
	case record.AttemptFailed, record.TaskMoved, record.ApprovalRequested, record.ApprovalDecided:
		j.duration("due_in_ms", ev.Due)
	case record.TaskForgotten:
	default:
		return false
	}
	j.str("task", interlock.TaskID(id).String())
	writeAnswer(j, ev)
	j.count("attempt", ev.Generation)
	if ev.Op != 0 {
		j.said("state", interlock.TaskState(ev.Op).String())
	}
	return true
}

// writeAnswer writes the question of an approval, and the answer.
func writeAnswer(j *jsonOut, ev *record.Event) {
	if text := ev.Question(); text != "" {
		j.note("question", text)
	}
	if ev.Kind != record.ApprovalDecided {
		return
	}
	verdict := interlock.Approved
	if interlock.TaskState(ev.Op) == interlock.TaskDead {
		verdict = interlock.Denied
	}
	j.str("verdict", verdict.String())
}

// eventState returns an effect's state after an event: free, when it was found not done.
func eventState(ev *record.Event) string {
	if len(ev.Blob) > 0 {
		return interlock.EffectClaimed.String()
	}
	return effectState(interlock.EffectState(ev.Op))
}

// writeSettled writes the outcome of an effect. Only the event of a claim contains its name; the
// others name it by its secret.
func writeSettled(j *jsonOut, ev *record.Event) {
	j.str("state", eventState(ev))
	if len(ev.Blob) > 0 {
		digest := sha256.Sum256(ev.Blob)
		j.str("action", hex.EncodeToString(digest[:]))
		j.count("attempt", ev.Generation)
	}
}
