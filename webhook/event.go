package webhook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/invisible"
)

// Types of messages that are about no event of the journal. Every webhook gets them.
const (
	TypePing = "ping" // an operator tries the webhook
	TypeGap  = "gap"  // events may have been missed: the journal does not reach back to them
)

// All is the entry of interlock.Webhook.Events for all types.
const All = "*"

// eventType is a type of events that a webhook can name.
type eventType struct {
	name  string
	about string // what has happened
	is    func(ev *record.Event) bool
}

// types maps the events of the journal to the types of messages. An event has the first type that
// fits, and is in no message if none does. docs/webhooks.md has the same table.
var types = []eventType{
	{"approval_requested", "A person is asked about a task or a parked lease.", func(ev *record.Event) bool {
		switch ev.Kind {
		case record.ApprovalRequested:
			return true
		case record.TaskSubmitted, record.TaskMoved:
			return stateOf(ev) == interlock.TaskAsking
		case record.Parked:
			return ev.Op != 0 && ev.Reason == 0
		}
		return false
	}},
	{"approval_decided", "A question is answered, by a person or by its time limit.", func(ev *record.Event) bool {
		return ev.Kind == record.ApprovalDecided || ev.Kind == record.Decided
	}},
	{"dead_letter", "A task is dead: it is not tried again.", func(ev *record.Event) bool {
		return (ev.Kind == record.TaskMoved || ev.Kind == record.AttemptFailed) && stateOf(ev) == interlock.TaskDead
	}},
	{"task_failed", "An attempt at a task failed, and another one follows.", func(ev *record.Event) bool {
		return ev.Kind == record.AttemptFailed
	}},
	{"task_done", "A task is done.", func(ev *record.Event) bool {
		return ev.Kind == record.TaskMoved && stateOf(ev) == interlock.TaskDone
	}},
	{"task_cancelled", "A task was cancelled.", func(ev *record.Event) bool {
		return ev.Kind == record.TaskMoved && stateOf(ev) == interlock.TaskCancelled
	}},
	{
		"lease_expired", "A lease ended because its holder stopped, stalled or held it for too long.",
		func(ev *record.Event) bool { return isEnd(ev) && slices.Contains(expiries, ev.Reason) },
	},
	{"lease_revoked", "An operator or a request with preemption took a lease.", func(ev *record.Event) bool {
		return isEnd(ev) && (ev.Reason == record.ByRevocation || ev.Reason == record.ByPreemption)
	}},
	{"deadlock", "A cycle of waits was resolved: its victim's wait or lease ended.", func(ev *record.Event) bool {
		return (ev.Kind == record.Left || ev.Kind == record.Parked) && ev.Reason == record.ByDeadlock
	}},
	{"barrier_broken", "A party of a barrier was lost.", func(ev *record.Event) bool {
		return ev.Kind == record.Left && ev.Reason == record.ByBreak
	}},
	{"effect_unknown", "The claimer of an effect reported that its outcome is unknown.", func(ev *record.Event) bool {
		return ev.Kind == record.EffectChanged && interlock.EffectState(ev.Op) == interlock.EffectUnknown
	}},
	{"refused", "A request was refused at a pattern that records refusals.", func(ev *record.Event) bool {
		return ev.Kind == record.Refused
	}},
	{"pattern_changed", "A key pattern was set, dropped or reverted.", func(ev *record.Event) bool {
		return ev.Kind == record.PatternSet || ev.Kind == record.PatternDropped
	}},
	{"queue_changed", "A queue was set or dropped.", func(ev *record.Event) bool {
		return ev.Kind == record.QueueSet || ev.Kind == record.QueueDropped
	}},
	{"settings_changed", "The namespace's settings were changed.", func(ev *record.Event) bool {
		return ev.Kind == record.Configured
	}},
}

// expiries are the reasons of a lease_expired.
var expiries = []record.Reason{record.ByTTL, record.ByMaxHold, record.ByStall, record.ByDeath, record.ByParking}

// isEnd reports whether the keys of a lease are free from the event on. A lease with a lock delay is
// closed before.
func isEnd(ev *record.Event) bool { return ev.Kind == record.Ended }

func stateOf(ev *record.Event) interlock.TaskState { return interlock.TaskState(ev.Op) }

// typeOf returns the type of the message about an event, "" for none.
func typeOf(ev *record.Event) string {
	for i := range types {
		if types[i].is(ev) {
			return types[i].name
		}
	}
	return ""
}

// Types returns the names of the types that a webhook can list, with their descriptions.
func Types() (names, about []string) {
	for i := range types {
		names, about = append(names, types[i].name), append(about, types[i].about)
	}
	return names, about
}

// CheckEvents returns an error that names the first unknown type and the known one that is most
// like it; nil if all are known.
func CheckEvents(events []string) error {
	names, _ := Types()
	for _, name := range events {
		if name == All || slices.Contains(names, name) {
			continue
		}
		nearest := slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
		return fmt.Errorf("unknown event %q: did you mean %s? The events are %s, or * for all",
			invisible.Clip(name, 64), nearest, strings.Join(names, ", "))
	}
	return nil
}

// distance is the number of bytes to insert, delete or replace to get from one text to another.
func distance(a, b string) int {
	a = invisible.Clip(a, 64)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
