package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/internal/test/search"
)

// impacts returns a queue of submissions that affect the named parts, one letter for each part.
func impacts(parts ...string) (queue []Submission, list []ID) {
	queue, list = ids(len(parts))
	for i, p := range parts {
		for _, letter := range p {
			queue[i].Impacts = append(queue[i].Impacts, string(letter))
		}
	}
	return queue, list
}

func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []string
		want  string // the lanes, as indices into the queue
	}{
		{"disjoint", []string{"a", "b", "c"}, "[[0] [1] [2]]"},
		{"one part", []string{"a", "b", "a"}, "[[0 2] [1]]"},
		{"a chain of overlaps", []string{"a", "ab", "b"}, "[[0 1 2]]"},
		{"two lanes joined: the third waits", []string{"a", "b", "ab"}, "[[0] [1]]"},
		{"later ones do not overtake it", []string{"a", "b", "ab", "a", "c", "b"}, "[[0] [1] [4]]"},
		{"nor those behind it alone", []string{"a", "b", "abc", "c"}, "[[0] [1]]"},
		{"everything waits for all", []string{"a", "b", "", "c"}, "[[0] [1]]"},
		{"everything first", []string{"", "a", "b"}, "[[0 1 2]]"},
	} {
		queue, list := impacts(c.parts...)
		r := newRig(t, Config{Lanes: true}, world{}, queue)
		var got [][]int
		for _, lane := range r.train.lanes() {
			var indices []int
			for _, s := range lane {
				indices = append(indices, slices.Index(list, s.ID))
			}
			got = append(got, indices)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	queue, _ := impacts("a", "b")
	if r := newRig(t, Config{}, world{}, queue); len(r.train.lanes()) != 1 {
		t.Errorf("%d lanes without Config.Lanes, want 1", len(r.train.lanes()))
	}
}

// A failure in one lane does not delay another one.
func TestLanesDoNotWaitForEachOther(t *testing.T) {
	queue, list := impacts("a", "a", "b", "b")
	w := world{fails: func(tree []ID) bool { return slices.Contains(tree, list[0]) }}
	r := newRig(t, Config{Runners: 2, Lanes: true}, w, queue)
	r.step()
	r.finish()
	if want := list[2:]; !slices.Equal(r.landed, want) {
		t.Errorf("after one minute %v have landed, want %v", r.landed, want)
	}
	r.run()
	if want := []ID{list[2], list[3], list[1]}; !slices.Equal(r.landed, want) {
		t.Errorf("landed %v, want %v", r.landed, want)
	}
}

// Random queues in lanes: the same submissions land as in a serial queue, those that overlap in their order, and
// what landed without having been checked as it is was marked and checked later.
func TestRandomLanes(t *testing.T) {
	from, to := search.Seeds(t, 0, 500, 1500)
	for seed := from; seed < to; seed++ {
		random := rand.New(rand.NewPCG(seed, 4))
		n := 1 + random.IntN(30)
		parts := make([]string, n)
		for i := range parts {
			for range 1 + random.IntN(10)/8 {
				parts[i] += string(rune('a' + random.IntN(5)))
			}
			if random.IntN(20) == 0 {
				parts[i] = ""
			}
		}
		queue, list := impacts(parts...)
		overlap := func(a, b ID) bool {
			x, y := queue[slices.Index(list, a)].Impacts, queue[slices.Index(list, b)].Impacts
			return len(x) == 0 || len(y) == 0 || slices.ContainsFunc(x, func(i string) bool { return slices.Contains(y, i) })
		}
		var bad [][]ID
		for range random.IntN(6) {
			a, b := list[random.IntN(n)], list[random.IntN(n)]
			if overlap(a, b) {
				bad = append(bad, []ID{a, b})
			}
		}
		w := world{fails: func(tree []ID) bool {
			return slices.ContainsFunc(bad, func(set []ID) bool { return subset(set, tree) })
		}}
		every := 1 + random.IntN(5)
		config := Config{Runners: 1 + random.IntN(8), FirstBatch: 1 + random.IntN(4), Lanes: true, WholeEvery: every}
		r := newRig(t, config, w, queue)
		r.random = random
		r.run()
		landed, back := w.serial(list)
		if fmt.Sprint(back) != fmt.Sprint(r.back) || !slices.Equal(landed, slices.Sorted(slices.Values(r.landed))) {
			t.Fatalf("seed %d: landed %v and returned %v, want %v and %v", seed, r.landed, r.back, landed, back)
		}
		for i, a := range r.landed {
			for _, b := range r.landed[i+1:] {
				if overlap(a, b) && b < a {
					t.Fatalf("seed %d: %s landed after %s, which was behind it", seed, b, a)
				}
			}
		}
	}
}

// After WholeEvery landings apart the whole head is checked. If it fails, the lanes are one until it is repaired.
func TestWholeHeadIsChecked(t *testing.T) {
	queue, list := impacts("a", "b", "c", "d")
	repair := list[3]
	w := world{fails: func(tree []ID) bool {
		return subset([]ID{list[0], list[1]}, tree) && !slices.Contains(tree, repair)
	}}
	r := newRig(t, Config{Runners: 2, Lanes: true, WholeEvery: 1}, w, queue[:3])
	r.step()
	for len(r.ends) > 0 {
		r.finish()
	}
	if r.train.Stats().Apart == 0 {
		t.Fatalf("no landing was marked: %v", r.landed)
	}
	if !r.train.HeadFails() {
		t.Fatalf("%v are red together, and the head does not fail", r.landed)
	}
	r.train.Add(queue[3])
	r.run()
	if r.train.HeadFails() || !slices.Contains(r.landed, repair) {
		t.Errorf("after the repair: landed %v, head fails: %v", r.landed, r.train.HeadFails())
	}
}
