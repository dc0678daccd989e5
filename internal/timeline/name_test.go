package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// history has a lease with a trace that is converted, parked and resumed in line, its followers, and a task with two
// attempts: with fences, and with how long things took, as the engine records them.
func history() events {
	var list events
	add := func(ev *record.Event, change func(*record.Event)) {
		change(ev)
		list = append(list, ev)
	}
	as := func(fence int, held time.Duration, why record.Reason) func(*record.Event) {
		return func(ev *record.Event) {
			ev.Fence, ev.Held, ev.Reason, ev.Trace = interlock.Fence(fence), held*time.Second, why, parent
		}
	}
	waited := func(fence int, d time.Duration) func(*record.Event) {
		return func(ev *record.Event) { ev.Fence, ev.Waited = interlock.Fence(fence), d*time.Second }
	}
	task := [16]byte{77}
	attempt := func(ev *record.Event) { ev.BaseID, ev.Fence, ev.Generation = task, 20+interlock.Fence(ev.At/second), 1 }
	about := func(ev *record.Event) { ev.ID = task }

	add(event(record.Granted, 1, 1, "a:1"), as(1, 0, 0))
	add(event(record.Queued, 2, 2, "a:1"), func(*record.Event) {})
	add(event(record.TaskSubmitted, 2, 0, "t"), func(ev *record.Event) {
		about(ev)
		(&record.Task{
			Address: &record.Address{Agent: "boss"}, TaskExtras: record.NoExtras, Claims: ev.Claims, Submitted: ev.At,
		}).Describe(ev)
	})
	add(event(record.Ended, 5, 1, "a:1"), as(1, 4, record.ByRelease))
	add(event(record.Admitted, 5, 2, "a:1"), waited(2, 3))
	add(event(record.TaskDispatched, 6, 7, "t"), attempt)
	add(event(record.Queued, 7, 3, "a:1"), func(ev *record.Event) { ev.Trace = parent })
	add(event(record.Ended, 8, 7, "t"), func(ev *record.Event) {
		ev.Fence, ev.ByID, ev.Held, ev.Reason = 26, task, 2*time.Second, record.ByNack
	})
	add(event(record.AttemptFailed, 8, 0), func(ev *record.Event) { about(ev); ev.Op = uint8(interlock.TaskScheduled) })
	add(event(record.Parked, 9, 2, "a:1"), func(ev *record.Event) {
		ev.Fence, ev.Held, ev.Freed = 2, 4*time.Second, true
	})
	add(event(record.Admitted, 9, 3, "a:1"), func(ev *record.Event) { waited(3, 2)(ev); ev.Trace = parent })
	add(event(record.Refused, 9, 9, "a:1"), func(ev *record.Event) { ev.Fence, ev.Code = 2, interlock.CodeFenced })
	add(event(record.TaskDispatched, 10, 8, "t"), attempt)
	add(event(record.Resumed, 11, 2, "a:1"), func(ev *record.Event) { ev.Queued = true })
	add(event(record.Grace, 12, 3, "a:1"), as(3, 3, record.ByTTL))
	add(event(record.Closed, 13, 3, "a:1"), as(3, 4, record.ByTTL))
	add(event(record.Ended, 14, 3, "a:1"), as(3, 4, record.ByTTL))
	add(event(record.Admitted, 14, 2, "a:1"), waited(4, 3))
	add(event(record.Ended, 15, 8, "t"), func(ev *record.Event) {
		ev.Fence, ev.ByID, ev.Held, ev.Reason = 30, task, 5*time.Second, record.ByRelease
	})
	add(event(record.TaskMoved, 15, 0), func(ev *record.Event) { about(ev); ev.Op = uint8(interlock.TaskDone) })
	add(event(record.Ended, 16, 2, "a:1"), func(ev *record.Event) {
		ev.Fence, ev.Held, ev.Reason = 4, 2*time.Second, record.ByRelease
	})
	return list
}

// from reduces the events from one of them on.
func (e events) from(n int, f Filter) *Timeline {
	r := New(f)
	for i, ev := range e[n:] {
		r.Add(interlock.Index(n+i+1), ev)
	}
	return r.Timeline()
}

// facts are what the id of a span is a hash of.
func facts(b *Bar) string {
	return fmt.Sprint(b.Kind, " ", b.Lease, " ", b.Fence, " ", b.EndIndex, " ", b.Task)
}

func TestNames(t *testing.T) {
	line := history().from(0, Filter{Ended: true})
	var got []string
	leases := map[string]string{}
	for i := range line.Bars {
		b := &line.Bars[i]
		if leases[b.Lease] == "" {
			leases[b.Lease] = fmt.Sprint("l", len(leases))
		}
		text := fmt.Sprintf("%s %s f%d %s", b.Kind, leases[b.Lease], b.Fence, b.Outcome)
		if b.Waited {
			text += " waited"
		}
		if b.ParentID != "" {
			text += " of " + b.ParentID
		}
		if b.Attempt > 0 {
			text += fmt.Sprint(" attempt of ", b.Task.String()[:4])
		}
		for _, l := range b.Links {
			text += fmt.Sprintf(" %s %s/f%d", l.Kind, leases[l.Lease], l.Fence)
			if l.TraceID != "" {
				text += " traced"
			}
		}
		got = append(got, text)
	}
	want := `hold l0 f1 released of b7ad6b7169203331
wait l1 f0 granted blocked_by l0/f1 traced
hold l1 f2 parked waited handed_on l0/f1 traced
attempt l2 f26 nack attempt of q_4d
wait l3 f0 granted of b7ad6b7169203331 blocked_by l1/f2
parked l1 f2 resumed
hold l3 f3 ttl waited of b7ad6b7169203331 handed_on l1/f2
attempt l4 f30 released attempt of q_4d
wait l1 f0 granted blocked_by l3/f3 traced
grace l3 f3 ttl of b7ad6b7169203331
lock_delay l3 f3 ttl of b7ad6b7169203331
hold l1 f4 released waited handed_on l3/f3 traced`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the bars are\n%s\nwant\n%s", text, want)
	}
	if len(line.Tasks) != 1 || line.Tasks[0].Outcome != "done" || line.Tasks[0].Attempts != 2 ||
		line.Tasks[0].From != 2*second || line.Tasks[0].To != 15*second || line.Tasks[0].Agent != "boss" {
		t.Errorf("the tasks are %+v", line.Tasks)
	}
	if m := line.Marks[1]; m.Kind != "refused_fence" || m.Holder == nil || leases[m.Holder.Lease] != "l1" {
		t.Errorf("the mark is %+v", m)
	}
}

// A reader that begins anywhere sees the same bars, or fewer, and each part of the time has each bar once.
func TestNamesFromAnywhere(t *testing.T) {
	list := history()
	all := map[string]Bar{}
	for _, b := range list.from(0, Filter{}).Bars {
		if all[facts(&b)].Kind != "" {
			t.Errorf("two bars are %s", facts(&b))
		}
		all[facts(&b)] = b
	}
	for n := range list {
		if list[n].Kind == record.Ended && list[n-1].Kind == record.Closed {
			continue // the end of a lock_delay, which is shorter than the time that is read before
		}
		for _, b := range list.from(n, Filter{}).Bars {
			whole, known := all[facts(&b)]
			switch {
			case !known:
				t.Errorf("from event %d on there is %s", n, facts(&b))
			case b.From != whole.From || b.Context != whole.Context && n <= 10:
				t.Errorf("from event %d on %s is %+v, as a whole %+v", n, facts(&b), b, whole)
			}
		}
	}
	count := 0
	for at := range record.Time(18) {
		part := list.from(0, Filter{From: at * second, To: (at + 1) * second, Ended: true})
		for _, b := range part.Bars {
			if b.To < at*second || b.To >= (at+1)*second {
				t.Errorf("%+v ends in the second %d", b, at)
			}
		}
		count += len(part.Bars) + len(part.Tasks)
	}
	if count != len(all)+1 {
		t.Errorf("parts have %d bars and tasks, the whole %d", count, len(all)+1)
	}
}

// A reader that ends where a result is full, and begins again there, has each bar once, also those that end together.
func TestFull(t *testing.T) {
	const n = 2*MaxEnded + 100
	var list events
	for i := range n {
		ev := event(record.Ended, 1, 1, "a")
		ev.At += record.Time(i/300) * millisecond // 300 at a time
		ev.ID = [16]byte{byte(i), byte(i >> 8), byte(i >> 16), 1}
		list = append(list, ev)
	}
	seen, results := 0, 0
	for since := record.Time(1); ; results++ {
		r := New(Filter{From: since, Ended: true})
		full := false
		for i, ev := range list {
			if full = r.Full(ev.At); full {
				since = ev.At
				break
			}
			r.Add(interlock.Index(i+1), ev)
		}
		line := r.Timeline()
		seen += len(line.Bars)
		if line.MoreBars > 0 {
			t.Errorf("%d bars are left out", line.MoreBars)
		}
		if !full {
			break
		}
	}
	if seen != n || results != 1 {
		t.Errorf("%d bars in %d results before the last one, want %d", seen, results, n)
	}
	if New(Filter{}).Full(second) {
		t.Error("a result with what goes on is full")
	}
}
