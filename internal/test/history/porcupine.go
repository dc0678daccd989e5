package history

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/interlockdev/interlock"
)

// The same history, key by key and without its indexes, as porcupine sees it: there is an
// order of all operations, within their times, that a lock and a register can have.

// patience is how long the search may take for all keys of a kind. Not to know is to fail.
const patience = time.Minute

func (v *verdict) linearizable() {
	v.search("locks", lockModel, v.lockOps())
	v.search("registers", registerModel, v.registerOps())
}

func (v *verdict) search(what string, m porcupine.Model, byKey map[string][]porcupine.Operation) {
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		clients := map[int]bool{}
		for _, op := range byKey[key] {
			clients[op.ClientId] = true
		}
		if len(clients) > maxClients {
			v.problem("porcupine: %d clients work at %s, at most %d can be checked", len(clients), key, maxClients)
		}
		if got := porcupine.CheckOperationsTimeout(m, byKey[key], patience); got != porcupine.Ok {
			v.problem("porcupine: the %s at %s are %s", what, key, got)
		}
	}
}

// traces is when a request was first seen to have been carried out: the earliest return of
// an answer that shows what it did. An operation of unknown outcome that left no trace
// is as good as never carried out, and one that did ends there at the latest. The search
// needs both: with hundreds of open operations it would not come to an end.
type traces map[string]time.Duration

func (t traces) see(request string, by *Op) {
	if at, known := t[request]; request != "" && (!known || by.Return < at) {
		t[request] = by.Return
	}
}

// operation returns an operation to porcupine, if anything can be said of it.
func (t traces) operation(number int, op *Op, in, out any) (list []porcupine.Operation) {
	end := op.Return
	if op.Open() {
		var seen bool
		if end, seen = t[op.ID]; !seen {
			return nil
		}
	}
	if end < op.Call {
		return nil
	}
	return []porcupine.Operation{{ClientId: number, Input: in, Output: out, Call: int64(op.Call), Return: int64(end)}}
}

// numbers returns each client a number.
func numbers(ops []*Op) map[string]int {
	list := map[string]int{}
	for _, op := range ops {
		if _, known := list[op.Client]; !known {
			list[op.Client] = len(list)
		}
	}
	return list
}

// lockIn is an operation on a lock: taken, released, looked at, or used.
type lockIn struct {
	kind    Kind
	request string // that asked for the lease
	lapses  bool   // the lease may have ended by itself
}

// lockOut is the answer.
type lockOut struct {
	unknown bool
	refused bool
	fence   interlock.Fence // of a grant
	holder  string          // the holder's request, if a look or a refusal named it
}

// lockState is the holder of a lock, and the highest known fence.
type lockState struct {
	holder string
	fence  interlock.Fence
}

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(lockState), input.(lockIn), output.(lockOut)
		switch {
		case in.kind == Look, out.refused && in.kind == Acquire:
			return s.holder == out.holder, s
		case out.refused:
			return s.holder != in.request, s
		case in.kind == Held, in.kind == CheckFence, in.kind == Commit:
			return s.holder == in.request, s
		case out.unknown && in.kind == Acquire && s.holder != "",
			(out.unknown || in.lapses) && (in.kind == Release || in.kind == Lapse) && s.holder != in.request:
			return true, s // it comes too late to do anything
		case in.kind == Release, in.kind == Lapse:
			return s.holder == in.request, lockState{"", s.fence}
		case s.holder != "" || !out.unknown && out.fence <= s.fence:
			return false, s
		}
		return true, lockState{in.request, max(s.fence, out.fence)}
	},
}

// locks are the keys that were only ever taken alone and exclusively, by leases that cannot have expired within the
// history, or lapse in it: on these the end of a lease is always an operation.
type locks struct {
	*verdict
	keys   map[string]bool
	lapses map[string]*Op // by the ID of the acquisition
	byKey  map[string][]porcupine.Operation
	number map[string]int
	seen   traces

	// The acquisitions, by their ID, by the lease and by the fence.
	byID, byLease map[string]*Op
	byFence       map[lockFence]*Op
}

type lockFence struct {
	key   string
	fence interlock.Fence
}

// lockOps returns the operations on locks.
func (v *verdict) lockOps() map[string][]porcupine.Operation {
	l := &locks{
		verdict: v, keys: map[string]bool{}, lapses: map[string]*Op{}, byKey: map[string][]porcupine.Operation{},
		number: numbers(v.ops), seen: traces{},
		byID: map[string]*Op{}, byLease: map[string]*Op{}, byFence: map[lockFence]*Op{},
	}
	l.find()
	l.trace()
	for _, op := range v.ops {
		l.add(op)
	}
	return l.byKey
}

// find finds the keys.
func (l *locks) find() {
	var whole time.Duration
	for _, op := range l.ops {
		if !op.Open() {
			whole = max(whole, op.Return)
		}
		whole = max(whole, op.Call)
		if op.Kind == Lapse {
			l.lapses[op.Lease] = op
		}
	}
	others := map[string]bool{}
	for _, op := range l.ops {
		if op.Kind == Acquire && len(op.Claims) == 1 && op.Claims[0].Mode == interlock.Exclusive &&
			(op.TTL > whole || op.Code != "" || l.lapses[op.ID] != nil) {
			l.keys[op.Claims[0].Key] = true
			l.byID[op.ID], l.byLease[op.ID] = op, op
			if g := op.Granted; g != nil {
				l.byLease[g.Lease], l.byFence[lockFence{op.Claims[0].Key, g.Fence}] = op, op
			}
			continue
		}
		claims := op.Claims
		if op.Granted != nil {
			claims = op.Granted.Claims
		}
		for _, c := range claims {
			others[c.Key] = op.Kind != Renew || others[c.Key]
		}
	}
	maps.DeleteFunc(l.keys, func(key string, _ bool) bool {
		for other := range others {
			if others[other] && (other == key || strings.HasPrefix(other, key+"/") || strings.HasPrefix(key, other+"/")) {
				return true
			}
		}
		return false
	})
}

// trace finds when a request without an answer was first seen to have been carried out. The absence of a holder is no
// trace of its own, but a lease has ended when the next holder is known.
func (l *locks) trace() {
	for _, op := range l.ops {
		for _, h := range op.Holders {
			l.seen.see(h.Request, op)
		}
		for _, d := range op.Docs {
			l.seen.see(d.Request, op)
		}
	}
	for _, op := range l.ops {
		if by := l.byLease[op.Lease]; by != nil && op.Open() && (op.Kind == Release || op.Kind == Lapse) {
			l.seen[op.ID] = l.succeeded(by)
		}
	}
}

// succeeded returns when the end of a lease is known, by its release or by the next holder; or Never. An acquisition
// that left no trace has no lease that could end.
func (l *locks) succeeded(by *Op) time.Duration {
	if _, seen := l.seen[by.ID]; by.Open() && !seen {
		return 0
	}
	at := Never
	for _, op := range l.ops {
		if op.Kind == Release && op.OK() && l.byLease[op.Lease] == by {
			at = min(at, op.Return)
		}
	}
	for _, next := range l.byID {
		if by.Granted != nil && next.Granted != nil && next.Claims[0].Key == by.Claims[0].Key &&
			next.Granted.Fence > by.Granted.Fence {
			at = min(at, next.Return)
		}
	}
	return at
}

// add adds an operation to those of its key.
func (l *locks) add(op *Op) {
	out := lockOut{unknown: op.Open(), refused: op.Code != ""}
	if len(op.Holders) > 0 {
		out.holder = op.Holders[0].Request
	}
	by := l.of(op)
	if op.Kind == Look {
		l.put(op.Key, op, lockIn{kind: Look}, out)
		return
	}
	if by == nil {
		return
	}
	in := lockIn{op.Kind, by.ID, l.lapses[by.ID] != nil}
	switch op.Kind {
	case Acquire:
		if op.More > 0 && len(op.Holders) == 0 {
			return // refused because of a holder that is not shown
		}
		if op.Granted != nil {
			out.fence = op.Granted.Fence
			l.early(op, by)
		}
	case Release, Lapse:
		if out.refused {
			return
		}
	case Held, CheckFence, Commit:
		if out.refused && (in.lapses || op.Code == interlock.CodeStale) || out.unknown && op.Kind != Commit {
			return
		}
	default:
		return
	}
	l.put(by.Claims[0].Key, op, in, out)
}

// offered is how long the key of a waiter that is away is kept for it. It passes on then, and the waiter's client takes
// another place in line within the same call.
const offered = 5 * time.Second

// early adds what may have come before a grant that took longer than that, or than the ttl of its lease: another one,
// with an answer that was lost or late, so that the lease lapsed, and the client asked again in the same call. It
// matters only if the request was seen to hold the key before it was answered.
func (l *locks) early(op, by *Op) {
	at, seen := l.seen[by.ID]
	if !seen || at >= op.Return {
		return
	}
	took, lapses := op.Return-op.Call, l.lapses[by.ID] != nil
	if !(lapses && took > op.TTL || op.Wait && took > offered) {
		return
	}
	for _, kind := range []Kind{Acquire, Lapse} {
		l.put(op.Claims[0].Key, op, lockIn{kind, by.ID, true}, lockOut{unknown: true})
	}
}

// of returns the acquisition of the lease that an operation concerns.
func (l *locks) of(op *Op) *Op {
	switch op.Kind {
	case Acquire:
		return l.byID[op.ID]
	case CheckFence:
		return l.byFence[lockFence{op.Key, op.Fence}]
	}
	return l.byLease[op.Lease]
}

func (l *locks) put(key string, op *Op, in lockIn, out lockOut) {
	if l.keys[key] {
		l.byKey[key] = append(l.byKey[key], l.seen.operation(l.number[op.Client], op, in, out)...)
	}
}

// registerIn is a document that is read, or written on a version of it or on any.
type registerIn struct {
	write   bool
	request string
	checked bool
	read    interlock.Version
}

// registerOut is the answer: the read document, or the version that a write made.
type registerOut struct {
	unknown bool
	version interlock.Version
	request string // read; unless only its version is known
	partial bool
}

// registerState is a document; its version is 0 if no answer has it.
type registerState struct {
	version interlock.Version
	request string
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(registerState), input.(registerIn), output.(registerOut)
		switch {
		case !in.write:
			return s.version == out.version && (out.partial || s.request == out.request), s
		case in.checked && in.read != s.version:
			return out.unknown, s
		case !out.unknown && out.version <= s.version:
			return false, s
		}
		return true, registerState{out.version, in.request}
	},
}

// registerOps returns the operations on documents, for each document. The version of a write
// without an answer is known if a read has it.
func (v *verdict) registerOps() map[string][]porcupine.Operation {
	counters, versions, known := map[string]bool{}, map[string]interlock.Version{}, map[interlock.Version]bool{0: true}
	byKey, number, seen := map[string][]porcupine.Operation{}, numbers(v.ops), traces{}
	for _, op := range v.ops {
		for _, w := range op.Writes {
			counters[w.Key] = counters[w.Key] || w.Add != 0
		}
		if len(op.Writes) > 0 && op.OK() {
			known[op.Version] = true
		}
		for _, d := range op.Docs {
			seen.see(d.Request, op)
			versions[d.Request], known[d.Version.Version] = d.Version.Version, true
		}
	}
	add := func(key string, op *Op, in registerIn, out registerOut) {
		if !counters[key] {
			byKey[key] = append(byKey[key], seen.operation(number[op.Client], op, in, out)...)
		}
	}
	for _, op := range v.ops {
		switch {
		case op.Kind == Read && op.OK():
			for _, d := range op.Docs {
				add(d.Key, op, registerIn{}, registerOut{version: d.Version.Version, request: d.Request})
			}
		case op.Code == interlock.CodeStale:
			for _, s := range op.Stale {
				if !known[s.Version] {
					continue // its writer got no answer, and it was not read
				}
				add(s.Key, op, registerIn{}, registerOut{version: s.Version, partial: true})
			}
		case len(op.Writes) > 0 && (op.Open() || op.OK()):
			for _, w := range op.Writes {
				in := registerIn{write: true, request: op.ID}
				if i := slices.IndexFunc(op.Reads, func(r Version) bool { return r.Key == w.Key }); i >= 0 {
					in.checked, in.read = true, op.Reads[i].Version
				}
				out := registerOut{unknown: op.Open(), version: op.Version}
				if out.unknown {
					out.version = versions[op.ID]
				}
				add(w.Key, op, in, out)
			}
		}
	}
	return byKey
}
