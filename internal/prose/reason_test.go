package prose

import (
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

func TestContents(t *testing.T) {
	numbers := func(list ...int) *message.Text {
		args := make([]message.Arg, len(list))
		for i, n := range list {
			args[i] = message.Num(n)
		}
		return message.New(message.NamespaceContents, args...)
	}
	for want, text := range map[string]*message.Text{
		"1 session":              numbers(1),
		"2 leases and 1 pattern": numbers(0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0),
		"1 parked lease with freed keys, 3 log entries and settings of its own": numbers(
			0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 1,
		),
	} {
		if got := Sentence(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReasons: what the engine describes has its reasons in words, those of persons as they were
// written.
func TestReasons(t *testing.T) {
	none := message.New(message.AnsweredByNone, message.Dur(time.Minute))
	last := message.New(message.TaskLastAttempt, message.Num(3), message.Str(record.ByTTL.String()))
	shown := Task(&engine.Task{
		Task:     interlock.Task{Queue: "fees", State: interlock.TaskDead},
		Attempts: []engine.Attempt{{Attempt: interlock.Attempt{Number: 3}, Reason: last}},
		Approval: &engine.Approval{Approval: interlock.Approval{Question: "may I?"}, Reason: none},
		Reason:   message.New(message.TaskDeniedSaying, message.Str("policy"), message.Sub(none)),
	})
	if want := (&interlock.Task{
		Queue: "fees", State: interlock.TaskDead,
		Attempts: []interlock.Attempt{{Number: 3, Reason: "the last of 3 attempts ended: ttl"}},
		Approval: &interlock.Approval{Question: "may I?", Reason: "no answer within 1m0s"},
		Reason:   "denied by policy: no answer within 1m0s",
	}); !reflect.DeepEqual(shown, want) {
		t.Errorf("%+v, want %+v", shown, want)
	}
	plain := message.Plain("card refused, 5 %")
	if got := LogEntry(&engine.LogEntry{LogEntry: interlock.LogEntry{Seq: 7}, Reason: plain}); got.Seq != 7 ||
		got.Reason != "card refused, 5 %" {
		t.Errorf("%+v", got)
	}
	lost := message.New(message.EffectSessionEnded)
	if got := Effect(&engine.SideEffect{Effect: interlock.Effect{Attempt: 2}, Reason: lost}); got.Attempt != 2 ||
		got.Reason != Sentence(lost) {
		t.Errorf("%+v", got)
	}
	decided := &record.Event{Kind: record.ApprovalDecided}
	decided.SetVerdict("", nil, "", none)
	if got := EventNote(decided); got != "no answer within 1m0s" {
		t.Errorf("a verdict of policy has the note %q", got)
	}
	if got := EventNote(&record.Event{Kind: record.Ended, Note: "left it"}); got != "left it" {
		t.Errorf("a lease ended with the note %q", got)
	}
}
