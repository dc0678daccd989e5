package engine

import (
	"slices"
	"testing"
)

// A list on pages is first in, first out, and a picture of it stays what it was, whatever
// is pushed and popped later.
func TestPages(t *testing.T) {
	var (
		p       pages[int]
		want    []int
		shown   pages[int]
		wanted  []int
		content = func(p *pages[int]) (list []int) {
			for i := range p.n {
				list = append(list, *p.at(i))
			}
			return list
		}
	)
	const most = 3*pageLength + 10
	for i := range 40 * pageLength {
		if p.n == most {
			p.pop()
			want = want[1:]
		}
		p.push(i)
		want = append(want, i)
		if i%97 == 0 {
			if !slices.Equal(content(&p), want) {
				t.Fatalf("after %d: %d are listed, from %d on; want %d, from %d on", i, p.n, *p.at(0), len(want), want[0])
			}
			if !slices.Equal(content(&shown), wanted) {
				t.Fatalf("after %d: a picture has changed", i)
			}
		}
		if i%(5*pageLength+31) == 0 {
			shown, wanted = p.picture(), slices.Clone(want)
		}
	}
	for p.n > 0 {
		if *p.at(0) != want[0] {
			t.Fatalf("%d is the oldest, want %d", *p.at(0), want[0])
		}
		p.pop()
		want = want[1:]
	}
	if p.push(7); p.n != 1 || *p.at(0) != 7 || !slices.Equal(content(&shown), wanted) {
		t.Errorf("emptied and pushed to: %v", content(&p))
	}
}

// Once as much is listed as ever will be, pages are used again, unless a picture has them.
func TestPagesAllocate(t *testing.T) {
	var p pages[int]
	turn := func() {
		for range 4 * pageLength {
			if p.n == 3*pageLength {
				p.pop()
			}
			p.push(1)
		}
	}
	turn()
	turn()
	if n := testing.AllocsPerRun(5, turn); n != 0 {
		t.Errorf("%v allocations, and nobody takes a picture", n)
	}
	var kept pages[int]
	if n := testing.AllocsPerRun(5, func() {
		kept = p.picture()
		turn()
	}); n < 3 || n > 10 {
		t.Errorf("%v allocations after a picture, want one for each of its pages and the next, and some", n)
	}
	if kept.n != 3*pageLength {
		t.Error("a picture of", kept.n)
	}
}
