package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// Event is an event as GET /v1/events has it.
type Event api.Event

// Recorded is an event of a journal: as GET /v1/events has it, with its namespace. It never contains
// an id: a lease's id is the right to act on it.
type Recorded struct {
	Namespace string `json:"namespace,omitempty"`
	*Event
	Size *int `json:"size,omitempty"` // of a document, also of an empty one
}

// EventOf is an event of the journal in that form.
func EventOf(ev *record.Event, index interlock.Index, epoch interlock.Epoch) Recorded {
	e := &Event{
		Event: ev.Kind.String(), Index: index, Epoch: epoch, Time: time.Unix(0, int64(ev.At)).UTC(),
		Request: ev.Num, SessionNumber: ev.Session,
		Agent: cli.Clean(ev.Agent), Flow: cli.Clean(ev.Flow), Fence: ev.Fence, Actor: cli.Clean(ev.Actor),
		Asker:   cli.Clean(ev.Asker),
		Purpose: cli.Clean(ev.Purpose), Pattern: cli.Clean(ev.PatternName), Queue: cli.Clean(ev.QueueName),
		Session: cli.Clean(ev.SessionName), Trace: cli.Clean(ev.Trace),
		TTL: ev.TTL.Milliseconds(), Grace: max(ev.Grace, 0).Milliseconds(), MaxHold: ev.MaxHold.Milliseconds(),
		Priority: ev.Priority, Offer: ev.Offer, Reason: ev.Reason.String(), Outcome: cli.Clean(prose.Sentence(ev.Why())),
		Note:   cli.CleanLines(prose.EventNote(ev)),
		Waited: (ev.Waited + ev.Idle).Milliseconds(), Due: ev.Due.Milliseconds(), Held: ev.Held.Milliseconds(), Code: ev.Code,
		Stall: ev.Stall.Milliseconds(), LockDelay: ev.LockDelay.Milliseconds(), MaxWait: ev.MaxWait.Milliseconds(),
		Any: ev.Any, Group: cli.Clean(ev.Group), Lead: ev.Lead, Base: ev.Base, Part: ev.Part,
		TargetSession: ev.Target, TargetFlow: cli.Clean(ev.TargetFlow), By: ev.By,
		Generation: ev.Generation, Freed: ev.Freed, Queued: ev.Queued,
		Version: ev.Version, AsOf: ev.AsOf, ContentType: cli.Clean(ev.ContentType),
	}
	r := Recorded{Namespace: string(ev.Namespace), Event: e}
	switch ev.Kind {
	case record.EffectsForgotten:
		e.Forgotten, e.Request = ev.Num, 0
	case record.Refused:
		e.LeftOut, e.Request = ev.Num, 0
		e.Operation, e.Outcome = e.Outcome, ""
	case record.NamespaceMoved:
		e.moved(ev)
	case record.Decided:
		e.Verdict = interlock.Verdict(ev.Op).String()
	case record.Written:
		r.written(ev)
	case record.EffectChanged:
		e.effect(ev)
	case record.TaskSubmitted, record.TaskDispatched, record.AttemptFailed, record.TaskMoved, record.TaskForgotten,
		record.ApprovalRequested, record.ApprovalDecided:
		e.task(ev)
	}
	// Unreadable events were refused when the journal was replayed.
	if p, err := ev.Pattern(); ev.Kind == record.PatternSet && err == nil {
		e.Policy = patternOf(&p)
	}
	if q, err := ev.Queue(); ev.Kind == record.QueueSet && err == nil {
		e.QueueSettings = queueOf(&q)
	}
	if s, err := ev.Settings(); ev.Kind == record.Configured && err == nil {
		e.Settings = settingsOf(&s)
	}
	if len(ev.Claims) > 0 && ev.Claims[0].Mode == interlock.Member {
		e.Divide = ev.Division.String()
	}
	for _, c := range ev.Claims {
		e.Claims = append(e.Claims, claimOf(c))
	}
	for _, c := range ev.Cycle {
		e.Cycle = append(e.Cycle, api.CycleStep{
			Name: api.Name{Agent: cli.Clean(c.Agent), Session: c.Session, Flow: cli.Clean(c.Flow)},
			Key:  string(c.Key), Mode: c.Mode.String(), Victim: c.Victim, Next: c.Next.String(),
		})
	}
	return r
}

// moved tells what a shard did for the move of a namespace.
func (e *Event) moved(ev *record.Event) {
	other := int(ev.OtherShard)
	*e = Event{
		Event: e.Event, Index: e.Index, Epoch: e.Epoch, Time: e.Time, Actor: e.Actor, Move: ev.Generation,
		Step: record.MoveStep(ev.Op).String(), OtherShard: &other,
	}
}

// written tells what became of a document.
func (r *Recorded) written(ev *record.Event) {
	op := interlock.WriteOp(ev.Op)
	if r.Op = op.String(); op != interlock.Delete {
		r.Event.Size = len(ev.Blob)
		r.Size = &r.Event.Size
	}
}

// effect prints what became of an effect. Only the event of a claim contains its name: the others
// name it by its secret. The result is not public.
func (e *Event) effect(ev *record.Event) {
	e.Generation = 0
	switch state := interlock.EffectState(ev.Op); {
	case len(ev.Blob) > 0:
		digest := sha256.Sum256(ev.Blob)
		e.State, e.Action, e.Attempt = interlock.EffectClaimed.String(), hex.EncodeToString(digest[:]), int(ev.Generation)
	case state == 0:
		e.State = "free"
	default:
		e.State = state.String()
	}
}

// task tells what became of a task.
func (e *Event) task(ev *record.Event) {
	id := ev.ID
	switch ev.Kind {
	case record.TaskSubmitted:
		if queue, kind, err := ev.Task(); err == nil {
			e.Queue, e.Kind = queue, cli.Clean(kind)
		}
	case record.TaskDispatched:
		id = ev.BaseID
	}
	e.Task, e.Attempt, e.Generation = interlock.TaskID(id).String(), int(ev.Generation), 0
	e.State, e.Question = interlock.TaskState(ev.Op).String(), cli.CleanLines(ev.Question())
	if ev.Kind == record.ApprovalDecided {
		if e.Verdict = interlock.Approved.String(); interlock.TaskState(ev.Op) == interlock.TaskDead {
			e.Verdict = interlock.Denied.String()
		}
	}
}

// Line is an event of a journal on one line, for people.
func (r *Recorded) Line(a *cli.App) string { return r.line(a, r.Namespace) }

// Line is an event on one line, for people:
//
//	1041  2026-01-02T12:03:07.512Z  granted   billing-7  account:12345  fence 17 exclusive "apply late fee"
func (e *Event) Line(a *cli.App) string { return e.line(a, "") }

func (e *Event) line(a *cli.App, namespace string) string {
	var b strings.Builder
	stamp := e.Time.Local().Format("2006-01-02T15:04:05.000Z07:00")
	fmt.Fprintf(
		&b, "%6s  %s  %s", e.Index, a.Tint(cli.Dim, stamp), a.Tint(eventColour(e), fmt.Sprintf("%-15s", cli.Clean(e.Event))),
	)
	if namespace != "" {
		fmt.Fprintf(&b, "  %s", cli.Clean(namespace))
	}
	if who := e.who(); who != "" {
		fmt.Fprintf(&b, "  %s", a.Tint(cli.Bold, who))
	}
	if e.Task != "" {
		fmt.Fprintf(&b, "  %s", cli.Clean(e.Task))
	}
	if len(e.Claims) > 0 {
		fmt.Fprintf(&b, "  %s", e.keys())
	}
	for _, fact := range e.facts() {
		fmt.Fprintf(&b, "  %s", fact)
	}
	return b.String()
}

// who returns the agent, or another name of the event's subject.
func (e *Event) who() string {
	switch {
	case e.Agent != "":
		return cli.Clean(e.Agent)
	case e.SessionNumber != 0:
		return "session " + strconv.FormatUint(e.SessionNumber, 10)
	case e.Request != 0 && e.Task == "":
		return "(anonymous)"
	}
	return ""
}

// keys are the claims; exclusive is not worth a word.
func (e *Event) keys() string {
	const most = 3
	var list []string
	for i := range e.Claims[:min(most, len(e.Claims))] {
		c := &e.Claims[i]
		text := cli.Clean(string(c.Key))
		if c.Mode != interlock.Exclusive.String() {
			text += " (" + ClaimText(c) + ")"
		}
		list = append(list, text)
	}
	if more := len(e.Claims) - most; more > 0 {
		list = append(list, "and "+strconv.Itoa(more)+" more")
	}
	if e.Any {
		return "one of " + strings.Join(list, ", ")
	}
	return strings.Join(list, ", ")
}

func (e *Event) facts() (facts []string) {
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if e.Queue != "" {
		add("queue %s", cli.Clean(e.Queue))
	}
	if e.QueueSettings != nil {
		if e.QueueSettings.Paused {
			add("paused")
		}
		if e.QueueSettings.Drain {
			add("draining")
		}
		for _, fact := range QueueFacts(&e.QueueSettings.QueueRequest) {
			add("%s %s", fact[0], fact[1])
		}
	}
	if e.Kind != "" {
		add("%s", cli.Clean(e.Kind))
	}
	if e.Event == record.Refused.String() {
		add("%s %s", cli.Clean(e.Operation), cli.Clean(string(e.Code)))
	}
	if e.Fence != 0 {
		add("fence %s", e.Fence)
	}
	if e.Event == "opened" {
		add("epoch %s", e.Epoch)
	}
	if e.Step != "" && e.OtherShard != nil {
		add("%s, move %d, other shard %d", cli.Clean(e.Step), e.Move, *e.OtherShard)
	}
	if e.Op != "" {
		add("%s, version %s", cli.Clean(e.Op), e.Version)
	}
	if e.Op != "" && e.Op != interlock.Delete.String() {
		add("%s, %s", cli.Clean(e.ContentType), cli.Bytes(int64(e.Size)))
	}
	if e.State != "" {
		add("%s", cli.Clean(e.State))
	}
	if e.Question != "" {
		add("%q", cli.Clean(e.Question))
	}
	if e.Verdict != "" {
		add("%s", cli.Clean(e.Verdict))
	}
	if e.Attempt > 1 {
		add("attempt %d", e.Attempt)
	}
	if e.Action != "" {
		add("action %s", cli.Clean(e.Action))
	}
	if e.Pattern != "" {
		add("%s", cli.Clean(e.Pattern))
	}
	if e.Policy != nil {
		add("%s", cli.Clean(e.Policy.Shape))
		add("%s", PatternLine(&e.Policy.PatternRequest))
	}
	if e.Settings != nil {
		for _, fact := range SettingsFacts(e.Settings) {
			if fact[1] != "no" && fact[1] != "" {
				add("%s %s", fact[0], fact[1])
			}
		}
	}
	if e.Forgotten > 0 {
		add("%d effects", e.Forgotten)
	}
	if e.Base != 0 {
		add("of request %d", e.Base)
	}
	if e.Generation != 0 {
		add("generation %d", e.Generation)
	}
	if e.Offer {
		add("offered")
	}
	if e.Event == record.TTLChanged.String() {
		add("ttl %s", cli.ShortMillis(e.TTL))
	}
	if e.Freed {
		add("keys freed")
	}
	if e.Queued {
		add("in line again")
	}
	if e.Reason != "" {
		add("%s", cli.Clean(e.Reason))
	}
	if e.Asker != "" {
		add("for agent %s", cli.Clean(e.Asker))
	}
	if e.Actor != "" {
		add("by %s", cli.Clean(e.Actor))
	}
	if e.Due > 0 {
		add("due in %s", cli.ShortMillis(e.Due))
	}
	if e.Waited > 0 {
		add("waited %s", cli.ShortMillis(e.Waited))
	}
	if e.Held > 0 {
		add("held %s", cli.ShortMillis(e.Held))
	}
	if e.Outcome != "" {
		add("%s", cli.Clean(e.Outcome))
	}
	if e.Purpose != "" && e.Event != "ended" {
		add("%q", cli.Clean(e.Purpose)) // once is enough
	}
	if e.Note != "" {
		add("note %q", cli.Clean(e.Note))
	}
	if e.LeftOut > 0 {
		add("and %d left out", e.LeftOut)
	}
	if n := len(e.Cycle); n > 0 {
		add("cycle of %d", n)
	}
	return facts
}

func eventColour(e *Event) cli.Colour {
	switch e.Event {
	case "granted", "admitted", "claimed", "converted", "resumed", "task_dispatched":
		return cli.Green
	case "task_attempt_failed", "task_moved":
		return (&Task{State: e.State}).StateColour()
	case "queued", "grace", "yield_requested", "parked":
		return cli.Yellow
	case "closed", "refused":
		return cli.Red
	case "ended", "left":
		switch e.Reason {
		case "released", "left", "session_closed", "converted":
		default:
			return cli.Red
		}
	}
	return cli.Plain
}
