package placement

import (
	"cmp"
	"slices"
	"strings"
)

// View is what a server sees in the store at one time.
type View struct {
	// Members are the living ones, in any order. A server that begins to drain has that in its own view at
	// once, and does not wait until the store has it.
	Members []Member
	Seats   []Seat // of shard 0, 1 and so on
}

// Seat is the seat of a shard, as a server sees it.
type Seat struct {
	// Holder is the ID of the member that holds the seat, or "" if it is free. It may be that of a server
	// that is dead: then no member holds the seat, and it becomes free when its time is over.
	Holder string
	// Needs is the format of the newest entry of the shard's journal: only members with Reads at least
	// Needs can own it.
	Needs uint32
}

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
func NewPlan(v View) Plan {
	var c rankCache
	return newTable(v, &c).plan(-1)
}

// table is a view in the form in which it is planned with.
type table struct {
	members []Member // by ID
	weights []uint64 // by member
	held    []uint64 // by member: the shards that it holds, or is to have
	now     []uint64 // the same without transfers that are put off
	tiers   []tier   // by member
	seats   []Seat
	holders []int // by shard: the member, or -1
	rank    ranks
}

// tier is how much a member is to be preferred for a shard, whatever it holds.
type tier int

const (
	present  tier = iota
	hesitant      // it rests, or left a seat free that was its to take
	leaving       // it drains
)

func newTable(v View, cache *rankCache) *table {
	t := &table{members: slices.Clone(v.Members), seats: v.Seats}
	slices.SortFunc(t.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	t.members = slices.CompactFunc(t.members, func(a, b Member) bool { return a.ID == b.ID })
	t.weights = make([]uint64, len(t.members))
	t.held = make([]uint64, len(t.members))
	t.now = make([]uint64, len(t.members))
	t.tiers = make([]tier, len(t.members))
	for i, m := range t.members {
		t.weights[i] = m.weight()
		switch {
		case m.Draining:
			t.tiers[i] = leaving
		case m.Resting:
			t.tiers[i] = hesitant
		}
	}
	t.rank = cache.of(len(t.seats), t.members)
	t.holders = make([]int, len(t.seats))
	for s, seat := range t.seats {
		t.holders[s] = t.find(seat.Holder)
		if m := t.holders[s]; m >= 0 {
			t.held[m]++
		}
	}
	return t
}

// doubt makes a member hesitant.
func (t *table) doubt(m int) { t.tiers[m] = max(t.tiers[m], hesitant) }

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
func (t *table) above(held []uint64, m int) level { return level{2*held[m] + 1, t.weights[m]} }

func (t *table) below(held []uint64, m int) level { return level{2*max(held[m], 1) - 1, t.weights[m]} }

// taker returns the member that is to take a shard, or -1.
func (t *table) taker(shard int) int { return t.choice(shard, -1, present) }

// receiver returns the member that is to have a shard instead of its holder, or -1. It may be a hesitant
// one: then the shard stays until that is present, instead of taking a way round.
func (t *table) receiver(shard, from int) int {
	if t.tiers[from] == leaving {
		return t.choice(shard, from, present)
	}
	return t.choice(shard, from, hesitant)
}

// choice returns the member that is best for a shard, besides one, or -1. Tiers up to alike count as one.
func (t *table) choice(shard, besides int, alike tier) int {
	best := -1
	rank := t.rank[shard]
	for m := range t.members {
		if m == besides || !t.able(m, shard) {
			continue
		}
		if best < 0 || cmp.Or(
			cmp.Compare(max(t.tiers[m], alike), max(t.tiers[best], alike)),
			t.above(t.held, m).compare(t.above(t.held, best)),
			cmp.Compare(rank[m], rank[best]),
		) < 0 {
			best = m
		}
	}
	return best
}

// plan returns the plan, or as much of it as one member needs to know: the takers, and the transfers up to
// the first that is its own. It may leave out one that comes after others to this member: a later view
// shows it.
func (t *table) plan(me int) Plan {
	p := Plan{Takers: t.takers()}
	copy(t.now, t.held)
	for me < 0 || t.passesOn(me, t.lowest()) {
		s, to := t.transfer()
		if s < 0 {
			break
		}
		from := t.holders[s]
		drains := t.tiers[from] == leaving
		if drains || t.tiers[to] == present && t.above(t.now, to).compare(t.below(t.now, from)) < 0 {
			p.Transfers = append(p.Transfers, Transfer{s, t.members[from].ID, t.members[to].ID, drains})
			if from == me {
				break
			}
			t.now[from]--
			t.now[to]++
		}
		t.held[from]--
		t.held[to]++
		t.holders[s] = -1 // a plan moves a shard once
	}
	return p
}

// takers returns Plan.Takers, and counts what they are to take as theirs.
func (t *table) takers() []string {
	takers := make([]string, len(t.seats))
	for s, holder := range t.holders {
		if holder >= 0 {
			continue
		}
		if m := t.taker(s); m >= 0 {
			takers[s] = t.members[m].ID
			t.held[m]++
		}
	}
	return takers
}

// transfer returns the best next move, or -1. Those from draining members come first, then those from the
// highest to the lowest level, and of several the one that leads to the higher rank in rendezvous order.
func (t *table) transfer() (shard, to int) {
	shard, to = -1, -1
	lowest := t.lowest()
	for s, from := range t.holders {
		if from < 0 || !t.passesOn(from, lowest) {
			continue
		}
		first := -1 // whether this giver is before that of the best so far
		if shard >= 0 {
			first = cmp.Or(
				cmp.Compare(t.tiers[t.holders[shard]]/leaving, t.tiers[from]/leaving),
				t.below(t.held, t.holders[shard]).compare(t.below(t.held, from)),
			)
		}
		if first > 0 {
			continue
		}
		m := t.receiver(s, from)
		if m < 0 || !t.better(s, from, m) {
			continue
		}
		if first < 0 || cmp.Or(
			t.above(t.held, m).compare(t.above(t.held, to)),
			cmp.Compare(t.rank[s][m], t.rank[shard][to]),
		) < 0 {
			shard, to = s, m
		}
	}
	return shard, to
}

// passesOn reports whether a member may have to pass on a shard when this is the lowest level. The lowest
// level never falls in the course of a plan.
func (t *table) passesOn(m int, lowest level) bool {
	return t.tiers[m] == leaving || lowest.compare(t.below(t.held, m)) < 0
}

// lowest returns the lowest level of a member that stays.
func (t *table) lowest() level {
	l := level{1, 0}
	for m := range t.members {
		if above := t.above(t.held, m); t.tiers[m] < leaving && above.compare(l) < 0 {
			l = above
		}
	}
	return l
}

// better reports whether a shard should move.
func (t *table) better(shard, from, to int) bool {
	if t.tiers[from] == leaving {
		return t.tiers[to] < leaving
	}
	return t.tiers[to] < leaving && t.above(t.held, to).compare(t.below(t.held, from)) < 0
}
