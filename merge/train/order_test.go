package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/internal/test/search"
)

// Random worlds with stacks, holds that come and go, and submissions that go ahead of others: nothing lands before its
// base, while it is held or without its check, what builds on a returned one never lands, and at the end each has left.
func TestRandomOrders(t *testing.T) {
	from, to := search.Seeds(t, 0, 400, 3000)
	for seed := from; seed < to; seed++ {
		random := rand.New(rand.NewPCG(seed, 5))
		n := 2 + random.IntN(14)
		base, impacts := map[ID]ID{}, map[ID][]string{}
		bad := map[ID]bool{}
		var list []ID
		for i := range n {
			id := ID(fmt.Sprintf("s%02d", i))
			if i > 0 && random.IntN(2) == 0 {
				base[id] = list[random.IntN(i)]
			}
			bad[id] = random.IntN(6) == 0
			impacts[id] = []string{fmt.Sprint(random.IntN(3))}
			list = append(list, id)
		}
		w := world{
			conflicts: func(tree []ID, id ID) bool { return base[id] != "" && !slices.Contains(tree, base[id]) },
			fails:     func(tree []ID) bool { return slices.ContainsFunc(tree, func(id ID) bool { return bad[id] }) },
		}
		config := Config{
			Runners: 1 + random.IntN(4), FirstBatch: 1 + random.IntN(4), Lanes: random.IntN(3) == 0, BlamesInRow: 100,
		}
		r := newRig(t, config, w, nil)
		r.random = random
		held := map[ID]bool{}
		r.mayLand = func(o Outcome) {
			if b := base[o.ID]; held[o.ID] || b != "" && !slices.Contains(r.landed, b) || r.back[b] != "" {
				t.Errorf("%s landed: held %v, its base %s, landed %v, returned %v", o.ID, held[o.ID], b, r.landed, r.back)
			}
		}
		// What builds on a returned one is withdrawn, as the caller does.
		unstack := func() {
			for again := true; again; {
				again = false
				for _, s := range r.train.Waiting() {
					if b := base[s.ID]; b != "" && r.back[b] != "" {
						r.train.Withdraw(s.ID)
						r.back[s.ID], again = "base", true
					}
				}
			}
		}
		for i, id := range list {
			s := Submission{ID: id, Place: 10 + uint64(i), After: base[id], Impacts: impacts[id]}
			if b := base[id]; r.back[b] != "" {
				r.back[id] = "base"
				continue
			} else if slices.Contains(r.landed, b) {
				s.After = ""
			}
			if waiting := r.train.Waiting(); len(waiting) > 0 && random.IntN(4) == 0 {
				o := waiting[random.IntN(len(waiting))]
				s.Place, s.Ahead = o.Place, 10+uint64(i)
			}
			r.train.Add(s)
			if held[id] = random.IntN(4) == 0; random.IntN(5) == 0 {
				clear(held)
			}
			r.train.Hold(copied(held))
			r.step()
			unstack()
			for len(r.ends) > 0 && random.IntN(2) == 0 {
				r.finish()
				unstack()
			}
		}
		clear(held)
		r.train.Hold(nil)
		r.step()
		unstack()
		r.step()
		for len(r.train.Waiting()) > 0 && !t.Failed() {
			if len(r.ends) == 0 {
				t.Fatalf("seed %d: nothing runs, and %v wait", seed, r.train.Waiting())
			}
			r.finish()
			unstack()
			r.step()
		}
		for _, id := range list {
			if want := bad[id] || r.back[base[id]] != ""; want == slices.Contains(r.landed, id) {
				t.Errorf("%s: landed %v, bad %v, base %q", id, !want, bad[id], base[id])
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, config)
		}
	}
}

func copied(m map[ID]bool) map[ID]bool {
	c := map[ID]bool{}
	for id, on := range m {
		if on {
			c[id] = true
		}
	}
	return c
}
