package account

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Decision is the result of a command.
type Decision struct {
	// State is the account after it. Changed reports that it differs from the one before; a
	// refusal can change it, too, because time passes for an account when it is touched.
	State   State
	Changed bool

	Reply    Reply
	Messages []OutgoingTransfer // to writers of accounts, this one's among them

	// Question, when it is set, is what a person has to approve first, and Defer for how
	// long the command is put off. Nothing else of the decision is carried out then.
	Question string
	Defer    time.Duration
}

// OutgoingTransfer is a message about a transfer.
type OutgoingTransfer struct {
	To       interlock.Key
	Kind     Kind
	Body     any
	Delay    time.Duration // it is not delivered before
	Deadline time.Duration // nor after; 0: whenever it is
}

// Decide decides a command by the policy, which Check has passed, or which is zero: then there
// is no such account. It is a pure function: the same arguments yield the same decision,
// whenever and wherever it is made.
func Decide(policy Policy, state State, cmd Command, now time.Time) Decision {
	b := open(&policy, &state, cmd.Account, now)
	var v verdict
	if slices.Contains(legs, cmd.Kind) {
		v = b.heed(&cmd)
	} else {
		b, v = b.obey(&cmd)
	}
	changed := b.close(&state, v.believed)
	return Decision{
		State: b.state, Changed: changed, Reply: b.reply(&cmd, &v), Messages: b.out,
		Question: v.question, Defer: v.deferred,
	}
}

// verdict is how a command was decided.
type verdict struct {
	made    entry
	refused *refusal // nil: it is done

	question   string
	approvedBy string // if that was needed
	taken      *Advice
	deferred   time.Duration
	believed   bool // a message about a transfer from its rightful sender
}

// entry is the effect of a command on the account.
type entry struct {
	id      string
	amount  Money
	pending bool
}

// obey decides what an agent asks for, and returns the account after it: b itself, if it is
// refused.
func (b *book) obey(cmd *Command) (after *book, v verdict) {
	after = b.clone()
	if v.made, v.refused = after.command(cmd); v.refused != nil {
		return b, v
	}
	if v.taken = cmd.Advice.within(b.policy, cmd); v.taken != nil {
		v.deferred = v.taken.Defer
		if v.made, v.refused = after.advised(b, cmd, v.made, v.taken); v.refused != nil {
			return b, v
		}
	}
	v.question, v.approvedBy = b.question(cmd)
	return after, v
}

// heed takes in what a writer reports of a transfer.
func (b *book) heed(cmd *Command) (v verdict) {
	if v.refused = b.believe(cmd); v.refused == nil {
		v.believed = true
		v.made, v.refused = b.leg(cmd)
	}
	return v
}

// book is an account while a decision is made on it.
type book struct {
	policy *Policy
	key    interlock.Key
	now    time.Time
	state  State
	out    []OutgoingTransfer
}

// open brings an account up to now: what has run out ends, and what has stood open for
// too long is asked about.
func open(policy *Policy, state *State, key interlock.Key, now time.Time) *book {
	now = now.UTC().Truncate(time.Millisecond)
	if now.Before(state.At) {
		now = state.At
	}
	b := &book{policy: policy, key: key, now: now, state: state.clone()}
	s := &b.state
	s.Policy = *policy
	if s.Currency == "" {
		s.Currency = policy.Currency
	}
	if s.Day != day(now) {
		s.Day, s.Spent = "", nil
	}
	for i := 0; i < len(s.Holds); {
		h := &s.Holds[i]
		if now.Before(h.Until) {
			i++
			continue
		}
		if h.To == "" {
			s.end(i, Expired, 0, now, "")
			continue
		}
		if b.again(h.Asked) {
			h.Asked = now
			b.send(h.To, transferAsk, b.outbound(h))
		}
		i++
	}
	s.Incoming = slices.DeleteFunc(
		s.Incoming, func(in IncomingTransfer) bool { return in.Settled && !now.Before(in.Until) },
	)
	for i := range s.Incoming {
		if in := &s.Incoming[i]; !in.Settled && !now.Before(in.Until) && b.again(in.Told) {
			b.tell(in)
		}
	}
	s.Finished = slices.DeleteFunc(s.Finished, func(f FinishedEntry) bool { return now.Sub(f.At) >= Remembered })
	return b
}

// advised makes less of a command that was carried out on b, by the advice that was
// taken; before is the account without it.
func (b *book) advised(before *book, cmd *Command, made entry, taken *Advice) (entry, *refusal) {
	switch {
	case taken.Refuse:
		return entry{}, &refusal{
			AdvisedAgainst, "the account's adviser is against it: " + taken.Reason,
			"do without it, or ask again when the reason is gone",
		}
	case taken.Amount != 0:
		lower := *cmd
		lower.Order.Amount = taken.Amount
		*b = *before.clone()
		return b.command(&lower)
	}
	return made, nil
}

// close bounds what is remembered, and reports whether the account has changed. Its time moves
// on when it has, or must: a transfer that comes too late stays too late.
func (b *book) close(before *State, must bool) bool {
	s := &b.state
	if over := len(s.Finished) - MaxFinished; over > 0 {
		s.Finished = slices.Delete(s.Finished, 0, over)
	}
	if !must && bytes.Equal(s.encode(), before.encode()) {
		return false
	}
	s.At = b.now
	return true
}

func (b *book) clone() *book {
	c := *b
	c.state, c.out = b.state.clone(), slices.Clone(b.out)
	return &c
}

// again reports whether it is time to send something again.
func (b *book) again(last time.Time) bool { return b.now.Sub(last) >= b.allowed() }

func (b *book) send(to interlock.Key, kind Kind, l leg) {
	b.out = append(b.out, OutgoingTransfer{To: to, Kind: kind, Body: l})
}

// command carries out what an agent asks for.
func (b *book) command(cmd *Command) (entry, *refusal) {
	none := entry{}
	if refused := b.admit(cmd); refused != nil {
		return none, refused
	}
	rule, _ := b.policy.rule(cmd.By, cmd.Kind)
	amount := cmd.Order.Amount
	if cmd.Kind.counts() {
		if refused := b.bound(cmd, &rule, amount); refused != nil {
			return none, refused
		}
	}
	switch cmd.Kind {
	case Credit:
		b.state.Balance += amount
	case Debit:
		b.state.Balance -= amount
	case Hold:
		return b.hold(cmd, &rule)
	case Transfer:
		return b.transfer(cmd, &rule)
	case Capture:
		return b.capture(cmd, &rule)
	case Void:
		return b.void(cmd, &rule)
	}
	return entry{amount: amount}, nil
}

// admit decides whether the command is one, and whether the requester may send it.
func (b *book) admit(cmd *Command) *refusal {
	switch {
	case b.policy.Currency == "":
		return &refusal{
			UnknownAccount, "there is no account " + string(b.key), "look the account up: its key may be spelled otherwise",
		}
	case !slices.Contains(kinds, cmd.Kind):
		return &refusal{
			UnknownCommand, fmt.Sprintf("an account has no command %q", cmd.Kind), "send one of " + b.policy.kindsOf(cmd.By),
		}
	case cmd.broken != nil:
		return &refusal{
			InvalidCommand, fmt.Sprintf("the body of the %s cannot be carried out: %v", cmd.Kind, cmd.broken),
			"correct it and send it again",
		}
	case b.policy.Currency != b.state.Currency:
		return &refusal{
			WrongCurrency,
			fmt.Sprintf("the account is kept in %s, but its policy is for %s", b.state.Currency, b.policy.Currency),
			"tell the operator: nothing can be moved until the policy is corrected",
		}
	}
	rule, ok := b.policy.rule(cmd.By, cmd.Kind)
	switch {
	case !ok:
		return &refusal{
			NotAllowed, fmt.Sprintf("%s may not %s on %s; it may: %s", name(cmd.By), cmd.Kind, b.key, b.policy.kindsOf(cmd.By)),
			"leave it to an agent that may, or ask the operator for a rule",
		}
	case cmd.Priority > rule.Urgency:
		return &refusal{
			TooUrgent,
			fmt.Sprintf(
				"priority %d is more than the %d that %s may give a %s", cmd.Priority, rule.Urgency, name(cmd.By), cmd.Kind,
			),
			fmt.Sprintf(
				"send it with priority %d: urgency changes the order of the line, and never what is allowed", rule.Urgency,
			),
		}
	case cmd.Order.Currency != "" && cmd.Order.Currency != b.state.Currency:
		return &refusal{
			WrongCurrency, fmt.Sprintf("the account is kept in %s, not in %s", b.state.Currency, cmd.Order.Currency),
			"convert the amount yourself and send it in the account's currency",
		}
	}
	return nil
}

// bound decides whether an amount is within the bounds, and counts it.
func (b *book) bound(cmd *Command, rule *Rule, amount Money) *refusal {
	if rule.MaxAmount != 0 && amount > rule.MaxAmount {
		return &refusal{
			AboveMaximum,
			fmt.Sprintf(
				"%s is more than the %s that one %s may have", b.policy.show(amount), b.policy.show(rule.MaxAmount), cmd.Kind,
			),
			"ask for less; splitting it does not lift the day's budget",
		}
	}
	if !cmd.Kind.out() {
		if _, ok := b.state.Balance.plus(amount); !ok {
			return &refusal{OutOfRange, "the balance would be more than an account can hold", "use another account"}
		}
		return b.spend(cmd.By, "given", rule.DayIn, amount, func(s *Spent) *Money { return &s.In })
	}
	if available := b.state.Available(); available-amount < b.policy.Floor {
		left := max(available-b.policy.Floor, 0)
		next := "ask for that much at most, or wait for a credit"
		if left == 0 {
			next = "wait for a credit: until then nothing can be taken"
		}
		return &refusal{
			BelowFloor,
			fmt.Sprintf(
				"%s would leave less than the %s that must stay available; %s can be taken", b.policy.show(amount),
				b.policy.show(b.policy.Floor), b.policy.show(left),
			),
			next,
		}
	}
	return b.spend(cmd.By, "taken", rule.DayOut, amount, func(s *Spent) *Money { return &s.Out })
}

// spend counts an amount against a budget, if there is one.
func (b *book) spend(by, verb string, budget, amount Money, of func(*Spent) *Money) *refusal {
	if budget == 0 {
		return nil
	}
	spent := b.state.spent(by)
	already := Money(0)
	if spent != nil {
		already = *of(spent)
	}
	if amount > budget-already {
		return &refusal{
			OverBudget,
			fmt.Sprintf(
				"%s has %s %s of its %s today; %s is too much", name(by), verb, b.policy.show(already), b.policy.show(budget),
				b.policy.show(amount),
			),
			fmt.Sprintf(
				"ask for %s at most, or wait until the next day begins (00:00 UTC)", b.policy.show(max(budget-already, 0)),
			),
		}
	}
	if spent == nil {
		if len(b.state.Spent) >= MaxSpenders {
			return &refusal{
				TooManyOpen, fmt.Sprintf("%d requesters have used the account today, more than it counts", MaxSpenders),
				"wait until the next day begins (00:00 UTC)",
			}
		}
		b.state.Day = day(b.now)
		b.state.Spent = append(b.state.Spent, Spent{By: by})
		spent = &b.state.Spent[len(b.state.Spent)-1]
	}
	*of(spent) += amount
	return nil
}

// question returns the question that a person has to approve before the command is carried out,
// or "" and its approver, if that was needed. It depends on the command and the policy alone,
// so a yes to it is a yes to this command.
func (b *book) question(cmd *Command) (text, approvedBy string) {
	rule, _ := b.policy.rule(cmd.By, cmd.Kind)
	if !cmd.Kind.counts() || rule.ApproveAbove == 0 || cmd.Order.Amount <= rule.ApproveAbove {
		return "", ""
	}
	var q strings.Builder
	fmt.Fprintf(&q, "%s: %s of %s", b.key, cmd.Kind, b.policy.show(cmd.Order.Amount))
	if cmd.Order.To != "" {
		fmt.Fprintf(&q, " to %s", cmd.Order.To)
	}
	fmt.Fprintf(&q, ", asked for by %s", name(cmd.By))
	if cmd.Order.Memo != "" {
		fmt.Fprintf(&q, ", who says %q", cmd.Order.Memo)
	}
	fmt.Fprintf(&q, ". More than %s needs a person's yes. Message %s.", b.policy.show(rule.ApproveAbove), cmd.ID)
	if yes := cmd.Approved; yes != nil && yes.By != "" && yes.Question == q.String() {
		return "", yes.By
	}
	return q.String(), ""
}

// reply returns what was decided, and how the account stands.
func (b *book) reply(cmd *Command, v *verdict) Reply {
	s := &b.state
	r := Reply{
		Outcome: OutcomeDone, ID: v.made.id, Amount: v.made.amount,
		Currency: s.Currency, Balance: s.Balance, Held: s.Held(), Available: s.Available(),
		At: b.now, By: cmd.By, Priority: cmd.Priority, ApprovedBy: v.approvedBy, Advice: v.taken,
	}
	switch {
	case v.refused != nil:
		r.Outcome, r.Code, r.Message, r.Next = OutcomeRefused, v.refused.code, v.refused.message, v.refused.next
	case v.made.pending:
		r.Outcome = OutcomePending
	}
	return r
}

// name is how a requester is called in texts.
func name(by string) string {
	if by == "" {
		return "a requester without a name"
	}
	return by
}
