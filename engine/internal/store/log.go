package store

import (
	"bytes"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The log of a key that has a single writer: what was decided on each message to it,
// and the state that this left. An entry is appended by the fold of the event that
// settles the message, so no event of its own is needed but in a snapshot.
//
// A log is bounded, and so are all of a namespace together; the oldest entries go first. Parts
// of an entry that are also in the task or among the documents are shared in memory as long as
// those exist.

// logs are all of a namespace.
type logs struct {
	Known map[interlock.Key]*keyLog
	All   collection.List[*LogEntry] // in the order in which they were appended
	bytes int
	Floor uint64 // the highest number of an entry in a log that is forgotten altogether
	top   uint64 // the highest number of an entry there was
}

// keyLog is the log of one key. It has at least one entry.
type keyLog struct {
	Key     interlock.Key
	Entries collection.Queue[*LogEntry]
	bytes   int
}

// LogEntry is one entry.
type LogEntry struct {
	Log     *keyLog
	Seq     uint64
	Message interlock.TaskID
	State   interlock.TaskState
	At      Time

	Kind, Sender, Agent string // of the message; agent is its sender
	Body, Reply         []byte
	Reason              *message.Text
	By                  attempt // the one that decided it; zero if there was none

	Version interlock.Version // of the key's state after it; 0: nothing was ever written
	Absent  bool
	Made    *DocumentVersion // that state, if the entry made it

	link collection.Element[*LogEntry] // in logs.all
}

// loggedBytes is the cost of an entry besides its texts and bodies.
const loggedBytes = 512

// Cost returns the bytes of a log's bounds that an entry takes.
func (x *LogEntry) Cost() int {
	n := loggedBytes + len(x.Kind) + len(x.Sender) + len(x.Agent) + len(x.Body) + len(x.Reply) + x.Reason.Size() +
		len(x.By.Agent) + len(x.By.Session)
	if x.Made != nil {
		n += x.Made.size()
	}
	return n
}

// Oldest is the number of the first entry that is kept.
func (l *keyLog) Oldest() uint64 { return l.Entries.At(0).Seq }

// Next is the number of the entry to come.
func (l *keyLog) Next() uint64 { return l.Oldest() + uint64(l.Entries.Len()) }

// logEnd appends the outcome of a message, as the event that settled it has it. going is the
// attempt that decided it, nil for none.
func (t *Task) logEnd(going *attempt, ev *record.Event) {
	s, key := t.Queue.NS, t.Spec.Mailbox()
	x := &LogEntry{
		Message: t.ID, State: interlock.TaskState(ev.Op), At: ev.At, Kind: t.Spec.Kind, Sender: t.Spec.Sender,
		Agent: t.Spec.Agent,
		Body:  t.Spec.Payload, Reason: ev.Why(), Absent: true,
	}
	if x.State == interlock.TaskDone {
		x.Reply = ev.Blob
	}
	if going != nil {
		x.By = *going
	}
	if d := s.Documents.Known[key]; d != nil && d.Now != nil {
		x.Version, x.Absent = d.Now.Version, d.IsAbsent()
		if ev.Changed {
			x.Made = d.Now
		}
	}
	l := s.Logs.Known[key]
	if x.Seq = s.Logs.Floor + 1; l != nil {
		x.Seq = l.Next()
	}
	s.Logs.append(key, x)
}

// append makes x the last entry of a key's log, and forgets entries without room.
func (s *logs) append(key interlock.Key, x *LogEntry) {
	l := s.Known[key]
	if l == nil {
		if s.Known == nil {
			s.Known = map[interlock.Key]*keyLog{}
		}
		l = &keyLog{Key: key}
		s.Known[key] = l
	}
	x.Log, x.link.Value = l, x
	l.Entries.Push(x)
	s.All.PushBack(&x.link)
	s.top = max(s.top, x.Seq)
	l.bytes += x.Cost()
	s.bytes += x.Cost()
	for l.Entries.Len() > 1 && (l.Entries.Len() > interlock.MaxLogEntries || l.bytes > interlock.MaxLogBytes) {
		s.trim(l)
	}
	for s.bytes > interlock.MaxSpaceLogBytes && s.All.Front().Value != x {
		s.trim(s.All.Front().Value.Log)
	}
}

// trim forgets the oldest entry of a log. The number of the last one that a log ever had
// continues to count for all keys that have none.
func (s *logs) trim(l *keyLog) {
	x := l.Entries.Pop()
	s.All.Remove(&x.link)
	l.bytes -= x.Cost()
	s.bytes -= x.Cost()
	if l.Entries.Len() == 0 {
		s.Floor = max(s.Floor, x.Seq)
		delete(s.Known, l.Key)
	}
}

// evolveLogged folds an entry of a snapshot.
func (s *Namespace) evolveLogged(ev *record.Event) error {
	if len(ev.Claims) != 1 {
		s.Logs.Floor = max(s.Logs.Floor, ev.Num)
		return nil
	}
	key := ev.Claims[0].Key
	x := &LogEntry{
		Seq: ev.Num, Message: ev.ID, State: interlock.TaskState(ev.Op), At: ev.At, Reason: ev.Why(), Version: ev.Version,
		By: attempt{Agent: ev.Agent, Session: ev.SessionName, Number: int(ev.Generation), Fence: ev.Fence},
	}
	if l := s.Logs.Known[key]; l != nil && x.Seq != l.Next() {
		return errUnknown
	}
	if ev.Changed {
		x.Made = s.Documents.Written(key, x.Version)
	}
	text, err := record.DecodeLogText(ev.Blob)
	if err != nil {
		return err
	}
	x.Kind, x.Sender, x.Agent, x.Body, x.Reply, x.Absent = text.Kind, text.Sender, text.Agent, text.Body, text.Reply,
		text.Absent
	if text.Made != nil {
		if err := record.DecodeEntry(text.Made, func(ev *record.Event) error {
			x.Made = editionOf(ev)
			return nil
		}); err != nil {
			return err
		}
	}
	if ev.Changed != (x.Made != nil) {
		return errUnknown
	}
	if t := s.Tasks.Known[x.Message]; t != nil {
		x.Body, x.Reply = shared(t.Spec.Payload, x.Body), shared(t.Spec.Result, x.Reply)
	}
	s.Logs.append(key, x)
	return nil
}

// shared returns one of two texts that are equal, so that the other is kept no more.
func shared(kept, text []byte) []byte {
	if bytes.Equal(kept, text) {
		return kept
	}
	return text
}

// Show describes an entry at a time, with the document that it made in s.
func (x *LogEntry) Show(s *Documents, now Time) LogEntryView {
	key := x.Log.Key
	v := LogEntryView{Reason: x.Reason, LogEntry: interlock.LogEntry{
		Seq: x.Seq, Message: x.Message, Kind: x.Kind, Body: x.Body, Sender: x.Sender, Agent: x.Agent,
		State: x.State, Reply: x.Reply,
		Worker: x.By.Agent, Session: x.By.Session, Attempt: x.By.Number, Fence: x.By.Fence,
		Document: interlock.Document{Key: key, Version: x.Version, Absent: x.Absent}, Changed: x.Made != nil,
		Age: now.Sub(x.At),
	}}
	if x.Made != nil {
		v.Document = x.Made.Show(key, true, now)
	} else if was := s.Written(key, x.Version); was != nil {
		v.Document = was.Show(key, false, now)
	}
	return v
}
