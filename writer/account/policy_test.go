package account

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	p := house()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		spoil      func(*Policy)
	}{
		{"no currency", "names no currency", func(p *Policy) { p.Currency = "" }},
		{"decimals", "0 to 8 decimals", func(p *Policy) { p.Decimals = 9 }},
		{"floor", "beyond what a balance can be", func(p *Policy) { p.Floor = MaxMoney + 1 }},
		{
			"a limit of approvals that nothing needs", "nothing needs one",
			func(p *Policy) { p.ApproveAbove, p.ApproveWithin = 0, time.Hour },
		},
		{"transfers without time", "1s at least", func(p *Policy) { p.TransferFor = time.Millisecond }},
		{"a negative time", "whole milliseconds", func(p *Policy) { p.HoldFor = -1 }},
		{"a split millisecond", "whole milliseconds", func(p *Policy) { p.MaxDefer = time.Microsecond }},
		{"approval above the maximum", "nobody is ever asked", func(p *Policy) { p.ApproveAbove = 1000_00 }},
		{"a negative bound", "from 0 to", func(p *Policy) { p.MaxAmount = -1 }},
		{
			"approval above a rule's maximum", "rule 2: amounts above 5000",
			func(p *Policy) { p.Rules[1].ApproveAbove = 50_00 },
		},
		{"more than the account", "where the account allows", func(p *Policy) { p.Rules[3].MaxAmount = 1000_01 }},
		{
			"never reached", "rule 2: it never counts, because rule 1",
			func(p *Policy) { p.Rules[0] = Rule{Requester: "*", Kinds: []Kind{Credit, Capture}} },
		},
		{
			"twice", "rule 4: it never counts, because rule 3",
			func(p *Policy) { p.Rules[3] = Rule{Requester: "desk", Kinds: []Kind{Void}} },
		},
		{"no such kind", `no command "transfer.credit"`, func(p *Policy) { p.Rules[2].Kinds = []Kind{transferCredit} }},
		{"nobody", "names no requester", func(p *Policy) { p.Rules[3].Requester = "" }},
		{"a negative budget", "a budget is from", func(p *Policy) { p.Rules[0].DayOut = -1 }},
		{"a budget for what does not go out", "allows nothing that does", func(p *Policy) { p.Rules[1].DayOut = 1 }},
		{"a budget for no credits", "allows none", func(p *Policy) { p.Rules[0].DayIn = 1 }},
		{"settles nothing", "neither capture nor void", func(p *Policy) { p.Rules[1].Settle = true }},
		{"too urgent", "from -100 to 100", func(p *Policy) { p.Rules[0].Urgency = 101 }},
		{
			"transfers to nowhere", "nowhere to transfer to",
			func(p *Policy) { p.TransferTo, p.Rules[3].Kinds = "", []Kind{Transfer} },
		},
		{"more at once than in a day", "in a whole day", func(p *Policy) { p.Rules[0].MaxAmount = 300_01 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := house()
			tt.spoil(&p)
			if err := p.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, wanted %q", err, tt.want)
			}
		})
	}
}

func TestPolicyJSON(t *testing.T) {
	p := house()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"transfer_for_ms":60000`) {
		t.Errorf("durations are in milliseconds: %s", text)
	}
	var back Policy
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v became %+v (%v)", p, back, err)
	}
	for _, bad := range []string{`{"flor":1}`, `{"hold_for_ms":-1}`, `{"hold_for_ms":9007199254740993}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
