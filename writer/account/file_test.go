package account

import (
	"strings"
	"testing"
	"time"
)

const someFile = `{
  "shape": "account:{id:int}",
  "writers": ["teller"],
  "approvers": ["group:finance"],
  "min_approvals": 2,
  "accounts": [
    {"keys": "account:1", "policy": {"currency": "EUR", "approve_above": 10, "approve_within_ms": 60000}},
    {"keys": "account:*", "policy": {"currency": "USD", "decimals": 2, "rules": [
      {"requester": "*", "kinds": ["credit"], "max_amount": 100, "urgency": 3}
    ]}}
  ]
}`

func TestParseFile(t *testing.T) {
	f, err := ParseFile([]byte(someFile))
	if err != nil {
		t.Fatal(err)
	}
	if f.Queue != DefaultQueue || f.Pattern != DefaultPattern || f.Prefix() != "account:" || f.MinApprovals != 2 {
		t.Errorf("got %+v", f)
	}
	one, _ := f.Policy("account:1")
	other, _ := f.Policy("account:12")
	none, _ := f.Policy("konto:1")
	if one.Currency != "EUR" || one.ApproveWithin != time.Minute || other.Currency != "USD" ||
		other.Rules[0].Urgency != 3 || none.Currency != "" {
		t.Errorf("got %+v, %+v and %+v", one, other, none)
	}
}

// Each mistake has a place, and nothing is read past the content of the file.
func TestParseFileMistakes(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{`"shape"`, `"shap"`, `2:3: there is no field "shap": want one of queue, pattern, shape, `},
		{`"approve_above"`, `"aprove_above"`, `7:57: accounts[0].policy: there is no field "aprove_above"`},
		{
			`"decimals": 2`, `"decimals": 2, "currency": "EUR"`,
			`8:72: accounts[1].policy: the field "currency" stands here twice`,
		},
		{
			`"max_amount": 100`, `"max_amount": "100"`,
			`9:61: accounts[1].policy.rules[0].max_amount: a string is no whole number in range`,
		},
		{
			`"max_amount": 100`, `"max_amount": 1.5`,
			`9:61: accounts[1].policy.rules[0].max_amount: a number 1.5 is no whole number in range`,
		},
		{`"max_amount": 100`, `"max_amount": null`, `9:61: accounts[1].policy.rules[0].max_amount: null is no value`},
		{`60000`, `-1`, `7:99: accounts[0].policy.approve_within_ms: a time is from 0 to `},
		{`["credit"]`, `"credit"`, `9:35: accounts[1].policy.rules[0].kinds: want a list: [...]`},
		{
			`["credit"]`, `["loan"]`,
			`8:37: accounts[1].policy: the policy contradicts itself: rule 1: there is no command "loan"`,
		},
		{
			`"account:1"`, `"account:*"`,
			`8:14: accounts[1].keys: it never counts, because accounts[0] fits every key that it fits`,
		},
		{`"account:1"`, `"konto:1"`, `7:14: accounts[0].keys: no key of shape account:{id:int} begins so`},
		{`["teller"]`, `[""]`, `3:14: writers: an entry is empty`},
		{`"min_approvals": 2`, `"min_approvals": -2`, `5:20: min_approvals: want a number from 0 to `},
		{`  "shape": "account:{id:int}",`, ``, `1:1: "shape" is missing`},
		{`"writers"`, `writers`, `3:3: invalid character 'w'`},
		{someFile, ``, `1:1: the text ends too early`},
		{someFile, someFile + "{}", `12:2: there is something behind the JSON object`},
		{someFile, `[]`, `1:1: want an object: {...}`},
		{someFile, someFile[:40], `the text ends too early`},
	} {
		_, err := ParseFile([]byte(strings.Replace(someFile, tt.old, tt.new, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s for %s: got %v, want %s", tt.new, tt.old, err, tt.want)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(someFile)
	f.Add(`{"shape": "a:{id}", "accounts": [{"keys": "*", "policy": {"currency": "EUR"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseFile([]byte(text))
		if err == nil && len(file.Accounts) == 0 {
			t.Errorf("%q says nothing", text)
		}
	})
}
