package store

import (
	rand "math/rand/v2"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
)

// Members come and go at random. After each change every part has a member, the
// division is as even as it promises, and it moved no more than it had to.
func TestDivisionsAreEven(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		parts := 1 + rnd.IntN(64)
		s := divisionInput{now: make([]int, parts), load: make([]uint32, parts)}
		for i := range s.now {
			s.now[i] = -1
			s.load[i] = uint32(rnd.IntN(100))
		}
		owners := make([]uint64, parts) // by number; 0 for none
		how := interlock.Division(rnd.IntN(3))
		next := uint64(1)
		for range 20 {
			if n := len(s.members); n > 1 && rnd.IntN(2) == 0 {
				s.members = slices.Delete(s.members, n/2, n/2+1)
			} else {
				s.members = append(s.members, next)
				next += 1 + rnd.Uint64N(5)
			}
			lost := 0
			for i, owner := range owners {
				if s.now[i] = slices.Index(s.members, owner); s.now[i] < 0 {
					lost++
				}
			}
			want := s.divide(how)
			if !slices.Equal(want, s.divide(how)) {
				t.Fatalf("seed %d: the same division comes out twice differently", seed)
			}
			checkDivision(t, seed, how, &s, want, lost)
			for i, m := range want {
				owners[i] = s.members[m]
			}
		}
	}
}

func checkDivision(t *testing.T, seed uint64, how interlock.Division, s *divisionInput, want []int, lost int) {
	t.Helper()
	has, sums := make([]int, len(s.members)), make([]uint64, len(s.members))
	had := make([]int, len(s.members))
	moved, heaviest := 0, uint64(0)
	for i, m := range want {
		if m < 0 || m >= len(s.members) {
			t.Fatalf("seed %d: part %d goes to member %d of %d", seed, i, m, len(s.members))
		}
		has[m]++
		sums[m] += s.weight(i)
		heaviest = max(heaviest, s.weight(i))
		if m != s.now[i] {
			moved++
		}
		if s.now[i] >= 0 {
			had[s.now[i]]++
		}
	}
	if how != interlock.ByLoad {
		if slices.Max(has)-slices.Min(has) > 1 {
			t.Fatalf("seed %d, %v: members have %v parts", seed, how, has)
		}
	} else if gap := sums[extreme(sums, 1)] - sums[extreme(sums, -1)]; lost == len(want) && gap > heaviest {
		t.Fatalf("seed %d, %v: members have %v", seed, how, sums)
	}
	if how == interlock.ByRange && !slices.IsSorted(want) {
		t.Fatalf("seed %d: the ranges are %v", seed, want)
	}
	if how == interlock.ByHash {
		must := lost
		for m, share := range s.shares() {
			must += max(0, had[m]-share)
		}
		if moved != must {
			t.Fatalf("seed %d: %d parts move, and %d had to", seed, moved, must)
		}
	}
}

// A new member gets about its share of the load, however it is spread, and idle parts are
// spread, too.
func TestLoadIsEvenedOut(t *testing.T) {
	s := divisionInput{members: []uint64{1, 2}, now: make([]int, 100), load: make([]uint32, 100)}
	for i := range 10 {
		s.load[i] = 99
	}
	want := s.divide(interlock.ByLoad)
	var sums [2]uint64
	moved := 0
	for i, m := range want {
		sums[m] += s.weight(i)
		moved += m
	}
	if sums[0]+sums[1] != 1090 || max(sums[0], sums[1]) > 545+545/8 || moved > 51 {
		t.Errorf("the members have loads of %v after %d moves", sums, moved)
	}
	s.now = want
	if again := s.divide(interlock.ByLoad); !slices.Equal(again, want) {
		t.Error("an even division is divided again")
	}
}
