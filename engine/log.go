package engine

import (
	"bytes"
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
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
	known map[interlock.Key]*keyLog
	all   collection.List[*logEntry] // in the order in which they were appended
	bytes int
	floor uint64 // the highest number of an entry in a log that is forgotten altogether
	top   uint64 // the highest number of an entry there was
}

// keyLog is the log of one key. It has at least one entry.
type keyLog struct {
	key     interlock.Key
	entries collection.Queue[*logEntry]
	bytes   int
}

// logEntry is one entry.
type logEntry struct {
	log     *keyLog
	seq     uint64
	message interlock.TaskID
	state   interlock.TaskState
	at      Time

	kind, sender, agent string // of the message; agent is its sender
	body, reply         []byte
	reason              string
	by                  attempt // the one that decided it; zero if there was none

	version interlock.Version // of the key's state after it; 0: nothing was ever written
	absent  bool
	made    *poolEdition // that state, if the entry made it

	link collection.Element[*logEntry] // in logs.all
}

// loggedBytes is the cost of an entry besides its texts and bodies.
const loggedBytes = 512

// cost returns the bytes of a log's bounds that an entry takes.
func (x *logEntry) cost() int {
	n := loggedBytes + len(x.kind) + len(x.sender) + len(x.agent) + len(x.body) + len(x.reply) + len(x.reason) + len(x.by.agent) + len(x.by.session)
	if x.made != nil {
		n += x.made.size()
	}
	return n
}

// oldest is the number of the first entry that is kept.
func (l *keyLog) oldest() uint64 { return l.entries.At(0).seq }

// next is the number of the entry to come.
func (l *keyLog) next() uint64 { return l.oldest() + uint64(l.entries.Len()) }

// logEnd appends the outcome of a message, as the event that settled it has it. going is the
// attempt that decided it, nil for none.
func (t *task) logEnd(going *attempt, ev *record.Event) {
	s, key := t.queue.ns, t.spec.Mailbox()
	x := &logEntry{
		message: t.id, state: interlock.TaskState(ev.Op), at: ev.At, kind: t.spec.Kind, sender: t.spec.Sender, agent: t.spec.Agent,
		body: t.spec.Payload, reason: ev.Outcome, absent: true,
	}
	if x.state == interlock.TaskDone {
		x.reply = ev.Blob
	}
	if going != nil {
		x.by = *going
	}
	if d := s.docs.known[key]; d != nil && d.now != nil {
		x.version, x.absent = d.now.version, d.isAbsent()
		if ev.Changed {
			x.made = d.now
		}
	}
	l := s.logs.known[key]
	if x.seq = s.logs.floor + 1; l != nil {
		x.seq = l.next()
	}
	s.logs.append(key, x)
}

// append makes x the last entry of a key's log, and forgets what has no room then.
func (s *logs) append(key interlock.Key, x *logEntry) {
	l := s.known[key]
	if l == nil {
		if s.known == nil {
			s.known = map[interlock.Key]*keyLog{}
		}
		l = &keyLog{key: key}
		s.known[key] = l
	}
	x.log, x.link.Value = l, x
	l.entries.Push(x)
	s.all.PushBack(&x.link)
	s.top = max(s.top, x.seq)
	l.bytes += x.cost()
	s.bytes += x.cost()
	for l.entries.Len() > 1 && (l.entries.Len() > interlock.MaxLogEntries || l.bytes > interlock.MaxLogBytes) {
		s.trim(l)
	}
	for s.bytes > interlock.MaxSpaceLogBytes && s.all.Front().Value != x {
		s.trim(s.all.Front().Value.log)
	}
}

// trim forgets the oldest entry of a log. The number of the last one that a log ever had
// continues to count for all keys that have none.
func (s *logs) trim(l *keyLog) {
	x := l.entries.Pop()
	s.all.Remove(&x.link)
	l.bytes -= x.cost()
	s.bytes -= x.cost()
	if l.entries.Len() == 0 {
		s.floor = max(s.floor, x.seq)
		delete(s.known, l.key)
	}
}

// Log returns entries of a key's log from a number on, at most max (0: 100), and at most as
// much text as fits an answer. first is the oldest entry that is kept, and next comes after the
// last one returned: a caller that continues from there misses nothing. If no entries are kept,
// both are the number of the next one.
func (e *Engine) Log(ns interlock.Namespace, key interlock.Key, from uint64, limit int) (entries []interlock.LogEntry, first, next uint64) {
	s := e.turnTo(ns)
	if s == nil {
		return nil, 1, 1
	}
	_, key = s.fit(key)
	l := s.logs.known[key]
	if l == nil {
		return nil, s.logs.floor + 1, s.logs.floor + 1
	}
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, interlock.MaxLogEntries)
	first = l.oldest()
	next = min(max(from, first), l.next())
	for size := 0; next < l.next() && len(entries) < limit; next++ {
		x := l.entries.At(int(next - first))
		if size += x.cost(); len(entries) > 0 && size > interlock.MaxReadBytes {
			break
		}
		entries = append(entries, e.showLogged(s, x))
	}
	return entries, first, next
}

func (e *Engine) showLogged(s *namespace, x *logEntry) interlock.LogEntry {
	key := x.log.key
	v := interlock.LogEntry{
		Seq: x.seq, Message: x.message, Kind: x.kind, Body: x.body, Sender: x.sender, Agent: x.agent,
		State: x.state, Reply: x.reply, Reason: x.reason,
		Worker: x.by.agent, Session: x.by.session, Attempt: x.by.number, Fence: x.by.fence,
		Document: interlock.Document{Key: key, Version: x.version, Absent: x.absent}, Changed: x.made != nil, Age: e.now.Sub(x.at),
	}
	if x.made != nil {
		v.Document = e.showDocument(key, x.made, true)
	} else if was := s.docs.written(key, x.version); was != nil {
		v.Document = e.showDocument(key, was, false)
	}
	return v
}

// evolveLogged folds an entry of a snapshot.
func (s *namespace) evolveLogged(ev *record.Event) error {
	if len(ev.Claims) != 1 {
		s.logs.floor = max(s.logs.floor, ev.Num)
		return nil
	}
	key := ev.Claims[0].Key
	x := &logEntry{
		seq: ev.Num, message: ev.ID, state: interlock.TaskState(ev.Op), at: ev.At, reason: ev.Outcome, version: ev.Version,
		by: attempt{agent: ev.Agent, session: ev.SessionName, number: int(ev.Generation), fence: ev.Fence},
	}
	if l := s.logs.known[key]; l != nil && x.seq != l.next() {
		return errUnknown
	}
	if ev.Changed {
		x.made = s.docs.written(key, x.version)
	}
	var lost error
	err := record.EachField(ev.Blob, func(id, _ uint64, text string) bool {
		switch id {
		case 1:
			x.kind = text
		case 2:
			x.sender = text
		case 3:
			x.agent = text
		case 4:
			x.body = []byte(text)
		case 5:
			x.reply = []byte(text)
		case 6:
			x.absent = true
		case 7:
			lost = record.DecodeEntry([]byte(text), func(ev *record.Event) error {
				x.made = editionOf(ev)
				return nil
			})
		default:
			return false
		}
		return true
	})
	if err = cmp.Or(err, lost); err != nil {
		return err
	}
	if ev.Changed != (x.made != nil) {
		return errUnknown
	}
	if t := s.tasks.known[x.message]; t != nil {
		x.body, x.reply = shared(t.spec.Payload, x.body), shared(t.spec.Result, x.reply)
	}
	s.logs.append(key, x)
	return nil
}

// shared returns one of two texts that are equal, so that the other is kept no more.
func shared(kept, text []byte) []byte {
	if bytes.Equal(kept, text) {
		return kept
	}
	return text
}
