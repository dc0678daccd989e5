package store

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// The division of a partitioned key's parts among its members. These functions know nothing of
// leases: members are numbers, and the present owner of each part is an index into members, or
// -1 for none. The result has the new owners. The same arguments yield the same result on every
// machine.

// divisionInput is the input of a division.
type divisionInput struct {
	members []uint64 // their numbers, ascending, at least one
	now     []int    // the present owner of each part
	load    []uint32 // the load observed below each part

	looks int // parts and members that the division was compared by
}

// divide returns for each part the index of the member that is to have it.
func (s *divisionInput) divide(how interlock.Division) []int {
	switch how {
	case interlock.ByRange:
		return s.byRange()
	case interlock.ByLoad:
		return s.byLoad()
	}
	return s.byHash()
}

// byHash moves as few parts as an even division allows. A member above its share loses the
// parts with which it hashes lowest, and each part without a member goes to the one with room
// that hashes highest with it: rendezvous hashing (Thaler and Ravishankar, 1998), with a bound
// on each member.
func (s *divisionInput) byHash() []int {
	want := slices.Clone(s.now)
	room := s.shares()
	for _, m := range want {
		if m >= 0 {
			room[m]--
		}
	}
	for m, n := range room {
		if n < 0 {
			s.shed(want, m, -n)
			room[m] = 0
		}
	}
	var open []int // members with room
	for m, n := range room {
		if n > 0 {
			open = append(open, m)
		}
	}
	for part, m := range want {
		if m >= 0 {
			continue
		}
		var best uint32
		at := 0
		for i, other := range open {
			if h := s.hash(part, other); i == 0 || h > best {
				best, at = h, i
			}
		}
		s.looks += len(open)
		m = open[at]
		want[part] = m
		if room[m]--; room[m] == 0 {
			open = slices.Delete(open, at, at+1)
		}
	}
	return want
}

// shares returns the target number of parts of each member. If the parts cannot be divided
// evenly, the members with the most parts get one more, then the older ones.
func (s *divisionInput) shares() []int {
	has := make([]int, len(s.members))
	for _, m := range s.now {
		if m >= 0 {
			has[m]++
		}
	}
	order := make([]int, len(s.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(has[b], has[a]) })
	share := make([]int, len(s.members))
	for i, m := range order {
		share[m] = len(s.now) / len(s.members)
		if i < len(s.now)%len(s.members) {
			share[m]++
		}
	}
	return share
}

// shed takes count parts from a member: those with which it hashes lowest.
func (s *divisionInput) shed(want []int, member, count int) {
	var has []int
	s.looks += len(want)
	for part, m := range want {
		if m == member {
			has = append(has, part)
		}
	}
	slices.SortStableFunc(has, func(a, b int) int { return cmp.Compare(s.hash(a, member), s.hash(b, member)) })
	for _, part := range has[:count] {
		want[part] = -1
	}
}

func (s *divisionInput) hash(part, member int) uint32 {
	return collection.Mix(s.members[member]*interlock.MaxParts + uint64(part))
}

// byRange returns the members neighbouring parts, in the order of their numbers.
func (s *divisionInput) byRange() []int {
	want := make([]int, len(s.now))
	for part := range want {
		want[part] = part * len(s.members) / len(want)
	}
	return want
}

// byLoad leaves each part in place, assigns those without a member to the member with the least
// load, the heaviest first, and then moves parts from the most loaded member to the least
// loaded one while that narrows the gap by more than an eighth of the average load. A part
// counts for one more than the load observed below it, so that idle parts are divided, too.
func (s *divisionInput) byLoad() []int {
	want := slices.Clone(s.now)
	sums := make([]uint64, len(s.members))
	var total uint64
	var free []int
	for part, m := range want {
		total += s.weight(part)
		if m >= 0 {
			sums[m] += s.weight(part)
		} else {
			free = append(free, part)
		}
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(s.weight(b), s.weight(a)) })
	for _, part := range free {
		m := extreme(sums, -1)
		s.looks += len(sums)
		want[part] = m
		sums[m] += s.weight(part)
	}
	heavy := func(a, b int) int {
		return cmp.Or(cmp.Compare(s.weight(b), s.weight(a)), cmp.Compare(a, b))
	}
	lists := make([][]int, len(s.members)) // the parts of each, the heaviest first
	for part, m := range want {
		lists[m] = append(lists[m], part)
	}
	for _, list := range lists {
		slices.SortFunc(list, heavy)
	}
	even := total / uint64(len(s.members)) / 8
	for range len(want)/len(s.members) + 1 {
		high, low := extreme(sums, 1), extreme(sums, -1)
		gap := sums[high] - sums[low]
		s.looks += 2 * len(sums)
		i, _ := slices.BinarySearchFunc(lists[high], gap, func(part int, gap uint64) int {
			if 2*s.weight(part) > gap {
				return -1
			}
			return 1
		})
		if i == len(lists[high]) || gap <= even {
			break
		}
		best := lists[high][i]
		lists[high] = slices.Delete(lists[high], i, i+1)
		at, _ := slices.BinarySearchFunc(lists[low], best, heavy)
		lists[low] = slices.Insert(lists[low], at, best)
		want[best] = low
		sums[high] -= s.weight(best)
		sums[low] += s.weight(best)
	}
	return want
}

func (s *divisionInput) weight(part int) uint64 { return 1 + uint64(s.load[part]) }

// extreme returns the first index of the largest sum, with sign 1, or of the smallest,
// with sign -1.
func extreme(sums []uint64, sign int) (at int) {
	for i, sum := range sums {
		if sign*cmp.Compare(sum, sums[at]) > 0 {
			at = i
		}
	}
	return at
}
