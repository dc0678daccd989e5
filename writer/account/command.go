package account

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/jsonname"
)

// Kind is the kind of a message.
type Kind string

// Requests of agents.
const (
	Credit   Kind = "credit"   // amount: add to the account
	Debit    Kind = "debit"    // amount: take from it
	Hold     Kind = "hold"     // amount, for_ms: keep for a later capture
	Capture  Kind = "capture"  // hold, amount: take what was held, or a part of it, and free the rest
	Void     Kind = "void"     // hold: free what was held
	Transfer Kind = "transfer" // amount, to: move to another account
)

// Messages between the accounts' writers about a transfer.
const (
	transferCredit Kind = "transfer.credit" // to the target: add it
	transferAsk    Kind = "transfer.ask"    // to the target: have you added it? If not, never do
	transferPost   Kind = "transfer.post"   // to the source: it was added
	transferVoid   Kind = "transfer.void"   // to the source: it was not, and will not be
	transferForget Kind = "transfer.forget" // to the target: the source is done with it
	transferWake   Kind = "transfer.wake"   // to the source from itself, when its time is over
)

// kinds are agents' commands, legs the messages between writers.
var kinds = []Kind{Credit, Debit, Hold, Capture, Void, Transfer}

var legs = []Kind{transferCredit, transferAsk, transferPost, transferVoid, transferForget, transferWake}

// out reports whether a command takes money from the account, or promises it.
func (k Kind) out() bool { return k == Debit || k == Hold || k == Transfer }

// counts reports whether a command has an amount of its own, with bounds, budgets and
// approvals. Those of a capture were counted when it was held.
func (k Kind) counts() bool { return k == Credit || k.out() }

// Order is the body of an agent's message. Each kind has its fields; the others are
// left out.
type Order struct {
	Amount   Money         `json:"amount,omitempty"`
	Currency string        `json:"currency,omitempty"` // if named, it must be the account's
	Hold     string        `json:"hold,omitempty"`     // the id that the reply to the hold has
	To       interlock.Key `json:"to,omitempty"`
	ForMS    int64         `json:"for_ms,omitempty"` // how long a hold stands
	Memo     string        `json:"memo,omitempty"`   // for people
}

// MaxMemoBytes is how long a memo may be.
const MaxMemoBytes = 512

// leg is the body of messages between writers.
type leg struct {
	Transfer string        `json:"transfer"`
	Peer     interlock.Key `json:"peer"` // the other account, as seen from the receiver
	Amount   Money         `json:"amount"`
	Currency string        `json:"currency"`
	Until    time.Time     `json:"until"`          // the target adds it before this or never
	Code     Code          `json:"code,omitempty"` // of a void: why
}

// Command is a message as Decide gets it: its body, and what the server knows of it.
type Command struct {
	ID       string        // the message's; of a hold or a transfer it becomes the id
	Account  interlock.Key // the owner of the mailbox that it is in
	Kind     Kind
	By       string        // the sender: see Requester
	From     interlock.Key // the account with the writer that sent it, "" for others: see Origin
	Priority int
	Order    Order

	// Approved is a person's approval, if there is one.
	Approved *Approval
	// Advice is a model's advice, if one was asked.
	Advice *Advice

	leg    leg
	broken error // the body is not what the kind has
	twice  bool  // and that is for a field that stands twice, which earlier versions carried out
}

// Approval is a person's yes to a question.
type Approval struct {
	Question string
	By       string
}

// read makes a command of a message's kind and body. An error in the body is kept in it, so
// that the refusal is decided like every other.
func read(account interlock.Key, id string, kind Kind, body []byte) Command {
	cmd := Command{ID: id, Account: account, Kind: kind}
	switch {
	case slices.Contains(legs, kind):
		cmd.broken = decode(body, &cmd.leg)
	case slices.Contains(kinds, kind):
		if cmd.broken = decode(body, &cmd.Order); cmd.broken == nil {
			cmd.broken = cmd.Order.check(kind)
		}
	}
	// A person that approves the command, or another reader of the log, may read the first of two.
	if cmd.broken == nil && len(body) > 0 {
		cmd.broken = jsonname.Unique(body, true)
		cmd.twice = cmd.broken != nil
	}
	return cmd
}

// decode reads one JSON value and nothing else.
func decode(body []byte, v any) error {
	if len(body) == 0 {
		return errors.New("the body is empty")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is data after the JSON value")
	}
	return nil
}

// check returns what a kind does not have, or lacks.
func (o *Order) check(kind Kind) error {
	for _, field := range []struct {
		name     string
		given    bool
		may, has []Kind
	}{
		{"amount", o.Amount != 0, []Kind{Credit, Debit, Hold, Capture, Transfer}, []Kind{Credit, Debit, Hold, Transfer}},
		{"currency", o.Currency != "", []Kind{Credit, Debit, Hold, Capture, Transfer}, nil},
		{"hold", o.Hold != "", []Kind{Capture, Void}, []Kind{Capture, Void}},
		{"to", o.To != "", []Kind{Transfer}, []Kind{Transfer}},
		{"for_ms", o.ForMS != 0, []Kind{Hold}, nil},
	} {
		switch {
		case field.given && !slices.Contains(field.may, kind):
			return fmt.Errorf("a %s has no field %s", kind, field.name)
		case !field.given && slices.Contains(field.has, kind):
			return fmt.Errorf("a %s needs the field %s", kind, field.name)
		}
	}
	switch {
	case o.Amount < 0:
		return errors.New("an amount must be above 0: the kind determines its direction")
	case !o.Amount.inBounds():
		return fmt.Errorf("an amount can be at most %d", MaxMoney)
	case o.ForMS < 0:
		return errors.New("for_ms must be above 0")
	case len(o.Memo) > MaxMemoBytes:
		return fmt.Errorf("a memo can have at most %d bytes", MaxMemoBytes)
	}
	return nil
}
