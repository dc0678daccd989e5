package placement

import (
	"cmp"
	"slices"
)

// MaxWeight is the largest weight of a member. A larger one counts as MaxWeight.
const MaxWeight = 1000

// Member is a living server, as it describes itself in the store.
type Member struct {
	// ID is the same after a restart, and no two servers have the same.
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
	list := make([]candidate, len(members))
	for i := range members {
		list[i] = candidate{id: members[i].ID, weight: members[i].weight()}
		list[i].cost = cost(mix(hash(list[i].id) + 0x9e3779b97f4a7c15*uint64(shard+1)))
	}
	slices.SortFunc(list, candidate.compare)
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

type candidate struct {
	id           string
	cost, weight uint64
}

func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.cost*o.weight, o.cost*c.weight), cmp.Compare(c.id, o.id))
}
