package engine_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// Messages are tasks that name their key instead of claims.

// writer returns the queue with the workers that read the messages to a key; "" for none.
func (m *model) writer(ns interlock.Namespace, key interlock.Key) string {
	if p := m.pattern(ns, m.spell(ns, key)); p != nil {
		return p.WriterQueue
	}
	return ""
}

// isWriter reports whether a pattern names the queue as its writer.
func (m *model) isWriter(ns interlock.Namespace, queue string) bool {
	return slices.ContainsFunc(m.patterns[ns], func(p *interlock.Pattern) bool { return p.WriterQueue == queue })
}

// queueFor is the queue into which a task comes.
func (m *model) queueFor(ns interlock.Namespace, x *engine.TaskSpec) string {
	if x.Message {
		return m.writer(ns, x.Key)
	}
	return x.Queue
}

// addressed is a message as a task: of the writer's queue, with its key exclusively.
func (m *model) addressed(ns interlock.Namespace, x engine.TaskSpec) engine.TaskSpec {
	x.Queue, x.Key = m.writer(ns, x.Key), m.spell(ns, x.Key)
	x.Claims = []interlock.Claim{{Key: x.Key, Mode: interlock.Exclusive}}
	return x
}

// wrongMessage returns the codes for errors in the addressing of a message.
func (m *model) wrongMessage(ns interlock.Namespace, x *engine.TaskSpec) (codes []interlock.Code) {
	if x.Queue != "" || len(x.Claims) > 0 {
		codes = append(codes, interlock.CodeInvalidRequest)
	}
	if _, err := engine.ParseKey(string(x.Key)); err != nil {
		return append(codes, interlock.CodeInvalidKey)
	}
	if m.pattern(ns, m.spell(ns, x.Key)) == nil && m.settings[ns].Closed {
		codes = append(codes, interlock.CodeUnmatchedKey)
	}
	if m.writer(ns, x.Key) == "" {
		codes = append(codes, interlock.CodeNoWriter)
	}
	return codes
}

// mailbox is the key to which a message is, "" of another task and of none.
func (t *task) mailbox() interlock.Key {
	if t == nil || !t.spec.Message {
		return ""
	}
	return t.spec.Claims[0].Key
}

// from sets the sender, which determines the order of messages: the writer of a key, if it
// sends while at work on another message, or else the caller. Senders begin with their kind, so
// names of different kinds cannot collide.
func (t *task) from(writer interlock.Key) *task {
	switch {
	case !t.spec.Message:
	case writer != "":
		t.sender = "key:" + string(writer)
	case t.session != "":
		t.sender = "session:" + t.session
	case t.principal != "":
		t.sender = "principal:" + t.principal
		switch {
		case t.agent != "":
			t.sender += " agent:" + t.agent
		case t.flow != "":
			t.sender += " flow:" + t.flow
		}
	case t.agent != "":
		t.sender = "agent:" + t.agent
	}
	return t
}

// ahead is a message that its sender sent to the key before t and that is not settled,
// nil for none. It holds t back, whatever state it is in.
func (m *model) ahead(t *task) *task {
	for _, o := range m.tasks {
		if t.sender != "" && o.ns == t.ns && o.sender == t.sender && o.mailbox() == t.mailbox() && o.num < t.num &&
			!o.isSettled() {
			return o
		}
	}
	return nil
}

// straighten has those of the tasks that wait stand in line that nothing holds back, and
// no others.
func (m *model) straighten() {
	for _, t := range m.tasks {
		if t.state != interlock.TaskWaiting {
			continue
		}
		switch back := m.ahead(t) != nil; {
		case !back && t.request == nil:
			m.lineUp(t)
		case back && t.request != nil:
			m.requests = slices.DeleteFunc(m.requests, func(r *request) bool { return r == t.request })
			t.request, t.gaveWay, t.rested, t.rests, t.sleeps, t.trailed = nil, true, false, false, false, false
		}
	}
}

// answered is the task that the step's command acknowledges, nil for none.
func (m *model) answered(ns interlock.Namespace) *task {
	c, ok := m.cmd.(*engine.Ack)
	if !ok {
		return nil
	}
	if r := m.byID(ns, c.Lease); r != nil {
		return r.task
	}
	return nil
}

// isFor reports whether t is a message in a queue.
func (t *task) isFor(queue string) bool { return t != nil && t.spec.Message && t.spec.Queue == queue }

// logEntry is the decision on a message, with the state of its key after it.
type logEntry struct {
	ns  interlock.Namespace
	key interlock.Key
	at  engine.Time
	engine.LogEntry
	version interlock.Version
}

// log takes in what ev decides on t, as it stands before, if t is a message and that
// settles it.
func (m *model) log(cmd engine.Command, t *task, ev *record.Event) {
	state := interlock.TaskState(ev.Op)
	if !t.spec.Message || state < interlock.TaskDone {
		return
	}
	key := t.mailbox()
	x := logEntry{ns: t.ns, key: key, at: m.now, version: m.documentNow(t.ns, key).Version}
	x.LogEntry = engine.LogEntry{Reason: ev.Why(), LogEntry: interlock.LogEntry{
		Seq: uint64(m.beginning(t.ns)) + 1, Message: t.id, Kind: t.spec.Kind, Body: t.spec.Payload, Sender: t.sender,
		Agent: t.agent, State: state,
	}}
	for _, o := range m.logs {
		if o.ns == t.ns && o.key == key {
			x.Seq++
		}
	}
	if r := t.request; t.state == interlock.TaskRunning {
		if x.Worker, x.Attempt, x.Fence = m.agentOf(r), t.attempt, r.fence; r.session != nil {
			x.Session = r.session.name
		}
	}
	if c, ok := cmd.(*engine.Ack); ok && state == interlock.TaskDone {
		x.Reply = c.Result
		x.Changed = slices.ContainsFunc(c.Writes, func(w interlock.Write) bool { return m.spell(t.ns, w.Key) == key })
	}
	m.logs = append(m.logs, x)
}

// checkLogs compares the logs of some keys, and of all that have one.
func (m *model) checkLogs(e *engine.Engine, ns interlock.Namespace, keys []interlock.Key) error {
	keys = slices.Clone(keys)
	for _, x := range m.logs {
		if !slices.Contains(keys, x.key) {
			keys = append(keys, x.key)
		}
	}
	for _, key := range keys {
		var want []logEntry
		begin := uint64(m.beginning(ns))
		for _, x := range m.logs {
			if x.ns == ns && x.key == m.spell(ns, key) {
				want = append(want, x)
			}
		}
		var from uint64
		for i := 0; i < len(want); {
			got, first, next := e.Log(ns, key, from, 0)
			if first != begin+1 || len(got) == 0 || int(next-begin) != i+len(got)+1 || i+len(got) > len(want) {
				return fmt.Errorf(
					"the log of %s has %d entries from %d on and goes on at %d, want %d in all", key, len(got), from, next, len(want),
				)
			}
			for _, entry := range got {
				if err := m.checkLogged(want[i], entry); err != nil {
					return fmt.Errorf("the log of %s: %w", key, err)
				}
				i++
			}
			from = next
		}
		if got, _, next := e.Log(ns, key, from, 0); len(got) > 0 || int(next-begin) != len(want)+1 {
			return fmt.Errorf("the log of %s goes on after its %d entries with %+v", key, len(want), got)
		}
	}
	return nil
}

func (m *model) checkLogged(x logEntry, got engine.LogEntry) error {
	want := x.LogEntry
	want.Age = m.now.Sub(x.at)
	doc := m.document(x.ns, x.key, x.version)
	if !x.Changed {
		doc.Body = nil
	}
	if err := sameDocument(doc, got.Document); err != nil {
		return fmt.Errorf("entry %d: %w", x.Seq, err)
	}
	got.Document = interlock.Document{}
	for _, text := range []*[]byte{&want.Body, &want.Reply, &got.Body, &got.Reply} {
		if len(*text) == 0 {
			*text = nil
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("it has\n%+v, want\n%+v", got, want)
	}
	return nil
}
