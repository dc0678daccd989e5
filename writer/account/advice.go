package account

import (
	"context"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Advice is a model's opinion on a command that policy allows. It can reduce it, and never
// enlarge it: advice that asks for more is ignored.
type Advice struct {
	Refuse bool          `json:"refuse,omitempty"`
	Amount Money         `json:"amount,omitempty"` // instead of a larger one that was asked for; 0: that one
	Defer  time.Duration `json:"-"`                // put it off for so long, at most Policy.MaxDefer
	Reason string        `json:"reason,omitempty"` // for the requester
}

// Adviser is asked about commands that policy allows, before they are carried out. It
// may take its time up to Agent.AdviseFor. Without its advice, policy alone decides.
type Adviser func(ctx context.Context, state State, cmd Command) (Advice, error)

// within is the part of the advice that policy lets count, or nil.
func (a *Advice) within(p *Policy, cmd *Command) *Advice {
	if a == nil || !cmd.Kind.counts() {
		return nil
	}
	taken := *a
	taken.Reason = strings.ToValidUTF8(taken.Reason[:min(len(taken.Reason), interlock.MaxReasonBytes)], "")
	taken.Defer = max(min(taken.Defer, p.MaxDefer), 0)
	switch {
	case taken.Refuse:
		taken.Amount, taken.Defer = 0, 0
	case taken.Amount < 0 || taken.Amount > cmd.Order.Amount:
		return nil
	case taken.Amount == cmd.Order.Amount:
		taken.Amount = 0
	}
	if !taken.Refuse && taken.Amount == 0 && taken.Defer == 0 {
		return nil
	}
	return &taken
}
