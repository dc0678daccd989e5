package record_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// TestReasons: what an event is about is a message, or words, which stay where earlier versions
// wrote them.
func TestReasons(t *testing.T) {
	code := message.New(message.TaskDeniedSaying, message.Str("policy"), message.Sub(
		message.New(message.AnsweredByNone, message.Dur(time.Minute)),
	))
	for _, c := range []struct {
		why   *message.Text
		words string
	}{
		{nil, ""},
		{message.Plain("its deadline has passed"), "its deadline has passed"},
		{code, ""},
	} {
		moved := &record.Event{Kind: record.TaskMoved, At: 7}
		moved.SetWhy(c.why)
		if got := roundTrip(t, moved); got.Outcome != c.words || !reflect.DeepEqual(got.Why(), c.why) {
			t.Errorf("%v is read as %v, in words %q", c.why, got.Why(), got.Outcome)
		}
		decided := &record.Event{Kind: record.ApprovalDecided, At: 7}
		decided.SetVerdict("ops", nil, "refund 1200?", c.why)
		got := roundTrip(t, decided)
		principal, _, why, err := got.Verdict()
		if err != nil || principal != "ops" || got.Note != c.words || !reflect.DeepEqual(why, c.why) {
			t.Errorf("%v of %q is read as %v of %q, in words %q, %v", c.why, "ops", why, principal, got.Note, err)
		}
		asked := &record.Approval{Text: "may I?", Asked: 7}
		asked.SetWhy(c.why)
		kept, err := record.DecodeApproval(record.AppendApproval(nil, asked, 5), 5)
		if err != nil || !reflect.DeepEqual(kept.Why(), c.why) || kept.Reason != c.words {
			t.Errorf("%+v is read as %+v, %v", asked, kept, err)
		}
	}
}

// TestUnreadableReasons: a message that cannot be read is none.
func TestUnreadableReasons(t *testing.T) {
	bad := []byte{255}
	moved := &record.Event{Kind: record.TaskMoved, Outcome: "words", Cause: bad}
	asked := &record.Approval{Reason: "words", Cause: bad}
	for name, got := range map[string]*message.Text{"an event": moved.Why(), "an approval": asked.Why()} {
		if got.ID != message.None {
			t.Errorf("%s has the reason %v", name, got)
		}
	}
}
