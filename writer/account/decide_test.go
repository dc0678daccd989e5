package account

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// house is a policy with a value for everything.
func house() Policy {
	return Policy{
		Currency: "EUR", Decimals: 2, Floor: -10_00, MaxAmount: 1000_00, ApproveAbove: 500_00,
		HoldFor: time.Hour, TransferFor: time.Minute, TransferTo: "account:", MaxDefer: time.Minute,
		Rules: []Rule{
			{Requester: "billing", Kinds: []Kind{Debit, Hold, Capture, Void}, DayOut: 300_00, Urgency: 10},
			{Requester: "billing", Kinds: []Kind{Credit}, MaxAmount: 50_00, DayIn: 80_00},
			{Requester: "desk", Kinds: []Kind{Capture, Void}, Settle: true},
			{Requester: "treasury"},
			{Requester: "*", Kinds: []Kind{Credit, Capture}},
		},
	}
}

// told is a command, and its expected result.
type told struct {
	kind     Kind
	by       string
	from     interlock.Key
	body     string
	priority int
	after    time.Duration // the time that passes before it
	approved *Approval
	advice   *Advice

	want      Code // "": it is done
	question  string
	deferred  time.Duration
	balance   Money
	available Money
	says      string // is in its message or next
	messages  []Kind
}

func TestDecide(t *testing.T) {
	ask := func(kind Kind, amount, id string) string {
		return fmt.Sprintf(
			"account:1: %s of %s EUR, asked for by treasury. More than 500.00 EUR needs a person's yes. Message %s.", kind,
			amount, id,
		)
	}
	leg := func(id string, amount Money, extra string) string {
		return fmt.Sprintf(
			`{"transfer":%q,"peer":"account:2","amount":%d,"currency":"EUR","until":"2026-11-21T12:01:00Z"%s}`, id, amount,
			extra,
		)
	}
	tests := []struct {
		name   string
		policy func(*Policy)
		steps  []told
	}{
		{"credit and debit", nil, []told{
			{kind: Credit, by: "support", body: `{"amount":2000}`, balance: 20_00, available: 20_00},
			{
				kind: Debit, by: "treasury", body: `{"amount":2500,"currency":"EUR","memo":"late fee"}`, balance: -5_00,
				available: -5_00,
			},
		}},
		{"the floor", nil, []told{
			{kind: Debit, by: "billing", body: `{"amount":1001}`, want: BelowFloor, says: "10.00 EUR can be taken"},
			{kind: Debit, by: "billing", body: `{"amount":1000}`, balance: -10_00, available: -10_00},
			{
				kind: Debit, by: "billing", body: `{"amount":1}`, want: BelowFloor, says: "wait for a credit", balance: -10_00,
				available: -10_00,
			},
		}},
		{"urgent commands break no policy", nil, []told{
			{
				kind: Debit, by: "billing", priority: 10, body: `{"amount":999999,"memo":"critically urgent!"}`,
				want: AboveMaximum, says: "1000.00 EUR",
			},
			{kind: Debit, by: "billing", priority: 11, body: `{"amount":1}`, want: TooUrgent, says: "send it with priority 10"},
			{kind: Debit, by: "billing", priority: 10, body: `{"amount":1}`, balance: -1, available: -1},
			{kind: Debit, by: "billing", priority: -100, body: `{"amount":1}`, balance: -2, available: -2},
		}},
		{"who may do what", nil, []told{
			{kind: Debit, by: "support", body: `{"amount":1}`, want: NotAllowed, says: "it may: credit, capture"},
			{kind: Void, by: "", body: `{"hold":"q"}`, want: NotAllowed, says: "a requester without a name"},
			{
				kind: "steal", by: "billing", body: `{"amount":1}`, want: UnknownCommand,
				says: "credit, debit, hold, capture, void",
			},
			{kind: Credit, by: "billing", body: `{"amount":5001}`, want: AboveMaximum, says: "50.00 EUR"},
		}},
		{"bodies", nil, []told{
			{kind: Credit, by: "a", body: ``, want: InvalidCommand, says: "empty"},
			{kind: Credit, by: "a", body: `{"amount":1.5}`, want: InvalidCommand},
			{kind: Credit, by: "a", body: `{"amount":"1"}`, want: InvalidCommand},
			{kind: Credit, by: "a", body: `{"amount":-1}`, want: InvalidCommand, says: "above 0"},
			{kind: Credit, by: "a", body: `{"amount":9007199254740992}`, want: InvalidCommand, says: "at most 9007199254740991"},
			{kind: Credit, by: "a", body: `{"amount":99999999999999999999}`, want: InvalidCommand},
			{kind: Credit, by: "a", body: `{"amount":1}{}`, want: InvalidCommand, says: "after the JSON value"},
			{kind: Credit, by: "a", body: `{"amount":1,"by":"treasury"}`, want: InvalidCommand, says: "by"},
			{kind: Credit, by: "a", body: `{"amount":1,"amount":2}`, want: InvalidCommand, says: "amount occurs twice"},
			{kind: Credit, by: "a", body: `{"amount":1,"Amount":2}`, want: InvalidCommand, says: "Amount occurs twice"},
			{kind: Credit, by: "a", body: `{"amount":1,"\u0061mount":2}`, want: InvalidCommand, says: "amount occurs twice"},
			{kind: Hold, by: "a", body: `{"amount":1,"memo":"a","memo":"b"}`, want: InvalidCommand, says: "memo occurs twice"},
			{kind: Credit, by: "a", body: `{"amount":1,"to":"account:2"}`, want: InvalidCommand, says: "a credit has no field to"},
			{kind: Credit, by: "a", body: `{}`, want: InvalidCommand, says: "a credit needs the field amount"},
			{kind: Credit, by: "a", body: `{"amount":1,"currency":"USD"}`, want: WrongCurrency, says: "EUR, not in USD"},
			{
				kind: Credit, by: "a", body: `{"amount":1,"memo":"` + strings.Repeat("m", 513) + `"}`, want: InvalidCommand,
				says: "memo",
			},
			{kind: Hold, by: "billing", body: `{"amount":1,"for_ms":-1}`, want: InvalidCommand, says: "for_ms"},
			{kind: Void, by: "billing", body: `{"hold":"q_1","amount":1}`, want: InvalidCommand, says: "a void has no field amount"},
		}},
		{"a day's budget", func(p *Policy) { p.Floor = -MaxMoney }, []told{
			{kind: Debit, by: "billing", body: `{"amount":20000}`, balance: -200_00, available: -200_00},
			{kind: Hold, by: "billing", body: `{"amount":10000}`, balance: -200_00, available: -300_00},
			{
				kind: Debit, by: "billing", body: `{"amount":1}`, want: OverBudget,
				says: "has taken 300.00 EUR of its 300.00 EUR today", balance: -200_00, available: -300_00,
			},
			{kind: Void, by: "billing", body: `{"hold":"m2"}`, balance: -200_00, available: -200_00},
			{kind: Debit, by: "billing", body: `{"amount":10000}`, balance: -300_00, available: -300_00},
			{kind: Credit, by: "billing", body: `{"amount":5000}`, balance: -250_00, available: -250_00},
			{
				kind: Credit, by: "billing", body: `{"amount":3001}`, want: OverBudget, says: "ask for 30.00 EUR at most",
				balance: -250_00, available: -250_00,
			},
			{kind: Debit, by: "treasury", body: `{"amount":40000}`, balance: -650_00, available: -650_00},
			{
				kind: Debit, by: "billing", body: `{"amount":30001}`, after: 12 * time.Hour, want: OverBudget,
				says: "0.00 EUR of its 300.00 EUR today", balance: -650_00, available: -650_00,
			},
			{kind: Debit, by: "billing", body: `{"amount":30000}`, balance: -950_00, available: -950_00},
		}},
		{"what was held yesterday frees nothing of " +
			"today's budget", func(p *Policy) { p.Floor, p.HoldFor = -MaxMoney, 0 }, []told{
			{kind: Hold, by: "billing", body: `{"amount":30000}`, available: -300_00},
			{kind: Debit, by: "billing", body: `{"amount":30000}`, after: 12 * time.Hour, balance: -300_00, available: -600_00},
			{kind: Void, by: "billing", body: `{"hold":"m1"}`, balance: -300_00, available: -300_00},
			{kind: Debit, by: "billing", body: `{"amount":1}`, want: OverBudget, balance: -300_00, available: -300_00},
		}},
		{"hold, capture and void", func(p *Policy) { p.Floor = 0 }, []told{
			{kind: Credit, by: "a", body: `{"amount":10000}`, balance: 100_00, available: 100_00},
			{kind: Hold, by: "billing", body: `{"amount":8000}`, balance: 100_00, available: 20_00},
			{
				kind: Debit, by: "billing", body: `{"amount":2001}`, want: BelowFloor, says: "20.00 EUR can be taken",
				balance: 100_00, available: 20_00,
			},
			{
				kind: Capture, by: "billing", body: `{"hold":"m2","amount":8001}`, want: AboveHold, balance: 100_00,
				available: 20_00,
			},
			{
				kind: Capture, by: "support", body: `{"hold":"m2"}`, want: NotYours, says: "billing's", balance: 100_00,
				available: 20_00,
			},
			{kind: Capture, by: "billing", body: `{"hold":"m2","amount":3000}`, balance: 70_00, available: 70_00},
			{
				kind: Capture, by: "billing", body: `{"hold":"m2"}`, want: HoldSettled,
				says: "was captured at 2026-11-21T12:00:00Z, with 30.00 EUR taken", balance: 70_00, available: 70_00,
			},
			{kind: Void, by: "billing", body: `{"hold":"m1"}`, want: UnknownHold, balance: 70_00, available: 70_00},
			{kind: Hold, by: "billing", body: `{"amount":1000}`, balance: 70_00, available: 60_00},
			{kind: Void, by: "desk", body: `{"hold":"m9"}`, balance: 70_00, available: 70_00},
			{kind: Void, by: "desk", body: `{"hold":"m9"}`, want: HoldSettled, says: "voided", balance: 70_00, available: 70_00},
			{kind: Hold, by: "billing", body: `{"amount":7000}`, balance: 70_00, available: 0},
			{kind: Capture, by: "billing", body: `{"hold":"m12"}`, balance: 0, available: 0},
		}},
		{"a hold runs out", func(p *Policy) { p.Floor = 0 }, []told{
			{kind: Credit, by: "a", body: `{"amount":1000}`, balance: 10_00, available: 10_00},
			{kind: Hold, by: "billing", body: `{"amount":400,"for_ms":60000}`, balance: 10_00, available: 6_00},
			{kind: Hold, by: "billing", body: `{"amount":600,"for_ms":86400000}`, balance: 10_00, available: 0},
			{
				kind: Debit, by: "billing", body: `{"amount":1}`, after: time.Minute - time.Millisecond, want: BelowFloor,
				balance: 10_00, available: 0,
			},
			{
				kind: Capture, by: "billing", body: `{"hold":"m2"}`, after: time.Millisecond, want: HoldSettled, says: "expired",
				balance: 10_00, available: 4_00,
			},
			{
				kind: Capture, by: "billing", body: `{"hold":"m3"}`, after: time.Hour, want: HoldSettled, balance: 10_00,
				available: 10_00,
			},
			{
				kind: Capture, by: "billing", body: `{"hold":"m3"}`, after: 25 * time.Hour, want: UnknownHold, balance: 10_00,
				available: 10_00,
			},
		}},
		{"a person decides", func(p *Policy) { p.Floor = -MaxMoney }, []told{
			{kind: Debit, by: "treasury", body: `{"amount":50000}`, balance: -500_00, available: -500_00},
			{kind: Debit, by: "treasury", body: `{"amount":50001}`, question: ask(Debit, "500.01", "m2")},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, approved: &Approval{"whatever you like?", "ann"},
				question: ask(Debit, "500.01", "m3"),
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, approved: &Approval{ask(Debit, "500.01", "m2"), "ann"},
				question: ask(Debit, "500.01", "m4"),
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, approved: &Approval{ask(Debit, "500.01", "m5"), ""},
				question: ask(Debit, "500.01", "m5"),
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, approved: &Approval{ask(Debit, "500.01", "m6"), "ann"},
				balance: -1000_01, available: -1000_01,
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":100001}`, approved: &Approval{ask(Debit, "1000.01", "m7"), "ann"},
				want: AboveMaximum, balance: -1000_01, available: -1000_01,
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, advice: &Advice{Amount: 100},
				question: ask(Debit, "500.01", "m8"),
			},
			{
				kind: Debit, by: "treasury", body: `{"amount":50001}`, advice: &Advice{Amount: 100},
				approved: &Approval{ask(Debit, "500.01", "m9"), "ann"}, balance: -1001_01, available: -1001_01,
			},
		}},
		{"an adviser makes less of it and never more", nil, []told{
			{kind: Credit, by: "a", body: `{"amount":10000}`, advice: &Advice{Amount: 4000}, balance: 40_00, available: 40_00},
			{kind: Credit, by: "a", body: `{"amount":100}`, advice: &Advice{Amount: 4000}, balance: 41_00, available: 41_00},
			{kind: Credit, by: "a", body: `{"amount":100}`, advice: &Advice{Amount: -100}, balance: 42_00, available: 42_00},
			{
				kind: Credit, by: "a", body: `{"amount":100}`, advice: &Advice{Refuse: true, Reason: "fraud"},
				want: AdvisedAgainst, says: "fraud", balance: 42_00, available: 42_00,
			},
			{kind: Credit, by: "a", body: `{"amount":100}`, advice: &Advice{Defer: time.Second}, deferred: time.Second},
			{kind: Credit, by: "a", body: `{"amount":100}`, advice: &Advice{Defer: time.Hour}, deferred: time.Minute},
			{
				kind: Debit, by: "a", body: `{"amount":100}`, advice: &Advice{Amount: 1}, want: NotAllowed, balance: 42_00,
				available: 42_00,
			},
			{
				kind: Debit, by: "billing", body: `{"amount":20000}`, advice: &Advice{Amount: 1}, want: BelowFloor, balance: 42_00,
				available: 42_00,
			},
			{
				kind: Hold, by: "billing", body: `{"amount":5000}`, advice: &Advice{Amount: 2000}, balance: 42_00,
				available: 22_00,
			},
			{
				kind: Capture, by: "billing", body: `{"hold":"m9"}`, advice: &Advice{Refuse: true}, balance: 22_00,
				available: 22_00,
			},
		}},
		{"a transfer begins", func(p *Policy) { p.Floor = 0 }, []told{
			{kind: Credit, by: "a", body: `{"amount":10000}`, balance: 100_00, available: 100_00},
			{
				kind: Transfer, by: "treasury", body: `{"amount":10001,"to":"account:2"}`, want: BelowFloor, balance: 100_00,
				available: 100_00,
			},
			{
				kind: Transfer, by: "treasury", body: `{"amount":1,"to":"account:1"}`, want: UnknownAccount, balance: 100_00,
				available: 100_00,
			},
			{
				kind: Transfer, by: "treasury", body: `{"amount":1,"to":"accounts/2"}`, want: UnknownAccount, says: "account:12345",
				balance: 100_00, available: 100_00,
			},
			{
				kind: Transfer, by: "treasury", body: `{"amount":1,"to":"account:2/x"}`, want: UnknownAccount, balance: 100_00,
				available: 100_00,
			},
			{
				kind: Transfer, by: "billing", body: `{"amount":1,"to":"account:2"}`, want: NotAllowed, balance: 100_00,
				available: 100_00,
			},
			{
				kind: Transfer, by: "treasury", body: `{"amount":6000,"to":"account:2"}`, balance: 100_00, available: 40_00,
				messages: []Kind{transferCredit, transferWake},
			},
			{
				kind: Capture, by: "desk", body: `{"hold":"m7"}`, want: TransferHold, says: "account:2", balance: 100_00,
				available: 40_00,
			},
			{
				kind: transferPost, from: "account:2", body: leg("m7", 60_00, ""), balance: 40_00, available: 40_00,
				messages: []Kind{transferForget},
			},
			{
				kind: transferPost, from: "account:2", body: leg("m7", 60_00, ""), balance: 40_00, available: 40_00,
				messages: []Kind{transferForget},
			},
			{
				kind: transferVoid, from: "account:2", body: leg("m7", 60_00, ""), balance: 40_00, available: 40_00,
				messages: []Kind{transferForget},
			},
			{kind: transferWake, from: "account:2", body: leg("m7", 60_00, ""), balance: 40_00, available: 40_00},
		}},
		{"a transfer gets no answer", func(p *Policy) { p.Floor = 0 }, []told{
			{kind: Credit, by: "a", body: `{"amount":10000}`, balance: 100_00, available: 100_00},
			{
				kind: Transfer, by: "treasury", body: `{"amount":6000,"to":"account:2"}`, balance: 100_00, available: 40_00,
				messages: []Kind{transferCredit, transferWake},
			},
			{
				kind: transferWake, from: "account:2", body: leg("m2", 60_00, ""), after: time.Second, balance: 100_00,
				available: 40_00, messages: []Kind{transferWake},
			},
			{
				kind: transferWake, from: "account:2", body: leg("m2", 60_00, ""), after: time.Minute, balance: 100_00,
				available: 40_00, messages: []Kind{transferAsk, transferWake},
			},
			{
				kind: Void, by: "desk", body: `{"hold":"m2"}`, after: time.Second, want: TransferHold, balance: 100_00,
				available: 40_00,
			},
			{
				kind: Void, by: "desk", body: `{"hold":"m2"}`, after: time.Minute, want: TransferHold, balance: 100_00,
				available: 40_00, messages: []Kind{transferAsk},
			},
			{
				kind: transferVoid, from: "account:2", body: leg("m2", 60_00, `,"code":"transfer_late"`), balance: 100_00,
				available: 100_00, messages: []Kind{transferForget},
			},
			{
				kind: transferPost, from: "account:2", body: leg("m2", 60_00, ""), balance: 100_00, available: 100_00,
				messages: []Kind{transferForget},
			},
		}},
		{"a transfer arrives", nil, []told{
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), balance: 60_00, available: 60_00,
				messages: []Kind{transferPost},
			},
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), balance: 60_00, available: 60_00,
				messages: []Kind{transferPost},
			},
			{
				kind: transferAsk, from: "account:2", body: leg("t1", 60_00, ""), balance: 60_00, available: 60_00,
				messages: []Kind{transferPost},
			},
			{
				kind: Credit, by: "a", body: `{"amount":1}`, after: 2 * time.Minute, balance: 60_01, available: 60_01,
				messages: []Kind{transferPost},
			},
			{kind: transferForget, from: "account:2", body: leg("t1", 60_00, ""), balance: 60_01, available: 60_01},
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), want: TransferLate, balance: 60_01,
				available: 60_01, messages: []Kind{transferVoid},
			},
		}},
		{"a transfer is asked for before it arrives", nil, []told{
			{
				kind: transferAsk, from: "account:2", body: leg("t1", 60_00, ""), want: TransferLate,
				messages: []Kind{transferVoid},
			},
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), want: TransferLate,
				messages: []Kind{transferVoid},
			},
		}},
		{"a transfer comes too late", nil, []told{
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), after: time.Minute, want: TransferLate,
				messages: []Kind{transferVoid},
			},
			{
				kind: transferCredit, from: "account:2", body: leg("t1", 60_00, ""), after: -time.Hour, want: TransferLate,
				messages: []Kind{transferVoid},
			},
		}},
		{"a transfer that cannot be taken", nil, []told{
			{
				kind: transferCredit, from: "account:2", body: strings.Replace(leg("t1", 60_00, ""), "EUR", "USD", 1),
				want: WrongCurrency, messages: []Kind{transferVoid},
			},
			{
				kind: transferCredit, from: "account:2", body: leg("t2", MaxMoney+1, ""), want: OutOfRange,
				messages: []Kind{transferVoid},
			},
			{kind: transferCredit, from: "account:2", body: leg("t3", -1, ""), want: OutOfRange, messages: []Kind{transferVoid}},
			{kind: transferCredit, from: "account:2", body: `{"transfer":1}`, want: InvalidCommand},
			{
				kind: transferCredit, from: "account:2", body: leg("t4", 1, `,"amount":2`), want: InvalidCommand,
				says: "amount occurs twice",
			},
		}},
		{"nobody reports money but the writer", nil, []told{
			{kind: transferCredit, by: "treasury", body: leg("t1", 60_00, ""), want: NotFromWriter},
			{kind: transferPost, from: "account:3", body: leg("t1", 60_00, ""), want: NotFromWriter},
			{kind: transferCredit, by: "treasury", body: `{"transfer":1}`, want: NotFromWriter},
		}},
		{"money that may go nowhere", func(p *Policy) { p.TransferTo = "" }, []told{
			{
				kind: Transfer, by: "treasury", body: `{"amount":1,"to":"account:2"}`, want: UnknownAccount,
				says: "it may go nowhere",
			},
		}},
		{"a balance has an end", func(p *Policy) { *p = Policy{Currency: "EUR", Floor: -MaxMoney} }, []told{
			{kind: Credit, by: "a", body: `{"amount":9007199254740991}`, balance: MaxMoney, available: MaxMoney},
			{kind: Credit, by: "a", body: `{"amount":1}`, want: OutOfRange, balance: MaxMoney, available: MaxMoney},
			{kind: Debit, by: "a", body: `{"amount":9007199254740991}`},
			{kind: Debit, by: "a", body: `{"amount":9007199254740991}`, balance: -MaxMoney, available: -MaxMoney},
			{kind: Debit, by: "a", body: `{"amount":1}`, want: BelowFloor, balance: -MaxMoney, available: -MaxMoney},
		}},
		{"there is no such account", func(p *Policy) { *p = Policy{} }, []told{
			{kind: Credit, by: "a", body: `{"amount":1}`, want: UnknownAccount},
			{kind: "steal", by: "a", body: `{"amount":1}`, want: UnknownAccount},
		}},
	}
	seen := map[Code]bool{TooManyOpen: true} // TestFull
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy, state, now := house(), State{}, noon
			if tt.policy != nil {
				tt.policy(&policy)
			}
			if err := policy.Check(); err != nil && policy.Currency != "" {
				t.Fatal(err)
			}
			for i, step := range tt.steps {
				now = now.Add(step.after)
				cmd := read("account:1", fmt.Sprintf("m%d", i+1), step.kind, []byte(step.body))
				cmd.By, cmd.From, cmd.Priority, cmd.Approved, cmd.Advice = step.by, step.from, step.priority, step.approved,
					step.advice
				before := state.clone()
				d := Decide(policy, state, cmd, now)
				if !reflect.DeepEqual(state, before) {
					t.Fatalf("step %d has changed the state that it was given", i+1)
				}
				if again := Decide(policy, state, cmd, now); !reflect.DeepEqual(again, d) {
					t.Fatalf("step %d is decided otherwise the second time", i+1)
				}
				if d.Question != step.question || d.Defer != step.deferred {
					t.Fatalf(
						"step %d: question %q, wanted %q; put off for %v, wanted %v", i+1, d.Question, step.question, d.Defer,
						step.deferred,
					)
				}
				if d.Question != "" || d.Defer != 0 {
					continue
				}
				check(t, i+1, step, d)
				seen[d.Reply.Code] = true
				state = roundTrip(t, d.State)
			}
		})
	}
	if t.Failed() {
		return
	}
	for _, code := range codes {
		if !seen[code] {
			t.Errorf("no case is refused with %s", code)
		}
	}
}

var codes = []Code{
	InvalidCommand, UnknownCommand, NotAllowed, NotFromWriter, TooUrgent, WrongCurrency, AboveMaximum, BelowFloor,
	OverBudget, OutOfRange,
	UnknownHold, HoldSettled, NotYours, AboveHold, TransferHold, UnknownAccount, TooManyOpen, AdvisedAgainst, TransferLate,
}

func check(t *testing.T, n int, step told, d Decision) {
	t.Helper()
	r := d.Reply
	if r.Code != step.want || (r.Outcome == OutcomeRefused) != (step.want != "") {
		t.Fatalf("step %d: %s %q (%s: %s), wanted %q", n, r.Outcome, r.Code, r.Message, r.Next, step.want)
	}
	if step.want != "" && (r.Message == "" || r.Next == "" || r.Amount != 0 && r.ID == "") {
		t.Errorf("step %d: a refusal says why and what next: %+v", n, r)
	}
	if !strings.Contains(r.Message+" / "+r.Next, step.says) {
		t.Errorf("step %d: %q, %q does not say %q", n, r.Message, r.Next, step.says)
	}
	if r.Balance != step.balance || r.Available != step.available {
		t.Errorf(
			"step %d: balance %d and available %d, wanted %d and %d", n, r.Balance, r.Available, step.balance, step.available,
		)
	}
	var sent []Kind
	for _, m := range d.Messages {
		sent = append(sent, m.Kind)
	}
	if !slices.Equal(sent, step.messages) {
		t.Errorf("step %d: messages %q, wanted %q", n, sent, step.messages)
	}
}

// roundTrip returns the state as the next decision reads it from the document.
func roundTrip(t *testing.T, s State) State {
	t.Helper()
	back, err := Parse(interlock.Document{Key: "account:1", Body: s.encode()})
	if err != nil {
		t.Fatal(err)
	}
	if string(back.encode()) != string(s.encode()) {
		t.Fatalf("%s became %s", s.encode(), back.encode())
	}
	return back
}

func TestFull(t *testing.T) {
	policy := Policy{
		Currency: "EUR", Floor: -MaxMoney, TransferTo: "account:", Rules: []Rule{{Requester: "*", DayOut: MaxMoney}},
	}
	decide := func(s State, id, by string, kind Kind, body string) Decision {
		cmd := read("account:1", id, kind, []byte(body))
		if cmd.By = by; by == "accounts" {
			cmd.From = "account:2"
		}
		return Decide(policy, s, cmd, noon)
	}
	var s State
	for i := range MaxHolds {
		s.Holds = append(s.Holds, Held{ID: fmt.Sprint("h", i), Amount: 1, Until: noon.Add(time.Hour)})
	}
	if d := decide(s, "m", "a", Hold, `{"amount":1}`); d.Reply.Code != TooManyOpen {
		t.Errorf("hold %d: %+v", MaxHolds+1, d.Reply)
	}
	s = State{Day: day(noon)}
	for i := range MaxSpenders {
		s.Spent = append(s.Spent, Spent{By: fmt.Sprint("s", i), Out: 1})
	}
	if d := decide(s, "m", "a", Debit, `{"amount":1}`); d.Reply.Code != TooManyOpen {
		t.Errorf("requester %d: %+v", MaxSpenders+1, d.Reply)
	}
	if d := decide(s, "m", "s1", Debit, `{"amount":1}`); d.Reply.Code != "" {
		t.Errorf("a requester among %d: %+v", MaxSpenders, d.Reply)
	}
	s = State{}
	for i := range MaxIncoming {
		s.Incoming = append(
			s.Incoming, IncomingTransfer{ID: fmt.Sprint("t", i), Amount: 1, Until: noon.Add(time.Hour), Added: true},
		)
	}
	late, _ := json.Marshal(leg{Transfer: "t", Peer: "account:2", Amount: 1, Currency: "EUR", Until: noon.Add(time.Hour)})
	if d := decide(s, "m", "accounts", transferCredit, string(late)); d.Reply.Code != TooManyOpen ||
		len(d.Messages) != 0 || len(d.State.Incoming) != MaxIncoming {
		t.Errorf("transfer %d: %+v, %d messages", MaxIncoming+1, d.Reply, len(d.Messages))
	}
	s = State{}
	for i := range MaxFinished {
		s.Finished = append(s.Finished, FinishedEntry{ID: fmt.Sprint("f", i), At: noon})
	}
	s.Holds = []Held{{ID: "h", Amount: 1, By: "a", Until: noon.Add(time.Hour)}}
	d := decide(s, "m", "a", Void, `{"hold":"h"}`)
	if n := len(d.State.Finished); n != MaxFinished || d.State.Finished[0].ID != "f1" || d.State.Finished[n-1].ID != "h" {
		t.Errorf("%d holds are remembered, the first is %s", n, d.State.Finished[0].ID)
	}
}

// A refusal changes nothing but what time has changed.
func TestRefusedFirst(t *testing.T) {
	cmd := read("account:1", "m1", Debit, []byte(`{"amount":1}`))
	cmd.By = "nobody"
	d := Decide(house(), State{}, cmd, noon)
	if !d.Changed || d.State.Balance != 0 || d.State.Currency != "EUR" {
		t.Errorf("the policy was not written down: %+v", d.State)
	}
	if d = Decide(house(), d.State, cmd, noon.Add(48*time.Hour)); d.Changed {
		t.Errorf("a refusal has changed the state: %+v", d.State)
	}
	if d = Decide(Policy{}, State{}, cmd, noon); d.Changed {
		t.Errorf("an account that does not exist has a state: %+v", d.State)
	}
}

func TestMoneyText(t *testing.T) {
	for _, tt := range []struct {
		m        Money
		decimals int
		want     string
	}{{12345, 2, "123.45 EUR"}, {-5, 2, "-0.05 EUR"}, {7, 0, "7 EUR"}, {-MaxMoney, 3, "-9007199254740.991 EUR"}} {
		if got := tt.m.text(tt.decimals, "EUR"); got != tt.want {
			t.Errorf("%d is shown as %s, wanted %s", tt.m, got, tt.want)
		}
	}
}
