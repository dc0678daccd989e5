package account

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Policy is the rules for an account. Durations are in milliseconds in its JSON.
type Policy struct {
	Currency string `json:"currency"`           // of all its amounts
	Decimals int    `json:"decimals,omitempty"` // with which people are shown amounts: 2 for cents

	// Floor is the least amount that must stay available; below 0 it is a credit line.
	Floor Money `json:"floor,omitempty"`
	// MaxAmount bounds one command; 0: no bound.
	MaxAmount Money `json:"max_amount,omitempty"`
	// ApproveAbove has a person approve larger amounts; 0: none.
	ApproveAbove Money `json:"approve_above,omitempty"`
	// ApproveWithin is how long the question stands before it counts as a no; 0: for ever.
	ApproveWithin time.Duration `json:"-"`

	// HoldFor is how long a hold stands, by default and at most; 0: DefaultHoldFor.
	HoldFor time.Duration `json:"-"`
	// TransferFor is how long a transfer has to arrive; 0: DefaultTransferFor.
	TransferFor time.Duration `json:"-"`
	// TransferTo is the prefix of the keys of accounts that money may go to, such as
	// "account:"; "": it may go nowhere.
	TransferTo string `json:"transfer_to,omitempty"`

	// MaxDefer is for how long an adviser may put a command off; 0: not at all.
	MaxDefer time.Duration `json:"-"`

	// Rules are the rights of requesters. The first one that fits a command's requester and
	// kind counts, and a command that none fits is refused. Without any, every requester may do
	// everything within the bounds above.
	Rules []Rule `json:"rules,omitempty"`
}

// Defaults and bounds of a policy's durations.
const (
	DefaultHoldFor     = 7 * 24 * time.Hour
	DefaultTransferFor = 10 * time.Minute
	MinTransferFor     = time.Second
	maxDuration        = 365 * 24 * time.Hour
)

// Rule is the rights of a requester. A bound of 0 is none beyond the account's.
type Rule struct {
	Requester string `json:"requester"`       // "*" is every requester
	Kinds     []Kind `json:"kinds,omitempty"` // empty: all

	MaxAmount    Money `json:"max_amount,omitempty"`
	ApproveAbove Money `json:"approve_above,omitempty"`

	// DayOut and DayIn bound what the requester takes from the account (debits, holds and
	// transfers) and adds to it in a day in UTC.
	DayOut Money `json:"day_out,omitempty"`
	DayIn  Money `json:"day_in,omitempty"`

	// Urgency is the highest priority that its messages may have. Priority moves a
	// message ahead in line, and nothing else: it is decided by the same bounds.
	Urgency int `json:"urgency,omitempty"`

	// Settle lets it capture and void what others hold.
	Settle bool `json:"settle,omitempty"`
}

// Check finds what a policy contains twice, or what can never be. A policy that it refuses
// decides nothing.
func (p *Policy) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("the policy contradicts itself: "+format, args...)
	}
	switch {
	case p.Currency == "" || len(p.Currency) > 16:
		return fmt.Errorf("the policy names no currency of 1 to 16 bytes")
	case p.Decimals < 0 || p.Decimals > 8:
		return bad("amounts are shown with 0 to 8 decimals, not %d", p.Decimals)
	case !p.Floor.inBounds():
		return bad("a floor of %d is beyond what a balance can be", p.Floor)
	case p.ApproveWithin != 0 && !p.asks():
		return bad("approvals have a time, but nothing needs one")
	case p.TransferFor != 0 && p.TransferFor < MinTransferFor:
		return bad("a transfer has %v to arrive: give it %v at least", p.TransferFor, MinTransferFor)
	}
	for _, d := range []time.Duration{p.ApproveWithin, p.HoldFor, p.TransferFor, p.MaxDefer} {
		if d < 0 || d > maxDuration || d%time.Millisecond != 0 {
			return bad("a time of %v is not in whole milliseconds from 0 to %v", d, maxDuration)
		}
	}
	if err := bounds(p.MaxAmount, p.ApproveAbove); err != nil {
		return bad("%w", err)
	}
	for i := range p.Rules {
		if err := p.checkRule(i); err != nil {
			return bad("rule %d: %w", i+1, err)
		}
	}
	return nil
}

func (p *Policy) checkRule(i int) error {
	r := &p.Rules[i]
	for j := range p.Rules[:i] {
		if before := &p.Rules[j]; before.covers(r) {
			return fmt.Errorf("it never counts, because rule %d fits everything that it fits", j+1)
		}
	}
	for _, k := range r.Kinds {
		if !slices.Contains(kinds, k) {
			return fmt.Errorf("there is no command %q", k)
		}
	}
	most := least(p.MaxAmount, r.MaxAmount)
	switch {
	case r.Requester == "":
		return fmt.Errorf(`it names no requester: "*" is everybody`)
	case p.MaxAmount != 0 && r.MaxAmount > p.MaxAmount:
		return fmt.Errorf("it allows %d in one command, where the account allows %d", r.MaxAmount, p.MaxAmount)
	case r.DayOut < 0 || r.DayIn < 0 || !r.DayOut.inBounds() || !r.DayIn.inBounds():
		return fmt.Errorf("a budget is from 0 to %d", MaxMoney)
	case r.DayOut != 0 && !slices.ContainsFunc(kinds, func(k Kind) bool { return k.out() && r.allows(k) }):
		return fmt.Errorf("it has a budget for what goes out, but allows nothing that does")
	case r.DayIn != 0 && !r.allows(Credit):
		return fmt.Errorf("it has a budget for credits, but allows none")
	case r.Settle && !r.allows(Capture) && !r.allows(Void):
		return fmt.Errorf("it may settle what others hold, but neither capture nor void")
	case r.Urgency < -interlock.MaxPriority || r.Urgency > interlock.MaxPriority:
		return fmt.Errorf("priorities go from %d to %d", -interlock.MaxPriority, interlock.MaxPriority)
	case len(r.Kinds) > 0 && p.TransferTo == "" && slices.Contains(r.Kinds, Transfer):
		return fmt.Errorf("it allows transfers, but the account has nowhere to transfer to")
	case !r.allows(Credit) && r.DayOut != 0 && r.MaxAmount > r.DayOut:
		return fmt.Errorf("it allows %d in one command, and %d in a whole day", r.MaxAmount, r.DayOut)
	}
	return bounds(most, r.ApproveAbove)
}

// bounds checks a bound and a threshold.
func bounds(most, ask Money) error {
	switch {
	case most < 0 || ask < 0 || !most.inBounds() || !ask.inBounds():
		return fmt.Errorf("a bound is from 0 to %d", MaxMoney)
	case most != 0 && ask >= most:
		return fmt.Errorf(
			"amounts above %d need an approval, but those above %d are refused, so nobody is ever asked", ask, most,
		)
	}
	return nil
}

func (p *Policy) asks() bool {
	return p.ApproveAbove != 0 || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.ApproveAbove != 0 })
}

func (r *Rule) allows(k Kind) bool { return len(r.Kinds) == 0 || slices.Contains(r.Kinds, k) }

// covers reports whether r fits everything that other fits.
func (r *Rule) covers(other *Rule) bool {
	if r.Requester != "*" && r.Requester != other.Requester {
		return false
	}
	return !slices.ContainsFunc(kinds, func(k Kind) bool { return other.allows(k) && !r.allows(k) })
}

// rule finds the rule for a command, with the account's bounds in it.
func (p *Policy) rule(by string, k Kind) (r Rule, ok bool) {
	if len(p.Rules) == 0 {
		r = Rule{Requester: "*", Urgency: interlock.MaxPriority, Settle: true}
	} else {
		i := slices.IndexFunc(p.Rules, func(r Rule) bool {
			return (r.Requester == "*" || r.Requester == by) && r.allows(k)
		})
		if i < 0 {
			return Rule{}, false
		}
		r = p.Rules[i]
	}
	r.MaxAmount, r.ApproveAbove = least(p.MaxAmount, r.MaxAmount), least(p.ApproveAbove, r.ApproveAbove)
	return r, true
}

// kindsOf lists what a requester may do.
func (p *Policy) kindsOf(by string) string {
	var names []string
	for _, k := range kinds {
		if _, ok := p.rule(by, k); ok {
			names = append(names, string(k))
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// least returns the smaller of two bounds; 0 is none.
func least(a, b Money) Money {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func orDefault(d, normal time.Duration) time.Duration {
	if d == 0 {
		return normal
	}
	return d
}

func (p *Policy) show(m Money) string { return m.text(p.Decimals, p.Currency) }

// A policy as JSON has it: with its durations in milliseconds.
type policyJSON struct {
	plainPolicy
	ApproveWithinMS int64 `json:"approve_within_ms,omitempty"`
	HoldForMS       int64 `json:"hold_for_ms,omitempty"`
	TransferForMS   int64 `json:"transfer_for_ms,omitempty"`
	MaxDeferMS      int64 `json:"max_defer_ms,omitempty"`
}

type plainPolicy Policy

// MarshalJSON writes durations in milliseconds.
func (p Policy) MarshalJSON() ([]byte, error) {
	return json.Marshal(policyJSON{
		plainPolicy(p), p.ApproveWithin.Milliseconds(), p.HoldFor.Milliseconds(), p.TransferFor.Milliseconds(),
		p.MaxDefer.Milliseconds(),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses what a policy does not have.
func (p *Policy) UnmarshalJSON(text []byte) error {
	var v policyJSON
	if err := decode(text, &v); err != nil {
		return fmt.Errorf("the policy: %w", err)
	}
	*p = Policy(v.plainPolicy)
	for _, d := range []struct {
		to *time.Duration
		ms int64
	}{
		{&p.ApproveWithin, v.ApproveWithinMS},
		{&p.HoldFor, v.HoldForMS},
		{&p.TransferFor, v.TransferForMS},
		{&p.MaxDefer, v.MaxDeferMS},
	} {
		if d.ms < 0 || d.ms > maxDuration.Milliseconds() {
			return fmt.Errorf("the policy: a time is from 0 to %d ms", maxDuration.Milliseconds())
		}
		*d.to = time.Duration(d.ms) * time.Millisecond
	}
	return nil
}
