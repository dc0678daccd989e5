package placement

import (
	"cmp"
	"slices"
)

// MaxWeight is the largest weight of a member, and a larger one counts as MaxWeight: with greater
// differences the shares could be more than one shard away from what the weights ask for.
const MaxWeight = 8

// Member is a living server, as it describes itself in the store.
type Member struct {
	// ID is that of one process: a server that starts again has a new one, so that it does not take the
	// seats of its earlier life for its own.
	ID string `json:"id"`
	// Weight is the member's part of the shards, relative to the others. 0 means 1.
	Weight uint32 `json:"weight,omitempty"`
	// Draining means that the member wants to have no shards: it is about to leave.
	Draining bool `json:"draining,omitempty"`
	// Resting means that the member takes no seats for a while: Decision.Resting.
	Resting bool `json:"resting,omitempty"`
	// Reads is the newest format of journal entries that the member can read.
	Reads uint32 `json:"reads,omitempty"`
}

func (m *Member) weight() uint64 { return min(max(uint64(m.Weight), 1), MaxWeight) }

// Order returns the IDs of members in rendezvous order for a shard: the first should own it if all have
// room. If one leaves, the others keep their order. Over many shards, each member is the first of a part
// proportional to its weight.
//
// It is weighted rendezvous hashing (Schindelhauer and Schomaker 2005): with a hash u between 0 and 1 of
// shard and member, the order is that of -log2(u)/weight. The logarithm is computed in whole numbers, so
// that all machines agree.
func Order(shard int, members []Member) []string {
	list := candidates(shard, members)
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

// candidate is a member in the order for one shard.
type candidate struct {
	id           string
	member       int
	cost, weight uint64
}

func candidates(shard int, members []Member) []candidate {
	list := make([]candidate, len(members))
	for i := range members {
		m := &members[i]
		h := mix(hash(m.ID) + 0x9e3779b97f4a7c15*uint64(shard+1))
		list[i] = candidate{id: m.ID, member: i, cost: cost(h), weight: m.weight()}
	}
	slices.SortFunc(list, candidate.compare)
	return list
}

func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.cost*o.weight, o.cost*c.weight), cmp.Compare(c.id, o.id))
}

// ranks has for each shard the place of each member in the order for it.
type ranks [][]int

// rankCache keeps ranks for as long as the members are the same.
type rankCache struct {
	members []Member
	ranks   ranks
}

func (r *rankCache) of(shards int, members []Member) ranks {
	same := func(a, b Member) bool { return a.ID == b.ID && a.weight() == b.weight() }
	if len(r.ranks) == shards && slices.EqualFunc(r.members, members, same) {
		return r.ranks
	}
	r.members = slices.Clone(members)
	r.ranks = make(ranks, shards)
	for s := range r.ranks {
		r.ranks[s] = make([]int, len(members))
		for i, c := range candidates(s, members) {
			r.ranks[s][c.member] = i
		}
	}
	return r.ranks
}
