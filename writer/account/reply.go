package account

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Code is why a command was refused. Codes are only ever added.
type Code string

const (
	InvalidCommand Code = "invalid_command"    // the body is not what the kind has
	UnknownCommand Code = "unknown_command"    // there is no such kind
	NotAllowed     Code = "not_allowed"        // the requester may not do this
	NotFromWriter  Code = "not_from_writer"    // it contains what only the writer of an account can report
	TooUrgent      Code = "too_urgent"         // the requester's messages may not have this priority
	WrongCurrency  Code = "wrong_currency"     // the account has another one
	AboveMaximum   Code = "above_maximum"      // more than one command may have
	BelowFloor     Code = "below_floor"        // not enough is available
	OverBudget     Code = "over_budget"        // the requester has moved too much today
	OutOfRange     Code = "out_of_range"       // the balance would be more than MaxMoney
	UnknownHold    Code = "unknown_hold"       // never made here, or forgotten
	HoldSettled    Code = "hold_settled"       // captured, void or expired already
	NotYours       Code = "not_yours"          // another requester's hold
	AboveHold      Code = "above_hold"         // more than was held
	TransferHold   Code = "transfer_under_way" // it is kept for a transfer, which settles it by itself
	UnknownAccount Code = "unknown_account"    // money may not go there
	TooManyOpen    Code = "too_many_open"      // the account has as much under way as it can
	AdvisedAgainst Code = "advised_against"    // policy allows it, the adviser does not
	TransferLate   Code = "transfer_late"      // the transfer's time was over before it arrived
)

// Outcome is how a command was decided.
type Outcome string

const (
	OutcomeDone    Outcome = "done"
	OutcomePending Outcome = "pending" // a transfer: its money is kept, and on its way
	OutcomeRefused Outcome = "refused"
)

// Reply is the requester's answer and, with the log, all inputs of a decision.
type Reply struct {
	Outcome Outcome `json:"outcome"`
	Code    Code    `json:"code,omitempty"`    // of a refusal
	Message string  `json:"message,omitempty"` // of a refusal: why
	Next    string  `json:"next,omitempty"`    // and what to do

	ID     string `json:"id,omitempty"`     // of the hold or transfer
	Amount Money  `json:"amount,omitempty"` // that was moved, held or freed

	Currency  string `json:"currency"`
	Balance   Money  `json:"balance"`
	Held      Money  `json:"held"`
	Available Money  `json:"available"`

	// The inputs of the decision besides the message and the state.
	At         time.Time `json:"at"`
	By         string    `json:"by"`
	Priority   int       `json:"priority,omitempty"`
	ApprovedBy string    `json:"approved_by,omitempty"`
	Advice     *Advice   `json:"advice,omitempty"` // that was taken
	// On is the version of the account's document that it was decided on; 0: it was never
	// written. Replies of older writers do not have it.
	On *interlock.Version `json:"on,omitempty"`
}

// refusal is a command refused, before the account's figures are added.
type refusal struct {
	code          Code
	message, next string
}

// RefusedError is a refusal as an error.
type RefusedError struct{ Reply Reply }

func (e *RefusedError) Error() string {
	return string(e.Reply.Code) + ": " + e.Reply.Message + ": " + e.Reply.Next
}
