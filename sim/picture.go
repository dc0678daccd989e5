package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// picture is the holders, the waiters, and what is written, by the events of the journal.
type picture struct {
	spaces     map[interlock.Namespace]*space
	sessions   map[uint64]*session
	byFence    map[interlock.Fence]*request
	fence      interlock.Fence // the highest issued
	time       engine.Time     // of the newest event
	entryEpoch interlock.Epoch
	done       map[tag]commandRecord // commands with a request id

	// The entry that is being folded.
	index     interlock.Index
	term      bool // it begins a term
	entryTime engine.Time
	touched   []*space
}

func newPicture() picture {
	return picture{
		spaces: map[interlock.Namespace]*space{}, sessions: map[uint64]*session{},
		byFence: map[interlock.Fence]*request{}, done: map[tag]commandRecord{},
	}
}

// commandRecord is when a command was carried out, and the answer that was due to its caller.
type commandRecord struct {
	at     interlock.Index
	answer interlock.Outcome
}

// tag is a request id in its scope.
type tag struct {
	space interlock.Namespace
	scope uint64
	id    string
	seq   uint64
}

type space struct {
	name     interlock.Namespace
	requests map[[16]byte]*request
	holding  []*request // in the order of their fences
	waiting  []*request // in the order of their arrival
	records  []*request // all there ever were
	sessions map[interlock.SessionID]*session
	docs     map[interlock.Key]*document
	version  interlock.Version
	tasks    map[[16]byte]*task
	mail     []*task // messages that are not settled, in the order of their arrival
	buckets  map[interlock.Key]*bucket
	circle   interlock.Index // since when flows have waited for each other; 0: they do not
	stalled  bool            // a waiter is not blocked: see stepsTime

	// Of the entry that is being folded.
	grants  []*request // new in holding
	moved   bool       // something was released, or a request came
	written interlock.Version
	counted int // writes to the counter of acknowledgements
	acked   int // tasks that became done
	opens   []sessionStart
}

type session struct {
	num   uint64
	id    interlock.SessionID
	ttl   time.Duration
	actor string      // its credential
	heard engine.Time // arrival of the last heartbeat that was acknowledged, or the beginning
	ended bool
}

type phase uint8

const (
	waiting phase = 1 + iota
	held
	grace
	closed // its holder died, and its keys stay closed for a while
	parked
	away // parked, and its keys are free
	over
)

var phaseNames = [...]string{
	waiting: "waiting", held: "held", grace: "in grace", closed: "closed", parked: "parked", away: "parked, keys freed",
	over: "over",
}

// request is a request, from its place in line to the end of its lease.
type request struct {
	id       [16]byte
	num      uint64
	space    *space
	session  uint64
	flow     string
	agent    string
	actor    string // the credential that made it
	group    string
	claims   []interlock.Claim
	had      []interlock.Claim // all that it ever claimed
	free     engine.Time       // since when nothing has blocked its wait; 0: something does
	any      bool
	priority int
	lead     bool
	base     *request // the lease that it converts
	part     bool
	task     bool
	run      bool
	declared bool
	returned bool // it was parked once, so its arrival is not that of its event
	offer    bool

	phase   phase
	arrived engine.Time
	since   engine.Time // when its phase began
	granted engine.Time
	late    engine.Time // since when it is held beyond its max_hold; 0: it is not
	heard   engine.Time // a renewal that was acknowledged
	grace   time.Duration
	delay   time.Duration
	maxHold time.Duration
	reason  record.Reason

	from, heldFrom, to interlock.Index // from when to when it was there, and held
	fences             []fenceAt
	ttls               []ttlAt
}

type fenceAt struct {
	index interlock.Index
	fence interlock.Fence
}

type ttlAt struct {
	index interlock.Index
	ttl   time.Duration
}

// ttl is the ttl of the lease, also of one that is still waited for.
func (r *request) ttl() time.Duration { return r.ttls[len(r.ttls)-1].ttl }

func (r *request) fence() interlock.Fence {
	if len(r.fences) == 0 {
		return 0
	}
	return r.fences[len(r.fences)-1].fence
}

func (r *request) String() string {
	return fmt.Sprintf("request %d (%s session %d flow %q, priority %d, fence %d, %s: %s)",
		r.num, r.agent, r.session, r.flow, r.priority, r.fence(), phaseNames[r.phase], shownClaims(r.claims))
}

type document struct{ history []edition }

type edition struct {
	index   interlock.Index
	version interlock.Version
	absent  bool
}

// at returns the document after an index.
func (d *document) at(i interlock.Index) (e edition) {
	e.absent = true
	if d == nil {
		return e
	}
	for k := len(d.history) - 1; k >= 0; k-- {
		if d.history[k].index <= i {
			return d.history[k]
		}
	}
	return e
}

type task struct {
	id       [16]byte
	state    interlock.TaskState
	sender   string
	actor    string          // the credential that submitted it
	askers   map[string]bool // the credentials that asked about it
	key      interlock.Key   // of a message
	replayed bool
	claims   []interlock.Claim
}

type bucket struct {
	level time.Duration // how long it took to fill so far, times rateCount
	at    engine.Time
}

type sessionStart struct {
	key        interlock.Key
	generation uint64
	parties    uint32
	there      uint32
}

func (p *picture) space(name interlock.Namespace) *space {
	s := p.spaces[name]
	if s == nil {
		s = &space{
			name: name, requests: map[[16]byte]*request{}, sessions: map[interlock.SessionID]*session{},
			docs: map[interlock.Key]*document{}, tasks: map[[16]byte]*task{}, buckets: map[interlock.Key]*bucket{},
		}
		p.spaces[name] = s
	}
	if !slices.Contains(p.touched, s) {
		p.touched = append(p.touched, s)
	}
	return s
}

// begin begins an entry.
func (p *picture) begin(i interlock.Index) { p.index, p.term, p.touched = i, false, p.touched[:0] }

// fold takes the next event of an entry.
func (a *audit) fold(w *world, ev *record.Event) {
	p := &a.picture
	if ev.At < p.time {
		// Namespaces may be a little apart, but no term goes back behind an earlier one.
		if ev.Kind == record.Opened {
			w.fail("I8", "a term begins at %d, and the journal was at %d before", ev.At, p.time)
		}
	}
	p.time, p.entryTime = max(p.time, ev.At), ev.At
	if ev.Kind == record.Opened {
		if ev.Fence < p.fence {
			w.fail("I2", "epoch %d begins with fence %d, and %d was given out", ev.Epoch, ev.Fence, p.fence)
		}
		p.fence, p.term = max(p.fence, ev.Fence), true
		for _, s := range p.sessions { // every session has a full ttl by the new owner's clock
			s.heard = ev.At
		}
		for _, s := range p.spaces {
			for _, r := range s.holding {
				r.heard = ev.At
			}
		}
		return
	}
	s := p.space(ev.Namespace)
	if ev.Answer != 0 {
		a.once(w, s, ev)
	}
	switch ev.Kind {
	case record.SessionOpened:
		x := &session{num: ev.Session, id: ev.ID, ttl: ev.TTL, heard: ev.At, actor: ev.Actor}
		p.sessions[ev.Session], s.sessions[x.id] = x, x
	case record.SessionEnded:
		a.sessionEnded(w, s, ev)
	case record.Queued, record.Granted:
		p.came(s, ev)
		if ev.Kind == record.Granted {
			a.grant(w, s.requests[ev.ID], ev, ev.Claims)
		}
	case record.TaskDispatched:
		a.handed(w, s, ev)
	case record.Written:
		a.written(w, s, ev)
	case record.TaskSubmitted, record.TaskMoved, record.AttemptFailed, record.ApprovalRequested, record.ApprovalDecided,
		record.TaskForgotten:
		a.taskMoved(w, s, ev)
	case record.Admitted, record.Claimed, record.Parked, record.Resumed, record.Grace, record.Closed, record.Ended,
		record.Left, record.Converted, record.TTLChanged:
		if r := s.requests[ev.ID]; r == nil || r.phase == over {
			w.fail("journal", "%s at index %d is about a request that is not there", ev.Kind, p.index)
		} else {
			a.progress(w, r, ev)
		}
	}
}

// came makes the request that an event reports.
func (p *picture) came(s *space, ev *record.Event) *request {
	r := &request{
		id: ev.ID, num: ev.Num, space: s, session: ev.Session, flow: ev.Flow, agent: ev.Agent, actor: ev.Actor,
		group: ev.Group, any: ev.Any, priority: ev.Priority, lead: ev.Lead,
		part: ev.Part, run: len(ev.Blob) > 0, declared: ev.Target != 0, phase: waiting, arrived: ev.At, since: ev.At,
		ttls: []ttlAt{{p.index, ev.TTL}}, grace: ev.Grace, delay: ev.LockDelay, maxHold: ev.MaxHold, from: p.index,
	}
	if r.session != 0 {
		if x := p.sessions[r.session]; x != nil {
			r.agent = ""
		}
	}
	if ev.Base != 0 && !ev.Part {
		r.base = s.requests[ev.BaseID]
	}
	r.claim(ev.Claims)
	s.requests[r.id] = r
	s.records = append(s.records, r)
	s.waiting = append(s.waiting, r)
	s.moved = true
	return r
}

// claim sets what the request claims from now on.
func (r *request) claim(claims []interlock.Claim) {
	r.claims = slices.Clone(claims)
	for i := range r.claims {
		if r.claims[i].Mode == 0 {
			r.claims[i].Mode = interlock.Exclusive
		}
	}
	for _, c := range r.claims {
		if !slices.Contains(r.had, c) {
			r.had = append(r.had, c)
		}
	}
}

func (s *space) drop(r *request) {
	for _, list := range []*[]*request{&s.waiting, &s.holding} {
		if i := slices.Index(*list, r); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

func (r *request) become(to phase, ev *record.Event) {
	r.phase, r.since = to, ev.At
	r.space.moved = true
}

// finish ends a request.
func (a *audit) finish(r *request, ev *record.Event) {
	r.space.drop(r)
	r.become(over, ev)
	r.to = a.index
}

func (a *audit) progress(w *world, r *request, ev *record.Event) {
	switch ev.Kind {
	case record.Admitted:
		if b := r.base; b != nil {
			a.finish(r, ev)
			a.grant(w, b, ev, ev.Claims)
			return
		}
		r.offer = ev.Offer
		a.grant(w, r, ev, ev.Claims)
	case record.Converted:
		a.grant(w, r, ev, ev.Claims)
	case record.TTLChanged:
		a.retimed(w, r, ev)
	case record.Claimed:
		r.offer, r.granted, r.heard = false, ev.At, ev.At
	case record.Grace:
		a.early(w, r, ev)
		r.become(grace, ev)
		r.reason = ev.Reason
	case record.Closed:
		a.early(w, r, ev)
		r.become(closed, ev)
		r.reason = ev.Reason
	case record.Parked:
		r.returned = true
		r.space.drop(r)
		if ev.Freed || ev.Reason != 0 {
			r.become(away, ev)
		} else {
			r.become(parked, ev)
			r.space.holding = append(r.space.holding, r)
		}
	case record.Resumed:
		r.session, r.flow, r.lead = ev.Session, ev.Flow, ev.Lead
		if s := a.sessions[r.session]; s != nil {
			r.ttls = append(r.ttls, ttlAt{a.index, min(r.ttl(), s.ttl)})
		}
		r.space.drop(r)
		if ev.Queued {
			r.become(waiting, ev)
			r.space.waiting = append(r.space.waiting, r)
			return
		}
		a.grant(w, r, ev, r.claims)
	case record.Ended:
		a.early(w, r, ev)
		a.finish(r, ev)
	case record.Left:
		if ev.Reason == record.ByDeadlock && len(ev.Cycle) == 0 {
			w.fail("I6", "%v was made a deadlock's victim without a cycle", r)
		}
		if ev.Reason == record.ByDeadlock {
			a.falseVictim(w, r)
		}
		a.finish(r, ev)
	}
}

// end checks what must hold after an entry.
func (a *audit) end(w *world) {
	for _, s := range a.touched {
		if w.failed == nil {
			a.check(w, s)
		}
		s.grants, s.moved, s.written, s.counted, s.acked, s.opens = s.grants[:0], false, 0, 0, 0, s.opens[:0]
	}
	for _, name := range slices.Sorted(maps.Keys(a.spaces)) {
		if s := a.spaces[name]; s.stalled && !slices.Contains(a.touched, s) && w.failed == nil {
			a.lostWaiter(w, s)
		}
	}
}

func (a *audit) check(w *world, s *space) {
	if s.counted != s.acked {
		w.fail("I12", "entry %d makes %d tasks done and carries out %d of their writes", a.index, s.acked, s.counted)
	}
	for _, o := range s.opens {
		if o.there%o.parties != 0 {
			w.fail(
				"I10", "generation %d of the barrier %s opened for %d at index %d, it is for %d", o.generation, o.key, o.there,
				a.index, o.parties,
			)
		}
	}
	for _, r := range s.holding {
		a.overstay(w, r)
	}
	if s.moved || s.stalled {
		a.lostWaiter(w, s)
	}
	if s.moved {
		a.cycle(w, s)
	}
}

// show prints the whole picture: the evidence.
func (p *picture) show(to *story) {
	for _, name := range slices.Sorted(maps.Keys(p.spaces)) {
		s := p.spaces[name]
		to.tell("%s at index %d:", name, p.index)
		for _, r := range s.holding {
			to.tell("  holds  %v%s", r, r.kind())
		}
		for _, r := range s.waiting {
			to.tell("  waits  %v%s", r, r.kind())
		}
	}
}

// kind describes the special properties of a request.
func (r *request) kind() (s string) {
	for _, x := range []struct {
		is    bool
		words string
	}{
		{r.any, "any of them"},
		{r.base != nil, "a conversion"},
		{r.part, "a part"},
		{r.task, "a task"},
		{r.run, "a run"},
		{r.declared, "declared"},
		{r.returned, "was parked"},
		{r.offer, "an offer"},
	} {
		if x.is {
			s += ", " + x.words
		}
	}
	return s
}

func shownEvent(ev *record.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", ev.Kind)
	if ev.Num > 0 {
		fmt.Fprintf(&b, " request %d", ev.Num)
	}
	if ev.Session > 0 {
		fmt.Fprintf(&b, " session %d", ev.Session)
	} else if ev.Agent != "" {
		fmt.Fprintf(&b, " %s", ev.Agent)
	}
	if len(ev.Claims) > 0 {
		fmt.Fprintf(&b, " %s", shownClaims(ev.Claims))
	}
	if ev.Fence > 0 {
		fmt.Fprintf(&b, " fence %d", ev.Fence)
	}
	if ev.Reason > 0 {
		fmt.Fprintf(&b, " (%s)", ev.Reason)
	}
	if ev.Offer {
		b.WriteString(" as an offer")
	}
	if ev.Version > 0 {
		fmt.Fprintf(&b, " version %d", ev.Version)
	}
	return b.String()
}
