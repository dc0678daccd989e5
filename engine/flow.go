package engine

import (
	"cmp"
	"slices"
	"strings"
)

// flow is one thread of control inside a session. It is the unit that holds and
// waits, so what one flow holds is never in its own way.
type flow struct {
	sess   *session
	name   string
	leases []*request      // in no order
	waits  []*request      // in the order of their numbers
	torn   bool            // stands in space.torn
	index  map[*node]tally // what it has where; nil while it has few requests
}

// tear keeps the namespace's list of flows that hold and wait.
func (f *flow) tear() {
	torn := len(f.leases) > 0 && len(f.waits) > 0
	if torn == f.torn {
		return
	}
	f.torn = torn
	s := f.sess.space
	i, _ := slices.BinarySearchFunc(s.torn, f, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.sess.num, b.sess.num), strings.Compare(a.name, b.name))
	})
	if torn {
		s.torn = slices.Insert(s.torn, i, f)
	} else {
		s.torn = slices.Delete(s.torn, i, i+1)
	}
}

// tally is what a flow has at one key: holdings by mode, and places in line.
type tally struct {
	granted [modeCount]uint32
	waits   uint32
}

// A flow has an index of its tallies from manyRequests on, and none below
// fewRequests: most flows have one request at a time, and looking through few
// costs less than keeping an index.
const (
	manyRequests = 16
	fewRequests  = 8
)

// at gives what the flow has at n.
func (f *flow) at(n *node) (t tally) {
	if f == nil {
		return t
	}
	if f.index != nil {
		return f.index[n]
	}
	for _, r := range f.leases {
		if m := r.needAt(n); m != nil {
			t.granted[m.mode]++
		}
	}
	for _, r := range f.waits {
		if r.needAt(n) != nil {
			t.waits++
		}
	}
	return t
}

// holds reports whether t has any holding.
func (t tally) holds() bool { return t.granted != [modeCount]uint32{} }

// add counts r's needs, held or waited for, in the index.
func (f *flow) add(r *request, waits bool, by uint32) {
	for i := range r.needs {
		m := &r.needs[i]
		t := f.index[m.node]
		if waits {
			t.waits += by
		} else {
			t.granted[m.mode] += by
		}
		if t == (tally{}) {
			delete(f.index, m.node)
		} else {
			f.index[m.node] = t
		}
	}
}

// joined and parted keep what depends on a flow's requests. They are called after
// r was put in f.leases or f.waits, or taken out.
func (f *flow) joined(r *request, waits bool) {
	f.sess.work++
	f.tear()
	if f.index != nil {
		f.add(r, waits, 1)
	} else if len(f.leases)+len(f.waits) >= manyRequests {
		f.index = map[*node]tally{}
		for _, l := range f.leases {
			f.add(l, false, 1)
		}
		for _, w := range f.waits {
			f.add(w, true, 1)
		}
	}
}

func (f *flow) parted(r *request, waits bool) {
	f.sess.work--
	f.tear()
	if len(f.leases)+len(f.waits) < fewRequests {
		f.index = nil
	} else if f.index != nil {
		f.add(r, waits, ^uint32(0))
	}
}
