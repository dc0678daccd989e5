package server

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The state of a namespace with few keys, as simple as it can be said: the sequential
// specification against which concurrent histories are checked. The last key is a
// counter.

const (
	linearKeys = 3
	counterKey = linearKeys - 1
	counterMax = 20
	absent     = -1
	notRead    = -1
)

type linearState struct {
	version int
	docs    [linearKeys]linearDoc
}

type linearDoc struct{ version, value int }

func noDocs() (s linearState) {
	for k := range s.docs {
		s.docs[k].value = absent
	}
	return s
}

// isAt reports whether a document is as it was with a version; 0 means that there was nothing, and
// whatever a deletion has left behind is nothing, too.
func (d linearDoc) isAt(version int) bool {
	return d.version == version || version == 0 && d.value == absent
}

// linearInput is a snapshot read of all keys, or a commit.
type linearInput struct {
	commit bool
	reads  [linearKeys]int // versions, or notRead
	puts   [linearKeys]int // values, absent to delete, 0 for no write
	add    int             // to the counter
}

// linearOutput is a client's answer. A commit without an answer may have happened at any time
// after it was sent, or never.
type linearOutput struct {
	unknown bool
	code    string
	state   linearState // of a read
	version int         // of a commit
	sum     int         // of an addition
}

func (s linearState) step(in linearInput) (linearOutput, linearState) {
	if !in.commit {
		return linearOutput{state: s}, s
	}
	for k, version := range in.reads {
		if version != notRead && !s.docs[k].isAt(version) {
			return linearOutput{code: "stale"}, s
		}
	}
	next := s
	next.version++
	for k, value := range in.puts {
		if value != 0 {
			next.docs[k] = linearDoc{next.version, value}
		}
	}
	out := linearOutput{code: committed, version: next.version}
	if in.add != 0 {
		out.sum = max(s.docs[counterKey].value, 0) + in.add
		if out.sum < 0 || out.sum > counterMax {
			return linearOutput{code: "out_of_bounds"}, s
		}
		next.docs[counterKey] = linearDoc{next.version, out.sum}
	}
	return out, next
}

var linearModel = porcupine.Model{
	Init: func() any { return noDocs() },
	Step: func(state, input, output any) (bool, any) {
		want, next := state.(linearState).step(input.(linearInput))
		got := output.(linearOutput)
		return got.unknown || got == want, next
	},
}

// isLinearizable fails the test unless a history is one that the model can have. A history that
// cannot be checked in time is a failure, too.
func isLinearizable(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(linearModel, history, time.Minute)
}

// The check finds what it is for.
func TestWrongHistoriesAreFound(t *testing.T) {
	nothing := [linearKeys]int{notRead, notRead, notRead}
	put := func(key, value, read int) (in linearInput) {
		in = linearInput{commit: true, reads: nothing}
		in.puts[key], in.reads[key] = value, read
		return in
	}
	add := linearInput{commit: true, reads: nothing, add: counterMax}
	both := linearInput{commit: true, reads: nothing, puts: [linearKeys]int{1, 1, 0}}
	done := func(version, sum int) linearOutput { return linearOutput{code: committed, version: version, sum: sum} }
	half := noDocs()
	half.version, half.docs[0] = 1, linearDoc{1, 1}
	after := noDocs()
	_, after = after.step(put(0, 1, 0))
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"one after the other": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: done(1, 0), Call: 0, Return: 1},
			{Input: put(0, 2, 1), Output: done(2, 0), Call: 2, Return: 3},
		}, porcupine.Ok},
		"a lost update": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: done(1, 0), Call: 0, Return: 3},
			{Input: put(0, 2, 0), Output: done(2, 0), Call: 0, Return: 3},
		}, porcupine.Illegal},
		"a version given twice": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: done(1, 0), Call: 0, Return: 3},
			{Input: put(1, 2, 0), Output: done(1, 0), Call: 0, Return: 3},
		}, porcupine.Illegal},
		"refused as stale for nothing": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: linearOutput{code: "stale"}, Call: 0, Return: 1},
		}, porcupine.Illegal},
		"a bound crossed": {[]porcupine.Operation{
			{Input: add, Output: done(1, counterMax), Call: 0, Return: 3},
			{Input: add, Output: done(2, 2*counterMax), Call: 0, Return: 3},
		}, porcupine.Illegal},
		"half a commit": {[]porcupine.Operation{
			{Input: both, Output: done(1, 0), Call: 0, Return: 3},
			{Input: linearInput{}, Output: linearOutput{state: half}, Call: 0, Return: 3},
		}, porcupine.Illegal},
		"a read from before": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: done(1, 0), Call: 0, Return: 1},
			{Input: linearInput{}, Output: linearOutput{state: noDocs()}, Call: 2, Return: 3},
		}, porcupine.Illegal},
		"what nobody was told of happened": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: linearOutput{unknown: true}, Call: 0, Return: math.MaxInt64},
			{Input: linearInput{}, Output: linearOutput{state: after}, Call: 2, Return: 3},
		}, porcupine.Ok},
		"or did not": {[]porcupine.Operation{
			{Input: put(0, 1, 0), Output: linearOutput{unknown: true}, Call: 0, Return: math.MaxInt64},
			{Input: linearInput{}, Output: linearOutput{state: noDocs()}, Call: 2, Return: 3},
		}, porcupine.Ok},
	} {
		if got := isLinearizable(c.history); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
