package account

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// The two phases of a transfer, as the package's text draws them. The place of the money is
// always decided by the states, and each message only moves one of them on:
//
//	source's hold   target's record   the money is
//	pending         none              the source's; the target may still add it
//	pending         added             the target's; the source's balance falls by the post
//	pending         refused           the source's; the hold ends by the void
//	ended           any               settled; the record goes when its time is over
//
// A record goes only after its time, and a credit is refused after it, so a target
// never adds a transfer twice, however late a message comes.

// transfer begins one: its amount is kept, and offered to the target.
func (b *book) transfer(cmd *Command, rule *Rule) (entry, *refusal) {
	to := cmd.Order.To
	switch {
	case to == b.key:
		return entry{}, &refusal{
			UnknownAccount, "a transfer goes to another account", "name the account that is to have the money",
		}
	case !b.reaches(to):
		where := "it may go nowhere"
		if b.policy.TransferTo != "" {
			where = "it goes to keys such as " + b.policy.TransferTo + "12345"
		}
		return entry{}, &refusal{
			UnknownAccount, fmt.Sprintf("money of %s may not go to %q: %s", b.key, to, where),
			"look the account up and send its key",
		}
	}
	made, refused := b.keep(cmd, rule, Held{To: to, Until: b.now.Add(b.allowed())})
	if refused != nil {
		return made, refused
	}
	made.pending = true
	h := &b.state.Holds[len(b.state.Holds)-1]
	// The target does not take it when its time is over, so it need not wait any longer: it
	// would delay the question about the outcome.
	b.out = append(b.out, OutgoingTransfer{To: to, Kind: transferCredit, Body: b.outbound(h), Deadline: b.allowed()})
	b.out = append(b.out, OutgoingTransfer{To: b.key, Kind: transferWake, Body: b.outbound(h), Delay: b.allowed()})
	return made, nil
}

// reaches reports whether a key is that of an account to which money may go.
func (b *book) reaches(to interlock.Key) bool {
	rest, ok := strings.CutPrefix(string(to), b.policy.TransferTo)
	return ok && b.policy.TransferTo != "" && rest != "" && len(to) <= interlock.MaxKeyBytes && !strings.ContainsFunc(
		rest, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
		},
	)
}

// outbound is the message to the target about a pending transfer.
func (b *book) outbound(h *Held) leg {
	return leg{Transfer: h.ID, Peer: b.key, Amount: h.Amount, Currency: b.state.Currency, Until: h.Until}
}

// believe reports whether a message about a transfer comes from its rightful sender.
func (b *book) believe(cmd *Command) *refusal {
	const next = "leave such messages to the accounts' writers, and send a transfer to the account that gives the money"
	switch {
	case cmd.From == "":
		return &refusal{
			NotFromWriter, name(cmd.By) + " is not the writer of an account, so what it says of a transfer is not believed",
			next,
		}
	case cmd.broken != nil:
		return &refusal{
			InvalidCommand, "the body of the " + string(cmd.Kind) + " cannot be carried out: " + cmd.broken.Error(), next,
		}
	case cmd.From != cmd.leg.Peer:
		return &refusal{
			NotFromWriter, "the writer of " + string(cmd.From) + " cannot speak for " + string(cmd.leg.Peer), next,
		}
	}
	return nil
}

// leg carries out what another writer, or this one before, reports of a transfer.
func (b *book) leg(cmd *Command) (entry, *refusal) {
	l := &cmd.leg
	switch cmd.Kind {
	case transferCredit, transferAsk:
		return b.credited(l, cmd.Kind == transferAsk)
	case transferPost, transferVoid:
		return b.settle(l, cmd.Kind == transferPost)
	case transferForget:
		if i := b.incoming(l); i >= 0 {
			b.state.Incoming[i].Settled = true
		}
	case transferWake:
		// All questions were asked when the book was opened.
		if i := b.pending(l); i >= 0 {
			later := b.state.Holds[i].Until.Sub(b.now)
			if later <= 0 {
				later = b.allowed()
			}
			b.out = append(b.out, OutgoingTransfer{To: b.key, Kind: transferWake, Body: *l, Delay: later})
		}
	}
	return entry{id: l.Transfer}, nil
}

// credited adds a transfer's money, unless that was decided before, and answers. A writer that
// only asks gets a no where nothing was decided, and it stays a no.
func (b *book) credited(l *leg, asked bool) (entry, *refusal) {
	i := b.incoming(l)
	if i < 0 {
		in := IncomingTransfer{ID: l.Transfer, From: l.Peer, Amount: l.Amount, Until: l.Until}
		refused := b.receive(l, asked)
		if refused != nil {
			in.Code = refused.code
		}
		switch {
		case !b.now.Before(l.Until):
			// It needs no record: it is too late from now on.
			b.tell(&in)
			return entry{id: in.ID}, refused
		case len(b.state.Incoming) >= MaxIncoming:
			// A message that is not recorded is not answered, or it could be answered otherwise
			// later. The source asks when the time is over.
			return entry{id: in.ID}, &refusal{
				TooManyOpen, "too many transfers to " + string(b.key) + " are under way", "wait: the source asks again",
			}
		case refused == nil:
			in.Added = true
			b.state.Balance += l.Amount
		}
		b.state.Incoming = append(b.state.Incoming, in)
		i = len(b.state.Incoming) - 1
	}
	in := &b.state.Incoming[i]
	b.tell(in)
	if !in.Added {
		return entry{id: in.ID}, &refusal{
			in.Code, "the account does not take transfer " + in.ID, "nothing is left to do: the money stays where it was",
		}
	}
	return entry{id: in.ID, amount: in.Amount}, nil
}

// receive decides whether the account takes a transfer's money.
func (b *book) receive(l *leg, asked bool) *refusal {
	const next = "nothing is left to do: the money stays where it was"
	switch _, fits := b.state.Balance.plus(l.Amount); {
	case asked || !b.now.Before(l.Until):
		return &refusal{TransferLate, "the money had not arrived when the transfer's time was over", next}
	case b.policy.Currency == "":
		return &refusal{UnknownAccount, "there is no account " + string(b.key), next}
	case l.Currency != b.state.Currency || l.Currency != b.policy.Currency:
		return &refusal{WrongCurrency, string(b.key) + " is kept in " + b.state.Currency + ", not in " + l.Currency, next}
	case l.Amount <= 0 || !fits:
		return &refusal{OutOfRange, "the balance would be more than an account can hold", next}
	}
	return nil
}

// settle ends a pending transfer. One that has ended already stays as it is.
func (b *book) settle(l *leg, posted bool) (entry, *refusal) {
	b.send(
		l.Peer, transferForget,
		leg{Transfer: l.Transfer, Peer: b.key, Amount: l.Amount, Currency: l.Currency, Until: l.Until},
	)
	i := b.pending(l)
	if i < 0 {
		return entry{id: l.Transfer}, nil
	}
	h := b.state.Holds[i]
	if !posted {
		b.state.end(i, Voided, 0, b.now, l.Code)
		return entry{id: h.ID}, nil
	}
	b.state.Balance -= h.Amount
	b.state.end(i, Posted, h.Amount, b.now, "")
	return entry{id: h.ID, amount: h.Amount}, nil
}

// allowed is how long a transfer has to arrive, and how long an answer has to come.
func (b *book) allowed() time.Duration {
	return orDefault(b.policy.TransferFor, DefaultTransferFor)
}

// pending finds the hold of a transfer from this account, or -1.
func (b *book) pending(l *leg) int {
	return slices.IndexFunc(b.state.Holds, func(h Held) bool { return h.ID == l.Transfer && h.To != "" })
}

// incoming finds what was decided on a transfer to this account, or -1.
func (b *book) incoming(l *leg) int {
	return slices.IndexFunc(b.state.Incoming, func(in IncomingTransfer) bool { return in.ID == l.Transfer })
}

// tell reports to the source what was decided.
func (b *book) tell(in *IncomingTransfer) {
	in.Told = b.now
	kind := transferVoid
	if in.Added {
		kind = transferPost
	}
	b.send(
		in.From, kind,
		leg{Transfer: in.ID, Peer: b.key, Amount: in.Amount, Currency: b.state.Currency, Until: in.Until, Code: in.Code},
	)
}
