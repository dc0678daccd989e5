package engine_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// storedReply is the answer to a request id.
type storedReply struct {
	ns      interlock.Namespace
	session interlock.SessionID
	actor   string
	id      string
	body    string
	outcome interlock.Outcome
	code    interlock.Code
	num     uint64 // the request that it is about; 0 for none
	effect  interlock.EffectID
	task    interlock.TaskID
	version interlock.Version
	at      engine.Time
	made    string // what it made, "" for nothing
	out     bool   // it has left the window
}

// Request ids.

// repeatable reports whether a request id counts for a command: the others change nothing, or
// may happen twice.
func repeatable(cmd engine.Command) bool {
	switch cmd.(type) {
	case *engine.Acquire, *engine.Release, *engine.Leave, *engine.Revoke, *engine.RequestYield, *engine.OpenSession,
		*engine.Convert, *engine.Arrive, *engine.Park, *engine.Resume, *engine.Declare,
		*engine.SetPattern, *engine.DropPattern, *engine.RevertPattern, *engine.Configure, *engine.ClaimEffect, *engine.SettleEffect, *engine.Commit,
		*engine.SetQueue, *engine.SwitchQueue, *engine.DropQueue, *engine.Submit, *engine.Ack, *engine.Nack, *engine.ChangeTask,
		*engine.AskHuman, *engine.Answer, *engine.StartRun,
		*engine.SetWebhook, *engine.RotateWebhook, *engine.DeleteWebhook, *engine.Renew:
		return true
	}
	return false
}

// answerTo returns the answer that is remembered for a command: one in the window, or of a
// command that made something that is still there.
func (m *model) answerTo(head *engine.Head) *storedReply {
	if s := m.sessionByID(head.Namespace, head.Session); s != nil && s.ended && !slices.ContainsFunc(
		m.requests, func(r *request) bool {
			return r.phase != over && (r.session == s || r.target != nil && r.target.session == s)
		},
	) {
		return nil // it is forgotten, and all ids in it
	}
	for _, a := range m.answers {
		inTime := !head.Session.IsZero() || m.now.Sub(a.at) < interlock.RequestIDWindow
		if head.RequestID != "" && a.isTo(head) && (!a.out && inTime || m.remains(a)) {
			return a
		}
	}
	return nil
}

func (a *storedReply) isTo(head *engine.Head) bool {
	return a.ns == head.Namespace && a.session == head.Session && a.actor == head.Actor && a.id == head.RequestID
}

// remains reports whether what a command made is still there.
func (m *model) remains(a *storedReply) bool {
	switch a.made {
	case "request":
		return m.byNum(a.num).phase != over
	case "session":
		s := m.sessionByNum(a.num)
		return s != nil && !s.ended
	case "task":
		return m.task(a.ns, a.task) != nil
	case "effect":
		return m.deed(a.ns, func(d *sideEffect) bool { return d.id == a.effect }) != nil
	}
	return false
}

// makeRoom has the oldest answers leave the window that a fresh one came to.
func (m *model) makeRoom(fresh *storedReply) {
	var window []*storedReply
	for _, a := range m.answers {
		if !a.out && a.ns == fresh.ns && a.session == fresh.session {
			window = append(window, a)
		}
	}
	most, least := engine.NamespaceIDs, 0
	if !fresh.session.IsZero() {
		most, least = engine.SessionIDs, engine.LeastSessionIDs
	}
	if m.wide {
		most, least = interlock.MaxSessionRequestIDs, interlock.MinSessionRequestIDs
	}
	for len(window) > most || len(window) > least && m.now.Sub(window[0].at) >= interlock.RequestIDWindow {
		window[0].out = true
		window = window[1:]
	}
}

// bodyOf is everything of a command that must be the same when its request id is
// repeated.
func bodyOf(cmd engine.Command) string {
	plain := reflect.New(reflect.TypeOf(cmd).Elem()).Elem()
	plain.Set(reflect.ValueOf(cmd).Elem())
	plain.FieldByName("Head").SetZero()
	if attach := plain.FieldByName("Attach"); attach.IsValid() { // a request may come again with another id
		attach.SetZero()
		if id := plain.FieldByName("ID"); id.IsValid() {
			id.SetZero()
		}
	}
	var asked []interlock.Question
	switch c := plain.Addr().Interface().(type) {
	case *engine.ClaimEffect:
		c.ID = interlock.EffectID{}
	case *engine.Submit:
		asked = plainTask(asked, &c.Task)
	case *engine.Ack:
		c.Tasks = slices.Clone(c.Tasks)
		for i := range c.Tasks {
			asked = plainTask(asked, &c.Tasks[i])
		}
	case *engine.Nack:
		c.Jitter = 0
	case *engine.StartRun:
		c.MaxWait = 0
	case *engine.SetWebhook:
		c.ID, c.Secret, c.LinkKey, c.Cursor = "", nil, nil, 0
	case *engine.RotateWebhook:
		c.Secret, c.LinkKey = nil, nil
	}
	return fmt.Sprintf("%T%+v%+v", cmd, plain.Interface(), asked)
}

// plainTask leaves out of a task what may be another one when it comes again, and
// appends what it asks, which is not in it but elsewhere.
func plainTask(asked []interlock.Question, x *engine.TaskSpec) []interlock.Question {
	if x.ID = [16]byte{}; x.Ask != nil {
		asked = append(asked, *x.Ask)
		x.Ask = nil
	}
	return asked
}

func (m *model) remember(cmd engine.Command, ev *record.Event) {
	head := cmd.Header()
	if m.known(cmd) != nil {
		return
	}
	a := &storedReply{
		ns: head.Namespace, session: head.Session, actor: head.Actor, id: head.RequestID, body: bodyOf(cmd),
		outcome: ev.Answer, code: ev.Code, num: ev.Num, version: ev.Version, at: m.now,
	}
	if r := m.byID(head.Namespace, ev.ID); a.num == 0 && r != nil {
		a.num = r.num // a lease that the holder had already
	}
	switch cmd.(type) {
	case *engine.ClaimEffect:
		a.effect = ev.ID
	case *engine.Submit, *engine.Ack, *engine.Nack, *engine.AskHuman:
		a.task = ev.ID
	}
	switch cmd.(type) {
	case *engine.Submit:
		a.made = "task"
	case *engine.ClaimEffect:
		if ev.Kind == record.EffectChanged {
			a.made = "effect"
		}
	case *engine.OpenSession:
		a.made, a.num = "session", ev.Session
	default:
		if ev.Kind == record.Queued || ev.Kind == record.Granted {
			a.made = "request"
		}
	}
	if i := slices.IndexFunc(m.answers, func(a *storedReply) bool { return !a.out && a.isTo(head) }); i >= 0 {
		m.answers[i] = a // in the same place
	} else {
		m.answers = append(slices.DeleteFunc(m.answers, func(a *storedReply) bool { return a.isTo(head) }), a)
	}
	m.makeRoom(a)
}

// expectRepeated: same id, same answer, with the request's state of today;
// another body is refused.
func (m *model) expectRepeated(cmd engine.Command, known *storedReply) answer {
	if known.body != bodyOf(cmd) {
		return refusalKey(interlock.CodeRequestIDReused)
	}
	r := m.byNum(known.num)
	switch c := cmd.(type) {
	case *engine.Renew: // it renews, and leaves the ttl as it is
		plain := *c
		plain.TTL = 0
		return m.expectRenew(&plain)
	case *engine.Commit:
		if known.outcome == engine.Done {
			return m.expectCommitted(c, known.version)
		}
	case *engine.StartRun:
		if r != nil && !isElsewhere(c, r) {
			return m.expectRunAgain(c, r)
		}
	case *engine.ClaimEffect, *engine.SettleEffect:
		return m.expectDeedAgain(cmd, known)
	case *engine.Submit, *engine.Ack, *engine.Nack, *engine.ChangeTask, *engine.AskHuman, *engine.Answer:
		return m.expectWorkAgain(cmd, known)
	}
	switch {
	case known.outcome == engine.Refused:
		return refusalKey(known.code)
	case r != nil && isElsewhere(cmd, r):
		return refusalKey(append(gone(r), interlock.CodeUnknownLease, interlock.CodeUnknownTicket)...)
	case (known.outcome == engine.Granted || known.outcome == engine.Queued) && r != nil:
		return m.showRequest(r)
	}
	return answer{outcome: known.outcome}
}

// isElsewhere reports whether a lease has been parked, and is in other hands since.
func isElsewhere(cmd engine.Command, r *request) bool { return r.away && !mine(cmd.Header(), r) }

// checkRemembered: an answer with a request id is remembered once, unless it is a
// refusal that another attempt may be spared.
func (m *model) checkRemembered(cmd engine.Command, before bool, out *engine.Output) error {
	n := 0
	for i := range out.Events {
		if out.Events[i].RequestID != "" {
			n++
		}
	}
	head := cmd.Header()
	again := false // a refusal for a holder is no answer for good
	waits := func(*engine.Effect) bool { return false }
	switch cmd.(type) {
	case *engine.StartRun, *engine.Commit, *engine.Ack:
		again = true
	case *engine.Renew: // which is remembered with a change of the ttl
		changed := slices.ContainsFunc(out.Events, func(ev record.Event) bool { return ev.Kind == record.TTLChanged })
		waits = func(*engine.Effect) bool { return !changed }
	case *engine.Resume: // which is repeated when a person has answered
		waits = func(e *engine.Effect) bool { return e.Question != nil }
	}
	if !repeatable(cmd) || head.RequestID == "" {
		return nil
	}
	if !head.Session.IsZero() && m.sessionByID(head.Namespace, head.Session) == nil { // it went with its namespace
		if n > 0 {
			return errors.New("the request id of a session that is not there is remembered")
		}
		return nil
	}
	switch {
	case before && n > 0, n > 1:
		return fmt.Errorf("the request id is remembered %d times more", n)
	case !before && n == 0:
		for i := range out.Effects {
			if e := &out.Effects[i]; e.To == head.From && !waits(e) &&
				(e.Outcome != engine.Refused || e.Code == interlock.CodeHeld && !again) {
				return errors.New("the answer to the request id is not remembered")
			}
		}
	}
	return nil
}
