package placement

import (
	"strconv"
	"time"
)

// Times of the simulated servers and of their store, as in production.
const (
	seatTTL   = 4 * time.Second
	memberTTL = 4 * time.Second
	pollEvery = seatTTL / 8
	renewal   = seatTTL / 4
	stopTime  = 500 * time.Millisecond // to close a shard in order
)

// simStore holds the seats and the members. Its rule is the only authority: a seat that is not over is
// taken by none but its holder.
type simStore struct {
	now     time.Duration
	seats   []simSeat
	members []simMember // by server
}

type simSeat struct {
	holder  simHolder
	expires time.Duration
	needs   uint32
	last    int // the server that held it last, or -1
}

// simHolder is one life of a server; life 0 is none.
type simHolder struct{ server, life int }

type simMember struct {
	Member
	expires time.Duration
}

func newSimStore(shards int) *simStore {
	st := &simStore{seats: make([]simSeat, shards)}
	for s := range st.seats {
		st.seats[s].last = -1
	}
	return st
}

// holder returns the holder of a seat. Its life is 0 if the seat is free.
func (st *simStore) holder(shard int) simHolder {
	if seat := &st.seats[shard]; st.now < seat.expires {
		return seat.holder
	}
	return simHolder{}
}

// sit takes a free seat or renews an own one, and reports whether it did. moved means that another server
// had it before.
func (st *simStore) sit(shard int, h simHolder) (done, moved bool) {
	if other := st.holder(shard); other.life != 0 && other != h {
		return false, false
	}
	seat := &st.seats[shard]
	moved = seat.last >= 0 && seat.last != h.server
	seat.holder, seat.expires, seat.last = h, st.now+seatTTL, h.server
	return true, moved
}

// rise frees the seat of a holder.
func (st *simStore) rise(shard int, h simHolder) {
	if st.holder(shard) == h {
		st.seats[shard].expires = st.now
	}
}

func (st *simStore) readMembers() (list []Member) {
	for _, m := range st.members {
		if st.now < m.expires {
			list = append(list, m.Member)
		}
	}
	return list
}

func (st *simStore) readSeats() []Seat {
	list := make([]Seat, len(st.seats))
	for s := range st.seats {
		list[s].Needs = st.seats[s].needs
		if h := st.holder(s); h.life != 0 {
			list[s].Holder = h.id()
		}
	}
	return list
}

func (h simHolder) id() string {
	return "server-" + strconv.Itoa(h.server) + "." + strconv.Itoa(h.life)
}
