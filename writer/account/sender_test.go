package account

import (
	"testing"

	"github.com/interlockdev/interlock"
)

func TestSender(t *testing.T) {
	for _, tt := range []struct {
		task interlock.Task
		by   string
		from interlock.Key
	}{
		{interlock.Task{Agent: "billing-7", Session: "s1", Sender: "session:s1"}, "billing-7", ""},
		{interlock.Task{Agent: "billing-7", Session: "s1", Sender: "session:s1", Principal: "billing"}, "billing", ""},
		{interlock.Task{Agent: "account-agent", Sender: "key:account:2"}, "account-agent", "account:2"},
		{interlock.Task{Agent: "key:account:2", Sender: "agent:key:account:2"}, "key:account:2", ""},
		{interlock.Task{Agent: "x", Principal: "key:account:2", Sender: "principal:key:account:2"}, "key:account:2", ""},
		{interlock.Task{}, "", ""},
	} {
		if by, from := Requester(tt.task), Origin(tt.task); by != tt.by || from != tt.from {
			t.Errorf("%+v is from %q, at %q; wanted %q, %q", tt.task, by, from, tt.by, tt.from)
		}
	}
}

func TestApproved(t *testing.T) {
	for _, tt := range []struct {
		approval *interlock.Approval
		want     bool
	}{
		{nil, false},
		{&interlock.Approval{Question: "q", Verdict: interlock.Approved, By: "ann"}, true},
		{&interlock.Approval{Question: "q", Verdict: interlock.Denied, By: "ann"}, false},
		{&interlock.Approval{Question: "q"}, false},
		{
			&interlock.Approval{Question: "q", Verdict: interlock.Approved, By: interlock.ByPolicy, OnLimit: interlock.Approved},
			false,
		},
	} {
		if got := approved(tt.approval); (got != nil) != tt.want || got != nil && (got.Question != "q" || got.By != "ann") {
			t.Errorf("%+v: %+v", tt.approval, got)
		}
	}
}
