package sim

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// twiceEvery is which seeds are run twice: every tenth.
const twiceEvery = 10

// RunMany runs the seeds from first on for as long as more returns true, as many at once as
// there are processors. It returns what was broken, in the order of the seeds.
func RunMany(first uint64, more func(next uint64) bool, o Options) (totals Totals, failed []error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := first
	type broken struct {
		seed uint64
		err  error
	}
	var list []broken
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				seed := next
				if o.First && len(list) > 0 || !more(seed) {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				r := runChecked(seed, o)
				mu.Lock()
				totals.Add(r.Totals)
				if r.Err != nil {
					list = append(list, broken{seed, r.Err})
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	slices.SortFunc(list, func(a, b broken) int { return cmp.Compare(a.seed, b.seed) })
	for _, b := range list {
		failed = append(failed, b.err)
	}
	return totals, failed
}

// runChecked runs a seed, every tenth one twice: both runs must be the same.
func runChecked(seed uint64, o Options) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Err = fmt.Errorf("seed %d: panic: %v", seed, p)
		}
	}()
	r = Run(seed, o)
	if r.Err == nil && seed%twiceEvery == 0 {
		again := Run(seed, o)
		if again.Hash != r.Hash {
			r.Err = fmt.Errorf("seed %d: two runs differ: %016x and %016x", seed, r.Hash, again.Hash)
		}
		r.Totals.Add(again.Totals)
		r.Totals.Seeds--
	}
	return r
}
