package engine

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// A snapshot is a shorter journal: a list of entries, each with its length before it, with
// events that rebuild the state. So there is one format and one fold. Equal states write equal
// snapshots. The last entry has the counters, so their absence reveals a truncated snapshot.

// WriteSnapshot writes all that the journal promises, without the state that Recover rebuilds.
func (e *Engine) WriteSnapshot(w io.Writer) error { return newSnapshotter(e, w).all() }

type snapshotter struct {
	e     *Engine
	w     *bufio.Writer
	past  func(write func(*snapshotter)) // writes what does not change any more, or keeps it for later
	entry []byte
	err   error
}

// newSnapshotter makes one that writes everything at once.
func newSnapshotter(e *Engine, w io.Writer) *snapshotter {
	s := &snapshotter{e: e, w: bufio.NewWriterSize(w, 1<<16), entry: make([]byte, 0, 1024)}
	s.past = func(write func(*snapshotter)) { write(s) }
	return s
}

func (s *snapshotter) all() error {
	for _, space := range s.e.sorted() {
		s.ns(space)
	}
	s.event(s.e.last, &record.Event{
		Kind: record.Counters, Num: s.e.num, Session: s.e.snum, Fence: s.e.fence, Epoch: s.e.epoch, Writes: s.e.writes, Version: s.e.base,
		AsOf: interlock.Version(s.e.past),
	})
	return s.end()
}

func (s *snapshotter) end() error {
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

func (s *snapshotter) event(at Time, ev *record.Event) {
	s.entry = append(s.entry[:0], 0, 0, 0, 0)
	s.entry = record.AppendEvent(record.AppendHead(s.entry, at), ev)
	binary.LittleEndian.PutUint32(s.entry, uint32(len(s.entry)-4))
	s.write(s.entry)
}

func (s *snapshotter) write(b []byte) {
	if _, err := s.w.Write(b); err != nil && s.err == nil {
		s.err = err
	}
}

func (s *snapshotter) ns(sp *namespace) {
	if sp.isBare() {
		return
	}
	if sp.unmatched != record.UnsetKeys {
		s.event(0, &record.Event{Kind: record.Configured, Namespace: sp.name, Blob: record.AppendSettings(nil, &sp.settings, sp.unmatched)})
	}
	s.queues(sp)
	s.revisions(sp)
	sessions := sp.sortedSessions()
	for _, x := range sessions {
		s.event(x.opened, &record.Event{
			Kind: record.SessionOpened, Namespace: sp.name, Session: x.num, ID: x.id, Agent: x.agent, Terms: interlock.Terms{TTL: x.ttl}, Acked: x.seqs.floor,
			Actor: x.owner,
		})
	}
	requests := sp.requests.All()
	slices.SortFunc(requests, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.fence, b.fence), cmp.Compare(a.num, b.num))
	})
	for _, r := range requests {
		s.request(r)
	}
	for _, r := range requests {
		s.asks(r)
	}
	for _, x := range sessions {
		if x.dead {
			s.event(0, &record.Event{Kind: record.SessionEnded, Namespace: sp.name, Session: x.num, Reason: x.why})
		}
	}
	s.over(sp)
	for b := range sp.notes.All {
		for _, n := range b.notes {
			s.event(n.at, &record.Event{
				Kind: record.Noted, Namespace: sp.name, Claims: []interlock.Claim{{Key: interlock.Key(b.node.key), Mode: lockmode.X}},
				Agent: n.agent, Fence: n.fence, Outcome: n.outcome, Note: n.text,
			})
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(sp.pools), func(a, b *pool) int { return strings.Compare(a.node.key, b.node.key) }) {
		p.catchUp()
		if left := p.full.Sub(s.e.last); p.policy != nil && p.policy.Rate > 0 && (left > 0 || p.used > 0) {
			s.event(s.e.last, &record.Event{
				Kind: record.Bucket, Namespace: sp.name, After: max(0, left),
				Claims: []interlock.Claim{{Key: interlock.Key(p.node.key), Mode: interlock.Permits}},
			})
		}
	}
	for _, d := range slices.SortedFunc(slices.Values(sp.shared), func(a, b *partition) int { return strings.Compare(a.node.key, b.node.key) }) {
		s.event(0, d.describe())
	}
	for _, class := range slices.Sorted(maps.Keys(sp.holds)) {
		s.event(0, &record.Event{Kind: record.HoldTime, Namespace: sp.name, KeyClass: class, Held: sp.holds[class]})
	}
	s.documents(sp)
	s.sideEffects(sp)
	s.tasks(sp)
	s.logs(sp)
	s.answers(sp, sessions)
}

// over writes which sessions and requests are over, and how they ended.
func (s *snapshotter) over(sp *namespace) {
	name, gone, tombs := sp.name, sp.endedSessions.Snapshot(), sp.tombs.Snapshot()
	s.past(func(s *snapshotter) {
		for i := range gone.Len() {
			x := gone.At(i)
			s.event(0, &record.Event{Kind: record.SessionGone, Namespace: name, ID: x.id, Reason: x.why})
		}
		for i := range tombs.Len() {
			r := tombs.At(i)
			ev := record.Event{Kind: record.Tombstone, Namespace: name, Num: r.num, ID: r.id, Claims: r.claims, Fence: r.fence, Reason: r.reason}
			if end := r.endCause; end != nil {
				ev.Cycle, ev.Actor, ev.Asker, ev.Outcome, ev.Base, ev.BaseID, ev.ByID = end.cycle, end.actor, end.asker, end.words, end.base, end.baseID, end.task
			}
			s.event(0, &ev)
		}
	})
}

// documents writes the guarded state: the earlier editions in the order in which they
// were replaced, then what stands now in the order of the writes. So both orders come
// out of the fold as they are here.
func (s *snapshotter) documents(sp *namespace) {
	if sp.docs.version == 0 {
		return
	}
	for x := range sp.docs.past.All {
		s.edition(sp, x)
	}
	for d := range sp.docs.recent.All {
		s.edition(sp, d.now)
	}
	s.event(0, &record.Event{Kind: record.Versions, Namespace: sp.name, Version: sp.docs.version, AsOf: sp.docs.floor, Num: sp.born})
}

func (s *snapshotter) edition(sp *namespace, x *poolEdition) {
	ev := x.describe(sp.name, x.doc.key)
	ev.Changed = x != x.doc.now
	if x == x.doc.oldest() {
		ev.AsOf = x.doc.since
	}
	s.event(x.at, &ev)
}

// rank orders waits for something that belongs to a lease after all leases.
func (r *request) rank() int {
	if r.base != nil || r.share != nil && r.phase == waiting {
		return 1
	}
	return 0
}

func (s *snapshotter) request(r *request) {
	ev := s.e.describe(record.Granted, r)
	if d := r.dealings; d != nil && d.arrived != 0 {
		ev.Queued, ev.Arrived = true, r.granted.Sub(d.arrived)
	}
	if r.phase == waiting {
		ev.Kind, ev.Changed = record.Queued, r.sawWrites()
		s.event(r.granted, ev)
		s.parking(r)
		s.decision(r)
		s.moved(r)
		return
	}
	ev.Fence, ev.Waited, ev.Offer, ev.Changed, ev.Freed = r.fence, r.waited, r.phase == offered, r.changed, r.phase == away
	s.event(r.granted, ev)
	switch r.phase {
	case parked, away, held, offered:
		s.parking(r)
	}
	s.decision(r) // after the parking, which has none, and before the end, after which there is none to be given
	switch r.phase {
	case closed:
		s.event(0, &record.Event{Kind: record.Closed, Namespace: r.ns.name, ID: r.id, Reason: r.reason, ByID: r.attemptAt()})
	case inGrace:
		ev := record.Event{Kind: record.Grace, Namespace: r.ns.name, ID: r.id, Reason: r.reason}
		if r.endCause != nil {
			ev.Actor, ev.Asker = r.endCause.actor, r.endCause.asker
		}
		s.event(0, &ev)
	}
	s.moved(r)
}

// decision writes a person's answer about a lease.
func (s *snapshotter) decision(r *request) {
	if r.dealings == nil || r.dealings.decision == nil {
		return
	}
	d := r.dealings.decision
	s.event(0, &record.Event{Kind: record.Decided, Namespace: r.ns.name, ID: r.id, Op: uint8(d.Verdict), Agent: d.By, Actor: d.Principal, Note: d.Reason})
}

// parking writes how a lease is parked, or was before it was resumed.
func (s *snapshotter) parking(r *request) {
	if !r.isParked() && !r.goesBack() && !r.staysPut() {
		return
	}
	p := r.dealings.parking
	asks := uint8(0)
	if p.asks {
		asks = asksPerson
	}
	s.event(p.since, &record.Event{
		Kind: record.Parked, Op: asks, Namespace: r.ns.name, ID: r.id, Terms: interlock.Terms{TTL: p.until.Sub(p.since)}, Note: p.reason, Freed: r.phase == away,
		Held: p.held, Fence: p.fence, Queued: !r.isParked(), Changed: p.kept, AsOf: r.window.asOf,
		Blob: record.AppendPrincipal(nil, p.asker),
	})
}

// moved writes which keys of a lease that was parked others may have written.
func (s *snapshotter) moved(r *request) {
	d := r.dealings
	if d == nil || d.arrived == 0 {
		return
	}
	keys := d.moved
	switch {
	case r.isParked():
		keys = r.movedKeys(d.parking.writes)
	case r.phase == waiting:
		keys = r.movedKeys(r.wait.writes)
	}
	if len(keys) == 0 {
		return
	}
	ev := record.Event{Kind: record.KeysMoved, Namespace: r.ns.name, ID: r.id}
	for _, key := range keys {
		ev.Claims = append(ev.Claims, interlock.Claim{Key: key, Mode: lockmode.X})
	}
	s.event(0, &ev)
}

// asks writes which requests ask the holder of r to yield.
func (s *snapshotter) asks(r *request) {
	if r.dealings == nil {
		return
	}
	for _, x := range r.dealings.askers {
		s.event(0, &record.Event{Kind: record.YieldRequested, Namespace: r.ns.name, ID: r.id, By: x.num, ByID: x.id})
	}
}

func (s *snapshotter) answers(sp *namespace, sessions []*session) {
	s.ids(sp, 0, &sp.ids)
	for _, x := range sessions {
		s.ids(sp, x.num, &x.ids)
		ring := slices.DeleteFunc(slices.Clone(x.seqs.ring), func(a seqAnswer) bool { return a.seq <= x.seqs.floor })
		slices.SortFunc(ring, func(a, b seqAnswer) int { return cmp.Compare(a.seq, b.seq) })
		for _, a := range ring {
			s.answer(sp, x.num, "", a.seq, a.storedAnswer, false)
		}
	}
}

func (s *snapshotter) ids(sp *namespace, scope uint64, w *idWindow) {
	for i := range w.order.Len() {
		id := w.order.At(i)
		s.answer(sp, scope, id, 0, w.known[id], false)
	}
	for _, id := range slices.Sorted(maps.Values(w.kept)) {
		s.answer(sp, scope, id, 0, w.known[id], true)
	}
}

func (s *snapshotter) answer(sp *namespace, scope uint64, id string, seq uint64, a storedAnswer, kept bool) {
	ev := &record.Event{
		Kind: record.Answered, Namespace: sp.name, Scope: scope, RequestID: id, Seq: seq,
		Fingerprint: a.fingerprint, ID: a.id, Answer: a.outcome, Offer: a.reused, Code: a.code, Version: a.version, Made: uint8(a.made), Freed: kept,
	}
	ev.SetReply(a.message)
	s.event(a.at, ev)
}

// ReadSnapshot makes an engine from what WriteSnapshot wrote.
func ReadSnapshot(r io.Reader) (*Engine, error) {
	e, s := New(), NewSnapshotReader(r)
	for list := make([]record.Event, 0, 1); ; {
		var err error
		if list, err = s.Append(list[:0]); err == io.EOF {
			return e, nil
		} else if err != nil {
			return nil, err
		}
		if err := e.Fold(list); err != nil {
			return nil, err
		}
	}
}

// SnapshotReader decodes what WriteSnapshot wrote. Its events, folded into an empty
// engine, make the state.
type SnapshotReader struct {
	r        *bufio.Reader
	events   record.Reader
	entry    []byte
	complete bool
}

// NewSnapshotReader begins to read a snapshot.
func NewSnapshotReader(r io.Reader) *SnapshotReader {
	return &SnapshotReader{r: bufio.NewReaderSize(r, 1<<16)}
}

// Append appends the events of the next entry to list. It returns io.EOF after the end of a
// complete snapshot.
func (s *SnapshotReader) Append(list []record.Event) ([]record.Event, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.r, head[:]); err == io.EOF && s.complete {
		return list, io.EOF
	} else if err != nil {
		return list, fmt.Errorf("engine: snapshot: %w", err)
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > maxSnapshotEntry {
		return list, errors.New("engine: snapshot: an entry is longer than any can be")
	}
	s.entry = slices.Grow(s.entry[:0], n)[:n]
	if _, err := io.ReadFull(s.r, s.entry); err != nil {
		return list, fmt.Errorf("engine: snapshot: %w", err)
	}
	if s.complete {
		return list, errors.New("engine: snapshot: it goes on after its end")
	}
	s.complete = record.KindOf(s.entry) == record.Counters
	return s.events.Append(list, s.entry)
}

// maxSnapshotEntry bounds an entry of a snapshot, which is one event. The largest is
// that of a document.
const maxSnapshotEntry = interlock.MaxDocumentBytes + 1<<20

// Hash is equal for equal states.
func (e *Engine) Hash() (sum [32]byte) {
	h := sha256.New()
	if err := e.WriteSnapshot(h); err != nil {
		panic("engine: hash: " + err.Error())
	}
	copy(sum[:], h.Sum(nil))
	return sum
}

// queues writes which queues are registered.
func (s *snapshotter) queues(sp *namespace) {
	for _, q := range sp.sortedQueues() {
		if q.registered {
			s.event(0, &record.Event{Kind: record.QueueSet, Namespace: sp.name, QueueName: q.Name, Blob: record.AppendQueue(nil, &q.TaskQueue)})
		}
	}
}

// tasks writes those of a namespace: those that wait in the order in which they came
// to stand in line, those that ask in the order in which they did, and the settled ones
// in the order in which they were.
func (s *snapshotter) tasks(sp *namespace) {
	for _, t := range sp.sortedTasks() {
		if t.chainOf(t.state) == nil {
			s.task(sp, t)
		}
	}
	for _, q := range sp.sortedQueues() {
		for t := range q.lined.All {
			s.task(sp, t)
		}
	}
	for t := range sp.tasks.asking.All {
		s.task(sp, t)
	}
	for t := range sp.tasks.done.All {
		s.task(sp, t)
	}
	for t := range sp.tasks.failed.All {
		s.task(sp, t)
	}
}

func (s *snapshotter) task(sp *namespace, t *task) {
	ev := record.Event{Kind: record.TaskSubmitted, Namespace: sp.name, ID: t.id, Num: t.num, Op: uint8(t.state), Generation: uint64(t.attempt), Outcome: t.reason}
	t.spec.Describe(&ev)
	if t.arrived != 0 {
		ev.Queued, ev.Arrived = true, t.arrived.Sub(t.spec.Submitted)
	}
	switch {
	case t.state == interlock.TaskWaiting:
		ev.After, ev.Changed = t.since.Sub(t.spec.Submitted), t.request != nil && t.request.sawWrites()
	case t.state == interlock.TaskRunning:
		ev.BaseID = t.request.id
	case isSettled(t.state):
		ev.After = t.since.Sub(t.spec.Submitted)
	}
	s.event(t.spec.Submitted, &ev)
	for i := range t.past {
		a := &t.past[i]
		s.event(a.ended, &record.Event{
			Kind: record.AttemptFailed, Namespace: sp.name, ID: t.id, Generation: uint64(a.number), Agent: a.agent, SessionName: a.session, Fence: a.fence,
			Reason: a.why, Outcome: a.words, Held: a.held,
		})
	}
}

// logs writes those of a namespace: all entries in the order in which they were
// appended, after the tasks and the documents with which they share their texts.
func (s *snapshotter) logs(sp *namespace) {
	if sp.logs.floor > 0 {
		s.event(0, &record.Event{Kind: record.Logged, Namespace: sp.name, Num: sp.logs.floor})
	}
	for x := range sp.logs.all.All {
		f := record.Fields{}
		for id, text := range []string{1: x.kind, 2: x.sender, 3: x.agent, 4: string(x.body), 5: string(x.reply)} {
			if text != "" {
				f.Text(uint64(id), text)
			}
		}
		f.Flag(6, x.absent)
		if x.made != nil && sp.docs.written(x.log.key, x.version) == nil { // its history has lost it
			written := x.made.describe(sp.name, x.log.key)
			f.Text(7, string(record.AppendEvent(record.AppendHead(nil, x.made.at), &written)))
		}
		s.event(x.at, &record.Event{
			Kind: record.Logged, Namespace: sp.name, ID: x.message, Num: x.seq, Op: uint8(x.state), Outcome: x.reason,
			Claims: []interlock.Claim{{Key: x.log.key, Mode: lockmode.X}}, Version: x.version, Changed: x.made != nil, Blob: f.Bytes,
			Agent: x.by.agent, SessionName: x.by.session, Generation: uint64(x.by.number), Fence: x.by.fence,
		})
	}
}

// sideEffects writes those of a namespace: first how each was claimed, then what became
// of it, in the order in which the chains have it. Those that are past are not in it, for when
// they are dropped does not matter.
func (s *snapshotter) sideEffects(sp *namespace) {
	all := make([]*sideEffect, 0, len(sp.sideEffects.known))
	for _, d := range sp.sideEffects.all {
		if !d.isPast(s.e.last) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, byEffectDigest)
	for _, d := range all {
		s.event(d.claimed, &record.Event{
			Kind: record.EffectChanged, Namespace: sp.name, ID: d.id, Blob: []byte(d.action), Terms: interlock.Terms{TTL: d.ttl}, BaseID: d.lease,
			Session: d.session, SessionName: d.name, Agent: d.agent, Flow: d.flow, Actor: d.owner, Generation: d.attempt,
		})
	}
	for _, c := range []*collection.List[*sideEffect]{&sp.sideEffects.done, &sp.sideEffects.free} {
		for d := range c.All {
			if !d.isPast(s.e.last) {
				s.settled(sp, d)
			}
		}
	}
	for _, d := range all {
		if d.state == interlock.EffectUnknown {
			s.settled(sp, d)
		}
	}
}

func (s *snapshotter) settled(sp *namespace, d *sideEffect) {
	s.event(d.settled, &record.Event{Kind: record.EffectChanged, Namespace: sp.name, ID: d.id, Op: uint8(d.state), Result: d.result, Outcome: d.reason})
}

// revisions writes all patterns with what they were before: those that are dropped come
// last, in the order in which they were.
func (s *snapshotter) revisions(sp *namespace) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(sp.revisions)), func(name string) bool {
		return sp.revisions[name].last().blob == nil
	})
	for _, name := range append(names, sp.dropped...) {
		for _, x := range sp.revisions[name].list {
			ev := record.Event{
				Kind: record.PatternSet, Namespace: sp.name, PatternName: name, Blob: x.blob, Generation: x.number, By: x.reverted, Actor: x.actor,
			}
			if x.blob == nil {
				ev.Kind = record.PatternDropped
			}
			s.event(x.at, &ev)
		}
	}
}
