package timeline

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

// event makes one about the lease with a number, of agent-NUMBER, with claims such as "a:1" or "a:1=shared".
func event(kind record.Kind, at int, lease byte, claims ...string) *record.Event {
	ev := &record.Event{
		Kind: kind, At: record.Time(at) * second, Namespace: "one", ID: [16]byte{lease}, Num: uint64(lease),
		Agent: fmt.Sprint("agent-", lease), Flow: "main",
	}
	for _, text := range claims {
		key, name, _ := strings.Cut(text, "=")
		mode, ok := interlock.ParseMode(name)
		if !ok {
			mode = interlock.Exclusive
		}
		ev.Claims = append(ev.Claims, interlock.Claim{Key: interlock.Key(key), Mode: mode, Count: 1})
	}
	return ev
}

func (e events) with(change func(*record.Event)) events {
	change(e[len(e)-1])
	return e
}

type events []*record.Event

// reduce returns a line for each bar, mark and link.
func reduce(f Filter, list events) (lines []string) {
	r := New(f)
	for i, ev := range list {
		r.Add(interlock.Index(i+1), ev)
	}
	t := r.Timeline()
	for i, b := range t.Bars {
		to := "..."
		if b.To != 0 {
			to = fmt.Sprint(int64(b.To / second))
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf(
			"%d %s %s %s %d-%s %s", i, b.Kind, b.Agent, b.Claims[0].Key, b.From/second, to, b.Outcome,
		), " "))
	}
	for _, m := range t.Marks {
		lines = append(lines, fmt.Sprintf("%d %s: %s", m.Time/second, m.Kind, m.Text))
	}
	for _, l := range t.Links {
		lines = append(lines, fmt.Sprintf("%d %s %d", l.From, l.Kind, l.To))
	}
	return lines
}

func TestReducer(t *testing.T) {
	base := func(ev *record.Event) { ev.Base, ev.BaseID = 1, [16]byte{1} }
	why := func(r record.Reason) func(*record.Event) { return func(ev *record.Event) { ev.Reason = r } }
	for _, tt := range []struct {
		name string
		list events
		want string
	}{
		{
			"a wait and a hand-off",
			events{
				event(record.Granted, 1, 1, "a:1"), event(record.Queued, 2, 2, "a:1"), event(record.Ended, 5, 1, "a:1"),
				event(record.Admitted, 5, 2, "a:1"), event(record.Ended, 9, 2, "a:1"),
			},
			`0 hold agent-1 a:1 1-5
1 wait agent-2 a:1 2-5 granted
2 hold agent-2 a:1 5-9
1 blocked_by 0
0 handed_on 2`,
		},
		{
			"keys above and below, and one beside",
			events{
				event(record.Granted, 1, 1, "repo/a/b"), event(record.Granted, 1, 2, "repo/ab"),
				event(record.Granted, 1, 3, "repo=intent-exclusive"), event(record.Queued, 2, 4, "repo/a"),
			},
			`0 hold agent-1 repo/a/b 1-...
1 hold agent-2 repo/ab 1-...
2 hold agent-3 repo 1-...
3 wait agent-4 repo/a 2-...
3 blocked_by 0`,
		},
		{
			"readers do not block each other",
			events{
				event(record.Granted, 1, 1, "a=shared"), event(record.Granted, 1, 2, "a=shared"),
				event(record.Queued, 2, 3, "a"), event(record.Ended, 3, 2, "a=shared"),
				event(record.Ended, 4, 1, "a=shared"), event(record.Admitted, 4, 3, "a"),
			},
			`0 hold agent-1 a 1-4
1 hold agent-2 a 1-3
2 wait agent-3 a 2-4 granted
3 hold agent-3 a 4-...
2 blocked_by 0
0 handed_on 3`,
		},
		{
			"a conversion that waits",
			append(
				append(events{
					event(record.Granted, 1, 1, "a=shared"), event(record.Granted, 1, 3, "a=shared"),
					event(record.Queued, 2, 2, "a"),
				}.with(base), event(record.Ended, 4, 3, "a=shared")),
				events{event(record.Admitted, 4, 2, "a")}.with(base)...,
			),
			`0 hold agent-1 a 1-4 converted
1 hold agent-3 a 1-4
2 wait agent-2 a 2-4 granted
3 hold agent-2 a 4-...
2 blocked_by 1
1 handed_on 3`,
		},
		{
			"parked and resumed in line",
			events{
				event(record.Granted, 1, 1, "a"), event(record.Parked, 2, 1, "a"),
				event(record.Granted, 3, 2, "a"), event(record.Resumed, 4, 1, "a"),
			}.with(func(ev *record.Event) { ev.Queued = true }),
			`0 hold agent-1 a 1-2 parked
1 parked agent-1 a 2-4 resumed
2 hold agent-2 a 3-...
3 wait agent-1 a 4-...
3 blocked_by 2`,
		},
		{
			"grace, and a delay after the holder's death",
			append(
				events{event(record.Granted, 1, 1, "a"), event(record.Grace, 3, 1, "a"), event(record.Closed, 5, 1, "a")}.
					with(why(record.ByTTL)),
				events{event(record.Ended, 9, 1, "a")}.with(why(record.ByTTL))...,
			),
			`0 hold agent-1 a 1-5 ttl
1 grace agent-1 a 3-5 ttl
2 lock_delay agent-1 a 5-9 ttl`,
		},
		{
			"ends without a beginning",
			append(
				events{event(record.Ended, 9, 1, "a")}.with(func(ev *record.Event) {
					ev.Held, ev.Reason = 4*time.Second, record.ByRelease
				}),
				events{event(record.Left, 9, 2, "a")}.with(func(ev *record.Event) {
					ev.Waited, ev.Reason = 2*time.Second, record.ByWaitLimit
				})...,
			),
			`0 hold agent-1 a 5-9 released
1 wait agent-2 a 7-9 wait_limit`,
		},
		{
			"a deadlock",
			events{event(record.Granted, 1, 1, "a"), event(record.Queued, 2, 2, "a"), event(record.Left, 2, 2, "a")}.
				with(func(ev *record.Event) {
					ev.Reason = record.ByDeadlock
					ev.Cycle = []interlock.CycleStep{
						{Agent: "agent-2", Key: "a"}, {Agent: "agent-1", Key: "b"}, {Agent: "agent-3"}, // declared
					}
				}),
			`0 hold agent-1 a 1-...
1 wait agent-2 a 2-2 deadlock
2 deadlock: Deadlock: agent-2 at a, agent-1 at b, agent-3 waited for each other, and agent-2 was refused.
1 blocked_by 0`,
		},
		{
			"names that are not plain words, or missing",
			events{event(record.YieldRequested, 2, 2, "a")}.with(func(ev *record.Event) {
				ev.Agent = "the operator."
			}),
			`2 yield_asked: an unnamed agent asks "the operator." to yield a.`,
		},
		{
			"a namespace that is deleted",
			events{event(record.Granted, 1, 1, "a"), event(record.NamespaceDeleted, 4, 0)},
			`0 hold agent-1 a 1-4 namespace_deleted`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(reduce(Filter{}, tt.list), "\n"); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	list := events{
		event(record.Granted, 1, 1, "a/x"), event(record.Granted, 2, 2, "ab"), event(record.Ended, 4, 1, "a/x"),
		event(record.Granted, 6, 1, "a"), event(record.Ended, 7, 2, "ab"),
	}
	for _, tt := range []struct {
		f    Filter
		want []string
	}{
		{Filter{Key: "a"}, []string{"0 hold agent-1 a/x 1-4", "1 hold agent-1 a 6-..."}},
		{Filter{Agent: "agent-2"}, []string{"0 hold agent-2 ab 2-7"}},
		{Filter{From: 5 * second, To: 6 * second}, []string{"0 hold agent-2 ab 2-7"}},
		{Filter{To: second}, nil},
	} {
		if got := reduce(tt.f, list); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.f, got, tt.want)
		}
	}
}

// However long the journal is, the result and the memory are bounded: the longest bars stay, and the rest is counted.
func TestBounds(t *testing.T) {
	r := New(Filter{})
	next := uint32(0)
	add := func(kind record.Kind, at record.Time, n uint32) {
		ev := event(kind, 0, 1, fmt.Sprint("k:", n))
		ev.At, ev.ID = at, [16]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
		next++
		r.Add(interlock.Index(next), ev)
	}
	const n = 3 * MaxBars
	for i := range uint32(n) {
		add(record.Granted, second, i)
		add(record.Ended, second+record.Time(i), i)
	}
	for i := range uint32(2 * endsKept) {
		add(record.Granted, 2*second, n+i)
		add(record.Ended, 2*second, n+i)
	}
	if held := len(r.holds.ended) + len(r.holds.older); held > 2*endsKept {
		t.Errorf("the index has %d places", held)
	}
	if len(r.holds.open) > 0 || len(r.leases) > 0 {
		t.Errorf("%d places and %d leases go on", len(r.holds.open), len(r.leases))
	}
	for i := range uint32(MaxOpen + 10) {
		add(record.Granted, 3*second, 1<<20+i)
	}
	tl := r.Timeline()
	if len(tl.Bars) != MaxBars || tl.MoreBars != n+2*endsKept+MaxOpen-MaxBars || tl.MoreOpen != 10 {
		t.Errorf("%d bars, %d more, and %d requests more", len(tl.Bars), tl.MoreBars, tl.MoreOpen)
	}
	if tl.Bars[0].To != 0 {
		t.Error("a bar that has ended pushed out one that goes on")
	}
}

func BenchmarkAdd(b *testing.B) {
	r := New(Filter{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		kinds := [...]record.Kind{record.Granted, record.Queued, record.Ended, record.Admitted, record.Ended}
		lease := [...]byte{1, 2, 1, 2, 2}[i%5]
		ev := event(kinds[i%5], i, lease, "repo/web/a")
		r.Add(interlock.Index(i), ev)
	}
}
