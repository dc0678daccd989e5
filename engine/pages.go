package engine

import "slices"

// pages is a first-in, first-out list of what does not change any more, on pages of equal
// length. So a picture of it costs a list of its pages, however much there is on them: a
// page that is in a picture is never written over, only behind what it then had.
type pages[T any] struct {
	list  [][]T // all are full but the last one
	gone  int   // from the first page
	n     int
	shown int // how many of the first pages are in a picture
	spare []T // an empty page that is in none, or nil
}

// pageLength is how many stand on a page.
const pageLength = 256

func (p *pages[T]) push(v T) {
	last := len(p.list) - 1
	if last < 0 || len(p.list[last]) == pageLength {
		if p.spare == nil && last >= 0 { // a first page grows with what is on it
			p.spare = make([]T, 0, pageLength)
		}
		p.list, p.spare = append(p.list, p.spare), nil
		last++
	}
	p.list[last] = append(p.list[last], v)
	p.n++
}

// pop forgets the oldest.
func (p *pages[T]) pop() {
	p.n--
	if p.gone++; p.gone < pageLength {
		return
	}
	if p.shown > 0 {
		p.shown--
	} else {
		p.spare = p.list[0][:0]
	}
	p.list, p.gone = slices.Delete(p.list, 0, 1), 0
}

// at gives the one with i older ones.
func (p *pages[T]) at(i int) *T {
	i += p.gone
	return &p.list[i/pageLength][i%pageLength]
}

// picture gives the list as it is now, to be read at any time and by anybody.
func (p *pages[T]) picture() pages[T] {
	p.shown = len(p.list)
	return pages[T]{list: slices.Clone(p.list), gone: p.gone, n: p.n}
}
