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
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
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
	for _, space := range s.e.Sorted() {
		s.ns(space)
	}
	s.event(s.e.Last, &record.Event{
		Kind: record.Counters, Num: s.e.Num, Session: s.e.SessionNum, Fence: s.e.Fence, Epoch: s.e.Epoch, Writes: s.e.Writes, Version: s.e.BaseVersion,
		AsOf: interlock.Version(s.e.PastVersion),
	})
	return s.end()
}

func (s *snapshotter) end() error {
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

func (s *snapshotter) event(at store.Time, ev *record.Event) {
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

func (s *snapshotter) ns(sp *store.Namespace) {
	if sp.IsBare() {
		return
	}
	switch sp.Move.Step {
	case record.MoveClosed, record.MoveArriving:
		s.moveStep(sp, sp.Move.Step)
	case record.MoveLeft:
		s.moveStep(sp, record.MoveLeft)
		return
	case 0:
		if a := sp.Arrival; a.Number != 0 {
			s.event(0, &record.Event{
				Kind: record.NamespaceMoved, Namespace: sp.Name, Op: uint8(record.MoveOpened), Generation: a.Number,
				OtherShard: uint64(a.Other), By: uint64(a.After),
			})
		}
	case record.MoveArrived:
		s.moveStep(sp, record.MoveArriving)
		defer s.moveStep(sp, record.MoveArrived)
	}
	s.contents(sp)
}

// moveStep writes a step of a namespace's move.
func (s *snapshotter) moveStep(sp *store.Namespace, step record.MoveStep) {
	s.event(0, &record.Event{
		Kind: record.NamespaceMoved, Namespace: sp.Name, Op: uint8(step), Generation: sp.Move.Number,
		OtherShard: uint64(sp.Move.Other),
	})
}

func (s *snapshotter) contents(sp *store.Namespace) {
	if sp.Unmatched != record.UnsetKeys {
		s.event(
			0,
			&record.Event{
				Kind: record.Configured, Namespace: sp.Name, Blob: record.AppendSettingsWith(nil, &sp.Settings, sp.Unmatched),
			},
		)
	}
	s.webhooks(sp)
	s.queues(sp)
	s.revisions(sp)
	sessions := sp.SortedSessions()
	for _, x := range sessions {
		s.event(x.Opened, &record.Event{
			Kind: record.SessionOpened, Namespace: sp.Name, Session: x.Num, ID: x.ID, Agent: x.Agent,
			Terms: interlock.Terms{TTL: x.TTL}, Any: x.Adapts, Acked: x.Seqs.Floor,
			Actor: x.Owner,
		})
	}
	requests := sp.Requests.All()
	slices.SortFunc(requests, func(a, b *store.Request) int {
		return cmp.Or(cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Num, b.Num))
	})
	for _, r := range requests {
		s.request(r)
	}
	for _, r := range requests {
		s.asks(r)
	}
	for _, x := range sessions {
		if x.Dead {
			s.event(0, &record.Event{Kind: record.SessionEnded, Namespace: sp.Name, Session: x.Num, Reason: x.Why})
		}
	}
	s.over(sp)
	for b := range sp.Notes.All {
		for _, n := range b.Notes {
			s.event(n.At, &record.Event{
				Kind: record.Noted, Namespace: sp.Name,
				Claims: []interlock.Claim{{Key: interlock.Key(b.Node.Key), Mode: lockmode.X}},
				Agent:  n.Agent, Fence: n.Fence, Outcome: n.Outcome, Note: n.Text,
			})
		}
	}
	s.buckets(sp, requests)
	for _, d := range slices.SortedFunc(
		slices.Values(sp.Shared), func(a, b *store.Partition) int { return strings.Compare(a.Node.Key, b.Node.Key) },
	) {
		s.event(0, d.Describe())
	}
	for _, class := range slices.Sorted(maps.Keys(sp.Holds)) {
		s.event(0, &record.Event{Kind: record.HoldTime, Namespace: sp.Name, KeyClass: class, Held: sp.Holds[class]})
	}
	s.documents(sp)
	s.sideEffects(sp)
	s.tasks(sp)
	s.logs(sp)
	s.answers(sp, sessions)
}

// buckets writes what is missing in each bucket of tokens. The leases that were written before took tokens when they
// were read, as the patterns are now, which may have set the rate since: so each bucket that they can have taken from
// is written, also a full one.
func (s *snapshotter) buckets(sp *store.Namespace, requests []*store.Request) {
	missing := map[string]time.Duration{}
	for _, r := range requests {
		if r.Phase != store.Waiting && r.Phase != store.Away {
			for key := range r.RatedLocks {
				missing[key] = 0
			}
		}
	}
	for _, p := range sp.Pools {
		p.CatchUp()
		left := max(0, p.Full.Sub(s.e.Last))
		if _, known := missing[p.Node.Key]; p.Policy != nil && p.Policy.Rate > 0 && (left > 0 || p.Used > 0 || known) {
			missing[p.Node.Key] = left
		}
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		s.event(s.e.Last, &record.Event{
			Kind: record.Bucket, Namespace: sp.Name, After: missing[key],
			Claims: []interlock.Claim{{Key: interlock.Key(key), Mode: interlock.Permits}},
		})
	}
}

// over writes which sessions and requests are over, and how they ended.
func (s *snapshotter) over(sp *store.Namespace) {
	name, gone, tombs := sp.Name, sp.EndedSessions.Snapshot(), sp.Tombstones.Snapshot()
	s.past(func(s *snapshotter) {
		for i := range gone.Len() {
			x := gone.At(i)
			s.event(0, &record.Event{Kind: record.SessionGone, Namespace: name, ID: x.ID, Reason: x.Why})
		}
		for i := range tombs.Len() {
			r := tombs.At(i)
			ev := record.Event{
				Kind: record.Tombstone, Namespace: name, Num: r.Num, ID: r.ID, Claims: r.Claims, Fence: r.Fence, Reason: r.Reason,
			}
			if end := r.EndCause; end != nil {
				ev.Cycle, ev.Actor, ev.Asker, ev.Outcome, ev.Base, ev.BaseID, ev.ByID = end.Cycle, end.Actor, end.Asker, end.Words,
					end.Base, end.BaseID, end.Task
			}
			s.event(0, &ev)
		}
	})
}

// documents writes the guarded state: the earlier editions in the order in which they
// were replaced, then what stands now in the order of the writes. So both orders come
// out of the fold as they are here.
func (s *snapshotter) documents(sp *store.Namespace) {
	if sp.Documents.Version == 0 {
		return
	}
	for x := range sp.Documents.Past.All {
		s.edition(sp, x)
	}
	for d := range sp.Documents.Recent.All {
		s.edition(sp, d.Now)
	}
	s.event(
		0,
		&record.Event{
			Kind: record.Versions, Namespace: sp.Name, Version: sp.Documents.Version, AsOf: sp.Documents.Floor, Num: sp.Born,
		},
	)
}

func (s *snapshotter) edition(sp *store.Namespace, x *store.DocumentVersion) {
	ev := x.Describe(sp.Name, x.Doc.Key)
	ev.Changed = x != x.Doc.Now
	if x == x.Doc.Oldest() {
		ev.AsOf = x.Doc.Since
	}
	s.event(x.At, &ev)
}

func (s *snapshotter) request(r *store.Request) {
	ev := s.e.describe(record.Granted, r)
	if d := r.Rare; d != nil && d.Arrived != 0 {
		ev.Queued, ev.Arrived = true, r.Granted.Sub(d.Arrived)
	}
	if r.Phase == store.Waiting {
		ev.Kind, ev.Changed = record.Queued, r.SawWrites()
		s.event(r.Granted, ev)
		s.parking(r)
		s.decision(r)
		s.moved(r)
		return
	}
	ev.Fence, ev.Waited, ev.Offer, ev.Changed, ev.Freed = r.Fence, r.Waited, r.Phase == store.Offered, r.Changed, r.Phase == store.Away
	s.event(r.Granted, ev)
	switch r.Phase {
	case store.Parked, store.Away, store.Held, store.Offered:
		s.parking(r)
	}
	s.decision(r) // after the parking, which has none, and before the end, after which there is none to be given
	switch r.Phase {
	case store.Closed:
		s.event(0, &record.Event{Kind: record.Closed, Namespace: r.NS.Name, ID: r.ID, Reason: r.Reason, ByID: r.AttemptAt()})
	case store.InGrace:
		ev := record.Event{Kind: record.Grace, Namespace: r.NS.Name, ID: r.ID, Reason: r.Reason}
		if r.EndCause != nil {
			ev.Actor, ev.Asker = r.EndCause.Actor, r.EndCause.Asker
		}
		s.event(0, &ev)
	}
	s.moved(r)
}

// decision writes a person's answer about a lease.
func (s *snapshotter) decision(r *store.Request) {
	if r.Rare == nil || r.Rare.Decision == nil {
		return
	}
	d := r.Rare.Decision
	s.event(
		0,
		&record.Event{
			Kind: record.Decided, Namespace: r.NS.Name, ID: r.ID, Op: uint8(d.Verdict), Agent: d.By, Actor: d.Principal,
			Note: d.Reason,
		},
	)
}

// parking writes how a lease is parked, or was before it was resumed.
func (s *snapshotter) parking(r *store.Request) {
	if !r.IsParked() && !r.GoesBack() && !r.StaysPut() {
		return
	}
	p := r.Rare.Parking
	asks := uint8(0)
	if p.Asks {
		asks = store.AsksPerson
	}
	s.event(p.Since, &record.Event{
		Kind: record.Parked, Op: asks, Namespace: r.NS.Name, ID: r.ID, Terms: interlock.Terms{TTL: p.Until.Sub(p.Since)},
		Note: p.Reason, Freed: r.Phase == store.Away,
		Held: p.Held, Fence: p.Fence, Queued: !r.IsParked(), Changed: p.Kept, AsOf: r.Window.AsOf,
		Blob: record.AppendPrincipal(nil, p.Asker),
	})
}

// moved writes which keys of a lease that was parked others may have written.
func (s *snapshotter) moved(r *store.Request) {
	d := r.Rare
	if d == nil || d.Arrived == 0 {
		return
	}
	keys := d.Moved
	switch {
	case r.IsParked():
		keys = r.MovedKeys(d.Parking.Writes)
	case r.Phase == store.Waiting:
		keys = r.MovedKeys(r.Wait.Writes)
	}
	if len(keys) == 0 {
		return
	}
	ev := record.Event{Kind: record.KeysMoved, Namespace: r.NS.Name, ID: r.ID}
	for _, key := range keys {
		ev.Claims = append(ev.Claims, interlock.Claim{Key: key, Mode: lockmode.X})
	}
	s.event(0, &ev)
}

// asks writes which requests ask the holder of r to yield.
func (s *snapshotter) asks(r *store.Request) {
	if r.Rare == nil {
		return
	}
	for _, x := range r.Rare.Askers {
		s.event(0, &record.Event{Kind: record.YieldRequested, Namespace: r.NS.Name, ID: r.ID, By: x.Num, ByID: x.ID})
	}
}

func (s *snapshotter) answers(sp *store.Namespace, sessions []*store.Session) {
	s.ids(sp, 0, &sp.IDs)
	for _, x := range sessions {
		s.ids(sp, x.Num, &x.IDs)
		ring := slices.DeleteFunc(slices.Clone(x.Seqs.Ring), func(a store.SeqAnswer) bool { return a.Seq <= x.Seqs.Floor })
		slices.SortFunc(ring, func(a, b store.SeqAnswer) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, a := range ring {
			s.answer(sp, x.Num, "", a.Seq, a.StoredAnswer, false)
		}
	}
}

func (s *snapshotter) ids(sp *store.Namespace, scope uint64, w *store.IDWindow) {
	for i := range w.Order.Len() {
		id := w.Order.At(i)
		s.answer(sp, scope, id, 0, w.Known[id], false)
	}
	for _, id := range slices.Sorted(maps.Values(w.Kept)) {
		s.answer(sp, scope, id, 0, w.Known[id], true)
	}
}

func (s *snapshotter) answer(
	sp *store.Namespace, scope uint64, id string, seq uint64, a store.StoredAnswer, kept bool,
) {
	ev := &record.Event{
		Kind: record.Answered, Namespace: sp.Name, Scope: scope, RequestID: id, Seq: seq,
		Fingerprint: a.Fingerprint, ID: a.ID, Answer: a.Outcome, Offer: a.Reused, Code: a.Code, Version: a.Version,
		Made: uint8(a.Made), Freed: kept,
	}
	ev.SetReply(a.Message)
	s.event(a.At, ev)
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

// webhooks writes the webhooks of a namespace.
func (s *snapshotter) webhooks(sp *store.Namespace) {
	for _, w := range sp.SortedWebhooks() {
		s.event(0, &record.Event{
			Kind: record.WebhookSet, Namespace: sp.Name, WebhookName: w.Name, Blob: record.AppendWebhook(nil, w),
		})
	}
}

// queues writes which queues are registered.
func (s *snapshotter) queues(sp *store.Namespace) {
	for _, q := range sp.SortedQueues() {
		if q.Registered {
			s.event(
				0,
				&record.Event{
					Kind: record.QueueSet, Namespace: sp.Name, QueueName: q.Name, Blob: record.AppendQueue(nil, &q.TaskQueue),
				},
			)
		}
	}
}

// tasks writes those of a namespace: those that wait in the order in which they came
// to stand in line, those that ask in the order in which they did, and the settled ones
// in the order in which they were.
func (s *snapshotter) tasks(sp *store.Namespace) {
	for _, t := range sp.SortedTasks() {
		if t.ChainOf(t.State) == nil {
			s.task(sp, t)
		}
	}
	for _, q := range sp.SortedQueues() {
		for t := range q.Lined.All {
			s.task(sp, t)
		}
	}
	for t := range sp.Tasks.Asking.All {
		s.task(sp, t)
	}
	for t := range sp.Tasks.Done.All {
		s.task(sp, t)
	}
	for t := range sp.Tasks.Failed.All {
		s.task(sp, t)
	}
}

func (s *snapshotter) task(sp *store.Namespace, t *store.Task) {
	ev := record.Event{
		Kind: record.TaskSubmitted, Namespace: sp.Name, ID: t.ID, Num: t.Num, Op: uint8(t.State),
		Generation: uint64(t.Attempt),
	}
	ev.SetWhy(t.Reason)
	t.Spec.Describe(&ev)
	if t.Arrived != 0 {
		ev.Queued, ev.Arrived = true, t.Arrived.Sub(t.Spec.Submitted)
	}
	switch {
	case t.State == interlock.TaskWaiting:
		ev.After, ev.Changed = t.Since.Sub(t.Spec.Submitted), t.Request != nil && t.Request.SawWrites()
	case t.State == interlock.TaskRunning:
		ev.BaseID = t.Request.ID
	case t.State.IsSettled():
		ev.After = t.Since.Sub(t.Spec.Submitted)
	}
	s.event(t.Spec.Submitted, &ev)
	if t.Spec.DoneBy != "" { // as it was recorded, so that every version reads it
		s.event(t.Since, &record.Event{
			Kind: record.TaskMoved, Namespace: sp.Name, ID: t.ID, Num: t.Num, Op: uint8(t.State),
			Generation: uint64(t.Attempt), Actor: t.Spec.DoneBy, Blob: t.Spec.Result, // the result is for older versions
		})
	}
	for i := range t.Past {
		a := &t.Past[i]
		ev := record.Event{
			Kind: record.AttemptFailed, Namespace: sp.Name, ID: t.ID, Generation: uint64(a.Number), Agent: a.Agent,
			SessionName: a.Session, Fence: a.Fence,
			Reason: a.Why, Held: a.Held,
		}
		ev.SetWhy(a.Words)
		s.event(a.Ended, &ev)
	}
}

// logs writes those of a namespace: all entries in the order in which they were
// appended, after the tasks and the documents with which they share their texts.
func (s *snapshotter) logs(sp *store.Namespace) {
	if sp.Logs.Floor > 0 {
		s.event(0, &record.Event{Kind: record.Logged, Namespace: sp.Name, Num: sp.Logs.Floor})
	}
	for x := range sp.Logs.All.All {
		text := record.LogText{
			Kind: x.Kind, Sender: x.Sender, Agent: x.Agent, Body: x.Body, Reply: x.Reply, Absent: x.Absent,
		}
		if x.Made != nil && sp.Documents.Written(x.Log.Key, x.Version) == nil { // its history has lost it
			written := x.Made.Describe(sp.Name, x.Log.Key)
			text.Made = record.AppendEvent(record.AppendHead(nil, x.Made.At), &written)
		}
		ev := record.Event{
			Kind: record.Logged, Namespace: sp.Name, ID: x.Message, Num: x.Seq, Op: uint8(x.State),
			Claims: []interlock.Claim{{Key: x.Log.Key, Mode: lockmode.X}}, Version: x.Version, Changed: x.Made != nil,
			Blob:  record.AppendLogText(nil, &text),
			Agent: x.By.Agent, SessionName: x.By.Session, Generation: uint64(x.By.Number), Fence: x.By.Fence,
		}
		ev.SetWhy(x.Reason)
		s.event(x.At, &ev)
	}
}

// SideEffects writes those of a namespace: first how each was claimed, then what became
// of it, in the order in which the chains have it. Those that are past are not in it, for when
// they are dropped does not matter.
func (s *snapshotter) sideEffects(sp *store.Namespace) {
	all := make([]*store.SideEffect, 0, len(sp.SideEffects.Known))
	for _, d := range sp.SideEffects.All {
		if !d.IsPast(s.e.Last) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, byEffectDigest)
	for _, d := range all {
		s.event(d.Claimed, &record.Event{
			Kind: record.EffectChanged, Namespace: sp.Name, ID: d.ID, Blob: []byte(d.Action),
			Terms: interlock.Terms{TTL: d.TTL}, BaseID: d.Lease,
			Session: d.Session, SessionName: d.Name, Agent: d.Agent, Flow: d.Flow, Actor: d.Owner, Generation: d.Attempt,
		})
	}
	for _, c := range []*collection.List[*store.SideEffect]{&sp.SideEffects.Done, &sp.SideEffects.Free} {
		for d := range c.All {
			if !d.IsPast(s.e.Last) {
				s.settled(sp, d)
			}
		}
	}
	for _, d := range all {
		if d.State == interlock.EffectUnknown {
			s.settled(sp, d)
		}
	}
}

func (s *snapshotter) settled(sp *store.Namespace, d *store.SideEffect) {
	s.event(
		d.Settled,
		&record.Event{
			Kind: record.EffectChanged, Namespace: sp.Name, ID: d.ID, Op: uint8(d.State), Result: d.Result, Outcome: d.Reason,
		},
	)
}

// revisions writes all patterns with what they were before: those that are dropped come
// last, in the order in which they were.
func (s *snapshotter) revisions(sp *store.Namespace) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(sp.Revisions)), func(name string) bool {
		return sp.Revisions[name].Last().Blob == nil
	})
	for _, name := range append(names, sp.Dropped...) {
		for _, x := range sp.Revisions[name].List {
			ev := record.Event{
				Kind: record.PatternSet, Namespace: sp.Name, PatternName: name, Blob: x.Blob, Generation: x.Number, By: x.Reverted,
				Actor: x.Actor,
			}
			if x.Blob == nil {
				ev.Kind = record.PatternDropped
			}
			s.event(x.At, &ev)
		}
	}
}
