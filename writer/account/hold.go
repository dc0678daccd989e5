package account

import (
	"fmt"
	"slices"
	"time"
)

// hold keeps money for a later capture.
func (b *book) hold(cmd *Command, rule *Rule) (entry, *refusal) {
	most := orDefault(b.policy.HoldFor, DefaultHoldFor)
	stands := most
	if ms := cmd.Order.ForMS; ms != 0 && ms < most.Milliseconds() {
		stands = time.Duration(ms) * time.Millisecond
	}
	return b.keep(cmd, rule, Held{Until: b.now.Add(stands)})
}

// keep adds a hold for the command's amount.
func (b *book) keep(cmd *Command, rule *Rule, h Held) (entry, *refusal) {
	if len(b.state.Holds) >= MaxHolds {
		return entry{}, &refusal{
			TooManyOpen, fmt.Sprintf("%d holds and transfers are under way, more than the account keeps", MaxHolds),
			"capture or void what is not needed, and ask again",
		}
	}
	h.ID, h.Amount, h.By, h.At = cmd.ID, cmd.Order.Amount, cmd.By, b.now
	if rule.DayOut != 0 {
		h.Day = b.state.Day
	}
	b.state.Holds = append(b.state.Holds, h)
	return entry{id: h.ID, amount: h.Amount}, nil
}

// capture takes what was held, or a part of it, and frees the rest.
func (b *book) capture(cmd *Command, rule *Rule) (entry, *refusal) {
	i, refused := b.find(cmd, rule)
	if refused != nil {
		return entry{}, refused
	}
	h := b.state.Holds[i]
	amount := cmd.Order.Amount
	if amount == 0 {
		amount = h.Amount
	}
	if amount > h.Amount {
		return entry{}, &refusal{
			AboveHold,
			fmt.Sprintf("%s is more than the %s that hold %s keeps", b.policy.show(amount), b.policy.show(h.Amount), h.ID),
			"capture what is held, and debit the rest by a command of its own",
		}
	}
	b.state.Balance -= amount
	b.state.end(i, Captured, amount, b.now, "")
	return entry{id: h.ID, amount: amount}, nil
}

// void frees what was held.
func (b *book) void(cmd *Command, rule *Rule) (entry, *refusal) {
	i, refused := b.find(cmd, rule)
	if refused != nil {
		return entry{}, refused
	}
	h := b.state.Holds[i]
	b.state.end(i, Voided, 0, b.now, "")
	return entry{id: h.ID, amount: h.Amount}, nil
}

// find returns the hold that a command settles.
func (b *book) find(cmd *Command, rule *Rule) (int, *refusal) {
	id := cmd.Order.Hold
	i := slices.IndexFunc(b.state.Holds, func(h Held) bool { return h.ID == id })
	if i < 0 {
		if f, ok := b.state.Find(id); ok {
			return 0, &refusal{
				HoldSettled,
				fmt.Sprintf("hold %s was %s at %s, with %s taken", id, f.End, f.At.Format(time.RFC3339), b.policy.show(f.Amount)),
				"nothing is left to do with it; make a new hold if you need one",
			}
		}
		return 0, &refusal{
			UnknownHold, fmt.Sprintf("no hold %q stands on %s, and none has ended lately", id, b.key),
			`use the "id" of the reply to your hold`,
		}
	}
	switch h := b.state.Holds[i]; {
	case h.To != "":
		return 0, &refusal{
			TransferHold, fmt.Sprintf("%s keeps the money of a transfer to %s", id, h.To),
			"wait: it is posted when the money has arrived, and void if it has not by " + h.Until.Format(time.RFC3339),
		}
	case h.By != cmd.By && !rule.Settle:
		return 0, &refusal{NotYours, fmt.Sprintf("hold %s is %s's", id, name(h.By)), "ask its owner to settle it"}
	}
	return i, nil
}
