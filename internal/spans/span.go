package spans

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// TraceID and SpanID are the ids of OpenTelemetry. The zero SpanID stands for no span.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Role is the kind of a span, in the numbers of OTLP.
type Role int

// The roles of spans: submitting and working at a task are the two ends of a message.
const (
	Internal Role = 1
	Producer Role = 4
	Consumer Role = 5
)

// Span is one of OpenTelemetry.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID
	Name       string
	Role       Role
	Start, End time.Time
	Attributes []Attribute
	Events     []Event
	Links      []Link
	Failed     bool
	Why        string // it failed; may be ""
}

// Event is a moment of a span.
type Event struct {
	Name       string
	Time       time.Time
	Attributes []Attribute
}

// Link leads to a related span, of the same trace or another one.
type Link struct {
	Trace      TraceID
	Span       SpanID
	Attributes []Attribute
}

// Attribute is a name with a value: a string, an int64 or a []string.
type Attribute struct {
	Name  string
	Value any
}

// Of returns the spans of bars and tasks that ended before a time, and of refusals before it, in the order of the
// timeline: bars, tasks, refusals. The timeline is of the namespace, and one with ended=true, without which bars have
// no links.
func Of(namespace interlock.Namespace, t *api.Timeline, before time.Time) (list []Span) {
	deadlocks := map[moment]*api.TimelineMark{}
	for i := range t.Marks {
		if m := &t.Marks[i]; m.Kind == "deadlock" {
			deadlocks[moment{m.Index, m.Agent}] = m
		}
	}
	for i := range t.Bars {
		b := &t.Bars[i]
		if b.To == nil || !b.To.Before(before) {
			continue
		}
		s := ofBar(namespace, b)
		if m := deadlocks[moment{b.EndIndex, b.Agent}]; m != nil && b.Outcome == "deadlock" {
			s.Why = m.Text
			s.Events = append(s.Events, Event{"deadlock", m.Time, []Attribute{{textName, m.Text}}})
		}
		list = append(list, s)
	}
	for i := range t.Tasks {
		if task := &t.Tasks[i]; task.To != nil && task.To.Before(before) {
			list = append(list, ofTask(namespace, task))
		}
	}
	for i := range t.Marks {
		m := &t.Marks[i]
		switch m.Kind {
		case "refused_fence", "stale_commit", "refused":
			if m.Time.Before(before) {
				list = append(list, ofRefusal(namespace, m))
			}
		}
	}
	return list
}

// moment is where an event stands in the journal, with its agent.
type moment struct {
	index interlock.Index
	agent string
}

// ofBar returns the span of a bar that has ended.
func ofBar(namespace interlock.Namespace, b *api.TimelineBar) Span {
	s := Span{
		Trace: traceOf(b), ID: spanID(b.Kind, b.Lease, number(b.EndIndex)), Parent: caller(b.ParentID), Role: Internal,
		Start: b.From, End: *b.To, Failed: isFailure(b.Outcome), Attributes: ofBarAttributes(namespace, b),
	}
	hold := holdID(b.Lease, b.Fence)
	var first api.Key
	if len(b.Claims) > 0 {
		first = b.Claims[0].Key
	}
	switch s.Name = named(b.Kind, first); b.Kind {
	case "hold":
		if s.ID = hold; s.Parent == (SpanID{}) && b.Waited && b.Index != 0 {
			s.Parent = spanID("wait", b.Lease, number(b.Index))
		}
	case "attempt":
		s.ID, s.Role = hold, Consumer
		if b.Task != "" {
			s.Parent = taskID(string(b.Task))
		}
	case "grace", "lock_delay":
		s.Parent = hold
	case "parked":
		if s.Parent == (SpanID{}) {
			s.Parent = hold
		}
	}
	for i := range b.Links {
		l := &b.Links[i]
		s.Links = append(s.Links, Link{
			traceOfLease(l.Lease, l.TraceID, l.Task), holdID(l.Lease, l.Fence), []Attribute{{linkName, l.Kind}},
		})
	}
	return s
}

// ofTask returns the span of a task that has ended.
func ofTask(namespace interlock.Namespace, t *api.TimelineTask) Span {
	return Span{
		Trace: traceOfLease("", t.TraceID, string(t.Task)), ID: taskID(string(t.Task)), Parent: caller(t.ParentID),
		Name: "task " + t.Queue, Role: Producer,
		Start: t.From, End: *t.To, Failed: isFailure(t.Outcome), Attributes: ofTaskAttributes(namespace, t),
	}
}

// ofRefusal returns the span of a refused commit, or a refused fence.
func ofRefusal(namespace interlock.Namespace, m *api.TimelineMark) Span {
	facts := []string{number(m.Index), m.Time.UTC().Format(time.RFC3339Nano), m.Key, m.Agent, m.Text}
	s := Span{
		ID: spanID("refused", facts...), Trace: traceID("refused", facts...),
		Name: named(m.Kind, api.Key(m.Key)), Role: Internal, Start: m.Time, End: m.Time, Failed: true, Why: m.Text,
		Attributes: ofMarkAttributes(namespace, m),
	}
	if m.Lease != "" {
		s.Trace, s.Parent = traceOfLease(m.Lease, m.TraceID, m.Task), holdID(m.Lease, m.Fence)
	}
	return s
}

// named returns the name of a span: its kind, and of the key what is before the first ':' or '/'.
func named(kind string, key api.Key) string {
	if i := strings.IndexAny(string(key), ":/"); i > 0 {
		return kind + " " + string(key[:i])
	}
	return kind
}

// isFailure reports whether an outcome is a bad one.
func isFailure(outcome string) bool {
	switch outcome {
	case "granted", "released", "converted", "parked", "resumed", "session_closed", "question", "left", "target_ended",
		"done", "cancelled", "namespace_moved":
		return false
	}
	return true
}

// traceOf returns the trace of a bar: the caller's, or that of its task, or its lease's own.
func traceOf(b *api.TimelineBar) TraceID { return traceOfLease(b.Lease, b.TraceID, string(b.Task)) }

func traceOfLease(lease, trace, task string) (id TraceID) {
	if n, err := hex.Decode(id[:], []byte(trace)); err == nil && n == len(id) {
		return id
	}
	if task != "" {
		return traceID("task", task)
	}
	return traceID("lease", lease)
}

// caller returns the span of a traceparent.
func caller(text string) (id SpanID) {
	if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
		return SpanID{}
	}
	return id
}

// holdID returns the id of a hold or an attempt, which links and children name.
func holdID(lease string, fence interlock.Fence) SpanID { return spanID("hold", lease, number(fence)) }

func taskID(task string) SpanID { return spanID("task", task) }

func traceID(kind string, facts ...string) (id TraceID) {
	copy(id[:], digest("trace "+kind, facts))
	return id
}

func spanID(kind string, facts ...string) (id SpanID) {
	copy(id[:], digest("span "+kind, facts))
	return id
}

// digest is a hash of texts, each with its length.
func digest(kind string, facts []string) []byte {
	h := sha256.New()
	for _, text := range append([]string{kind}, facts...) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
		h.Write([]byte(text))
	}
	return h.Sum(nil)
}

func number[N interface{ String() string }](n N) string { return cmp.Or(n.String(), "0") }
