package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock/placement"
)

// Member is a server, as it describes itself to others.
type Member struct {
	placement.Member        // the ID is new with each start
	HTTP             string `json:"http"` // a URL
	GRPC             string `json:"grpc"` // host:port
	RESP             string `json:"resp,omitempty"`
	Version          string `json:"version,omitempty"`
	Evacuate         bool   `json:"evacuate,omitempty"` // an operator wants it to leave its shards
	// Unreached are the IDs of the members that this one cannot reach: see reach.go.
	Unreached []string `json:"unreached,omitempty"`
	Beat      uint64   `json:"beat"` // changes with each sign of life
}

// Seat is which server tries to own a shard.
type Seat struct {
	// Holder is the ID of a member; "" means that the seat is free.
	Holder string `json:"holder,omitempty"`
	// Needs is the format of the newest entries that an owner may have written.
	Needs uint32 `json:"needs,omitempty"`
}

// table is what the servers agree on.
type table struct {
	Format  int      `json:"format"`
	Members []Member `json:"members"` // in the order in which they came
	Seats   []Seat   `json:"seats"`   // by shard
}

// tableFormat is the form of the table that this version knows.
const tableFormat = 1

// maxTableMembers bounds the members, so that the table fits into a value of every engine.
const maxTableMembers = 64

func newTable(shards int) *table { return &table{Format: tableFormat, Seats: make([]Seat, shards)} }

// decodeTable reads a table. Nothing but this package writes it, so a defect is damage.
func decodeTable(text []byte, shards int) (*table, error) {
	t := &table{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("the table of servers is damaged: %w", err)
	}
	switch {
	case t.Format > tableFormat:
		return nil, fmt.Errorf("the table of servers has format %d, and this version knows %d", t.Format, tableFormat)
	case t.Format == tableFormat && len(t.Seats) > shards:
		return nil, errMoreSeats
	case t.Format != tableFormat, len(t.Members) > maxTableMembers:
		return nil, errors.New("the table of servers is damaged: it does not fit the directory of shards")
	}
	for len(t.Seats) < shards {
		t.Seats = append(t.Seats, Seat{}) // shards that came since
	}
	return t, nil
}

// errMoreSeats: the table has more seats than the directory that was read has shards.
var errMoreSeats = errors.New("the table of servers has more seats than the directory has shards")

func (t *table) encode() ([]byte, error) { return json.Marshal(t) }

func (t *table) clone() *table {
	return &table{t.Format, slices.Clone(t.Members), slices.Clone(t.Seats)} // nothing changes Unreached in place
}

// member returns the member of an ID; nil if there is none.
func (t *table) member(id string) *Member {
	for i := range t.Members {
		if t.Members[i].ID == id {
			return &t.Members[i]
		}
	}
	return nil
}

// situation is the table as a planner sees it.
func (t *table) situation() placement.View {
	v := placement.View{Members: make([]placement.Member, len(t.Members)), Seats: make([]placement.Seat, len(t.Seats))}
	for i := range t.Members {
		v.Members[i] = t.Members[i].Member
	}
	for i, s := range t.Seats {
		v.Seats[i] = placement.Seat(s)
	}
	return v
}

// remove takes a member out, and frees its seats.
func (t *table) remove(id string) {
	t.Members = slices.DeleteFunc(t.Members, func(m Member) bool { return m.ID == id })
	for i := range t.Seats {
		if t.Seats[i].Holder == id {
			t.Seats[i].Holder = ""
		}
	}
}
