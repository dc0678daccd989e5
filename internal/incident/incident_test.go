package incident

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

const second = record.Time(time.Second)

// event makes one about the lease with a number, of agent-NUMBER.
func event(kind record.Kind, at int, lease byte, change func(*record.Event), keys ...interlock.Key) record.Event {
	ev := record.Event{
		Kind: kind, At: record.Time(at) * second, Namespace: "one", ID: [16]byte{lease}, Agent: fmt.Sprint("agent-", lease),
	}
	for _, k := range keys {
		ev.Claims = append(ev.Claims, interlock.Claim{Key: k, Mode: interlock.Exclusive})
	}
	if change != nil {
		change(&ev)
	}
	return ev
}

func by(reason record.Reason, took time.Duration) func(*record.Event) {
	return func(ev *record.Event) { ev.Reason, ev.Waited, ev.Held = reason, took, took }
}

func refused(code interlock.Code) func(*record.Event) {
	return func(ev *record.Event) { ev.Code, ev.Outcome = code, "commit" }
}

// reduce returns a line for each incident.
func reduce(now int, list []record.Event) (lines []string) {
	r := New(Options{})
	for i := range list {
		r.Add(interlock.Index(i+10), &list[i])
	}
	for _, in := range r.Result(record.Time(now) * second).Incidents {
		lines = append(lines, fmt.Sprintf(
			"%d %d<%d %s: %s\n    %s", in.Time/second, in.Before, in.Index, in.Kind, in.Text, in.Command,
		))
	}
	return lines
}

func TestReducer(t *testing.T) {
	cycle := func(ev *record.Event) {
		ev.Reason = record.ByDeadlock
		ev.Cycle = []interlock.CycleStep{{Agent: "agent-2", Key: "b"}, {Agent: "agent-1", Key: "a", Victim: true}}
	}
	for _, tt := range []struct {
		name string
		list []record.Event
		want string
	}{
		{
			"nothing wrong",
			[]record.Event{
				event(record.Granted, 1, 1, nil, "a"), event(record.Queued, 2, 2, nil, "a"),
				event(record.Ended, 9, 1, by(record.ByRelease, 8*time.Second), "a"),
				event(record.Admitted, 9, 2, by(0, 7*time.Second), "a"),
				event(record.Queued, 9, 3, nil, "a"), event(record.Left, 30, 3, by(record.ByLeaving, 21*time.Second), "a"),
				event(record.Ended, 50, 2, by(record.ByPreemption, 41*time.Second), "a"),
				event(record.Refused, 51, 2, refused(interlock.CodeInvalidRequest), "a"),
				event(record.AttemptFailed, 52, 4, func(ev *record.Event) { ev.Op = uint8(interlock.TaskScheduled) }, "a"),
			},
			``,
		},
		{
			"a deadlock",
			[]record.Event{event(record.Queued, 1, 1, nil, "a"), event(record.Left, 2, 1, cycle, "a")},
			`2 10<11 deadlock: agent-1 and agent-2 waited for each other at a and b; agent-1 was refused.
    interlock at --index 10 key waits`,
		},
		{
			"names that are not plain words, or missing",
			[]record.Event{
				event(record.Ended, 7, 2, func(ev *record.Event) {
					by(record.ByMaxHold, time.Hour)(ev)
					ev.Agent = "ops: all is well\n"
				}, "a"),
				event(record.Ended, 8, 3, func(ev *record.Event) {
					by(record.ByMaxHold, time.Hour)(ev)
					ev.Agent = ""
				}, "a"),
			},
			`7 9<10 lost_lease: "ops: all is well " lost a: it had held the lease for 1h00m, as long as it may.
    interlock at --index 9 key waits
8 10<11 lost_lease: an unnamed agent lost a: it had held the lease for 1h00m, as long as it may.
    interlock at --index 10 key waits`,
		},
		{
			"a deadlock that repeats, and again much later",
			[]record.Event{
				event(record.Left, 2, 1, cycle, "a"), event(record.Left, 300, 1, cycle, "a"),
				event(record.Left, 890, 1, cycle, "a"), event(record.Left, 1491, 1, cycle, "a"),
			},
			`2 9<10 deadlock: agent-1 and agent-2 waited for each other at a and b; agent-1 was refused, 3 times.
    interlock at --index 9 key waits
1491 12<13 deadlock: agent-1 and agent-2 waited for each other at a and b; agent-1 was refused.
    interlock at --index 12 key waits`,
		},
		{
			"lost leases; one with a lock delay counts once",
			[]record.Event{
				event(record.Closed, 5, 1, by(record.ByTTL, 4*time.Second), "a", "b"),
				event(record.Ended, 6, 1, by(record.ByTTL, 4*time.Second), "a", "b"),
				event(record.Ended, 7, 2, by(record.ByMaxHold, time.Hour), "a"),
				event(record.Ended, 8, 3, by(record.ByStall, time.Minute), "a"),
				event(record.Ended, 9, 4, by(record.ByRevocation, time.Minute), "a"),
				event(record.Ended, 10, 5, by(record.ByDeath, time.Minute), "a"),
			},
			`5 9<10 lost_lease: agent-1 lost a and b after 4.0s: it did not renew within the ttl.
    interlock at --index 9 key waits
7 11<12 lost_lease: agent-2 lost a: it had held the lease for 1h00m, as long as it may.
    interlock at --index 11 key waits
8 12<13 lost_lease: agent-3 lost a after 1m00s: it sent heartbeats without progress.
    interlock at --index 12 key waits
9 13<14 lost_lease: An operator revoked a from agent-4 after 1m00s.
    interlock log --from 14
10 14<15 lost_lease: agent-5 lost a after 1m00s: its session expired without a heartbeat.
    interlock at --index 14 key waits`,
		},
		{
			"stale writers",
			[]record.Event{
				event(record.Refused, 1, 1, refused(interlock.CodeFenced), "a"),
				event(record.Refused, 2, 1, refused(interlock.CodeStale), "a"),
			},
			`1 9<10 stale_write: A late write of agent-1 at a was refused: fenced.
    interlock at --index 9 key waits
2 10<11 stale_write: A late write of agent-1 at a was refused: stale.
    interlock at --index 10 key waits`,
		},
		{
			"stuck waits, at odd keys, and one that goes on",
			[]record.Event{
				event(record.Queued, 1, 1, nil, "it's"), event(record.Queued, 2, 2, nil, "b"),
				event(record.Queued, 50, 3, nil, "c"),
				event(record.Left, 6, 1, by(record.ByWaitLimit, 5*time.Second), "it's"),
				event(record.Admitted, 70, 4, by(0, time.Minute), "-x"),
				event(record.Left, 71, 5, by(record.ByLeaving, 2*time.Minute)),
			},
			`2 15<11 stuck_wait: agent-2 has waited for b for 1m38s.
    interlock at --index 15 why b
6 12<13 stuck_wait: agent-1 gave up it's after 5.0s, its longest wait.
    interlock at --index 12 why 'it'\''s'
70 13<14 stuck_wait: agent-4 waited 1m00s for -x before it had its turn.
    interlock at --index 13 key waits
71 14<15 stuck_wait: agent-5 left the line for another agent after 2m00s: left.
    interlock at --index 14 key waits`,
		},
		{
			"a fail-over, which is of no namespace",
			[]record.Event{{Kind: record.Opened, At: 5 * second, Epoch: 3, Idle: 4 * time.Second}},
			`5 9<10 fail_over: A server began a new epoch after 4.0s without an event.
    interlock at --index 9 key waits`,
		},
		{
			"dead letters",
			[]record.Event{
				event(record.AttemptFailed, 3, 1, func(ev *record.Event) {
					ev.Op, ev.Reason = uint8(interlock.TaskDead), record.ByNack
				}, "a"),
			},
			`3 9<10 dead_letter: The task q_01000000000000000000000000000000 is not tried again: nack.
    interlock task get q_01000000000000000000000000000000`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(reduce(100, tt.list), "\n"); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestBounds: many incidents of one kind leave room for those of another.
func TestBounds(t *testing.T) {
	r := New(Options{})
	for i := range 3 * MaxOfKind {
		ev := event(record.Ended, i, 1, by(record.ByTTL, time.Second), interlock.Key(fmt.Sprint("key-", i)))
		r.Add(interlock.Index(i+1), &ev)
	}
	long := event(record.Ended, 9_000, 2, by(record.ByStall, time.Second))
	for i := range 3 * MaxNames {
		long.Claims = append(long.Claims, interlock.Claim{Key: interlock.Key(fmt.Sprint(i))})
	}
	late := event(record.Refused, 9_000, 1, refused(interlock.CodeFenced), "a")
	r.Add(9_000, &late)
	r.Add(9_001, &long)
	res := r.Result(0)
	if want := map[Kind]int{LostLease: 2*MaxOfKind + 1}; !reflect.DeepEqual(res.Left, want) {
		t.Errorf("left out: %v, want %v", res.Left, want)
	}
	if n := len(res.Incidents); n != MaxOfKind+1 || res.Incidents[n-1].Kind != StaleWrite {
		t.Errorf("%d incidents, the last one is %+v", n, res.Incidents[n-1])
	}
}
