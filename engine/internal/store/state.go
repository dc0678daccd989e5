package store

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// State is the state of one shard: the sum of the journal's events, and the indexes beside it. Evolve
// folds an event into it, and nothing else changes its journaled part. Engine embeds it.
type State struct {
	Last        Time // of the last event
	Epoch       interlock.Epoch
	Fence       interlock.Fence   // the highest granted one; it never falls
	BaseVersion interlock.Version // versions of new commits are above it
	Num         uint64            // the highest number of a request
	SessionNum  uint64            // the highest number of a session
	Writes      uint64            // number of ended leases that allowed to write
	PastVersion uint64            // the highest version of a deleted namespace; those of new ones are above it
	Namespaces  map[interlock.Namespace]*Namespace
	Webhooks    int // of all namespaces

	// All below is volatile.

	Live         bool        // Recover was carried out; during a replay nothing is watched
	Began        Time        // of this owner's term
	*PendingWork             // of the namespace that the step is about
	Whole        PendingWork // for commands that are about no namespace
	Agendas      uint64      // number of agendas made in this term
	Alarms       Timers      // of each agenda with pending work: when it is due
	Empty        Timers      // of each empty namespace: when it may be forgotten
	Swath        int         // objects of a large set that a step gathers, and sorts, at once
	Windows      IDBounds
	Views        Views
	Visited      int    // objects that the step has looked at, besides those of Looks and Ranks
	Looks        Budget // of the searches for deadlocks of a step
	Ranks        Budget // of the computation of ranks of a step

	walks      uint64  // number of the last walk of a search
	idleSearch *Search // for reuse

	free  []*Request
	Ended []*Request       // in this step
	Woken []AnswerListener // listeners to notify at the end of this step
	waits []*Wait          // for reuse
	Trial Wait             // of a request that is not in line yet
	Hint  DraftHints       // for the fold of the event in draft
}

// DraftHints are references that decide has at hand for the event in draft, so that Evolve need not
// look them up. They are no part of the event: on replay there are none.
type DraftHints struct {
	Req  *Request
	Sess *Session
	Spec *record.Task
}

// Budget bounds the objects that one kind of work may look at in a step.
type Budget struct {
	Spent int
	Most  int
}

// Spend counts an object to look at. It returns false if the budget is spent.
func (b *Budget) Spend() bool {
	if b.IsSpent() {
		return false
	}
	b.Spent++
	return true
}

// IsSpent reports whether the step has looked at as many objects as it may.
func (b *Budget) IsSpent() bool { return b.Spent >= b.Most }

// Swath is how many objects of a large set a step gathers at once.
const Swath = 250

// Init makes a state empty, and ready.
func (st *State) Init() {
	st.Swath, st.Windows, st.Namespaces = Swath, windows, map[interlock.Namespace]*Namespace{}
	st.Looks.Most, st.Ranks.Most = StepLooks, StepRanks
	st.PendingWork = &st.Whole
	st.Whole.objects, st.Whole.views = &st.Visited, &st.Views
}

// newWait returns the wait of a new waiter.
func (st *State) newWait() *Wait {
	i := len(st.waits) - 1
	if i < 0 {
		return &Wait{Writes: st.Writes}
	}
	w := st.waits[i]
	st.waits = st.waits[:i]
	*w = Wait{Writes: st.Writes, more: w.more}
	if w.more != nil {
		*w.more = (*w.more)[:0]
	}
	return w
}

// dropWait takes r's waiting part, to reuse it unless a place of it is still to be checked. A
// tentative request had that of the trial.
func (st *State) dropWait(r *Request) {
	w := r.Wait
	if r.Wait = nil; w == nil || w == &st.Trial || len(st.waits) == maxFree {
		return
	}
	for _, p := range w.Entries() {
		if p.Ready {
			return
		}
	}
	st.waits = append(st.waits, w)
}

func (st *State) Namespace(name interlock.Namespace) *Namespace {
	if s := st.PendingWork.NS; s != nil && s.Name == name {
		return s
	}
	s := st.Namespaces[name]
	if s != nil && s.Born < st.PastVersion && s.IsBare() { // in a replay: no step left it
		s.beginAt(st.PastVersion)
	}
	if s == nil {
		s = &Namespace{
			Name:       name,
			Sessions:   map[interlock.SessionID]*Session{},
			ByNum:      map[uint64]*Session{},
			EndReasons: map[interlock.SessionID]record.Reason{},
			Holds:      map[string]time.Duration{},
			taken:      map[string]usage{},
			kept:       objectWindows{},
		}
		s.SideEffects.kept = s.kept
		s.beginAt(st.PastVersion)
		st.Namespaces[name] = s
		s.Agenda = st.adopt(s)
	}
	return s
}

// enqueue puts r in the line of every key it needs.
func (st *State) enqueue(r *Request) {
	for way := range r.EachAlternative {
		if way != r {
			r.NS.alternatives++
			way.Phase, way.Granted, way.Wait = Waiting, r.Granted, st.newWait()
			way.Wait.Score, way.Wait.Rank = r.Wait.Score, r.Wait.Rank
		}
		way.enter()
	}
	if r.Priority != 0 {
		r.NS.Ranked++
	}
	r.NS.Disturb()
	if r.Task == nil {
		r.NS.Waiters++
		r.NS.count(r.Owner(), usage{waiters: 1})
	}
	r.awaitPart()
}

// PendingWork is the pending work of one namespace: its deadlines, and the work that a step has left
// over because it had decided enough. Any work that a step may leave over belongs in here.
//
// Each namespace has its own because nothing crosses namespaces. Its time is that of its own
// commands, so a shard may reorder the commands of different namespaces as long as it keeps the
// order within each: a heartbeat that is delayed behind another namespace's commands still
// counts as on time. A step works on one agenda only, so no command pays for the work of
// another tenant.
//
// It is volatile. The engine embeds the one that it works on.
type PendingWork struct {
	NS         *Namespace // nil when there is none yet
	Clock      Time       // of the last command in the namespace
	Timers     Timers
	Ready      collection.ValueHeap[Candidate] // watched waiters that a change may have helped
	Suspects   collection.Queue[Suspect]       // flows or waiters with new edges that may have closed a cycle
	Search     *Search                         // for the cycle of one of them, if it is not done
	Dying      collection.Queue[*Session]      // ended sessions with leases or waits left
	Dismissed  collection.Queue[Dismissal]     // idle workers to be dismissed, with the reason
	Departed   collection.Queue[*Session]      // ended sessions with pulls, or waits for the ends of tasks, left
	Parting    collection.Queue[*Session]      // with waits that were attached over a connection that has ended
	Uneven     []*Partition                    // partitioned keys with a division to check
	Broken     []BrokenBarrier                 // waiters for a barrier that was broken; never left over
	ToDispatch []*Queue                        // with workers, and tasks that could run
	// the remaining suspects, while not all flows that may be on a cycle are listed
	Doubt SuspectScan
	Alarm Timer // in Engine.alarms: when the first of all this is due
	Empty Timer // in Engine.empty, if the namespace is empty

	objects *int   // State.Visited
	views   *Views // State.Views
	began   Time   // State.Began
}

func (st *State) NewAgenda(s *Namespace) *PendingWork {
	st.Agendas++
	a := &PendingWork{NS: s, objects: &st.Visited, views: &st.Views, began: st.Began}
	a.Alarm = Timer{Pos: -1, Ord: st.Agendas, Agenda: a}
	a.Empty = a.Alarm
	return a
}

// adopt returns a new namespace the agenda of the step that makes it. In a replay
// it gets one of its own.
func (st *State) adopt(s *Namespace) *PendingWork {
	if a := st.PendingWork; a != &st.Whole && a.NS == nil {
		a.NS = s
		return a
	}
	return st.NewAgenda(s)
}

// NextDue returns when something is to be done.
func (a *PendingWork) NextDue(draining bool) (at Time, ok bool) {
	if (len(a.Ready)+len(a.Uneven)+len(a.ToDispatch) > 0) && !draining || a.HasSearch() ||
		a.Dying.Len()+a.Parting.Len()+a.Dismissed.Len()+a.Departed.Len() > 0 || a.Doubt.Under || a.NS.IsSpelling() ||
		a.NS.IsRepooling() || a.NS.IsUnranked() {
		return a.Clock, true
	}
	if t := a.Timers.First(); t != nil {
		return t.At, true
	}
	return 0, false
}

// Wake notifies the callers that wait for the answer about r: it has been given, or is not
// needed any more.
func (st *State) Wake(r *Request) {
	if len(r.Rare.Listeners) > 0 {
		st.Woken, r.Rare.Listeners = append(st.Woken, r.Rare.Listeners...), nil
	}
}

// StepObjects bounds the objects that a step looks at: requests and what they need,
// holders, waiters, tasks, workers and the like. A step that has looked at as many leaves
// the rest to the next one, which is due at once; what it was about then, one request or
// one command, may come on top. So no state, however large, keeps a step from coming to
// its end. Searches for deadlocks and the finding of ranks have lower bounds of their own:
// see StepLooks and StepRanks.
const StepObjects = 1_000

// spread returns one of many that would otherwise end at one moment a delay of up
// to a quarter of its ttl, the same in every run.
func spread(num uint64, ttl time.Duration) time.Duration {
	return ttl / 4 * time.Duration(collection.Mix(num)>>16) / (1 << 16)
}

// evolveNamespaceGone folds record.NamespaceDeleted and record.NamespaceForgotten.
func (st *State) evolveNamespaceGone(ev *record.Event) error {
	s := st.Namespaces[ev.Namespace]
	if s == nil {
		return errUnknown
	}
	st.PastVersion = max(st.PastVersion, s.highest()+1)
	st.Remove(s)
	return nil
}

// Remove drops a namespace. A step that is about it continues without one.
func (st *State) Remove(s *Namespace) {
	st.Alarms.Clear(&s.Agenda.Alarm)
	st.Empty.Clear(&s.Agenda.Empty)
	delete(st.Namespaces, s.Name)
	st.Webhooks -= len(s.Webhooks)
	if st.PendingWork == s.Agenda {
		now := st.Clock
		st.PendingWork = st.NewAgenda(nil)
		st.Clock = now
	}
}

type laneID struct {
	key    interlock.Key
	sender string
}

// joinLane makes a message that is not settled one of its lane. If it was sent before
// the one that was the first so far, that steps out of line.
func (st *State) joinLane(t *Task) {
	if !t.Spec.Message || t.Spec.Sender == "" {
		return
	}
	s := &t.Queue.NS.Tasks
	id := laneID{t.Spec.Mailbox(), t.Spec.Sender}
	l := s.lanes[id]
	if l == nil {
		l = &lane{id: id}
		if s.lanes == nil {
			s.lanes = map[laneID]*lane{}
		}
		s.lanes[id] = l
	}
	t.Own().Mail = &lanePosition{task: t, Lane: l}
	first := t.Mail
	if len(l.Heap) > 0 {
		first = l.Heap[0]
	}
	if l.Push(t.Mail); first.task.Ahead() != nil {
		st.stepBack(first.task)
	}
}

// leaveLane takes a message that is settled out of its lane, and lets the next one that
// waits stand in line.
func (st *State) leaveLane(t *Task) {
	if t.Mail == nil {
		return
	}
	l := t.Mail.Lane
	for f := range t.Followers.All {
		if f.Wait != nil {
			l.Waits.Remove(&f.InLane)
		}
	}
	l.Remove(t.Mail)
	t.Own().Mail = nil
	t.Tidy()
	if len(l.Heap) == 0 {
		delete(t.Queue.NS.Tasks.lanes, l.id)
		return
	}
	if first := l.Heap[0].task; first.State == interlock.TaskWaiting && first.Request == nil {
		st.queueTask(first, false)
	}
}

// evolvePutBack folds that a resumption was given up.
func (st *State) evolvePutBack(ev *record.Event, r *Request) error {
	if !ev.Freed && r.StaysPut() {
		st.putBackKept(ev, r)
		return nil
	}
	if !r.GoesBack() {
		return errUnknown
	}
	d := r.Rare
	p := d.Parking
	for i := range r.Needs() {
		r.Needs()[i].Node.expect()
	}
	if r.Phase == Waiting {
		d.Moved = r.MovedKeys(r.Wait.Writes)
		r.unline()
		st.Changed(r)
		st.clearSession(r)
	} else {
		st.detachFromSession(r)
		st.giveBack(r)
	}
	r.unask()
	if r.MaxHold > 0 { // resuming takes it off again
		t := r.Conditions.Terms
		t.MaxHold += p.Held
		r.Conditions = r.NS.Agree(t)
	}
	p.Held, p.Fence, p.Writes = ev.Held, ev.Fence, st.Writes
	r.Wait, r.Fence, r.Reason, r.Changed = nil, ev.Fence, ev.Reason, false
	r.setEndCause(endingOf(ev))
	r.setWindow(Window{AsOf: r.Window.AsOf})
	r.NS.putAside(r)
	r.goAway()
	return nil
}

// putBackKept is evolvePutBack of a lease that keeps its keys.
func (st *State) putBackKept(ev *record.Event, r *Request) {
	p := r.Rare.Parking
	st.detachFromSession(r)
	r.Phase = Parked
	r.expectBack()
	p.Since, p.Until, p.Held, p.Fence, p.Writes, p.Kept = ev.At, ev.At.Add(ev.TTL), ev.Held, ev.Fence, st.Writes, false
	r.Fence, r.Reason, r.Changed = ev.Fence, ev.Reason, false
	r.setEndCause(endingOf(ev))
	r.setWindow(Window{AsOf: r.Window.AsOf})
	r.NS.putAside(r)
}

// StoredAnswer is the record of a command that was carried out.
type StoredAnswer struct {
	At          Time
	Fingerprint uint64
	ID          [16]byte // of the request or session that it made
	Outcome     interlock.Outcome
	Reused      bool
	Made        ObjectKind // what it made, which has that id
	Code        interlock.Code
	Message     *message.Text
	Version     interlock.Version // that a commit made
}

// evolveAnswer remembers an answer.
func (st *State) evolveAnswer(ev *record.Event) {
	a := StoredAnswer{
		At: ev.At, Fingerprint: ev.Fingerprint, ID: ev.ID, Outcome: ev.Answer, Code: ev.Code, Message: ev.Reply(),
		Version: ev.Version, Reused: ev.Kind == record.Answered && ev.Offer, Made: ObjectKind(ev.Made),
	}
	if ev.Seq != 0 {
		if s := st.numbered(ev.Namespace, ev.Scope); s != nil {
			s.Seqs.put(ev.Seq, ev.Acked, a)
		}
		return
	}
	s := st.Namespace(ev.Namespace)
	w, limit, keep := &s.IDs, st.Windows.Namespace, 0
	if ev.Scope != 0 {
		x := st.numbered(ev.Namespace, ev.Scope)
		if x == nil {
			return
		}
		w, limit, keep = &x.IDs, st.Windows.Session, st.Windows.Least
	}
	if ev.Kind == record.Answered && ev.Freed && s.lives(a.thing(), a.At) {
		s.keep(w, ev.RequestID, a)
		return
	}
	s.remember(w, ev.RequestID, a, limit, keep)
}

func (st *State) Sorted() []*Namespace {
	return slices.SortedFunc(
		maps.Values(st.Namespaces), func(a, b *Namespace) int { return strings.Compare(string(a.Name), string(b.Name)) },
	)
}
