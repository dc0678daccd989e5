package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrderForEver has values on which servers of different versions must agree.
func TestOrderForEver(t *testing.T) {
	members := []Member{{ID: "a"}, {ID: "b"}, {ID: "c", Weight: 3}, {ID: "server-4.example:7000"}}
	want := []string{
		"[c b server-4.example:7000 a]",
		"[c server-4.example:7000 b a]",
		"[c server-4.example:7000 b a]",
		"[c b a server-4.example:7000]",
		"[c server-4.example:7000 a b]",
		"[c a server-4.example:7000 b]",
		"[a c server-4.example:7000 b]",
		"[c a server-4.example:7000 b]",
	}
	var got []string
	for shard := range 8 {
		got = append(got, fmt.Sprint(Order(shard, members)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the orders are\n%q, want\n%q", got, want)
	}
}

// TestLeaver removes one member from a set of them: all others keep their order, for every shard.
func TestLeaver(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		members := randomMembers(r, 1+r.IntN(9))
		leaver := r.IntN(len(members))
		rest := slices.Delete(slices.Clone(members), leaver, leaver+1)
		for shard := range 64 {
			before := Order(shard, members)
			before = slices.DeleteFunc(before, func(id string) bool { return id == members[leaver].ID })
			if after := Order(shard, rest); !slices.Equal(before, after) {
				t.Fatalf("seed %d: shard %d: %v, and %v after %s left", seed, shard, before, after, members[leaver].ID)
			}
		}
	}
}

// TestOrderByWeight counts of how many shards each member is the first.
func TestOrderByWeight(t *testing.T) {
	members := []Member{{ID: "a"}, {ID: "b", Weight: 1}, {ID: "c", Weight: 2}, {ID: "d", Weight: 6}}
	const shards = 100_000
	first := map[string]int{}
	for shard := range shards {
		first[Order(shard, members)[0]]++
	}
	for i := range members {
		mean := shards * float64(members[i].weight()) / 10
		if n := first[members[i].ID]; math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
			t.Errorf("%s is the first of %d shards, want about %.0f", members[i].ID, n, mean)
		}
	}
}

func randomMembers(r *rand.Rand, n int) []Member {
	members := make([]Member, n)
	weighted := r.IntN(2) == 0
	for i := range members {
		members[i].ID = fmt.Sprintf("server-%d", i)
		if weighted {
			members[i].Weight = uint32(max(1, r.IntN(2*MaxWeight)-MaxWeight)) // more than half have 1
		}
	}
	r.Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
	return members
}
