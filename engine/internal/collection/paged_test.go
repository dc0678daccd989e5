package collection

import (
	"slices"
	"testing"
)

// A paged queue is first in, first out, and later pushes and pops do not change a snapshot of
// it.
func TestPagedQueue(t *testing.T) {
	var (
		p       PagedQueue[int]
		want    []int
		shown   PagedQueue[int]
		wanted  []int
		content = func(p *PagedQueue[int]) (list []int) {
			for i := range p.Len() {
				list = append(list, *p.At(i))
			}
			return list
		}
	)
	const most = 3*pageLength + 10
	for i := range 40 * pageLength {
		if p.Len() == most {
			p.Pop()
			want = want[1:]
		}
		p.Push(i)
		want = append(want, i)
		if i%97 == 0 {
			if !slices.Equal(content(&p), want) {
				t.Fatalf("after %d: %d are listed, from %d on; want %d, from %d on", i, p.Len(), *p.At(0), len(want), want[0])
			}
			if !slices.Equal(content(&shown), wanted) {
				t.Fatalf("after %d: a snapshot has changed", i)
			}
		}
		if i%(5*pageLength+31) == 0 {
			shown, wanted = p.Snapshot(), slices.Clone(want)
		}
	}
	for p.Len() > 0 {
		if *p.At(0) != want[0] {
			t.Fatalf("%d is the oldest, want %d", *p.At(0), want[0])
		}
		p.Pop()
		want = want[1:]
	}
	if p.Push(7); p.Len() != 1 || *p.At(0) != 7 || !slices.Equal(content(&shown), wanted) {
		t.Errorf("emptied and pushed to: %v", content(&p))
	}
}

// Once as much is listed as ever will be, pages are used again, unless a snapshot has them.
func TestPagedQueueAllocates(t *testing.T) {
	var p PagedQueue[int]
	turn := func() {
		for range 4 * pageLength {
			if p.Len() == 3*pageLength {
				p.Pop()
			}
			p.Push(1)
		}
	}
	turn()
	turn()
	if n := testing.AllocsPerRun(5, turn); n != 0 {
		t.Errorf("%v allocations, without a snapshot", n)
	}
	var kept PagedQueue[int]
	if n := testing.AllocsPerRun(5, func() {
		kept = p.Snapshot()
		turn()
	}); n < 3 || n > 10 {
		t.Errorf("%v allocations after a snapshot, want one for each of its pages and the next, and some", n)
	}
	if kept.Len() != 3*pageLength {
		t.Error("a snapshot of", kept.Len())
	}
}
