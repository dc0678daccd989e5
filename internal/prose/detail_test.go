package prose

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/problem"
)

func TestDetail(t *testing.T) {
	key := message.Str("account:12345")
	held := message.New(message.KeyHeld, key)
	plain := holder(nil)
	long := holder(func(h *interlock.Holder) { h.Liveness, h.HeartbeatAge = interlock.Suspect, 21*time.Second })
	long.Line.Length = 3
	own := holder(nil)
	own.Kind = interlock.SameAgentOtherFlow
	behind := holder(func(h *interlock.Holder) { h.Key = "account:12345/cap" })
	behind.Key, behind.Kind = "account:12345/fees", interlock.AncestorHeld
	behind.Ahead, behind.LineKey = 1, "account:12345"
	cycle := engine.Conflict{Conflict: interlock.Conflict{
		Cycle: []interlock.CycleStep{{Agent: "a", Victim: true}, {Agent: "b", Key: "k"}, {Agent: "c"}},
	}}
	around := engine.Conflict{Conflict: interlock.Conflict{Cycle: []interlock.CycleStep{
		{Agent: "a", Victim: true, Key: "k", Next: interlock.Holds}, {Agent: "b", Next: interlock.Within},
	}}}
	over := message.New(
		message.LeaseOver, message.Sub(message.New(message.TheLease, key)), message.Sub(message.New(message.LeaseExpired)),
		message.Sub(nil), message.Sub(nil), message.Sub(nil), message.Sub(message.New(message.KeyTaken)),
	)
	for _, c := range []struct {
		code     interlock.Code
		text     *message.Text
		conflict *engine.Conflict
		want     string
	}{
		{
			interlock.CodeHeld, held, &plain,
			`account:12345 is held by billing-7 (live, "apply late fee") for 12 s, and 1 request waits in line`,
		},
		{
			interlock.CodeHeld, held, &long,
			`account:12345 is held by billing-7 (no heartbeat for 21 s, gone in 20 s at the latest, "apply late fee") for 12 s, and 3 requests wait in line`,
		},
		{
			interlock.CodeHeld, held, &own,
			`account:12345 is held by billing-7 (live, "apply late fee") for 12 s, which is another flow of your session`,
		},
		{
			interlock.CodeHeld, held, &behind,
			`account:12345/fees lies under account:12345, which has 1 earlier waiter, which waits for account:12345/cap, which is held by billing-7 (live, "apply late fee") for 12 s`,
		},
		{interlock.CodeHeld, held, nil, "key account:12345 is held"},
		{
			interlock.CodeHeld, message.New(message.LeasedExclusively, key), &plain,
			`account:12345 is held by billing-7 (live, "apply late fee") for 12 s, so its document can be written only under that lease`,
		},
		{
			interlock.CodeDeadlock, over, &cycle,
			"waiting would be a deadlock: a (you) waits for b, b waits for k, which needs c, c waits for a (you)",
		},
		{
			interlock.CodeDeadlock, over, &around,
			"waiting would never end: k is held by your own lease, the one of b under which you work",
		},
		{
			interlock.CodeTaken, over, &plain,
			`the lease on account:12345 expired: no heartbeat came within its ttl; account:12345 is held by billing-7 (live, "apply late fee") for 12 s`,
		},
		{
			interlock.CodeTaken, over, &engine.Conflict{},
			`the lease on account:12345 expired: no heartbeat came within its ttl; the key is now held under another fence`,
		},
		{
			interlock.CodeUnmatchedKey,
			message.New(message.KeyFitsNoPattern, message.Str("acct/1"), message.Sub(message.New(
				message.UseShape, message.Str("account:{id}"),
			))),
			&engine.Conflict{}, "key acct/1 matches no pattern of the namespace, so a lease on it would protect nothing",
		},
	} {
		eff := engine.Effect{Outcome: engine.Refused, Code: c.code, Message: c.text, Conflict: c.conflict}
		if got := Detail(&eff); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.code, got, c.want)
		}
	}
	if got := Detail(&engine.Effect{Code: interlock.CodeHeld, Message: held, Conflict: &plain, Repeated: true}); got !=
		"key account:12345 is held" {
		t.Errorf("a recorded answer describes the present holder: %s", got)
	}
}

// clauseEnd is where a clause of a sentence ends.
var clauseEnd = regexp.MustCompile(`[:;.,] | and | or `)

// TestNoStepTwice checks that the next step of a code is neither in its title nor in a sentence of the
// engine, clause by clause.
func TestNoStepTwice(t *testing.T) {
	for _, code := range problem.Codes() {
		info := problem.Of(code)
		for _, clause := range clauseEnd.Split(info.Next, -1) {
			if strings.Count(clause, " ") < 4 {
				continue // too few words to be a step
			}
			if strings.Contains(strings.ToLower(info.Title), clause) {
				t.Errorf("%s: the title has %q too", code, clause)
			}
			for id, text := range sentences {
				if strings.Contains(text, clause) {
					t.Errorf("%s: message %d has %q too: %s", code, id, clause, text)
				}
			}
		}
	}
}
