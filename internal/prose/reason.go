package prose

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Task returns a task of the engine with its reasons in words.
func Task(t *engine.Task) *interlock.Task {
	v := t.Task
	v.Reason = Sentence(t.Reason)
	if len(t.Attempts) > 0 {
		v.Attempts = make([]interlock.Attempt, len(t.Attempts))
	}
	for i := range t.Attempts {
		v.Attempts[i] = t.Attempts[i].Attempt
		v.Attempts[i].Reason = Sentence(t.Attempts[i].Reason)
	}
	if t.Approval != nil {
		a := t.Approval.Approval
		a.Reason = Sentence(t.Approval.Reason)
		v.Approval = &a
	}
	return &v
}

// LogEntry returns an entry of a log with its reason in words.
func LogEntry(x *engine.LogEntry) *interlock.LogEntry {
	v := x.LogEntry
	v.Reason = Sentence(x.Reason)
	return &v
}

// Effect returns a side effect with its reason in words.
func Effect(x *engine.SideEffect) *interlock.Effect {
	v := x.Effect
	v.Reason = Sentence(x.Reason)
	return &v
}

// EventNote returns the note of an event, which of ApprovalDecided is the reason of the verdict.
// Unreadable events were refused when the journal was replayed.
func EventNote(ev *record.Event) string {
	if ev.Kind == record.ApprovalDecided {
		_, _, why, _ := ev.Verdict()
		return Sentence(why)
	}
	return ev.Note
}

// things are what message.NamespaceContents counts, in the order of its values.
var things = [...]struct{ one, many string }{
	{"session", "sessions"},
	{"lease", "leases"},
	{"parked lease with freed keys", "parked leases with freed keys"},
	{"waiter", "waiters"},
	{"unfinished task", "unfinished tasks"},
	{"dead letter", "dead letters"},
	{"document", "documents"},
	{"unsettled effect", "unsettled effects"},
	{"done effect", "done effects"},
	{"log entry", "log entries"},
	{"pattern", "patterns"},
	{"queue", "queues"},
	{}, // settings of its own
	{"webhook", "webhooks"},
}

// contents lists what a namespace has.
func contents(counts []message.Arg) string {
	var list []string
	for i := range counts {
		switch n := counts[i].Number; {
		case n == 0:
		case things[i].one == "":
			list = append(list, "settings of its own")
		default:
			list = append(list, Count(int(n), things[i].one, things[i].many))
		}
	}
	return enumerated(list)
}
