package account

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// Bounds of a state. Past them a command is refused, or the oldest of the finished items is
// forgotten.
const (
	MaxHolds    = 1000           // that stand at a time, pending transfers among them
	MaxIncoming = 1000           // transfers to the account that are remembered
	MaxSpenders = 1000           // requesters with a counted day
	MaxFinished = 100            // holds and transfers that came to an end and are remembered
	Remembered  = 24 * time.Hour // for so long
)

// State is an account, as it stands in its document. Its zero value is an account that
// was never used.
type State struct {
	Currency string `json:"currency"`
	Balance  Money  `json:"balance"`

	Holds    []Held             `json:"holds,omitempty"`    // what is promised, oldest first
	Incoming []IncomingTransfer `json:"incoming,omitempty"` // transfers to this account, oldest first
	Finished []FinishedEntry    `json:"finished,omitempty"` // holds and transfers from it, oldest first

	Day   string  `json:"day,omitempty"` // of the budgets, in UTC: 2026-11-21
	Spent []Spent `json:"spent,omitempty"`

	// At is the time of the last decision that changed something. Time does not go back
	// for an account, also when another writer's clock is behind.
	At time.Time `json:"at"`
	// Policy is the one that decided it.
	Policy Policy `json:"policy"`
}

// Held is money that cannot be spent otherwise: for a later capture, or for a transfer under
// way.
type Held struct {
	ID     string        `json:"id"`
	Amount Money         `json:"amount"`
	By     string        `json:"by"`
	At     time.Time     `json:"at"`
	Until  time.Time     `json:"until"`          // then a hold is void, and the target of a transfer is asked
	To     interlock.Key `json:"to,omitempty"`   // of a transfer
	Asked  time.Time     `json:"asked,omitzero"` // when the target was asked last
	Day    string        `json:"day,omitempty"`  // the requester with the budget that it counts against
}

// IncomingTransfer is a transfer to this account that was decided here. It is remembered until
// its time is over and its source is done with it.
type IncomingTransfer struct {
	ID      string        `json:"id"`
	From    interlock.Key `json:"from"`
	Amount  Money         `json:"amount"`
	Added   bool          `json:"added"` // else it was refused
	Until   time.Time     `json:"until"`
	Settled bool          `json:"settled,omitempty"` // the source is done with it
	Told    time.Time     `json:"told"`              // when the last answer to the source was sent
	Code    Code          `json:"code,omitempty"`    // why it was refused
}

// FinishedEntry is a hold or a transfer that came to an end.
type FinishedEntry struct {
	ID     string    `json:"id"`
	End    End       `json:"end"`
	Amount Money     `json:"amount"` // that was taken
	At     time.Time `json:"at"`
	Code   Code      `json:"code,omitempty"` // of a transfer that is void: why
}

// End is how a hold or a transfer ended.
type End string

const (
	Captured End = "captured"
	Voided   End = "voided"
	Expired  End = "expired" // the hold's time was over
	Posted   End = "posted"  // the transfer has arrived
)

// Spent is the sum that a requester has moved on a day.
type Spent struct {
	By  string `json:"by"`
	Out Money  `json:"out,omitempty"` // debits, holds and transfers that were not undone the same day
	In  Money  `json:"in,omitempty"`  // credits
}

// Parse reads the state from an account's document.
func Parse(doc interlock.Document) (State, error) {
	var s State
	if doc.Absent {
		return s, nil
	}
	if err := decode(doc.Body, &s); err != nil {
		return s, fmt.Errorf("the state of %s: %w", doc.Key, err)
	}
	return s, nil
}

// encode returns the one JSON text of a state.
func (s *State) encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic("account: a state has no JSON: " + err.Error())
	}
	return text
}

// Held returns the promised sum.
func (s *State) Held() (sum Money) {
	for _, h := range s.Holds {
		sum += h.Amount
	}
	return sum
}

// Available returns the amount that can be spent, down to the policy's floor.
func (s *State) Available() Money { return s.Balance - s.Held() }

// Find returns how a hold or a transfer ended; ok is false if it has not, or is forgotten.
func (s *State) Find(id string) (f FinishedEntry, ok bool) {
	i := slices.IndexFunc(s.Finished, func(f FinishedEntry) bool { return f.ID == id })
	if i < 0 {
		return f, false
	}
	return s.Finished[i], true
}

func (s *State) clone() State {
	c := *s
	c.Holds = slices.Clone(s.Holds)
	c.Incoming = slices.Clone(s.Incoming)
	c.Finished = slices.Clone(s.Finished)
	c.Spent = slices.Clone(s.Spent)
	return c
}

// spent finds what a requester has moved on this day, or nil.
func (s *State) spent(by string) *Spent {
	for i := range s.Spent {
		if s.Spent[i].By == by {
			return &s.Spent[i]
		}
	}
	return nil
}

// end takes a hold away and remembers how it ended. The rest of the hold counts no more against
// the budget of its day.
func (s *State) end(i int, how End, taken Money, now time.Time, why Code) {
	h := s.Holds[i]
	s.Holds = slices.Delete(s.Holds, i, i+1)
	s.Finished = append(s.Finished, FinishedEntry{ID: h.ID, End: how, Amount: taken, At: now, Code: why})
	if h.Day == s.Day {
		if spent := s.spent(h.By); spent != nil {
			spent.Out -= h.Amount - taken
		}
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
