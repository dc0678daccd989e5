package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// The model is the kernel written as naively as possible. It keeps two plain
// slices, recomputes everything from them whenever it is asked, knows nothing of
// intents, indexes or timers, and is meant to be read as the specification.
//
// Where the documents leave the engine a choice (in which order two requests that do not
// conflict are granted, which of two cycles is broken first), the model does not choose: it
// reads the engine's events one by one and objects to each one that no rule allows at that
// moment (model_rule_test.go), and after the step to each one that is missing
// (model_check_test.go). It computes the expected answer to a command by itself
// (model_answer_test.go).

// phase is where a request stands in its life.
type phase uint8

const (
	waiting phase = 1 + iota
	offered
	held
	inGrace
	closed // over for its holder, while its lock_delay keeps the keys shut
	parked
	over
)

func (p phase) String() string {
	return [...]string{"", "waiting", "offered", "held", "grace", "closed", "parked", "over"}[p]
}

// span is a moment that is only known within bounds: after a restart the engine spreads
// deadlines as it likes, within limits.
type span struct{ lo, hi engine.Time }

func at(t engine.Time) span { return span{t, t} }

func (s span) add(d time.Duration) span { return span{s.lo.Add(d), s.hi.Add(d)} }

// later returns the bounds of the later one of two moments.
func later(a, b span) span { return span{max(a.lo, b.lo), max(a.hi, b.hi)} }

// earlier returns the bounds of the earlier one of two moments.
func earlier(a, b span) span { return span{min(a.lo, b.lo), min(a.hi, b.hi)} }

// mayBeDue: the engine may say that the moment has come. The interval is
// half-open, so at the moment itself it has.
func (s span) mayBeDue(now engine.Time) bool { return now >= s.lo }

// mustBeDue: the engine must say so.
func (s span) mustBeDue(now engine.Time) bool { return now >= s.hi }

// session is a session as the model knows it.
type session struct {
	num   uint64
	ns    interlock.Namespace
	id    interlock.SessionID
	agent string
	name  string // the public one
	ttl   time.Duration
	// adapts: none was asked for.
	adapts bool
	beat   span // its last heartbeat
	ended  bool
	why    record.Reason
	owner  string // the principal that opened it

	said string // the last progress that it reported

	receiver engine.Caller // of pushes
	link     uint64
	losses   []*request // ended without its doing since the last heartbeat
}

func (s *session) deadline() span { return s.beat.add(s.ttl) }

// request is a request from its beginning to its end. A conversion is one of its own, with the
// lease that it changes as its base.
type request struct {
	num      uint64
	ns       interlock.Namespace
	session  *session       // nil for a bare one
	ask      engine.Acquire // with what was left out filled in
	claims   []interlock.Claim
	base     *request           // the lease that it converts
	target   *target            // of a declared wait: its target
	awaits   *task              // the task that it waits for, which makes it invisible to others
	member   *request           // the member that owns it, if it is a part of a partitioned key
	division interlock.Division // how the key that it is a member of is shared out
	set      *barrierSet        // of a lease that a barrier has opened for
	task     *task              // the task that waits for a worker through it, or runs under it
	org      string             // of a run
	workflow string             // likewise
	turn     int                // of such: how often the task has stood in line
	arrived  engine.Time

	phase phase
	why   record.Reason
	ended engine.Time

	fence   interlock.Fence
	granted engine.Time // when it was given the keys
	beat    span        // since when its ttl counts; for a bare lease renewed by Renew
	graceTo span

	said       string        // the last progress reported of it
	progress   span          // since when its stall counts
	heldFrom   engine.Time   // since when its max_hold counts,
	heldBefore time.Duration // besides what it was held before it was parked
	question   string        // that was asked when it was parked
	parker     string        // the principal that parked it
	parkedAt   engine.Time
	parkFence  interlock.Fence     // that it had
	decision   *interlock.Decision // a person's word on the question
	freed      bool                // it is parked, and others may have its keys
	away       bool                // it was parked once
	hearers    []answerListener    // its listeners
	parkUntil  engine.Time         // without its max_hold
	parkEnd    span
	since      engine.Time // when it was resumed
	goesBack   bool        // and was away before, so that giving that up parks it again
	staysPut   bool        // and had kept its keys, so that Leave parks it with them
	moved      []interlock.Key

	opening span // when the lock_delay of a closed lease is over
	lapse   span // of an offer or of a bare ticket

	lead     bool // its flow claims all its keys already: it stands before requests without that property
	changed  bool // a possible writer of one of its keys held it meanwhile
	unsure   bool // one of the alternatives that it did not get changed so
	handedAt int  // how many events there were when it was given the keys
	queuedAt int  // how many events there were before it stood in line

	dispatchedAt interlock.Version // the version when a worker got it; the command of the step may have written since
	asOf, upTo   interlock.Version // writes after the one and up to the other are reported to it

	unknown bool // the last list of its client has left it out: only a list or a renewal of its own renews it

	attached engine.Caller // the caller that waits for the answer
	link     uint64
}

func (r *request) String() string {
	who := r.ask.Agent
	if r.session != nil {
		who = r.session.agent + "/" + r.ask.Flow
	}
	return fmt.Sprintf("request %d of %s %s fence=%d %s", r.num, who, claimsText(r.claims), r.fence, r.phase)
}

// active reports whether r is a lease that its holder may still use.
func (r *request) active() bool { return r.phase == offered || r.phase == held || r.phase == inGrace }

// holds reports whether r keeps its keys from others.
func (r *request) holds() bool {
	return r.active() || r.phase == closed || r.phase == parked && !r.freed
}

// waitsSince is when r came into the line, which a resumed lease did not when it
// arrived.
func (r *request) waitsSince() engine.Time { return max(r.arrived, r.since) }

func (r *request) ttl() time.Duration { return r.session.cap(r.ask.TTL) }

// cap is ttl, or the ttl that was asked for s, if that is smaller.
func (s *session) cap(ttl time.Duration) time.Duration {
	if s != nil && !s.adapts {
		return min(ttl, s.ttl)
	}
	return ttl
}

// adapt lets a session with no ttl of its own live as long as what it asks for.
func (s *session) adapt(ttl time.Duration) {
	if s == nil || !s.adapts || ttl <= s.ttl {
		return
	}
	if s.ttl = ttl; s.beat.hi > s.beat.lo { // by a restart
		s.beat.hi = s.beat.lo.Add(ttl / 4)
	}
}

// beatenAt returns when r's holder was last heard of: a report about r in that very step may
// have its former state.
func (r *request) beatenAt() engine.Time {
	if r.session != nil && !r.unknown {
		return r.session.beat.lo
	}
	return r.beat.lo
}

// lastBeat is when the ttl of r began.
func (r *request) lastBeat() span {
	if r.session != nil && !r.unknown {
		return later(r.beat, r.session.beat)
	}
	return r.beat
}

// ttlEnd is the hard end that heartbeats put off.
func (r *request) ttlEnd() span {
	return r.lastBeat().add(r.ttl())
}

// capEnd is the hard end that nothing puts off; ok is false when there is none.
func (r *request) capEnd() (end span, ok bool) {
	return at(r.heldFrom.Add(r.ask.MaxHold - r.heldBefore)), r.ask.MaxHold > 0
}

// stallEnd is the hard end that only progress puts off.
func (r *request) stallEnd() (end span, ok bool) {
	return r.progress.add(r.ask.Stall), r.ask.Stall > 0
}

func (r *request) hardEnd() span {
	if r.member != nil { // it lives by its member
		return r.member.hardEnd()
	}
	end := r.ttlEnd()
	if hold, ok := r.capEnd(); ok {
		end = earlier(end, hold)
	}
	if stall, ok := r.stallEnd(); ok {
		end = earlier(end, stall)
	}
	return end
}

// softFrom returns when at most a third is left until one of its hard ends: of max_hold, a
// third of the rest at the grant or resumption.
func (r *request) softFrom() span {
	left := func(end span, term time.Duration) span { return end.add(term/3*2 - term) }
	soft := left(r.ttlEnd(), r.ttl())
	if hold, ok := r.capEnd(); ok {
		soft = earlier(soft, left(hold, r.ask.MaxHold-r.heldBefore))
	}
	if stall, ok := r.stallEnd(); ok {
		soft = earlier(soft, left(stall, r.ask.Stall))
	}
	return soft
}

// waitEnd is when r has stood in line for as long as it may.
func (r *request) waitEnd() (end span, ok bool) {
	return at(r.waitsSince().Add(r.ask.MaxWait)), r.ask.MaxWait > 0
}

// flowState is a vertex of the wait-for graph: a flow, or a request without one.
type flowState struct {
	ns      interlock.Namespace
	session uint64
	flow    string
	bare    uint64
	turn    int
}

func (r *request) party() flowState {
	if r.phase == closed || r.phase == parked { // nothing is known of its holder's pending work, or of its next holder
		return flowState{ns: r.ns, bare: r.num, turn: r.turn}
	}
	return r.holder()
}

// holder returns the vertex that got the keys of r, even if it no longer acts.
func (r *request) holder() flowState {
	switch {
	case r.member != nil:
		return r.member.holder()
	case r.session != nil:
		return flowState{ns: r.ns, session: r.session.num, flow: r.ask.Flow}
	case r.base != nil:
		return r.base.party()
	}
	return flowState{ns: r.ns, bare: r.num, turn: r.turn}
}

// model is everything that the engine should know.
type model struct {
	now      engine.Time
	cmd      engine.Command // that is carried out
	sessions []*session
	passed   *request // the lease that ended in this step for the request that takes it over
	requests []*request
	answers  []*storedReply
	notes    []note
	writes   []write
	asks     []yieldAsk
	written  []written
	victims  []flowState // of deadlocks, in this step
	forfeits []flowState // of victims that have lost a lease in this step
	due      []yieldAsk  // to come in this step
	coming   *request    // what the command makes, if it is a party of a barrier
	opening  []*request  // the parties of the barrier that opens in this step
	broken   []*request  // those that see one break
	breakers []breaker   // and why

	committing interlock.Version    // that the step's commit makes; 0 before its first write
	outcome    []interlock.Document // what its writes make

	patterns    map[interlock.Namespace][]*interlock.Pattern
	settings    map[interlock.Namespace]interlock.Settings
	buckets     map[queueEntry]*bucket
	sideEffects []*sideEffect

	barred map[bool]int // how often idle workers were seen kept from a task: by a pattern, else by its group

	revisions []*revision       // of patterns
	recorded  []recordedRefusal // refusals, in this term

	tasks     []*task
	wide      bool       // the bounds of request ids are the usual ones
	logs      []logEntry // of all keys
	queues    []*queue
	webhooks  map[webhookOf]engine.WebhookView
	workers   []*worker // idle ones, as they came
	asking    *worker   // that asks by the step's command
	dismissed []*worker // in this step
	endings   []*task   // settled in this step

	unfollowed []endedFollower // in this step
	sacrificed []*request      // waits for the ends of tasks that the model has refused in this step
	parted     []*push         // in this step: callers that no longer wait for an answer

	last       engine.Time        // of the last event
	inUse      map[queueEntry]int // permits, after the last step
	hopeful    bool               // see only
	searching  bool               // the engine still looks for deadlocks
	unfinished bool               // the step before has left something over
	handing    []engine.Pull      // the pulls that dispatched tasks, or looked for some, in this step
	best       bool               // see atBest
	ranks      map[*request]int   // priorities of the waiters, as they were after rankedAt events
	rankedAt   int
	ranked     map[*request]int // priorities when the step began
	events     int              // how many there were
	fence      interlock.Fence
	epoch      interlock.Epoch
	base       interlock.Version // new versions are above it

	began     map[interlock.Namespace]began
	past      interlock.Version // the highest of namespaces that were deleted
	lowest    uint64            // new requests have higher numbers
	farewells []farewell        // in this step
}

func (m *model) sessionByID(ns interlock.Namespace, id interlock.SessionID) *session {
	for _, s := range m.sessions {
		if s.id == id && s.ns == ns {
			return s
		}
	}
	return nil
}

func (m *model) sessionByNum(num uint64) *session {
	for _, s := range m.sessions {
		if s.num == num {
			return s
		}
	}
	return nil
}

func (m *model) byNum(num uint64) *request {
	for _, r := range m.requests {
		if r.num == num && r.awaits == nil {
			return r
		}
	}
	return nil
}

// subjectOf is the request that ev is about. A task's attempts all have its number.
func (m *model) subjectOf(ev *record.Event) *request {
	for _, r := range m.requests {
		if r.num == ev.Num && r.awaits == nil && (r.task == nil || r.ask.ID == ev.ID) {
			return r
		}
	}
	return nil
}

func (m *model) byID(ns interlock.Namespace, id [16]byte) *request {
	for _, r := range m.requests {
		if r.ask.ID == id && r.ns == ns && id != [16]byte{} {
			return r
		}
	}
	return nil
}

func (m *model) inPhase(phases ...phase) (list []*request) {
	for _, r := range m.requests {
		if slices.Contains(phases, r.phase) {
			list = append(list, r)
		}
	}
	return list
}

// holding returns the requests that keep keys from others.
func (m *model) holding() (list []*request) {
	for _, r := range m.requests {
		if r.holds() {
			list = append(list, r)
		}
	}
	return list
}

// flow returns the flow that r belongs to: "" for a closed lease.
func (r *request) flow() string {
	if r.phase == closed {
		return ""
	}
	return r.ask.Flow
}

func (m *model) agentOf(r *request) string {
	if r.session != nil {
		return r.session.agent
	}
	return r.ask.Agent
}

// feature is something that the engine does or does not do yet.
type feature string

const (
	// A barrier with a last party that is blocked by a waiter behind the first.
	barrierLine feature = "circles through a barrier and the line"
	// Queries about the parts of a closed member are answered as for any closed lease.
	closedParts feature = "the parts of closed members"
)

// lacking are the features that the model knows and the engine does not have.
var lacking = map[feature]bool{
	closedParts: true,
	barrierLine: true,
}
