package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The model is the kernel written as naively as possible. It keeps two plain
// slices, recomputes everything from them whenever it is asked, knows nothing of
// intents, indexes or timers, and is meant to be read as the specification.
//
// Where the documents leave the engine a choice (in which order two requests
// that do not conflict are granted, which of two cycles is broken first), the
// model does not choose: it reads the engine's events one by one and objects to
// each one that no rule allows at that moment (model_rule_test.go), and after
// the step to each one that is missing (model_check_test.go). What the answer to
// a command must be, it works out by itself (model_answer_test.go).

// phase is where a request stands in its life.
type phase uint8

const (
	waiting phase = 1 + iota
	offered
	held
	inGrace
	over
)

func (p phase) String() string {
	return [...]string{"", "waiting", "offered", "held", "grace", "over"}[p]
}

// span is a moment of which only the bounds are known: after a restart the
// engine spreads deadlines as it likes, within limits.
type span struct{ lo, hi engine.Time }

func at(t engine.Time) span { return span{t, t} }

func (s span) add(d time.Duration) span { return span{s.lo.Add(d), s.hi.Add(d)} }

// later gives the bounds of the later one of two moments.
func later(a, b span) span { return span{max(a.lo, b.lo), max(a.hi, b.hi)} }

// earlier gives the bounds of the earlier one of two moments.
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
	ttl   time.Duration
	beat  span // its last heartbeat
	ended bool
	why   engine.Reason

	receiver engine.Caller // of pushes
	link     uint64
	losses   []*request // ended without its doing since the last heartbeat
}

func (s *session) deadline() span { return s.beat.add(s.ttl) }

// request is a request from its Acquire to its end.
type request struct {
	num     uint64
	ns      interlock.Namespace
	session *session // nil for a bare one
	ask     engine.Acquire
	arrived engine.Time

	phase phase
	why   engine.Reason
	ended engine.Time

	fence   interlock.Fence
	granted engine.Time // when it was given the keys
	beat    span        // since when its ttl counts; for a bare lease renewed by Renew
	graceTo span
	lapse   span // of an offer or of a bare ticket

	changed  bool // somebody who could write one of its keys held it meanwhile
	queuedAt int  // how many events there were before it stood in line
	endedAt  int  // likewise, when its keys were given back

	attached engine.Caller // who waits for the answer
	link     uint64
}

func (r *request) String() string {
	who := r.ask.Agent
	if r.session != nil {
		who = r.session.agent + "/" + r.ask.Flow
	}
	return fmt.Sprintf("request %d of %s %s fence=%d %s", r.num, who, claimsText(r.ask.Claims), r.fence, r.phase)
}

func (r *request) active() bool { return r.phase == offered || r.phase == held || r.phase == inGrace }

func (r *request) ttl() time.Duration {
	if r.session != nil {
		return min(r.ask.TTL, r.session.ttl)
	}
	return r.ask.TTL
}

// ttlEnd is the hard end that heartbeats put off.
func (r *request) ttlEnd() span {
	beat := r.beat
	if r.session != nil {
		beat = later(beat, r.session.beat)
	}
	return beat.add(r.ttl())
}

// capEnd is the hard end that nothing puts off; ok is false when there is none.
func (r *request) capEnd() (end span, ok bool) {
	return at(r.granted.Add(r.ask.MaxHold)), r.ask.MaxHold > 0
}

func (r *request) hardEnd() span {
	end := r.ttlEnd()
	if hold, ok := r.capEnd(); ok {
		end = earlier(end, hold)
	}
	return end
}

// party is somebody who waits or is waited for: a flow, or a bare request.
type party struct {
	ns      interlock.Namespace
	session uint64
	flow    string
	bare    uint64
}

func (r *request) party() party {
	if r.session == nil {
		return party{ns: r.ns, bare: r.num}
	}
	return party{ns: r.ns, session: r.session.num, flow: r.ask.Flow}
}

// model is everything that the engine should know.
type model struct {
	now      engine.Time
	sessions []*session
	requests []*request
	answers  []*remembered
	notes    []note
	events   int // how many there were
	fence    interlock.Fence
	epoch    interlock.Epoch
}

// remembered is the answer to a request id.
type remembered struct {
	ns      interlock.Namespace
	session interlock.SessionID
	id      string
	body    string
	outcome engine.Outcome
	code    interlock.Code
	num     uint64 // the request that it is about; 0 for none
	at      engine.Time
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
		if r.num == num {
			return r
		}
	}
	return nil
}

func (m *model) byID(ns interlock.Namespace, id [16]byte) *request {
	for _, r := range m.requests {
		if r.ask.ID == id && r.ns == ns {
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

// Which claims conflict, said without intents: who reads or writes what.

// above reports whether a is a proper ancestor of b.
func above(a, b interlock.Key) bool { return strings.HasPrefix(string(b), string(a)+"/") }

// modeClash is the standard matrix for one and the same key.
func modeClash(a, b interlock.Mode) bool {
	const (
		IS, IX, S, SIX, X = interlock.IntentShared, interlock.IntentExclusive, interlock.Shared, interlock.SharedIntentExclusive, interlock.Exclusive
	)
	compatible := map[[2]interlock.Mode]bool{
		{IS, IS}: true, {IS, IX}: true, {IS, S}: true, {IS, SIX}: true,
		{IX, IS}: true, {IX, IX}: true,
		{S, IS}: true, {S, S}: true,
		{SIX, IS}: true,
	}
	return !compatible[[2]interlock.Mode{a, b}]
}

func writesBelow(m interlock.Mode) bool {
	return m == interlock.IntentExclusive || m == interlock.SharedIntentExclusive || m == interlock.Exclusive
}

// clash reports whether two claims of different parties may not be held at once.
func clash(a, b interlock.Claim) bool {
	if above(b.Key, a.Key) {
		a, b = b, a
	}
	switch {
	case a.Key == b.Key:
		return modeClash(a.Mode, b.Mode)
	case !above(a.Key, b.Key):
		return false
	case a.Mode == interlock.Exclusive:
		return true // it changes everything below
	case a.Mode == interlock.Shared || a.Mode == interlock.SharedIntentExclusive:
		return writesBelow(b.Mode) // it reads everything below
	}
	return false // an intent claims nothing below by itself
}

// conflict reports whether two requests exclude each other.
func conflict(a, b *request) bool {
	if a.ns != b.ns || a.party() == b.party() {
		return false
	}
	for _, x := range a.ask.Claims {
		for _, y := range b.ask.Claims {
			if clash(x, y) {
				return true
			}
		}
	}
	return false
}

// coversMode reports whether a is as good as b at the same key.
func coversMode(a, b interlock.Mode) bool {
	switch a {
	case interlock.Exclusive:
		return true
	case interlock.SharedIntentExclusive:
		return b != interlock.Exclusive
	case interlock.Shared, interlock.IntentExclusive:
		return b == a || b == interlock.IntentShared
	}
	return b == a
}

// covers reports whether who has a needs no b.
func covers(a, b interlock.Claim) bool {
	if a.Key == b.Key {
		return coversMode(a.Mode, b.Mode)
	}
	if !above(a.Key, b.Key) {
		return false
	}
	reads := b.Mode == interlock.Shared || b.Mode == interlock.IntentShared
	return a.Mode == interlock.Exclusive || reads && (a.Mode == interlock.Shared || a.Mode == interlock.SharedIntentExclusive)
}

func coversAll(a, b []interlock.Claim) bool {
	for _, want := range b {
		if !slices.ContainsFunc(a, func(have interlock.Claim) bool { return covers(have, want) }) {
			return false
		}
	}
	return true
}

// The line.

func (r *request) score() engine.Time {
	return r.arrived.Add(-time.Duration(r.ask.Priority) * interlock.PriorityBoost)
}

func aheadOf(a, b *request) bool {
	if a.score() != b.score() {
		return a.score() < b.score()
	}
	return a.num < b.num
}

// blockers are all that r has to wait for: conflicting holders, and conflicting
// waiters ahead.
func (m *model) blockers(r *request) (list []*request) {
	for _, q := range m.requests {
		if q != r && conflict(q, r) && (q.active() || q.phase == waiting && aheadOf(q, r)) {
			list = append(list, q)
		}
	}
	return list
}

// mayHaveWritten reports whether who holds a may have changed what b is about.
func mayHaveWritten(a, b interlock.Claim) bool {
	switch {
	case a.Key == b.Key, above(b.Key, a.Key):
		return writesBelow(a.Mode)
	case above(a.Key, b.Key):
		return a.Mode == interlock.Exclusive
	}
	return false
}

// changedMeanwhile reports whether a lease that may have written one of r's keys
// ended while r stood in line.
func (m *model) changedMeanwhile(r *request) bool {
	for _, q := range m.requests {
		if q.ns != r.ns || q.endedAt <= r.queuedAt {
			continue
		}
		for _, a := range q.ask.Claims {
			for _, b := range r.ask.Claims {
				if mayHaveWritten(a, b) {
					return true
				}
			}
		}
	}
	return false
}

// note is what somebody left at a key.
type note struct {
	ns    interlock.Namespace
	key   interlock.Key
	fence interlock.Fence
}

// notesAt gives the fences of the notes that a holder is handed: of the last eight
// at each claimed key the sixteen newest, oldest first.
func (m *model) notesAt(ns interlock.Namespace, claims []interlock.Claim) (fences []interlock.Fence) {
	for i, n := range m.notes {
		later := 0
		for _, other := range m.notes[i+1:] {
			if other.ns == n.ns && other.key == n.key {
				later++
			}
		}
		claimed := slices.ContainsFunc(claims, func(c interlock.Claim) bool { return c.Key == n.key })
		if n.ns == ns && claimed && later < 8 {
			fences = append(fences, n.fence)
		}
	}
	return fences[max(0, len(fences)-16):]
}

// The wait-for graph.

// waitsOn gives the waits that must end before that of r can: those of everybody
// who blocks it.
func (m *model) waitsOn(r *request) (list []*request) {
	blockers := m.blockers(r)
	for _, q := range m.inPhase(waiting) {
		if slices.ContainsFunc(blockers, func(b *request) bool { return b.party() == q.party() }) {
			list = append(list, q)
		}
	}
	return list
}

// onCycle reports whether r waits for itself through waits that are all within
// the given set.
func (m *model) onCycle(r *request, within func(*request) bool) bool {
	seen := map[*request]bool{}
	var visit func(q *request) bool
	visit = func(q *request) bool {
		for _, next := range m.waitsOn(q) {
			if next == r {
				return true
			}
			if !seen[next] && within(next) {
				seen[next] = true
				if visit(next) {
					return true
				}
			}
		}
		return false
	}
	return visit(r)
}

// leases counts what a party holds.
func (m *model) leases(p party) (n int) {
	for _, r := range m.requests {
		if r.active() && r.party() == p {
			n++
		}
	}
	return n
}

// ratherVictim is the rule: lowest base priority, then fewest leases, then
// youngest.
func (m *model) ratherVictim(a, b *request) bool {
	if a.ask.Priority != b.ask.Priority {
		return a.ask.Priority < b.ask.Priority
	}
	if x, y := m.leases(a.party()), m.leases(b.party()); x != y {
		return x < y
	}
	return a.num > b.num
}

// rightVictim reports whether there is a cycle of which v is the member that the
// rule chooses.
func (m *model) rightVictim(v *request) bool {
	return m.onCycle(v, func(q *request) bool { return m.ratherVictim(v, q) })
}

func claimsText(claims []interlock.Claim) string {
	short := map[interlock.Mode]string{
		interlock.IntentShared: "(IS)", interlock.IntentExclusive: "(IX)", interlock.Shared: "(S)",
		interlock.SharedIntentExclusive: "(SIX)",
	}
	var parts []string
	for _, c := range claims {
		key := string(c.Key)
		if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
			key = quoted
		}
		parts = append(parts, key+short[c.Mode])
	}
	return strings.Join(parts, ",")
}
