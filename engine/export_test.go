package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Surveys for tests, which have the engine alone.

func all(e *Engine, s Scan) {
	for !s.Look(e) {
	}
}

func (e *Engine) Keys(ns interlock.Namespace, f KeyFilter) (rows []KeyRow, more bool) {
	l := KeyList{Namespace: ns, Filter: f}
	all(e, &l)
	return l.Rows, l.More
}

func (e *Engine) Hot(ns interlock.Namespace, limit int) []HotKey {
	l := HotList{Namespace: ns, Limit: limit}
	all(e, &l)
	return l.Keys
}

func (e *Engine) Waits(ns interlock.Namespace) []WaitEdge {
	g := WaitGraph{Namespace: ns}
	all(e, &g)
	return g.Edges
}

func (e *Engine) AgentHolds(ns interlock.Namespace, agent string) []interlock.Holder {
	h := Holdings{Namespace: ns, Agent: agent}
	all(e, &h)
	return h.Holders
}

func (e *Engine) DocumentsFrom(ns interlock.Namespace, prefix string, after interlock.Key, limit int, bodies bool) []interlock.Document {
	l := DocumentList{Namespace: ns, Prefix: prefix, After: after, Limit: limit, Bodies: bodies}
	all(e, &l)
	return l.Rows
}

func (e *Engine) Queues(ns interlock.Namespace) []interlock.QueueStatus {
	l := QueueList{Namespace: ns}
	all(e, &l)
	return l.Rows
}

// HoldAtMost bounds the namespaces.
func (e *Engine) HoldAtMost(n int) { e.mostSpaces = n }

func MergePatch(document, patch []byte) []byte { return mergePatch(document, readJSON(patch)) }

const ObjectBytes = objectBytes

func ValidJSON(b []byte) bool { return jsonProblem(b) == nil }

func EncodeEntry(events []record.Event) []byte {
	b := record.AppendHead(nil, events[0].At)
	for i := range events {
		b = record.AppendEvent(b, &events[i])
	}
	return b
}

// Fields are the bits of the fields that an event has, and of all that there are.
func Fields(ev *record.Event) uint64 { return record.MaskOf(ev) }

const KnownFields = record.KnownFields

func Fingerprint(cmd Command) uint64 { return fingerprint(cmd.(repeatable)) }

// TermsOf returns the terms of a living request.
func (e *Engine) TermsOf(ns interlock.Namespace, id [16]byte) interlock.Terms {
	return e.spaces[ns].live(id).terms.Terms
}

// StepLooks bounds the looks of searches in a step.
const StepLooks = stepLooks

// LookAtMost sets another bound.
func (e *Engine) LookAtMost(n int) { e.looks = n }

// StepAtMost sets another bound than StepObjects.
func (e *Engine) StepAtMost(n int) { e.most = n }

// GatherAtMost has the steps gather so many of a large set at a time.
func (e *Engine) GatherAtMost(n int) { e.swath = n }

// Looked is how many objects the searches of the last step have looked at.
func (e *Engine) Looked() int { return e.looked }

// Objects is how many objects the last step has looked at besides.
func (e *Engine) Objects() int { return e.objects }

// IsUnfinished reports that a step has left something over that is due at once.
func (e *Engine) IsUnfinished() bool {
	at, ok := e.NextTimer()
	return ok && at <= e.newest
}

// StepRanks bounds the looks of rank computation in a step, and Ranked returns their number in
// the last one.
const StepRanks = stepRanks

func (e *Engine) Ranked() int { return e.ranks }

// Before is how many events the last step made before it came to its command.
func (e *Engine) Before() int { return e.before }

// IsSearching reports that a search for a deadlock is to go on.
func (e *Engine) IsSearching() bool {
	for _, s := range e.sorted() {
		if s.agenda.isSearching() || s.agenda.doubt.under {
			return true
		}
	}
	return false
}

// CheckTallies compares the tallies of the indexed flows with their requests.
func (e *Engine) CheckTallies() error {
	for _, s := range e.sorted() {
		for _, sess := range s.sortedSessions() {
			for _, f := range sess.sortedFlows() {
				if f.index == nil {
					continue
				}
				plain := flowState{leases: f.leases, waits: f.waits}
				for _, n := range s.sortedNodes() {
					if got, want := f.at(n), plain.at(n); got != want {
						return fmt.Errorf("flow %q has %v at %s, and %v is counted", f.name, want, n.key, got)
					}
				}
			}
		}
	}
	return nil
}

// CheckHolders compares the indexes of holders, and the counts of few, with the lists.
func (e *Engine) CheckHolders() error {
	for _, s := range e.sorted() {
		for _, n := range s.sortedNodes() {
			listed := 0
			for h := n.first; h != nil; h = h.next {
				if listed++; n.byFence != nil && n.byFence[h.req.fence] != h {
					return fmt.Errorf("the index of %s has another holder with fence %d", n.key, h.req.fence)
				}
			}
			if n.byFence == nil && int(n.few) != listed || n.byFence != nil && len(n.byFence) != listed {
				return fmt.Errorf("%s has %d holders, and %d are counted, %d are in the index", n.key, listed, n.few, len(n.byFence))
			}
		}
	}
	return nil
}

// CheckPools compares the counts of permits in use, and the buckets of waiters for permits,
// with the requests.
func (e *Engine) CheckPools() error {
	for _, s := range e.sorted() {
		for _, p := range s.pools {
			var used, plain uint64
			named := map[string]uint64{}
			for h := p.node.first; h != nil; h = h.next {
				if n := uint64(h.req.countOf(h)); h.counts == interlock.Permits {
					if used += n; h.req.Group == "" {
						plain += n
					} else {
						named[h.req.Group] += n
					}
				}
			}
			if p.used != used || p.plain != plain || !maps.Equal(p.named, named) {
				return fmt.Errorf("%s has %d permits in use, %d and %v of them by groups; %d, %d and %v are counted", p.node.key, used, plain, named, p.used, p.plain, p.named)
			}
			if p.isBehind() {
				continue
			}
			if p.policy != s.policyAt(p.node.key) {
				return fmt.Errorf("%s does not follow its pattern", p.node.key)
			}
			for i, n := range p.groups {
				if g := p.policy.Groups[i].Name; p.usedBy(g) != n {
					return fmt.Errorf("group %q has %d permits of %s, and %d are counted", g, p.usedBy(g), p.node.key, n)
				}
			}
			if p.node.line == nil {
				continue
			}
			for c := p.node.line.first; c != nil; c = c.next {
				if c.next != nil && c.compare(c.next.kind) >= 0 {
					return fmt.Errorf("the classes of %s are out of order", p.node.key)
				}
				for x := c.first(); x != nil && c.counts == interlock.Permits; x = x.next() {
					if want := x.req.groupAt(&x.req.needs()[x.need]); int(c.group) != want && (!p.mixed || c.group > unlisted) {
						return fmt.Errorf("a waiter for %s of group %q is in the class of group %d, want %d", p.node.key, x.req.Group, c.group, want)
					}
				}
			}
		}
	}
	return nil
}

// CheckWaits returns an error for a wait of a flow that lacks a part that every request has,
// even if shared and empty: any use of it would panic.
func (e *Engine) CheckWaits() error {
	for _, s := range e.sorted() {
		for _, sess := range s.sortedSessions() {
			for _, f := range sess.sortedFlows() {
				for _, r := range f.waits {
					if r.terms == nil || r.requestDetail == nil || r.requestExt == nil || r.ns != s {
						return fmt.Errorf("wait %d of flow %q is without terms, details or bonds", r.num, f.name)
					}
				}
			}
		}
	}
	return nil
}

// Programs of tests have windows of request ids, and room for effects, so small that they
// reach beyond them.
const (
	NamespaceIDs    = 24
	SessionIDs      = 6
	LeastSessionIDs = 2
	MostEffects     = 7
)

// RememberFew returns the engine such bounds.
func (e *Engine) RememberFew() *Engine {
	e.windows = idBounds{NamespaceIDs, SessionIDs, LeastSessionIDs}
	e.mostDeeds = MostEffects
	return e
}

// MaxShelved bounds the documents below claimed keys that are looked at.
const MaxShelved = maxShelved

// ForgetAttributes removes the parts of an event that are not journaled.
func ForgetAttributes(ev *record.Event) { ev.Attribute(nil, "", "") }

func (s *session) sortedFlows() []*flowState {
	list := s.flows.All()
	slices.SortFunc(list, func(a, b *flowState) int { return strings.Compare(a.name, b.name) })
	return list
}

// IdleFlows is how many flows without leases and waits a session keeps.
const IdleFlows = idleFlows

// Flows counts the flows of a session.
func (e *Engine) Flows(id interlock.SessionID) int {
	return e.spaces["default"].sessions[id].flows.Len()
}

// FarewellDeeds is how many past effects an event drops.
const FarewellDeeds = farewellDeeds

// KnownEffects counts the effects that are remembered, those that are past included.
func (e *Engine) KnownEffects(ns interlock.Namespace) int { return len(e.spaces[ns].sideEffects.known) }

// CheckSessions compares the lists of each session with its flows.
func (e *Engine) CheckSessions() error {
	for _, s := range e.sorted() {
		for _, sess := range s.sortedSessions() {
			var want []*request
			var waiting []*flowState
			work := 0
			for _, f := range sess.sortedFlows() {
				if len(f.waits) > 0 {
					waiting = append(waiting, f)
				}
				work += len(f.leases)
				for _, w := range f.waits {
					if !w.follows() {
						work++
					}
				}
				for _, l := range f.leases {
					if l.task != nil {
						want = append(want, l)
					}
				}
			}
			if work != sess.work || sess.dead && work == 0 && len(sess.awaiting) == 0 {
				return fmt.Errorf("session %s has %d leases and waits, and %d are counted; it is over: %v", sess.name, work, sess.work, sess.dead)
			}
			slices.SortFunc(want, byNumber)
			if !slices.Equal(sess.attempts, want) {
				return fmt.Errorf("session %s works at %d tasks, and lists %d", sess.name, len(want), len(sess.attempts))
			}
			if !slices.Equal(sess.waiting, waiting) {
				return fmt.Errorf("session %s has %d flows that wait, and lists %d", sess.name, len(waiting), len(sess.waiting))
			}
		}
	}
	return nil
}
