package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Engine is one shard's kernel. It is not safe for concurrent use: one goroutine
// owns it. Make one with New or ReadSnapshot, fold the journal into it with
// Apply, begin with a Recover command, and from then on call Step.
type Engine struct {
	store.State

	// The fields below are volatile.

	// What Limit commands closed; Recover reopens all.
	lowSpace bool
	kept     bool // see Limit.Kept
	lowMem   bool
	draining bool

	newest     store.Time // time of the last command or entry of any namespace; it never falls
	most       int        // objects that a step may look at
	mostDeeds  int        // effects that a namespace may remember
	mostSpaces int        // namespaces

	unattributed bool // see Unattributed

	listens uint64 // number of waits that ever got a listener
	seen    uint32 // by Expect

	// The step in progress. out and head are nil between steps.
	out     *Output
	head    *Head
	start   int            // length of out.Entry when the step began
	before  int            // number of out.Events when its command began
	tries   int            // candidates that the step checked in vain, at most stepTries
	tagged  bool           // one of its events carries the command's request id
	replied int            // index in out.Effects of the answer to its caller; -1 before the answer
	print   uint64         // fingerprint of the command
	asking  *store.Request // a wait that began in this step and counts as listened to
	ev      *record.Event  // the draft: drafted and not emitted; nil for none
	spare   record.Event   // the draft of a snapshot, which has no out
}

// Option configures an engine beside its state: nothing that is journaled depends on it.
type Option func(*Engine)

// New makes an empty engine.
func New(options ...Option) *Engine {
	e := &Engine{
		most:      store.StepObjects,
		mostDeeds: interlock.MaxEffects, mostSpaces: interlock.MaxNamespaces,
	}
	e.Init()
	for _, o := range options {
		o(e)
	}
	return e
}

// stepBytes bounds the events of one step, so that an entry fits any journal. The rest is done
// by the next Tick, which is then due at once.
const stepBytes = 256 << 10

// Step carries out one command: it changes the state and appends to out the events to make
// durable and the effects to deliver afterwards. It never fails; a refusal is an effect like
// any other.
//
// Before any command is carried out, all that is due in its namespace by its time ends. So an
// answer never shows a lease beyond its end, whether a Tick came in time or not. A command
// without a namespace is about all of them.
func (e *Engine) Step(cmd Command, out *Output) {
	h := cmd.Header()
	e.out, e.head, e.start, e.tagged, e.replied = out, h, len(out.Entry), false, -1
	e.Visited, e.Views.Looked, e.Looks.Spent, e.Ranks.Spent, e.tries = 0, 0, 0, 0, 0
	e.begin(h)
	e.before = len(out.Events)
	if e.isClosedTo(cmd) {
		if cmd.IsAnswered() {
			e.refuse(interlock.CodeMoving, message.New(message.NamespaceMoving, message.Str(h.Namespace)))
		}
	} else if !e.repeat(cmd) {
		highest := e.Num
		cmd.decide(e)
		e.remember(cmd)
		e.audit(cmd, highest)
	}
	e.finish()
	e.prune()
	e.forgetEnded()
	e.reportWoken()
	e.out, e.head = nil, nil
}

// Cost returns how many objects the last step has looked at, for any purpose.
func (e *Engine) Cost() int { return e.Visited + e.Looks.Spent + e.Ranks.Spent }

// Now is the time of the last command or entry.
func (e *Engine) Now() store.Time { return e.newest }

// Apply folds one entry of the journal into the state. It is for replays, before
// Recover. After an error the engine is of no use.
func (e *Engine) Apply(entry []byte) error {
	return record.DecodeEntry(entry, e.fold)
}

// Fold is Apply for an entry that a Reader has decoded.
func (e *Engine) Fold(events []record.Event) error {
	for i := range events {
		if err := e.fold(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) fold(ev *record.Event) error {
	e.newest, e.Hint = max(e.newest, ev.At), store.DraftHints{}
	err := e.Evolve(ev)
	e.forgetEnded()
	return err
}

// full reports that the step has decided, or looked for, enough.
func (e *Engine) full() bool {
	return len(e.out.Entry)-e.start+len(e.Broken)*partyBytes > stepBytes || e.Visited >= e.most
}

// draft returns the event to fill in next: the one after the last of out.Events; emit then
// takes it there. Each draft must be emitted before the next call.
func (e *Engine) draft() *record.Event {
	if e.out == nil { // for a snapshot
		e.ev = &e.spare
	} else {
		n := len(e.out.Events)
		e.out.Events = slices.Grow(e.out.Events, 1)
		e.ev = &e.out.Events[:n+1][n]
	}
	*e.ev, e.Hint = record.Event{}, store.DraftHints{}
	return e.ev
}

// emit makes ev, which is the draft, part of the step's entry and folds it into the
// state.
func (e *Engine) emit(ev *record.Event) {
	if ev != e.ev {
		panic("engine: the event that is emitted is not the one drafted last")
	}
	e.ev = nil
	ev.At = e.Clock
	if len(e.out.Entry) == e.start {
		e.out.Entry = record.AppendHead(e.out.Entry, e.Clock)
	}
	e.out.Entry = record.AppendEvent(e.out.Entry, ev)
	e.out.Events = e.out.Events[:len(e.out.Events)+1]
	r := e.Hint.Req
	var t *store.Task
	if e.Visited++; r != nil {
		t = r.Task
		e.Visited += len(r.Needs())
		e.attribute(ev)
	}
	e.breakUp(ev)
	if err := e.Evolve(ev); err != nil {
		panic("engine: own event does not apply: " + err.Error())
	}
	e.Hint = store.DraftHints{}
	if r != nil && r.Phase != store.Held {
		e.dropConversion(r, r.EndOfConversion())
	}
	if t != nil && t.Request == r && r.IsOver() {
		e.attemptLost(t, r)
	}
}

// event drafts an event of r with its subject: the request, its session and its claims. The
// caller adds the rest.
func (e *Engine) event(kind record.Kind, r *store.Request) *record.Event {
	ev := e.draft()
	ev.Kind, ev.Namespace, ev.Num, ev.ID, ev.Claims, ev.Agent = kind, r.NS.Name, r.Num, r.ID, r.Claims(), r.AgentName()
	e.Hint.Req = r
	if f := r.Flow(); f != nil {
		ev.Session, ev.Flow = f.Sess.Num, f.Name
	}
	if b := r.Base; b != nil {
		ev.Base, ev.BaseID = b.Num, b.ID
	}
	if p := r.Share; p != nil {
		ev.Part = true
		if p.Member != nil {
			ev.Base, ev.BaseID = p.Member.Num, p.Member.ID
		}
	}
	return ev
}

// effect appends an effect, empty but for its receiver and outcome. The pointer
// is good until the next one.
func (e *Engine) effect(to store.Caller, outcome interlock.Outcome) *Effect {
	n := len(e.out.Effects)
	e.out.Effects = slices.Grow(e.out.Effects, 1)[:n+1]
	eff := &e.out.Effects[n]
	*eff = Effect{}
	eff.To, eff.Outcome = to, outcome
	return eff
}

// reply answers the command's caller.
func (e *Engine) reply(outcome interlock.Outcome) *Effect {
	e.replied = len(e.out.Effects)
	return e.effect(e.head.From, outcome)
}

// refuse answers the command's caller with a refusal.
func (e *Engine) refuse(code interlock.Code, problem *message.Text) *Effect {
	eff := e.reply(Refused)
	eff.Code, eff.Message = code, problem
	return eff
}

// Counts returns the sizes of things.
func (e *Engine) Counts() (c Counts) {
	c.Namespaces = len(e.Namespaces)
	for _, s := range e.Sorted() {
		c.Keys += s.Nodes.Len()
		c.Leases += s.Leases
		c.Waiters += s.Waiters
		c.Sessions += len(s.Sessions) - s.Lingering
		c.Documents += len(s.Documents.Present)
		c.StateBytes += s.Documents.Bytes
	}
	return c
}

// NamespaceCounts are the sizes of one namespace.
type NamespaceCounts struct {
	Namespace interlock.Namespace

	Keys        int
	Leases      int
	Waiters     int
	Sessions    int
	Documents   int
	StateBytes  int // as interlock.MaxStateBytes counts them
	Tasks       int // that are not settled
	DeadLetters int
	Approvals   int // tasks that ask a person
}

// Look completes the counts at once.
func (c *NamespaceCounts) Look(e *Engine) (done bool) {
	s := e.turnTo(c.Namespace)
	if s == nil {
		return true
	}
	t := &s.Tasks
	c.Keys, c.Leases, c.Waiters, c.Sessions = s.Nodes.Len(), s.Leases, s.Waiters, len(s.Sessions)-s.Lingering
	c.Documents, c.StateBytes = len(s.Documents.Present), s.Documents.Bytes
	c.Tasks, c.DeadLetters, c.Approvals = len(t.Known)-t.Done.Len()-t.Failed.Len(), t.Dead, t.Asking.Len()
	return true
}

// fenceFloor is the least fence after a jump. One backup may be restored more than once: a later restore begins above
// all that an earlier one can have granted at a million leases a second, whatever the backup has. In a hundred years it
// is still below 2^53.
func fenceFloor(now Time) interlock.Fence {
	const second, perSecond = 1_000_000_000, 1 << 20
	const began Time = 1_767_225_600 * second // 2026
	return interlock.Fence(max(0, (now-began)/second)) * perSecond
}

// decide begins a term: see Recover.
func (c *Recover) decide(e *Engine) {
	e.enter(&e.Whole, e.newest) // no term begins before what an earlier one has seen
	*e.draft() = record.Event{
		Kind: record.Opened, Epoch: c.Epoch, Fence: e.Fence + interlock.Fence(c.FenceJump), Version: e.BaseVersion,
	}
	if e.Last > 0 {
		e.ev.Idle = e.Clock.Sub(e.Last)
	}
	if c.FenceJump > 0 {
		e.ev.Fence = max(e.ev.Fence, fenceFloor(e.Clock))
		e.ev.Version = max(e.ev.Version, interlock.Version(e.PastVersion))
		for _, s := range e.Sorted() {
			e.ev.Version = max(e.ev.Version, s.Documents.Version)
		}
		e.ev.Version += interlock.Version(c.FenceJump)
	}
	e.emit(e.ev)
	e.reply(Done)
	e.Began, e.Live, e.lowSpace, e.kept, e.lowMem, e.draining = e.Clock, true, false, false, false, false
	e.Alarms, e.Empty, e.Agendas = store.Timers{}, store.Timers{}, 0
	for _, s := range e.Sorted() {
		if s.Move.IsUnderWay() {
			s.Agenda.Alarm.Pos, s.Agenda.Empty.Pos = -1, -1
			continue
		}
		e.recoverNamespace(s, e.Whole.Clock)
	}
	e.PendingWork = &e.Whole
}

// recoverNamespace begins the term for a namespace that answers from now on.
func (e *Engine) recoverNamespace(s *store.Namespace, now store.Time) {
	for _, c := range s.Agenda.Ready {
		c.Place.Ready = false
	}
	for s.Agenda.Suspects.Len() > 0 {
		if p := s.Agenda.Suspects.Pop().FlowState; p != nil {
			p.Suspected = false
		}
	}
	s.RepoolAll()
	for ; s.Agenda.Departed.Len() > 0; s.Agenda.Departed.Pop() {
		for sess := s.Agenda.Departed.At(0); sess.Follows.Len() > 0; {
			sess.Follows.Back().Value.Unfollow()
		}
	}
	s.Agenda, s.Contended = e.NewAgenda(s), nil
	e.enter(s.Agenda, now)
	for _, sess := range s.SortedSessions() {
		sess.Caller, sess.Link, sess.Losses, sess.MinTTL = nil, 0, nil, sess.TTL
		sess.Dying, sess.Aging, sess.Softly, sess.Detachments = false, nil, store.Sweep{}, nil
		for sess.Pulls = (collection.List[*store.Pull]{}); sess.Follows.Len() > 0; {
			sess.Follows.Front().Value.Unfollow()
		}
		sess.Timer = store.Timer{Pos: -1, Ord: sess.Num<<1 | 1, Sess: sess}
		sess.Renewed, sess.Spared, sess.LeftOut = e.Clock, true, false
		if sess.Dead {
			e.expireSession(sess)
		} else {
			e.Timers.Set(&sess.Timer, e.Clock.Add(store.SoftAt(sess.TTL)))
		}
	}
	e.recoverRequests(s)
	e.RecoverTasks(s)
	for _, p := range s.Pools {
		p.Timer = nil
		e.ArmPool(p)
	}
	for _, d := range s.Shared {
		d.Uneven = false
		d.Touch()
	}
	e.SuspectAll(s) // the last term may have ended before it looked
	e.settle()
	e.rearm()
	e.watchEmpty(s)
}

// recoverRequests begins the term for all requests of a namespace. Most are leases, which are
// independent of each other; only for the others the order matters.
func (e *Engine) recoverRequests(s *store.Namespace) {
	var ordered []*store.Request
	for i := 0; s.Requests.Part(i, func(r *store.Request) {
		if r.Warned = false; r.Timer != nil {
			r.Timer = nil
		}
		if r.Progress != nil {
			r.Progress.Told = 0
		}
		if r.Rare != nil {
			r.Rare.Listeners = nil
		}
		r.Renewed, r.Spared, r.Unknown = e.Clock, r.Phase == store.Held, false
		if r.Phase == store.Waiting || r.Asker() != nil {
			ordered = append(ordered, r)
		} else {
			e.Arm(r)
		}
	}); i++ {
	}
	slices.SortFunc(ordered, func(a, b *store.Request) int { return cmp.Compare(a.Num, b.Num) })
	for _, r := range ordered {
		if r.Phase == store.Waiting {
			r.Wait.Caller, r.Wait.Link = nil, 0
			r.Refile()
			e.WatchAnywhere(r)
		} else if s := r.Session(); s != nil {
			s.Note(r, store.Loss{Lease: r.Lease(), Message: r.YieldWords()})
		}
		e.Arm(r)
	}
}

// decide changes the limits of admission. Requests that waited for the end of a drain are due again.
func (c *Limit) decide(e *Engine) {
	e.lowSpace, e.kept, e.lowMem, e.draining = c.LowSpace, c.Kept, c.LowMemory, c.Draining
	for _, s := range e.Sorted() {
		if e.PendingWork = s.Agenda; !e.isMoving() {
			e.rearm()
		}
	}
	e.PendingWork = &e.Whole
}
