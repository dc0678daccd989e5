package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
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

func (e *Engine) DocumentsFrom(
	ns interlock.Namespace, prefix string, after interlock.Key, limit int, bodies bool,
) []interlock.Document {
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

// Repeatables are the commands that are remembered under their request ids.
var Repeatables = repeatables

func Fingerprint(cmd Command) uint64 { return cmd.(repeatable).fingerprint() }

// TermsOf returns the terms of a living request.
func (e *Engine) TermsOf(ns interlock.Namespace, id [16]byte) interlock.Terms {
	return e.Namespaces[ns].Live(id).Conditions.Terms
}

// StepLooks bounds the looks of searches in a step.
const StepLooks = store.StepLooks

// LookAtMost sets another bound.
func (e *Engine) LookAtMost(n int) { e.Looks.Most = n }

// StepAtMost sets another bound than StepObjects.
func (e *Engine) StepAtMost(n int) { e.most = n }

// GatherAtMost has the steps gather so many of a large set at a time.
func (e *Engine) GatherAtMost(n int) { e.Swath = n }

// Looked is how many objects the searches of the last step have looked at.
func (e *Engine) Looked() int { return e.Looks.Spent }

// Objects is how many objects the last step has looked at besides.
func (e *Engine) Objects() int { return e.Visited }

// IsUnfinished reports that a step has left something over that is due at once.
func (e *Engine) IsUnfinished() bool {
	at, ok := e.NextTimer()
	return ok && at <= e.newest
}

// StepRanks bounds the looks of rank computation in a step, and Ranked returns their number in
// the last one.
const StepRanks = store.StepRanks

func (e *Engine) Ranked() int { return e.Ranks.Spent }

// Before is how many events the last step made before it came to its command.
func (e *Engine) Before() int { return e.before }

// IsSearching reports that a search for a deadlock is to go on.
func (e *Engine) IsSearching() bool {
	for _, s := range e.Sorted() {
		if s.Agenda.HasSearch() || s.Agenda.Doubt.Under {
			return true
		}
	}
	return false
}

// CheckTallies compares the tallies of the indexed flows with their requests.
func (e *Engine) CheckTallies() error {
	for _, s := range e.Sorted() {
		for _, sess := range s.SortedSessions() {
			for _, f := range sortedFlows(sess) {
				if f.Index == nil {
					continue
				}
				plain := store.FlowState{Leases: f.Leases, Waits: f.Waits}
				for _, n := range s.SortedNodes() {
					if got, want := f.At(n), plain.At(n); got != want {
						return fmt.Errorf("flow %q has %v at %s, and %v is counted", f.Name, want, n.Key, got)
					}
				}
			}
		}
	}
	return nil
}

// CheckHolders compares the indexes of holders, the counts of few, and the sets of keys with lines, with the lists.
func (e *Engine) CheckHolders() error {
	for _, s := range e.Sorted() {
		used, lined := 0, 0
		for _, n := range s.SortedNodes() {
			if n.Used() {
				used++
			}
			if n.Line != nil {
				if lined++; !slices.Contains(s.Lined, n) {
					return fmt.Errorf("the line of %s is not in the set", n.Key)
				}
			}
			listed := 0
			for h := n.First; h != nil; h = h.Next {
				if listed++; n.ByFence != nil && n.ByFence[h.Req.Fence] != h {
					return fmt.Errorf("the index of %s has another holder with fence %d", n.Key, h.Req.Fence)
				}
			}
			if n.ByFence == nil && int(n.Few) != listed || n.ByFence != nil && len(n.ByFence) != listed {
				return fmt.Errorf(
					"%s has %d holders, and %d are counted, %d are in the index", n.Key, listed, n.Few, len(n.ByFence),
				)
			}
		}
		if used != s.Claimed || lined != len(s.Lined) {
			return fmt.Errorf(
				"%d keys are in use, %d have a line; %d and %d are counted", used, lined, s.Claimed, len(s.Lined),
			)
		}
	}
	return nil
}

// CheckPools compares the counts of permits in use, and the buckets of waiters for permits,
// with the requests.
func (e *Engine) CheckPools() error {
	for _, s := range e.Sorted() {
		for _, p := range s.Pools {
			var used, plain uint64
			named := map[string]uint64{}
			for h := p.Node.First; h != nil; h = h.Next {
				if n := uint64(h.Req.CountOf(h)); h.Counts == interlock.Permits {
					if used += n; h.Req.Group == "" {
						plain += n
					} else {
						named[h.Req.Group] += n
					}
				}
			}
			if p.Used != used || p.Plain != plain || !maps.Equal(p.Named, named) {
				return fmt.Errorf(
					"%s has %d permits in use, %d and %v of them by groups; %d, %d and %v are counted", p.Node.Key, used, plain,
					named, p.Used, p.Plain, p.Named,
				)
			}
			if p.IsBehind() {
				continue
			}
			if p.Policy != s.PolicyAt(p.Node.Key) {
				return fmt.Errorf("%s does not follow its pattern", p.Node.Key)
			}
			for i, n := range p.Groups {
				if g := p.Policy.Groups[i].Name; p.UsedBy(g) != n {
					return fmt.Errorf("group %q has %d permits of %s, and %d are counted", g, p.UsedBy(g), p.Node.Key, n)
				}
			}
			if p.Node.Line == nil {
				continue
			}
			for c := p.Node.Line.First; c != nil; c = c.Next {
				if c.Next != nil && c.Compare(c.Next.Kind) >= 0 {
					return fmt.Errorf("the classes of %s are out of order", p.Node.Key)
				}
				for x := c.First(); x != nil && c.Counts == interlock.Permits; x = x.Next() {
					if want := x.Req.GroupAt(&x.Req.Needs()[x.Need]); int(c.Group) != want && (!p.Mixed || c.Group > store.Unlisted) {
						return fmt.Errorf(
							"a waiter for %s of group %q is in the class of group %d, want %d", p.Node.Key, x.Req.Group, c.Group, want,
						)
					}
				}
			}
		}
	}
	return nil
}

// CheckWaits returns an error for a wait of a flow that lacks a part that every request has,
// even if shared and empty: any use of it would panic. It compares the set of waits with the requests.
func (e *Engine) CheckWaits() error {
	for _, s := range e.Sorted() {
		waits := 0
		for _, r := range s.Requests.All() {
			if r.IsWaiting() {
				if waits++; !slices.Contains(s.Waits, r.Wait) || r.Wait.Req() != r {
					return fmt.Errorf("wait %d is not in the set of waits", r.Num)
				}
			}
		}
		if waits != len(s.Waits) {
			return fmt.Errorf("%d requests wait, and %d are in the set of waits", waits, len(s.Waits))
		}
		for _, sess := range s.SortedSessions() {
			for _, f := range sortedFlows(sess) {
				for _, r := range f.Waits {
					if r.Conditions == nil || r.RequestDetail == nil || r.RequestExt == nil || r.NS != s {
						return fmt.Errorf("wait %d of flow %q is without terms, details or bonds", r.Num, f.Name)
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
	e.Windows = store.IDBounds{Namespace: NamespaceIDs, Session: SessionIDs, Least: LeastSessionIDs}
	e.mostDeeds = MostEffects
	return e
}

// MaxShelved bounds the documents below claimed keys that are looked at.
const MaxShelved = store.MaxShelved

// ForgetAttributes removes the parts of an event that are not journaled.
func ForgetAttributes(ev *record.Event) { ev.Attribute(nil, "", "") }

func sortedFlows(s *store.Session) []*store.FlowState {
	list := s.Flows.All()
	slices.SortFunc(list, func(a, b *store.FlowState) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// IdleFlows is how many flows without leases and waits a session keeps.
const IdleFlows = store.IdleFlows

// Flows counts the flows of a session.
func (e *Engine) Flows(id interlock.SessionID) int {
	return e.Namespaces["default"].Sessions[id].Flows.Len()
}

// FarewellDeeds is how many past effects an event drops.
const FarewellDeeds = store.FarewellEffects

// KnownEffects counts the effects that are remembered, those that are past included.
func (e *Engine) KnownEffects(ns interlock.Namespace) int {
	return len(e.Namespaces[ns].SideEffects.Known)
}

// CheckSessions compares the lists of each session with its flows.
func (e *Engine) CheckSessions() error {
	for _, s := range e.Sorted() {
		for _, sess := range s.SortedSessions() {
			var want []*store.Request
			var waiting []*store.FlowState
			work := 0
			for _, f := range sortedFlows(sess) {
				if len(f.Waits) > 0 {
					waiting = append(waiting, f)
				}
				work += len(f.Leases)
				for _, w := range f.Waits {
					if !w.Follows() {
						work++
					}
				}
				for _, l := range f.Leases {
					if l.Task != nil {
						want = append(want, l)
					}
				}
			}
			if work != sess.Work || sess.Dead && work == 0 && len(sess.Awaiting) == 0 {
				return fmt.Errorf(
					"session %s has %d leases and waits, and %d are counted; it is over: %v", sess.Name, work, sess.Work, sess.Dead,
				)
			}
			slices.SortFunc(want, store.ByNumber)
			if !slices.Equal(sess.Attempts, want) {
				return fmt.Errorf("session %s works at %d tasks, and lists %d", sess.Name, len(want), len(sess.Attempts))
			}
			if !slices.Equal(sess.Waiting, waiting) {
				return fmt.Errorf("session %s has %d flows that wait, and lists %d", sess.Name, len(waiting), len(sess.Waiting))
			}
		}
	}
	return nil
}
