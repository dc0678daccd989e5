package placement

import (
	"cmp"
	"slices"
	"strings"
)

// View is what a server sees in the store at one time.
type View struct {
	Members []Member // the living ones, in any order
	Seats   []Seat   // of shard 0, 1 and so on
}

// Seat is the seat of a shard, as a server sees it.
type Seat struct {
	// Holder is the ID of the member that holds the seat, or "" if it is free. The seat of an earlier
	// process of a member is held by no member until its time is over: Former.
	Holder string
	// Needs is the format of the newest entry of the shard's journal: only members with Reads at least
	// Needs can own it.
	Needs uint32
}

// Former is the holder of a seat that an earlier process of the same member took, and that is not over
// yet. No member has this ID.
const Former = "\x00former"

// Plan is what all servers do about a view. It depends on nothing else.
type Plan struct {
	// Takers has for each shard without a living holder the member that takes it, and "" for the others.
	// It is also "" if no living member can read the shard's journal.
	Takers []string
	// Transfers are the moves that make the shares even, in the order of their use. Each server carries
	// out those from itself.
	Transfers []Transfer
}

// Transfer is a move of a held shard from a member to another.
type Transfer struct {
	Shard    int
	From, To string
	// Drains means that From is draining.
	Drains bool
}

// NewPlan returns the plan for a view.
func NewPlan(v View) Plan { return newTable(v).plan() }

// table is a view in the form in which it is planned with.
type table struct {
	members []Member // by ID
	held    []uint64 // by member: the shards that it holds, or is to have
	tiers   []tier   // by member
	seats   []Seat
	holders []int // by shard: the member, or -1
	rank    [][]int
}

// tier is how much a member is to be preferred for a shard, whatever it holds.
type tier int

const (
	present  tier = iota
	hesitant      // it rests, or left a seat free that was its to take
	leaving       // it drains
)

func newTable(v View) *table {
	t := &table{members: slices.Clone(v.Members), seats: v.Seats}
	slices.SortFunc(t.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	t.members = slices.CompactFunc(t.members, func(a, b Member) bool { return a.ID == b.ID })
	t.held = make([]uint64, len(t.members))
	t.tiers = make([]tier, len(t.members))
	for i, m := range t.members {
		switch {
		case m.Draining:
			t.tiers[i] = leaving
		case m.Resting:
			t.tiers[i] = hesitant
		}
	}
	t.holders = make([]int, len(t.seats))
	t.rank = make([][]int, len(t.seats))
	for s, seat := range t.seats {
		t.holders[s] = t.find(seat.Holder)
		if m := t.holders[s]; m >= 0 {
			t.held[m]++
		}
		t.rank[s] = make([]int, len(t.members))
		for i, id := range Order(s, t.members) {
			t.rank[s][t.find(id)] = i
		}
	}
	return t
}

// find returns the number of the member with an ID, or -1.
func (t *table) find(id string) int {
	i, ok := slices.BinarySearchFunc(t.members, id, func(m Member, id string) int { return strings.Compare(m.ID, id) })
	if !ok {
		return -1
	}
	return i
}

func (t *table) able(m, shard int) bool { return t.members[m].Reads >= t.seats[shard].Needs }

// level is a fraction.
type level struct{ num, den uint64 }

func (l level) compare(o level) int { return cmp.Compare(l.num*o.den, o.num*l.den) }

// above is the level of a member that receives one more shard, below that of one that loses one. A shard
// moves only if the receiver's level is lower than the loser's. That is so exactly if the move lowers
// the sum of held²/weight over all members.
func (t *table) above(m int) level { return level{2*t.held[m] + 1, t.members[m].weight()} }

func (t *table) below(m int) level { return level{2*t.held[m] - 1, t.members[m].weight()} }

// choice returns the member that is to have a shard, other than one, or -1.
func (t *table) choice(shard, other int) int {
	best := -1
	for m := range t.members {
		if m == other || !t.able(m, shard) {
			continue
		}
		if best < 0 || cmp.Or(
			cmp.Compare(t.tiers[m], t.tiers[best]),
			t.above(m).compare(t.above(best)),
			cmp.Compare(t.rank[shard][m], t.rank[shard][best]),
		) < 0 {
			best = m
		}
	}
	return best
}

func (t *table) plan() Plan {
	p := Plan{Takers: make([]string, len(t.seats))}
	for s, holder := range t.holders {
		if holder >= 0 {
			continue
		}
		if m := t.choice(s, -1); m >= 0 {
			p.Takers[s] = t.members[m].ID
			t.held[m]++
		}
	}
	for {
		s, to := t.transfer()
		if s < 0 {
			return p
		}
		from := t.holders[s]
		p.Transfers = append(p.Transfers, Transfer{
			Shard: s, From: t.members[from].ID, To: t.members[to].ID, Drains: t.tiers[from] == leaving,
		})
		t.held[from]--
		t.held[to]++
		t.holders[s] = -1 // a plan moves a shard once
	}
}

// transfer returns the best next move, or -1. Those from draining members come first, then those from the
// highest to the lowest level, and of several the one that leads to the higher rank in rendezvous order.
func (t *table) transfer() (shard, to int) {
	shard, to = -1, -1
	for s, from := range t.holders {
		if from < 0 {
			continue
		}
		m := t.choice(s, from)
		if m < 0 || !t.better(s, from, m) {
			continue
		}
		if shard < 0 || cmp.Or(
			cmp.Compare(t.tiers[t.holders[shard]]/leaving, t.tiers[from]/leaving),
			t.below(t.holders[shard]).compare(t.below(from)),
			t.above(m).compare(t.above(to)),
			cmp.Compare(t.rank[s][m], t.rank[shard][to]),
		) < 0 {
			shard, to = s, m
		}
	}
	return shard, to
}

// better reports whether a shard should move.
func (t *table) better(shard, from, to int) bool {
	if t.tiers[from] == leaving {
		return t.tiers[to] < leaving
	}
	return t.tiers[to] == present && t.above(to).compare(t.below(from)) < 0
}
