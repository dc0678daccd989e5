package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
)

// maxClients is how many clients may work on one key: beyond it the search of porcupine
// takes too long.
const maxClients = 16

// Check reports everything about a history that no correct server can have answered. A history
// that is not linearizable, or cannot be decided in time, is also reported.
func Check(ops []*Op) []string {
	v := &verdict{ops: ops}
	v.order()
	v.leases()
	v.documents()
	v.tasks()
	v.linearizable()
	return v.problems
}

// CheckResults reports everything about the results of client libraries that no correct server and library can have
// given. A result has no index of the journal and no count of requests, so that only porcupine decides: by the time of
// each operation, key by key. The Lease of an operation is the ID of its acquisition.
func CheckResults(ops []*Op) []string {
	v := &verdict{ops: ops}
	v.linearizable()
	return v.problems
}

// verdict is the result of the checks.
type verdict struct {
	ops      []*Op
	problems []string
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// answered returns the answered operations, by index. Of those with the same index the ones
// that end something come first, then those that change something: both happened in the entry
// with that index, and the others observe the result.
func (v *verdict) answered() []*Op {
	var list []*Op
	for _, op := range v.ops {
		if !op.Open() {
			list = append(list, op)
		}
	}
	slices.SortStableFunc(list, func(a, b *Op) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Return, b.Return))
	})
	return list
}

func rank(op *Op) int {
	if op.Code != "" || !op.exact() {
		return 2
	}
	switch op.Kind {
	case Release, Ack:
		return 0
	case Acquire, Commit, Pull:
		return 1
	}
	return 2
}

// order checks the answers against real time: an operation that began after an answer was there
// is answered from no earlier state and by no earlier owner. And each index belongs to one
// epoch: if a later owner assigns an index anew, an answer had shown a change that was not
// durable.
func (v *verdict) order() {
	byCall := slices.SortedFunc(slices.Values(v.answered()), func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	byReturn := slices.SortedFunc(slices.Values(byCall), func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	var newest, latest *Op // of highest index and of highest epoch
	for _, op := range byCall {
		for ; len(byReturn) > 0 && byReturn[0].Return < op.Call; byReturn = byReturn[1:] {
			if done := byReturn[0]; newest == nil || done.Index > newest.Index {
				newest = done
			}
			if done := byReturn[0]; latest == nil || done.Epoch > latest.Epoch {
				latest = done
			}
		}
		if newest != nil && op.Index < newest.Index {
			v.problem("an answer from the past: %v, although before it %v", op, newest)
		}
		if latest != nil && op.Epoch < latest.Epoch {
			v.problem("an answer of an earlier owner: %v, although before it %v", op, latest)
		}
	}
	var before *Op // of highest epoch among those with a lower index or the same
	for _, op := range v.answered() {
		if before != nil && op.Epoch < before.Epoch {
			v.problem("an index belongs to an earlier owner: %v, but %v", op, before)
		}
		if before == nil || op.Epoch > before.Epoch {
			if before != nil && op.Index == before.Index {
				v.problem("an index was given out by two owners: %v, and %v", before, op)
			}
			before = op
		}
	}
}

// floors returns for each operation the highest index that any client knew before it was sent:
// its change comes after that.
func floors(ops []*Op) map[*Op]interlock.Index {
	byCall := slices.SortedFunc(slices.Values(ops), func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	byReturn := slices.SortedFunc(slices.Values(ops), func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	floor := map[*Op]interlock.Index{}
	highest := interlock.Index(0)
	for _, op := range byCall {
		for ; len(byReturn) > 0 && byReturn[0].Return < op.Call; byReturn = byReturn[1:] {
			highest = max(highest, byReturn[0].Index)
		}
		floor[op] = highest
	}
	return floor
}
