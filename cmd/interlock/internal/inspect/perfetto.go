package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

// A file in the JSON format of Chrome's trace viewer, as Perfetto opens it: the namespace is a process, each flow of an
// agent a thread. Times are in microseconds since the Unix epoch.
//
//	X  a bar            s, f  a hand-off, from a hold to the next one
//	i  a mark           C     the number of waiters
//	M  the names of processes and threads
//
// Slices of a thread must lie within each other or apart, so a flow with leases that overlap otherwise has more than
// one thread.
type perfettoFile struct {
	Events []perfettoEvent `json:"traceEvents"`
	Unit   string          `json:"displayTimeUnit"`
}

type perfettoEvent struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Time     int64          `json:"ts"`
	Length   *int64         `json:"dur,omitempty"` // of X
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       int            `json:"id,omitempty"` // of s and f
	Bind     string         `json:"bp,omitempty"` // of f
	Scope    string         `json:"s,omitempty"`  // of i
	Args     map[string]any `json:"args,omitempty"`
}

// thread is one of a flow; open are the ends of the slices around the next one, the innermost last.
type thread struct {
	number int
	open   []int64
}

// perfetto returns the file for a timeline of a namespace.
func perfetto(namespace string, t *api.Timeline) ([]byte, error) {
	f := perfettoFile{Unit: "ms"}
	name := func(what string, thread int, name string) {
		f.Events = append(f.Events, perfettoEvent{
			Phase: "M", Name: what, Process: 1, Thread: thread, Args: map[string]any{"name": name},
		})
	}
	name("process_name", 0, "namespace "+namespace)
	type extent struct{ from, to int64 }
	spans := make([]extent, len(t.Bars))
	order := make([]int, len(t.Bars))
	for i := range t.Bars {
		b := &t.Bars[i]
		order[i] = i
		spans[i] = extent{b.From.UnixMicro(), max(b.From.UnixMicro(), t.Until.UnixMicro())}
		if b.To != nil {
			spans[i].to = b.To.UnixMicro()
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { // of two that begin together the longer one contains the other
		return cmp.Or(cmp.Compare(spans[i].from, spans[k].from), cmp.Compare(spans[k].to, spans[i].to))
	})
	flows := map[string][]*thread{}
	of := make([]int, len(t.Bars)) // the threads of bars
	first := map[string]int{}      // of agents
	threads := 0
	for _, i := range order {
		b := &t.Bars[i]
		title := strings.TrimSpace(cmp.Or(b.Agent, "(unnamed)") + " " + b.Flow)
		list := flows[title]
		k := slices.IndexFunc(list, func(x *thread) bool { return x.takes(spans[i].from, spans[i].to) })
		if k < 0 {
			k, threads = len(list), threads+1
			x := &thread{number: threads}
			x.takes(spans[i].from, spans[i].to)
			flows[title] = append(list, x)
			if list = flows[title]; k > 0 {
				title += fmt.Sprintf(" (%d)", k+1)
			}
			name("thread_name", threads, title)
			if _, known := first[b.Agent]; !known {
				first[b.Agent] = threads
			}
		}
		of[i] = list[k].number
		length := spans[i].to - spans[i].from
		f.Events = append(f.Events, perfettoEvent{
			Phase: "X", Name: barName(b), Category: b.Kind, Time: spans[i].from, Length: &length, Process: 1, Thread: of[i],
			Args: barArgs(b),
		})
	}
	for n, l := range t.Links {
		if l.Kind != "handed_on" {
			continue
		}
		event := perfettoEvent{Name: "handed on", Category: l.Kind, Process: 1, ID: n + 1}
		start, end := event, event
		from, to := spans[l.From], spans[l.To]
		start.Phase, start.Thread, start.Time = "s", of[l.From], max(from.from, min(from.to, to.from)-1)
		end.Phase, end.Thread, end.Time, end.Bind = "f", of[l.To], to.from, "e"
		f.Events = append(f.Events, start, end)
	}
	for i := range t.Marks {
		m := &t.Marks[i]
		scope, thread := "t", first[m.Agent]
		if thread == 0 {
			scope = "p"
		}
		f.Events = append(f.Events, perfettoEvent{
			Phase: "i", Name: m.Kind, Category: "mark", Time: m.Time.UnixMicro(), Process: 1, Thread: thread, Scope: scope,
			Args: map[string]any{"text": m.Text, "key": m.Key, "agent": m.Agent, "index": m.Index},
		})
	}
	f.Events = append(f.Events, waiters(t)...)
	return json.Marshal(f)
}

// takes reports whether a slice lies within those of the thread or apart, and adds it if so. Slices
// come in the order of their beginnings.
func (x *thread) takes(from, to int64) bool {
	for len(x.open) > 0 && x.open[len(x.open)-1] <= from {
		x.open = x.open[:len(x.open)-1]
	}
	if n := len(x.open); n > 0 && x.open[n-1] < to {
		return false
	}
	x.open = append(x.open, to)
	return true
}

// barName is the kind of a bar with its keys.
func barName(b *api.TimelineBar) string {
	name := b.Kind
	for i, c := range b.Claims {
		if i == 3 {
			return name + fmt.Sprintf(" and %d more", len(b.Claims)-i)
		}
		name += " " + string(c.Key)
	}
	return name
}

func barArgs(b *api.TimelineBar) map[string]any {
	args := map[string]any{}
	for name, value := range map[string]string{"outcome": b.Outcome, "purpose": b.Purpose, "trace_id": b.TraceID} {
		if value != "" {
			args[name] = value
		}
	}
	if b.Fence != 0 {
		args["fence"] = b.Fence.String()
	}
	if b.Index != 0 {
		args["index"] = b.Index.String()
	}
	if b.EndIndex != 0 {
		args["end_index"] = b.EndIndex.String()
	}
	if b.To == nil {
		args["goes_on"] = true
	}
	return args
}

// waiters counts the waits that go on, at each moment that changes their number.
func waiters(t *api.Timeline) (list []perfettoEvent) {
	change := map[time.Time]int{}
	for i := range t.Bars {
		if b := &t.Bars[i]; b.Kind == "wait" {
			change[b.From.UTC()]++
			if b.To != nil {
				change[b.To.UTC()]--
			}
		}
	}
	times := make([]time.Time, 0, len(change))
	for at := range change {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	n := 0
	for _, at := range times {
		n += change[at]
		list = append(list, perfettoEvent{
			Phase: "C", Name: "waiters", Time: at.UnixMicro(), Process: 1, Args: map[string]any{"waiters": n},
		})
	}
	return list
}
