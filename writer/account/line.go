package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/jsonname"
)

// Line is one line of a ledger: what was decided on a message to an account, or what
// became of one that was never decided. Amounts are in minor units.
//
// Its text is one JSON object with the hash as its last field: SHA-256 in hexadecimal over the
// text before `,"hash":`. The field previous has the hash of the line before, so no line can be
// changed, added, removed or moved without all later ones being wrong.
type Line struct {
	Line    uint64        `json:"line"` // of the ledger, from 1
	Account interlock.Key `json:"account"`
	Entry   uint64        `json:"entry"` // of the account's log, without holes but for After and Gap
	// After is the entry of the line before, where the numbers do not go on from it. The
	// account has not changed meanwhile: only refusals can have been between.
	After uint64 `json:"after,omitempty"`
	// Gap describes the entries that are missing before this line.
	Gap string `json:"gap,omitempty"`

	At      time.Time `json:"at"`
	Kind    Kind      `json:"kind"`
	Outcome string    `json:"outcome"`          // done, pending or refused; dead or cancelled if it was never decided
	Code    Code      `json:"code,omitempty"`   // of a refusal
	Reason  string    `json:"reason,omitempty"` // of a refusal, or why it was never decided

	// Where the money comes from and goes to. One of both is left out where it comes into
	// the accounts or leaves them, and both where it is only held.
	From interlock.Key `json:"from,omitempty"`
	To   interlock.Key `json:"to,omitempty"`

	Amount    Money  `json:"amount,omitempty"` // that was moved, held or freed; of a refusal, that was asked for
	Currency  string `json:"currency,omitempty"`
	Change    Money  `json:"change,omitempty"` // of the balance
	Balance   Money  `json:"balance"`          // after it, as Held and Available
	Held      Money  `json:"held"`
	Available Money  `json:"available"`

	By         string `json:"by,omitempty"` // the requester: a principal, or without credentials an agent
	ApprovedBy string `json:"approved_by,omitempty"`
	Priority   int    `json:"priority,omitempty"`
	Memo       string `json:"memo,omitempty"`
	ID         string `json:"id,omitempty"` // of the hold or transfer

	Message string          `json:"message"`
	Sender  string          `json:"sender,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	Writer  string          `json:"writer,omitempty"` // its worker, attempt and fence
	Attempt int             `json:"attempt,omitempty"`
	Fence   interlock.Fence `json:"fence,omitempty"`

	// The versions of the account's document before and after; 0: it was never written. On is
	// left out where the writer has not said it.
	On      *interlock.Version `json:"on,omitempty"`
	Version interlock.Version  `json:"version"`

	Previous string `json:"previous,omitempty"`
	Hash     string `json:"hash"`
}

// lineOf makes a line of an entry of a log that was read at a moment. The ledger adds its own
// fields.
func lineOf(e *interlock.LogEntry, seen time.Time) (l Line, decided bool) {
	l = Line{
		Account: e.Document.Key, Entry: e.Seq, At: seen.Add(-e.Age).UTC().Truncate(time.Millisecond), Kind: Kind(e.Kind),
		Outcome: e.State.String(), Reason: e.Reason, Message: e.Message.String(), Sender: e.Sender, Agent: e.Agent,
		Writer: e.Worker, Attempt: e.Attempt, Fence: e.Fence, Version: e.Document.Version,
	}
	cmd := read(l.Account, l.Message, l.Kind, e.Body)
	l.Amount, l.Memo, l.Currency = cmd.Order.Amount, cmd.Order.Memo, cmd.Order.Currency
	switch cmd.Kind {
	case Credit:
		l.To = l.Account
	case Debit, Capture:
		l.From = l.Account
	case Transfer:
		l.From, l.To = l.Account, cmd.Order.To
	case transferPost, transferVoid, transferWake:
		l.From, l.To, l.Amount, l.Currency = l.Account, cmd.leg.Peer, cmd.leg.Amount, cmd.leg.Currency
	case transferCredit, transferAsk, transferForget:
		l.From, l.To, l.Amount, l.Currency = cmd.leg.Peer, l.Account, cmd.leg.Amount, cmd.leg.Currency
	}
	if e.State != interlock.TaskDone {
		version := l.Version
		l.On = &version
		return l, false
	}
	var r Reply
	if json.Unmarshal(e.Reply, &r) != nil || r.Outcome == "" || r.At.IsZero() {
		l.Reason = notOurs
		return l, false
	}
	l.At, l.Outcome, l.Code, l.Reason = r.At, string(r.Outcome), r.Code, r.Message
	if r.Amount != 0 {
		l.Amount = r.Amount
	}
	l.Currency, l.Balance, l.Held, l.Available = r.Currency, r.Balance, r.Held, r.Available
	l.By, l.ApprovedBy, l.Priority, l.ID, l.On = r.By, r.ApprovedBy, r.Priority, r.ID, r.On
	return l, true
}

// notOurs is the reason of a line with a reply that no Agent has made.
const notOurs = "the reply is not that of an account's writer"

const hashField = `,"hash":"`

// text returns the line as it is written, with its hash.
func (l *Line) text() []byte {
	l.Hash = ""
	text, err := json.Marshal(l)
	if err != nil {
		panic("account: a line of a ledger has no JSON: " + err.Error())
	}
	text = text[:len(text)-len(hashField+`"}`)]
	sum := sha256.Sum256(text)
	l.Hash = hex.EncodeToString(sum[:])
	return append(text, hashField+l.Hash+"\"}\n"...)
}

// parseLine reads a line and checks its hash.
func parseLine(text []byte) (l Line, err error) {
	err = json.Unmarshal(text, &l)
	if err == nil {
		err = jsonname.Unique(text, true)
	}
	if err != nil {
		return l, fmt.Errorf("it is no line of a ledger: %w", err)
	}
	end := hashField + l.Hash + `"}`
	body, ok := strings.CutSuffix(string(text), end)
	if sum := sha256.Sum256([]byte(body)); !ok || hex.EncodeToString(sum[:]) != l.Hash {
		return l, errors.New("its text is not the one that its hash was made of")
	}
	return l, nil
}
