package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestShares carries out the plan for random views: nothing is left to do, all shards have an owner, and
// the shares are even.
func TestShares(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		v := randomView(r)
		v = carryOut(t, seed, v)
		if p := NewPlan(v); len(p.Transfers) > 0 || slices.ContainsFunc(p.Takers, func(id string) bool { return id != "" }) {
			t.Fatalf("seed %d: after the plan another one: %+v", seed, p)
		}
		checkEven(t, seed, v)
	}
}

// checkEven checks that each member has its part of the shards: rounded to one of the next whole numbers
// if all have the same weight, and else one more or less at most.
func checkEven(t *testing.T, seed uint64, v View) {
	t.Helper()
	held, all, slack := loads(v), 0, 0
	for _, m := range v.Members {
		all += int(m.weight())
		if m.weight() != v.Members[0].weight() {
			slack = 1
		}
	}
	for _, m := range v.Members {
		part := len(v.Seats) * int(m.weight())
		if n := held[m.ID]; n < part/all-slack || n > (part+all-1)/all+slack {
			t.Errorf("seed %d: %s has %d of %d shards and weight %d of %d", seed, m.ID, n, len(v.Seats), m.weight(), all)
		}
	}
}

// TestLeaverAndJoiner removes a member, and adds it again: only its shards move, and it gets no more than
// its share back.
func TestLeaverAndJoiner(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		v := randomView(r)
		for i := range v.Members {
			v.Members[i].Weight = 0
		}
		if len(v.Members) < 2 {
			continue
		}
		v = carryOut(t, seed, v)
		leaver := v.Members[0]
		v.Members = v.Members[1:]
		p := NewPlan(v)
		for s := range v.Seats {
			if (p.Takers[s] != "") != (v.Seats[s].Holder == leaver.ID) {
				t.Fatalf("seed %d: %s left, and shard %d of %s goes to %q", seed, leaver.ID, s, v.Seats[s].Holder, p.Takers[s])
			}
		}
		if len(p.Transfers) > 0 {
			t.Fatalf("seed %d: %s left, and others' shards move: %+v", seed, leaver.ID, p.Transfers)
		}
		v = carryOut(t, seed, v)
		v.Members = append(v.Members, leaver)
		p = NewPlan(v)
		if want := len(v.Seats) / len(v.Members); len(p.Transfers) != want {
			t.Fatalf("seed %d: %s joins, and %d shards move, want %d", seed, leaver.ID, len(p.Transfers), want)
		}
		for _, m := range p.Transfers {
			if m.To != leaver.ID {
				t.Fatalf("seed %d: %s joins, and a shard moves past it: %+v", seed, leaver.ID, m)
			}
		}
	}
}

// TestFirstPlan has no shard owned: members with the same level are in rendezvous order.
func TestFirstPlan(t *testing.T) {
	members := []Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	v := View{Members: members, Seats: make([]Seat, 64)}
	takers := NewPlan(v).Takers
	for s := 0; s < len(takers); s += len(members) { // all have the same number of shards so far
		if want := Order(s, members)[0]; takers[s] != want {
			t.Errorf("%s takes shard %d, want %s", takers[s], s, want)
		}
	}
}

// TestPlanOfAll has the same members in another order, as another server may see them.
func TestPlanOfAll(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		v := randomView(r)
		spoil(r, v)
		want := NewPlan(v)
		v.Members = slices.Clone(v.Members)
		r.Shuffle(len(v.Members), func(i, j int) { v.Members[i], v.Members[j] = v.Members[j], v.Members[i] })
		if got := NewPlan(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v for one server, and %+v for another", seed, got, want)
		}
	}
}

// TestPlanOfOne compares the part of the plan that one member needs with the whole.
func TestPlanOfOne(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		v := randomView(r)
		spoil(r, v)
		whole := NewPlan(v)
		for _, m := range v.Members {
			var c rankCache
			table := newTable(v, &c)
			part := table.plan(table.find(m.ID))
			n := len(part.Transfers)
			if !slices.Equal(part.Takers, whole.Takers) || !slices.Equal(part.Transfers, whole.Transfers[:n]) {
				t.Fatalf("seed %d: for %s the plan is %+v, for all %+v", seed, m.ID, part, whole)
			}
			own := slices.IndexFunc(whole.Transfers, func(t Transfer) bool { return t.From == m.ID })
			to := slices.IndexFunc(whole.Transfers, func(t Transfer) bool { return t.To == m.ID })
			if own >= 0 && (to < 0 || to > own) && n != own+1 {
				t.Fatalf("seed %d: the plan for %s ends before %+v: %+v", seed, m.ID, whole.Transfers[own], part.Transfers)
			}
		}
	}
}

// TestRestingKeepsShare has members that rest: the shards that they should have wait for them, and no other
// receives more than its share in the meantime.
func TestRestingKeepsShare(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		v := View{Members: randomMembers(r, 2+r.IntN(8)), Seats: make([]Seat, 1+r.IntN(100))}
		for i := range v.Members {
			v.Members[i].Weight, v.Members[i].Resting = 1, r.IntN(3) == 0
		}
		for s := range v.Seats {
			v.Seats[s].Holder = v.Members[r.IntN(1+r.IntN(len(v.Members)))].ID
		}
		before := loads(v)
		v = carryOut(t, seed, v)
		share := (len(v.Seats) + len(v.Members) - 1) / len(v.Members)
		for id, n := range loads(v) {
			if n > max(share, before[id]) {
				t.Fatalf("seed %d: %s has %d shards after %d, and its share is %d", seed, id, n, before[id], share)
			}
		}
	}
}

// TestMixedPlans has members of several versions that drain and rest. Each plan is for members that are
// able; draining ones have nothing in the end and resting ones get nothing, where there are others; and
// plans come to an end without a shard that goes back to a member that it left.
func TestMixedPlans(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		v := randomView(r)
		spoil(r, v)
		left := map[string]bool{} // shards and the members that they left
		for rounds := 0; ; rounds++ {
			p := NewPlan(v)
			for s, id := range p.Takers {
				checkReceiver(t, seed, v, s, "", id)
			}
			for _, m := range p.Transfers {
				checkReceiver(t, seed, v, m.Shard, m.From, m.To)
				left[fmt.Sprint(m.Shard, m.From)] = true
				if left[fmt.Sprint(m.Shard, m.To)] {
					t.Fatalf("seed %d: shard %d goes back to %s", seed, m.Shard, m.To)
				}
			}
			if v = carryOut(t, seed, v); len(p.Transfers) == 0 {
				break
			}
			if rounds > len(v.Seats) {
				t.Fatalf("seed %d: plans do not come to an end: %+v", seed, p.Transfers)
			}
		}
		for s, seat := range v.Seats {
			if m := member(v, seat.Holder); m != nil && m.Draining && best(v, s) == present {
				t.Fatalf("seed %d: %s drains and keeps shard %d", seed, m.ID, s)
			}
		}
	}
}

// best is the tier of the best member that is able to own a shard.
func best(v View, shard int) tier {
	b := leaving + 1
	for _, m := range v.Members {
		if m.Reads >= v.Seats[shard].Needs {
			b = min(b, tierOf(&m))
		}
	}
	return b
}

func tierOf(m *Member) tier {
	switch {
	case m.Draining:
		return leaving
	case m.Resting:
		return hesitant
	}
	return present
}

func checkReceiver(t *testing.T, seed uint64, v View, shard int, from, to string) {
	t.Helper()
	m, giver := member(v, to), member(v, from)
	switch {
	case m == nil && giver == nil && (v.Seats[shard].Holder == from || best(v, shard) > leaving):
	case m == nil && member(v, v.Seats[shard].Holder) != nil:
	case m == nil:
		t.Fatalf("seed %d: none takes shard %d", seed, shard)
	case m.Reads < v.Seats[shard].Needs:
		t.Fatalf("seed %d: shard %d of format %d goes to %+v", seed, shard, v.Seats[shard].Needs, *m)
	case giver != nil && !giver.Draining && tierOf(m) != present:
		t.Fatalf("seed %d: shard %d goes from %s to %+v", seed, shard, from, *m)
	case tierOf(m) > best(v, shard):
		t.Fatalf("seed %d: shard %d goes to %+v, and there is a better one", seed, shard, *m)
	}
}

// carryOut returns the view after all of its plan.
func carryOut(t *testing.T, seed uint64, v View) View {
	t.Helper()
	p := NewPlan(v)
	v.Seats = slices.Clone(v.Seats)
	for s, id := range p.Takers {
		if id != "" {
			v.Seats[s].Holder = id
		}
	}
	for _, m := range p.Transfers {
		if v.Seats[m.Shard].Holder != m.From || m.From == m.To {
			t.Fatalf("seed %d: %+v, and %q has it", seed, m, v.Seats[m.Shard].Holder)
		}
		v.Seats[m.Shard].Holder = m.To
	}
	return v
}

func loads(v View) map[string]int {
	n := map[string]int{}
	for _, s := range v.Seats {
		n[s.Holder]++
	}
	return n
}

func member(v View, id string) *Member {
	for i := range v.Members {
		if v.Members[i].ID == id {
			return &v.Members[i]
		}
	}
	return nil
}

// randomView has seats that are free, of members, and of a server that is dead.
func randomView(r *rand.Rand) View {
	v := View{Members: randomMembers(r, 1+r.IntN(12)), Seats: make([]Seat, 1+r.IntN(100))}
	for s := range v.Seats {
		switch r.IntN(4) {
		case 0:
		case 1:
			v.Seats[s].Holder = "server-dead"
		default:
			v.Seats[s].Holder = v.Members[r.IntN(len(v.Members))].ID
		}
	}
	return v
}

// spoil adds members that drain and rest, and formats that some of them cannot read.
func spoil(r *rand.Rand, v View) {
	for i := range v.Members {
		m := &v.Members[i]
		m.Draining, m.Resting, m.Reads = r.IntN(4) == 0, r.IntN(4) == 0, uint32(1+r.IntN(3))
	}
	for s := range v.Seats {
		v.Seats[s].Needs = uint32(r.IntN(4))
		if m := member(v, v.Seats[s].Holder); m != nil {
			v.Seats[s].Needs = min(v.Seats[s].Needs, m.Reads)
		}
	}
}
