package record_test

import (
	"reflect"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// TestMeanings: a bit that has another meaning for some kinds is read into the field that it was
// written from, and a field of other kinds is left out.
func TestMeanings(t *testing.T) {
	set := func(ev *record.Event) *record.Event {
		ev.Purpose, ev.PatternName, ev.QueueName, ev.KeyClass, ev.SessionName = "purpose", "pattern", "queue", "class",
			"session"
		ev.WebhookName = "webhook"
		ev.Note, ev.Result = "note", "result"
		ev.Waited, ev.Due, ev.After, ev.Idle = 1, 2, 3, 4
		ev.Target, ev.OtherShard = 5, 6
		return ev
	}
	for kind, want := range map[record.Kind]record.Event{
		record.Granted:        {Purpose: "purpose", Note: "note", Waited: 1, Target: 5},
		record.PatternSet:     {PatternName: "pattern", Note: "note", Waited: 1, Target: 5},
		record.Refused:        {PatternName: "pattern", Note: "note", Waited: 1, Target: 5},
		record.QueueDropped:   {QueueName: "queue", Note: "note", Waited: 1, Target: 5},
		record.WebhookSet:     {WebhookName: "webhook", Note: "note", Waited: 1, Target: 5},
		record.HoldTime:       {KeyClass: "class", Note: "note", Waited: 1, Target: 5},
		record.EffectChanged:  {SessionName: "session", Result: "result", Waited: 1, Target: 5},
		record.Written:        {SessionName: "session", Note: "note", Waited: 1, Target: 5},
		record.TaskMoved:      {SessionName: "session", Note: "note", Due: 2, Target: 5},
		record.TaskSubmitted:  {Purpose: "purpose", Note: "note", After: 3, Target: 5},
		record.Bucket:         {Purpose: "purpose", Note: "note", After: 3, Target: 5},
		record.Opened:         {Purpose: "purpose", Note: "note", Idle: 4, Target: 5},
		record.TaskDispatched: {Purpose: "purpose", Note: "note", Waited: 1, Target: 5},
		record.AttemptFailed:  {SessionName: "session", Note: "note", Due: 2, Target: 5},
		record.NamespaceMoved: {Purpose: "purpose", Note: "note", Waited: 1, OtherShard: 6},
		record.PatternDropped: {PatternName: "pattern", Note: "note", Waited: 1, Target: 5},
	} {
		want.Kind, want.At = kind, 7
		got := roundTrip(t, set(&record.Event{Kind: kind, At: 7}))
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%v is read as %+v, want %+v", kind, *got, want)
		}
	}
}

// TestEachFieldHasABit fills every field of an event, and expects all bits of the mask.
func TestEachFieldHasABit(t *testing.T) {
	ev := &record.Event{Kind: record.Granted, At: 7}
	fill(reflect.ValueOf(ev).Elem())
	ev.Kind, ev.At = record.Granted, 7
	if mask := record.MaskOf(ev); mask != record.KnownFields {
		t.Errorf("the mask is %x, want %x", mask, uint64(record.KnownFields))
	}
	ev.PatternName, ev.QueueName, ev.KeyClass, ev.SessionName, ev.Result, ev.Due, ev.After, ev.Idle = "", "", "", "", "",
		0, 0, 0
	ev.WebhookName, ev.OtherShard = "", 0
	if got := roundTrip(t, ev); !reflect.DeepEqual(got, ev) {
		t.Errorf("%+v is read as %+v", ev, got)
	}
}

// fill sets the exported fields to values that are not zero.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue
		}
		switch x := f.Interface().(type) {
		case []interlock.Claim:
			f.Set(reflect.ValueOf([]interlock.Claim{
				{Key: "a", Mode: interlock.Permits, Count: 3}, {Key: "b", Mode: interlock.Shared},
			}))
		case []interlock.CycleStep:
			f.Set(reflect.ValueOf([]interlock.CycleStep{{
				Agent: "a", Session: "s", Flow: "f", Key: "k", Mode: interlock.Exclusive, Victim: true, Next: 1,
			}}))
		case []byte:
			f.SetBytes([]byte("bytes"))
		case [16]byte:
			x[3] = 9
			f.Set(reflect.ValueOf(x))
		default:
			switch f.Kind() {
			case reflect.Struct:
				fill(f)
			case reflect.String:
				f.SetString("text of " + v.Type().Field(i).Name)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(i + 1))
			default:
				f.SetUint(uint64(i + 1))
			}
		}
	}
}

func roundTrip(t *testing.T, ev *record.Event) (got *record.Event) {
	t.Helper()
	entry := record.AppendEvent(record.AppendHead(nil, ev.At), ev)
	if err := record.CheckEntry(entry); err != nil {
		t.Fatal(err)
	}
	if err := record.DecodeEntry(entry, func(ev *record.Event) error { got = new(*ev); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}
