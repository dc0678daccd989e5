package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Engine is one shard's kernel. It is not safe for concurrent use: one goroutine
// owns it. Make one with New or ReadSnapshot, fold the journal into it with
// Apply, begin with a Recover command, and from then on call Step.
type Engine struct {
	State

	// All below is volatile: it is made anew by Recover.

	began      Time // this owner's term
	lowSpace   bool
	kept       bool
	lowMem     bool
	draining   bool
	newest     Time   // of the last command or entry of any namespace
	walks      uint64 // number of the last walk of a deadlock search
	looks      int    // the bound of its searches' looks in a step, and
	mostRanks  int    // what the finding of ranks may, and
	most       int    // all else
	mostDeeds  int    // effects that a namespace may remember
	mostSpaces int    // namespaces

	unattributed bool // see Unattributed

	idleSearch *search // for reuse

	turns   uint64     // how often a holder said something new
	listens uint64     // the number of waits that were ever listened to
	found   []*request // lists of viewers, reused
	via     []*need
	seen    uint32 // by Expect

	// The step that is being carried out.
	out     *Output
	head    *Head
	start   int           // length of out.Entry when the step began
	before  int           // events that came before its command
	viewed  int           // objects that it has looked at for descriptions of blockers
	looked  int           // objects that searches for deadlocks have looked at
	ranks   int           // and the finding of ranks
	tries   int           // candidates among objects that were looked at in vain
	tagged  bool          // its request id is remembered by one of its events
	replied int           // index in out.Effects of the answer to its caller; -1 before
	print   uint64        // its fingerprint
	asking  *request      // a wait that began in this step and still has a listener
	ev      *record.Event // the event that is being filled in: see draft
	spare   record.Event  // that of a snapshot
}

// Option configures an engine beside its state: nothing that is journaled depends on it.
type Option func(*Engine)

// New makes an empty engine.
func New(options ...Option) *Engine {
	e := &Engine{
		looks: stepLooks, mostRanks: stepRanks, most: StepObjects,
		mostDeeds: interlock.MaxEffects, mostSpaces: interlock.MaxNamespaces,
	}
	e.init()
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
	e.out, e.head, e.start, e.objects, e.viewed, e.looked, e.ranks, e.tries, e.tagged, e.replied = out, h, len(out.Entry), 0, 0, 0, 0, 0, false, -1
	e.begin(h)
	e.before = len(out.Events)
	if !e.repeat(cmd) {
		highest := e.num
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
func (e *Engine) Cost() int { return e.objects + e.looked + e.ranks }

// Now is the time of the last command or entry.
func (e *Engine) Now() Time { return e.newest }

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
	e.newest, e.hint = max(e.newest, ev.At), draftHints{}
	err := e.evolve(ev)
	e.forgetEnded()
	return err
}

// StepObjects bounds the objects that a step looks at: requests and what they need,
// holders, waiters, tasks, workers and the like. A step that has looked at as many leaves
// the rest to the next one, which is due at once; what it was about then, one request or
// one command, may come on top. So no state, however large, keeps a step from coming to
// its end. Searches for deadlocks and the finding of ranks have lower bounds of their own:
// see stepLooks and stepRanks.
const StepObjects = 1_000

// full reports that the step has decided, or looked for, enough.
func (e *Engine) full() bool {
	return len(e.out.Entry)-e.start+len(e.broken)*partyBytes > stepBytes || e.objects >= e.most
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
	*e.ev, e.hint = record.Event{}, draftHints{}
	return e.ev
}

// emit makes ev, which is the draft, part of the step's entry and folds it into the
// state.
func (e *Engine) emit(ev *record.Event) {
	if ev != e.ev {
		panic("engine: the event that is emitted is not the one drafted last")
	}
	e.ev = nil
	ev.At = e.now
	if len(e.out.Entry) == e.start {
		e.out.Entry = record.AppendHead(e.out.Entry, e.now)
	}
	e.out.Entry = record.AppendEvent(e.out.Entry, ev)
	e.out.Events = e.out.Events[:len(e.out.Events)+1]
	r := e.hint.req
	var t *task
	if e.objects++; r != nil {
		t = r.task
		e.objects += len(r.needs())
		e.attribute(ev)
	}
	e.breakUp(ev)
	if err := e.evolve(ev); err != nil {
		panic("engine: own event does not apply: " + err.Error())
	}
	e.hint = draftHints{}
	if r != nil && r.phase != held {
		e.dropConversion(r, r.endOfConversion())
	}
	if t != nil && t.request == r && r.isOver() {
		e.attemptLost(t, r)
	}
}

// event drafts an event of r with its subject: the request, its session and its claims. The
// caller adds the rest.
func (e *Engine) event(kind record.Kind, r *request) *record.Event {
	ev := e.draft()
	ev.Kind, ev.Namespace, ev.Num, ev.ID, ev.Claims, ev.Agent = kind, r.ns.name, r.num, r.id, r.claims(), r.agentName()
	e.hint.req = r
	if f := r.flow(); f != nil {
		ev.Session, ev.Flow = f.sess.num, f.name
	}
	if b := r.base; b != nil {
		ev.Base, ev.BaseID = b.num, b.id
	}
	if p := r.share; p != nil {
		ev.Part = true
		if p.member != nil {
			ev.Base, ev.BaseID = p.member.num, p.member.id
		}
	}
	return ev
}

// effect appends an effect, empty but for its receiver and outcome. The pointer
// is good until the next one.
func (e *Engine) effect(to Caller, outcome Outcome) *Effect {
	n := len(e.out.Effects)
	e.out.Effects = slices.Grow(e.out.Effects, 1)[:n+1]
	eff := &e.out.Effects[n]
	*eff = Effect{}
	eff.To, eff.Outcome = to, outcome
	return eff
}

// reply answers the command's caller.
func (e *Engine) reply(outcome Outcome) *Effect {
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
	c.Namespaces = len(e.spaces)
	for _, s := range e.sorted() {
		c.Keys += s.nodes.Len()
		c.Leases += s.leases
		c.Waiters += s.waiters
		c.Sessions += len(s.sessions) - s.lingering
		c.Documents += len(s.docs.present)
		c.StateBytes += s.docs.bytes
	}
	return c
}

// decide begins a term: see Recover.
func (c *Recover) decide(e *Engine) {
	e.enter(&e.whole, e.newest) // no term begins before what an earlier one has seen
	*e.draft() = record.Event{Kind: record.Opened, Epoch: c.Epoch, Fence: e.fence + interlock.Fence(c.FenceJump), Version: e.base}
	if e.last > 0 {
		e.ev.Idle = e.now.Sub(e.last)
	}
	if c.FenceJump > 0 {
		e.ev.Version = max(e.ev.Version, interlock.Version(e.past))
		for _, s := range e.sorted() {
			e.ev.Version = max(e.ev.Version, s.docs.version)
		}
		e.ev.Version += interlock.Version(c.FenceJump)
	}
	e.emit(e.ev)
	e.reply(Done)
	e.began, e.live, e.lowSpace, e.kept, e.lowMem, e.draining = e.now, true, false, false, false, false
	e.alarms, e.empty, e.agendas = timers{}, timers{}, 0
	for _, s := range e.sorted() {
		for _, c := range s.agenda.ready {
			c.place.ready = false
		}
		for s.agenda.suspects.Len() > 0 {
			if p := s.agenda.suspects.Pop().party; p != nil {
				p.suspected = false
			}
		}
		s.repoolAll()
		for ; s.agenda.departed.Len() > 0; s.agenda.departed.Pop() {
			for sess := s.agenda.departed.At(0); sess.follows.Len() > 0; {
				sess.follows.Back().Value.unfollow()
			}
		}
		s.agenda, s.contended = e.newAgenda(s), nil
		e.enter(s.agenda, e.whole.now)
		for _, sess := range s.sortedSessions() {
			sess.caller, sess.link, sess.losses, sess.minTTL = nil, 0, nil, sess.ttl
			sess.dying, sess.aging, sess.softly, sess.detachments = false, nil, sweep{}, nil
			for sess.pulls = (collection.List[*pull]{}); sess.follows.Len() > 0; {
				sess.follows.Front().Value.unfollow()
			}
			sess.timer = timer{pos: -1, ord: sess.num<<1 | 1, sess: sess}
			sess.renewed, sess.spared = e.now, true
			if sess.dead {
				e.expireSession(sess)
			} else {
				e.timers.set(&sess.timer, e.now.Add(softAt(sess.ttl)))
			}
		}
		e.recoverRequests(s)
		e.recoverTasks(s)
		for _, p := range s.pools {
			p.timer = nil
			e.armPool(p)
		}
		for _, d := range s.shared {
			d.uneven = false
			d.touch()
		}
		e.suspectAll(s) // the last term may have ended before it looked
		e.settle()
		e.rearm()
		e.watchEmpty(s)
	}
	e.pendingWork = &e.whole
}

// recoverRequests begins the term for all requests of a namespace. Most are leases, which are
// independent of each other; only for the others the order matters.
func (e *Engine) recoverRequests(s *namespace) {
	var ordered []*request
	for i := 0; s.requests.Part(i, func(r *request) {
		if r.warned = false; r.timer != nil {
			r.timer = nil
		}
		if r.progress != nil {
			r.progress.told = 0
		}
		if r.dealings != nil {
			r.dealings.hearers = nil
		}
		r.renewed, r.spared = e.now, r.phase == held
		if r.phase == waiting || r.asker() != nil {
			ordered = append(ordered, r)
		} else {
			e.arm(r)
		}
	}); i++ {
	}
	slices.SortFunc(ordered, func(a, b *request) int { return cmp.Compare(a.num, b.num) })
	for _, r := range ordered {
		if r.phase == waiting {
			r.wait.caller, r.wait.link = nil, 0
			r.refile()
			e.watchAnywhere(r)
		} else if s := r.session(); s != nil {
			s.note(r, Loss{Lease: e.lease(r), Message: r.yieldWords()})
		}
		e.arm(r)
	}
}

// decide changes what is admitted. Requests that waited for the end of a drain are due again.
func (c *Limit) decide(e *Engine) {
	e.lowSpace, e.kept, e.lowMem, e.draining = c.LowSpace, c.Kept, c.LowMemory, c.Draining
	for _, s := range e.sorted() {
		e.pendingWork = s.agenda
		e.rearm()
	}
	e.pendingWork = &e.whole
}

// spread returns one of many that would otherwise end at one moment a delay of up
// to a quarter of its ttl, the same in every run.
func spread(num uint64, ttl time.Duration) time.Duration {
	return ttl / 4 * time.Duration(collection.Mix(num)>>16) / (1 << 16)
}
