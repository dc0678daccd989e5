package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// State is the state of one shard: what the journal contains, and what is kept beside it so that
// decisions find it. evolve folds the journal's events into it, and nothing else changes its
// journaled part. It decides nothing. Engine embeds it.
type State struct {
	last   Time // of the last event
	epoch  interlock.Epoch
	fence  interlock.Fence   // the highest given out
	base   interlock.Version // the versions of new commits are above it
	num    uint64            // the highest number of a request
	snum   uint64            // the highest number of a session
	writes uint64            // leases that could write and have ended
	past   uint64            // the highest version that the end of a namespace took
	spaces map[interlock.Namespace]*namespace

	// All below is volatile.

	live         bool        // between Recover and the end; during a replay nothing is watched
	*pendingWork             // of the namespace that the step is about
	whole        pendingWork // for commands that are about no namespace
	agendas      uint64      // how many were made
	alarms       timers      // one for each agenda: when something is due in it
	empty        timers      // one for each namespace that is empty: when it may be forgotten
	swath        int         // objects of a large set that a step gathers, and sorts, at once
	windows      idBounds
	objects      int // that the step has looked at, but for those that searches and ranks count

	free  []*request
	ended []*request       // in this step
	woken []answerListener // listeners to notify at the end of this step
	waits []*wait          // for reuse
	trial wait             // of a request that is not in line yet
	hint  draftHints       // for the fold of the event in draft
}

// draftHints are references that decide has at hand for the event in draft, so that evolve need not
// look them up. They are no part of the event: on replay there are none.
type draftHints struct {
	req  *request
	sess *session
	spec *record.Task
}

// swath is how many objects of a large set a step gathers at once.
const swath = 250

// init makes a state empty, and ready.
func (e *State) init() {
	e.swath, e.windows, e.spaces = swath, windows, map[interlock.Namespace]*namespace{}
	e.pendingWork = &e.whole
	e.whole.objects = &e.objects
}

// namespace is one namespace. Nothing in it points to another.
type namespace struct {
	name          interlock.Namespace
	nodes         collection.Table[*node]
	salt          collection.Salt            // of their hashes
	requests      collection.Table[*request] // that are not over
	sessions      map[interlock.SessionID]*session
	byNum         map[uint64]*session // the same
	roll          sessionIndex
	tombs         tombstones
	endedSessions collection.PagedQueue[endedSession] // sessions that are over
	endReasons    map[interlock.SessionID]record.Reason
	notes         collection.List[*noteBook] // the one written longest ago first
	ids           idWindow                   // of callers without a session
	kept          objectWindows              // ids that have left their windows
	sideEffects   sideEffects
	tasks         tasks
	holds         map[string]time.Duration
	holdsAndWaits []*flowState // those that hold and wait, in the order of party.compare
	leases        int
	waiters       int
	away          int                          // parked leases that hold nothing
	aside         map[interlock.Fence]*request // parked leases, by the fences that they had
	ranked        int                          // waiters with another priority than 0
	alternatives  int                          // of requests that wait for any of several
	shared        []*partition                 // shared-out keys, in no order

	taken         map[string]usage // by principal; only those that have any
	settings      interlock.Settings
	unmatched     record.KeyRule        // record.UnsetKeys as long as there are no settings
	patterns      []*policy             // the most specific first
	heads         heads                 // of them
	guarded       int                   // of them, with an Allow list
	audited       int                   // of them, with AuditRefusals
	rules         uint64                // volatile: how often what the Allow lists say may have changed
	revisions     map[string]*revisions // by the names of the patterns, also of dropped ones
	revisionBytes int                   // of all of them
	dropped       []string              // names of dropped patterns that are remembered, the last dropped last
	pools         []*pool               // in no order
	repooling     poolUpdate            // volatile: what of them is still to follow the patterns
	cooling       collection.Queue[*pool]
	alike         map[string][]spelledKey // by their skeletons, if the settings ask for it
	kinds         kinds                   // likewise
	respelling    *spellingScan           // volatile: if they are not all in it

	docs documents
	logs logs
	born uint64 // its versions, and the numbers of its log entries, are above it

	idleNodes []*node // for reuse
	idleKin   []*relatives
	unranked  bool                   // volatile: ranks may have changed
	ranking   rankSearch             // volatile: if it is not done
	heirs     []*flowState           // volatile: those that wait with a higher priority than their own
	contended map[string]*contention // volatile: by pattern and class
	lingering int                    // sessions that are over and still have leases or waits

	agreed [16]*terms   // see agree
	agenda *pendingWork // volatile
}

// endedSession is the record of a session that is over.
type endedSession struct {
	id  interlock.SessionID
	why record.Reason
}

// endCause is the part of an end that reports have beyond its reason.
type endCause struct {
	cycle  []interlock.CycleStep // of a deadlock
	actor  string                // the principal that revoked it, or of the preempting request
	asker  string                // the preempting agent, or that of the party that its barrier has lost
	words  string                // and why, in that one's words; of such a party the reason
	base   uint64                // of a conversion: the number of its lease
	baseID [16]byte
	task   interlock.TaskID // of an attempt: its task
}

type phase uint8

const (
	waiting phase = 1 + iota
	offered
	held
	inGrace
	parked // put aside by its holder, which has left, and keeping its keys
	away   // put aside, and holding nothing
	closed // over for its holder, but its keys stay closed for its lock_delay
	over   // remembered for a while, holds nothing
)

// request is a set of claims that is granted as a whole, from its arrival to the end of its
// lease, and a while beyond so that its end can be reported.
type request struct {
	id    [16]byte
	next  *request // in namespace.requests
	num   uint64
	fence interlock.Fence
	party *flowState // its flow, or a lease's with its conversion; nil for an anonymous request that is alone
	wait  *wait      // while waiting
	*terms
	*requestDetail
	*requestExt

	claim *[1]interlock.Claim // what it claims, if that is one thing
	only  [1]need             // what it needs, if that is one thing: most claim one key without ancestors
	more  *claimLists         // what it claims and needs that is more

	granted Time // when it was granted (an offer: taken up), or when it arrived while it waits
	renewed Time // volatile: last renewal of an anonymous lease, offer, start of grace, or question how it waits
	waited  time.Duration

	pos      int32 // in party.leases; of an alternative, among those of its parent; of a declared wait, in session.awaiting
	priority int8
	phase    phase
	reason   record.Reason // why it is over, or in grace
	warned   bool          // volatile: the holder was warned of max_hold
	spared   bool          // volatile: not heard of since Recover, so it gets a little longer
	listed   bool          // volatile: stands in its session's losses
	changed  bool          // a possible writer held one of its keys while it waited
	lead     bool          // it stands before all requests that do not lead
	any      bool          // claims are alternatives; it gets one of them
}

// requestExt is the rarely used part of a request: its direct ties to others, and the record of
// its missing session, or of its history. Most requests have none, and share an empty one.
type requestExt struct {
	guest    *anonymousCaller // its caller, if it has no session
	run      *record.Run      // what it is a run of; nil for others
	timer    *timer           // what the session's timer does not cover
	endCause *endCause        // more about how it ended, where there is more to say
	dealings *rareState       // asks to yield
	progress *progress        // volatile: what its holder last said, and heard, of it alone

	base         *request    // of a conversion: the lease that it is to change
	conversion   *request    // of a lease: the one of it that stands in line
	share        *memberPart // what it is of a shared-out key
	parent       *request    // of a branch: the request that it belongs to
	alternatives []*request  // of a request for any of several: see any.go
	target       *session    // of a declared wait: the session that it waits for
	targetFlow   string      // and its flow, "" for all
	awaited      *follower   // of a wait for the end of a task
	seat         int32       // of such a wait, in tasks.awaits
}

var noExt = &requestExt{}

// mutableExt returns r bonds of its own, to write to.
func (r *request) mutableExt() *requestExt {
	if r.requestExt == noExt {
		r.requestExt = &requestExt{}
	}
	return r.requestExt
}

// setEndCause keeps how r ended, or forgets it.
func (r *request) setEndCause(how *endCause) {
	if how != r.endCause {
		r.mutableExt().endCause = how
	}
}

// anonymousCaller is the caller of a request without a session.
type anonymousCaller struct {
	agent string
	owner string // the principal
}

// wait is the part that only a waiter has.
type wait struct {
	score  Time
	writes uint64        // Engine.writes when it arrived
	only   [1]queueEntry // its place, if it needs one thing; the request is always said
	more   *[]queueEntry // its places, if it needs more
	at     int32         // its place in search.hops, once a deadlock search has come to it
	rank   int32         // the priority with which it waits: its own, or one that it inherits

	// Volatile.
	caller Caller
	link   uint64
	since  uint64 // Engine.listens when its caller began to listen
}

// newWait returns what a new waiter needs.
func (e *State) newWait() *wait {
	i := len(e.waits) - 1
	if i < 0 {
		return &wait{writes: e.writes}
	}
	w := e.waits[i]
	e.waits = e.waits[:i]
	*w = wait{writes: e.writes, more: w.more}
	if w.more != nil {
		*w.more = (*w.more)[:0]
	}
	return w
}

// entries returns the places that a waiter has in line, in the order of its needs.
func (w *wait) entries() []queueEntry {
	switch {
	case w.only[0].class != nil:
		return w.only[:]
	case w.more != nil:
		return *w.more
	}
	return nil
}

// room returns room for n places.
func (w *wait) room(n int) []queueEntry {
	if n <= 1 {
		return w.only[:n]
	}
	if w.more == nil {
		w.more = &[]queueEntry{}
	}
	*w.more = slices.Grow((*w.more)[:0], n)[:n]
	return *w.more
}

// dropWait takes r's waiting part, to reuse it unless a place of it is still to be checked. A
// tentative request had that of the trial.
func (e *State) dropWait(r *request) {
	w := r.wait
	if r.wait = nil; w == nil || w == &e.trial || len(e.waits) == maxFree {
		return
	}
	for _, p := range w.entries() {
		if p.ready {
			return
		}
	}
	e.waits = append(e.waits, w)
}

// arrived is when r came, which waits.
func (r *request) arrived() Time { return r.granted }

// req returns the waiting request.
func (w *wait) req() *request { return w.only[0].req }

// session is one live process or conversation.
type session struct {
	num      uint64
	id       interlock.SessionID
	ns       *namespace
	agent    string
	owner    string // the principal that opened it
	name     string // public
	ttl      time.Duration
	opened   Time
	flows    collection.Table[*flowState]
	waiting  []*flowState // the flows that wait, in the order of their names
	attempts []*request   // the attempts at tasks among its leases, in the order of their numbers
	awaiting []*request   // declared waits for it, in no order
	work     int          // leases and waits
	dead     bool         // over; it stays until its last lease and wait have ended
	why      record.Reason
	seqs     seqWindow
	ids      idWindow

	// Volatile.
	renewed                    Time
	progress                   progress
	minTTL                     time.Duration // at most the smallest ttl of its leases
	timer                      timer
	caller                     Caller
	link                       uint64
	losses                     []Loss
	pulls                      collection.List[*pull]
	follows                    collection.List[*follower]
	timed                      int                          // leases with a max_hold or a stall
	timedAt                    Time                         // not after the first of them is in its soft tier for it
	resting                    collection.Queue[*flowState] // flows that had nothing when they entered: first those that entered first
	spared                     bool                         // not heard of since Recover
	sameAgent, sameAgentBefore *session                     // in the list of its agent's in space.roll
	detachments                []*detachment
	dying                      bool   // stands in agenda.dying
	sweeping                   sweep  // then: the flows with waits to end, and later its leases
	waitsSwept                 bool   // its waits have ended
	aging                      *sweep // sessions to check for their ends, while that takes several steps
	next                       Time   // of those looked at so far: what comes next, and
	least                      time.Duration
	softly                     sweep // of the leases that a heartbeat looks at
	softAt                     Time  // the first of those looked at so far that is timed
}

// publicName derives what others may see of a session from its secret id.
func publicName(id interlock.SessionID) string {
	sum := sha256.Sum256(id[:])
	return "s-" + hex.EncodeToString(sum[:6])
}

// isOver reports whether r is over for its holder, or its waiter.
func (r *request) isOver() bool { return r.phase == closed || r.phase == over }

func (r *request) session() *session {
	f := r.flow()
	if f == nil {
		return nil
	}
	return f.sess
}

func (r *request) agentName() string {
	sess := r.session()
	switch {
	case sess != nil:
		return sess.agent
	case r.guest != nil:
		return r.guest.agent
	case r.task != nil: // it waits in the name of its submitter
		return r.task.spec.Agent
	}
	return ""
}

func (r *request) flowName() string {
	f := r.flow()
	if f == nil {
		return ""
	}
	return f.name
}

func (e *State) ns(name interlock.Namespace) *namespace {
	if s := e.pendingWork.ns; s != nil && s.name == name {
		return s
	}
	s := e.spaces[name]
	if s != nil && s.born < e.past && s.isBare() { // in a replay: no step left it
		s.beginAt(e.past)
	}
	if s == nil {
		s = &namespace{
			name:       name,
			sessions:   map[interlock.SessionID]*session{},
			byNum:      map[uint64]*session{},
			endReasons: map[interlock.SessionID]record.Reason{},
			holds:      map[string]time.Duration{},
			taken:      map[string]usage{},
			kept:       objectWindows{},
		}
		s.sideEffects.kept = s.kept
		s.beginAt(e.past)
		e.spaces[name] = s
		s.agenda = e.adopt(s)
	}
	return s
}

// hold grants r all its needs.
func (r *request) hold() {
	r.take()
	r.ns.leases++
	r.ns.count(r.owner(), usage{leases: 1})
	r.joinParty()
}

// joinParty makes r one of the leases of its flow, if it has one.
func (r *request) joinParty() {
	r.ns.disturb()
	if sess := r.session(); sess != nil {
		sess.joined(r)
	}
	if p := r.party; p != nil {
		r.pos = int32(len(p.leases))
		p.leases = append(p.leases, r)
		p.joined(r, false)
	}
}

// joined and parted keep what the session counts of its leases.
func (s *session) joined(r *request) {
	if r.isTimed() {
		s.timed++
	}
	if r.task != nil {
		s.worksAt(r)
	}
}

func (s *session) parted(r *request) {
	if r.isTimed() {
		s.timed--
	}
	if i, found := slices.BinarySearchFunc(s.attempts, r, byNumber); found {
		s.attempts = slices.Delete(s.attempts, i, i+1)
	}
}

// worksAt adds an attempt at a task, once.
func (s *session) worksAt(r *request) {
	if i, found := slices.BinarySearchFunc(s.attempts, r, byNumber); !found {
		s.attempts = slices.Insert(s.attempts, i, r)
	}
}

// take enters r's needs at their keys.
func (r *request) take() {
	needs := r.needs()
	for i := range needs {
		m := &needs[i]
		n := m.node
		n.handTo(r.party)
		*n.granted.Of(m.mode)++
		n.modes |= 1 << m.mode
		if m.claimed {
			n.list(m)
		}
		switch m.counts {
		case interlock.Permits:
			n.pooled.take(r.Group, uint64(r.countOf(m)))
		case interlock.Barrier:
			n.own().gang++
		case interlock.Member:
			r.ns.divided(n).enroll(r, r.countOf(m))
		}
	}
	r.holdPart()
}

// unhold takes all of r's needs back. The nodes stay until unneed.
func (r *request) unhold() {
	r.leaveParty()
	r.letGo()
	r.ns.leases--
	r.ns.count(r.owner(), usage{leases: -1})
}

// leaveParty removes r from the leases of its flow.
func (r *request) leaveParty() {
	r.ns.disturb()
	if sess := r.session(); sess != nil {
		sess.parted(r)
	}
	if p := r.party; p != nil {
		last := int32(len(p.leases) - 1)
		p.leases[r.pos] = p.leases[last]
		p.leases[r.pos].pos = r.pos
		p.leases[last] = nil
		p.leases = p.leases[:last]
		p.parted(r, false)
	}
}

// letGo strikes r's needs out at their keys.
func (r *request) letGo() {
	needs := r.needs()
	for i := range needs {
		m := &needs[i]
		n := m.node
		left := n.granted.Of(m.mode)
		if *left--; *left == 0 {
			if n.modes &^= 1 << m.mode; n.modes == 0 {
				n.hands = nil
			}
		}
		if m.listed {
			n.strike(m)
		}
		switch m.counts {
		case interlock.Permits:
			n.pooled.give(r.Group, uint64(r.countOf(m)))
		case interlock.Barrier:
			n.own().gang--
		case interlock.Member:
			n.divided.expel(r)
		}
	}
	r.losePart()
}

// enqueue puts r in the line of every key it needs.
func (e *State) enqueue(r *request) {
	for way := range r.eachAlternative {
		if way != r {
			r.ns.alternatives++
			way.phase, way.granted, way.wait = waiting, r.granted, e.newWait()
			way.wait.score, way.wait.rank = r.wait.score, r.wait.rank
		}
		way.enter()
	}
	if r.priority != 0 {
		r.ns.ranked++
	}
	r.ns.disturb()
	if r.task == nil {
		r.ns.waiters++
		r.ns.count(r.owner(), usage{waiters: 1})
	}
	r.awaitPart()
}

// enter takes r's places in the lines.
func (r *request) enter() {
	r.wait.only[0] = queueEntry{req: r}
	needs := r.needs()
	places := r.wait.room(len(needs))
	for i := range needs {
		m, p := &needs[i], &places[i]
		*p = queueEntry{req: r, need: int16(i)}
		if m.node.line == nil {
			m.node.own().line = &waitQueue{}
		}
		p.class = m.node.line.class(r.kindOf(m))
		p.count = r.countOf(m)
		p.duplicate = r.parent != nil && p.class.has(r)
		p.class.insert(p)
		if m.claimed {
			m.node.line.claimed++
		}
	}
	if p := r.party; p != nil {
		i := p.waitsBefore(r.num + 1) // a snapshot tells of conversions last
		p.waits = slices.Insert(p.waits, i, r)
		p.joined(r, true)
	}
}

// unline takes r out of every line.
func (r *request) unline() {
	r.ns.disturb()
	if r.priority != 0 {
		r.ns.ranked--
	}
	for way := range r.eachAlternative {
		if way != r {
			r.ns.alternatives--
		}
		way.exit()
	}
	r.forgoPart()
	if r.task == nil {
		r.ns.waiters--
		r.ns.count(r.owner(), usage{waiters: -1})
	}
}

// exit removes r's entries from their queues.
func (r *request) exit() {
	for i := range r.wait.entries() {
		p := &r.wait.entries()[i]
		n := r.needs()[i].node
		p.setWatching(false)
		p.class.remove(p)
		if r.needs()[i].claimed {
			n.line.claimed--
		}
		if p.class.root == nil {
			n.line.drop(p.class)
			n.dropLine()
		}
	}
	if p := r.party; p != nil {
		i := p.waitsBefore(r.num)
		for p.waits[i] != r { // a branch of the same request, or a wait for the end of a task
			i++
		}
		p.waits = slices.Delete(p.waits, i, i+1)
		p.parted(r, true)
	}
}
