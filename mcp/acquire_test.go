package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two agents of both revisions and transports take turns on one key.
func TestTwoAgents(t *testing.T) {
	for _, revision := range []string{oldRevision, newRevision} {
		t.Run(revision, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				ann, ben := r.overHTTP(revision, "ann"), r.overStdio(revision, "ben")
				first := ann.call("granted", "acquire", arguments{"keys": []string{"account:1"}, "purpose": "refund 77"})
				if first.Lease == "" || first.Fence == "" || first.ExpiresIn != 300 {
					t.Errorf("answer %s", first.text)
				}
				queued := ben.call("queued", "acquire", arguments{"keys": []string{"account:1"}, "wait_s": 0})
				if queued.Ticket == "" || queued.Position != 1 || len(queued.Holders) != 1 ||
					queued.Holders[0].Purpose != "refund 77" ||
					queued.Holders[0].Agent != "ann" || queued.Data != dataMark ||
					!strings.Contains(queued.Message, `held by "ann" (alive`) {
					t.Errorf("answer %s", queued.text)
				}
				ann.call("released", "release", arguments{"lease": first.Lease, "note": "refund 77 written"})
				second := ben.call("granted", "wait", arguments{"ticket": queued.Ticket})
				if !second.Changed || second.Fence <= first.Fence || len(second.Notes) != 1 ||
					second.Notes[0].Text != "refund 77 written" {
					t.Errorf("answer %s", second.text)
				}
				again := ben.call("granted", "acquire", keys("account:1"))
				if again.Lease != second.Lease {
					t.Errorf("asking again gives %s, not %s", again.Lease, second.Lease)
				}
				ben.call("kept", "acquire", arguments{"lease": second.Lease, "progress": "1/2"})
				held := ann.call("held", "acquire", arguments{"keys": []string{"account:1"}, "if_held": "fail"})
				if held.Holders[0].Agent != "ben" {
					t.Errorf("answer %s", held.text)
				}
				ben.call("released", "release", arguments{"lease": second.Lease})
				ben.call("lost", "release", arguments{"lease": second.Lease})
				_ = ann.Close()
				_ = ben.Close()
			})
		})
	}
}

// Asking again for the same keys finds the place in the queue.
func TestOnePlace(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		ann.call("granted", "acquire", keys("k"))
		wait := arguments{"keys": []string{"k"}, "wait_s": 1}
		if one, two := ben.call("queued", "acquire", wait), ben.call("queued", "acquire", wait); one.Ticket != two.Ticket ||
			two.Position != 1 {
			t.Errorf("%s and %s", one.text, two.text)
		}
	})
}

// A deadlock names the key that the other agent waits for, which the agent has to release.
func TestDeadlock(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		ann.call("granted", "acquire", keys("account:a"))
		ben.call("granted", "acquire", keys("account:b/x"))
		ben.call("granted", "acquire", keys("account:c"))
		ben.call("queued", "acquire", arguments{"keys": []string{"account:a"}, "wait_s": 0})
		got := ann.call("deadlock", "acquire", arguments{"keys": []string{"account:b"}, "wait_s": 0})
		for _, want := range []string{"Release your lease that blocks account:a, then", "ben waits for account:a"} {
			if !strings.Contains(got.Message, want) {
				t.Errorf("answer %s, want %q", got.text, want)
			}
		}
	})
}

func TestProgress(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, cat, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "cat"), r.overHTTP(newRevision, "ben")
		ann.call("granted", "acquire", keys("k"))
		ahead := cat.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		began := time.Now()
		r.busy.Go(func() {
			<-time.After(25 * time.Second)
			cat.call("left", "wait", arguments{"ticket": ahead.Ticket, "leave": true})
		})
		params := &sdk.CallToolParams{Name: "acquire", Arguments: arguments{"keys": []string{"k"}, "wait_s": 500}}
		params.SetProgressToken("p")
		result, err := ben.CallTool(r.Context(), params)
		if err != nil || result.IsError {
			t.Fatal(err, result)
		}
		if took := time.Since(began); took < 48*time.Second || took > maxCall {
			t.Errorf("the call took %v", took)
		}
		synctest.Wait()
		ben.mu.Lock()
		defer ben.mu.Unlock()
		last := -1.0
		positions := ""
		for i, p := range ben.progress {
			if p.Progress <= last || i > 0 && p.Progress-last > 12_000 {
				t.Errorf("progress %v after %v", p.Progress, last)
			}
			last = p.Progress
			positions += strings.Fields(p.Message)[2]
		}
		if ben.progress[0].Progress > 1000 || len(ben.progress) < 5 || !strings.HasPrefix(positions, "2,2,2,1,") {
			t.Errorf("%d reports, positions %s", len(ben.progress), positions)
		}
	})
}

func TestCancelledAcquire(t *testing.T) {
	for name, connect := range map[string]func(*rig, string) *client{
		"HTTP 2025-11-25":  func(r *rig, name string) *client { return r.overHTTP(oldRevision, name) },
		"HTTP 2026-07-28":  func(r *rig, name string) *client { return r.overHTTP(newRevision, name) },
		"stdio 2025-11-25": func(r *rig, name string) *client { return r.overStdio(oldRevision, name).client },
		"stdio 2026-07-28": func(r *rig, name string) *client { return r.overStdio(newRevision, name).client },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				ann, ben := r.overHTTP(newRevision, "ann"), connect(r, "ben")
				first := ann.call("granted", "acquire", keys("k"))
				ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
				defer cancel()
				if _, err := ben.try(ctx, "acquire", arguments{"keys": []string{"k"}, "wait_s": 40}, nil); !errors.Is(
					err, context.DeadlineExceeded,
				) {
					t.Fatal(err)
				}
				pass(time.Second)
				if got := r.holder("k"); got != "ann" {
					t.Errorf("the key is %q after the only waiter was cancelled", got)
				}
				ann.call("released", "release", arguments{"lease": first.Lease})
				pass(time.Second)
				if got := r.holder("k"); got != "" {
					t.Errorf("the key is held by %q", got)
				}
				_ = ben.Close()
			})
		})
	}
}

// A ticket that the agent has stays when a later call with it is cancelled.
func TestCancelledWait(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		first := ann.call("granted", "acquire", keys("k"))
		queued := ben.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		for _, in := range []struct {
			tool string
			in   arguments
		}{{"wait", arguments{"ticket": queued.Ticket}}, {"acquire", keys("k")}} {
			ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
			if _, err := ben.try(ctx, in.tool, in.in, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			pass(time.Second)
		}
		ann.call("released", "release", arguments{"lease": first.Lease})
		pass(time.Second)
		ben.call("granted", "wait", arguments{"ticket": queued.Ticket})
	})
}

// A turn that comes while the model does other work is kept, and is news in every other answer.
func TestGrantIsKept(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		first := ann.call("granted", "acquire", keys("k"))
		queued := ben.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		if other := ben.call("free", "look", keys("other")); len(other.News) != 0 {
			t.Errorf("news before the turn: %s", other.text)
		}
		ann.call("released", "release", arguments{"lease": first.Lease})
		pass(35 * time.Second)
		if other := ben.call("free", "look", keys("other")); len(other.News) != 1 ||
			!strings.HasSuffix(other.News[0], " call wait with ticket "+queued.Ticket+" within 25 s.") {
			t.Errorf("no news of the turn: %s", other.text)
		}
		if got := ben.call("granted", "wait", arguments{"ticket": queued.Ticket}); len(got.News) != 0 {
			t.Errorf("the answer has itself as news: %s", got.text)
		}
		pass(2 * time.Minute)
		if got := r.holder("k"); got != "ben" {
			t.Errorf("the key is held by %q", got)
		}
	})
}

func TestProcessEnds(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overStdio(newRevision, "")
		held := ann.call("granted", "acquire", keys("b"))
		ben.call("granted", "acquire", keys("a"))
		if got := r.holder("a"); !strings.HasPrefix(got, "tester@") {
			t.Errorf("the key is held by %q", got)
		}
		pass(5 * time.Minute)
		if got := r.holder("a"); got == "" {
			t.Error("the process does not keep its leases alive")
		}
		r.busy.Go(func() { _, _ = ben.try(r.Context(), "acquire", keys("b"), nil) })
		pass(time.Second)
		began := time.Now()
		_ = ben.in.Close()
		<-ben.done
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if got := r.holder("a"); got != "" {
			t.Errorf("after the end of the input a is held by %q", got)
		}
		ann.call("released", "release", arguments{"lease": held.Lease})
		pass(time.Second)
		if got := r.holder("b"); got != "" {
			t.Errorf("after the end of the input b is held by %q", got)
		}
	})
}

// The end of a conversation of an older revision, by its session's id or by the configured name,
// releases what it holds.
func TestConversationEnds(t *testing.T) {
	for _, name := range []string{"", "ann"} {
		inBubble(t, func(r *rig) {
			ann := r.overHTTP(oldRevision, name)
			ann.call("granted", "acquire", keys("k"))
			if got := r.holder("k"); !strings.HasPrefix(got, "tester-") && got != name {
				t.Errorf("the key is held by %q", got)
			}
			_ = ann.Close()
			pass(time.Second)
			if got := r.holder("k"); got != "" {
				t.Errorf("the key is held by %q", got)
			}
		})
	}
}

// Without a name there is no session: a lease lives by its own renewals.
func TestWithoutConversation(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.overHTTP(newRevision, "")
		got := ann.call("granted", "acquire", keys("k"))
		pass(4 * time.Minute)
		ann.call("kept", "acquire", arguments{"lease": got.Lease})
		pass(4 * time.Minute)
		if got := r.holder("k"); got != "tester" {
			t.Errorf("the key is held by %q", got)
		}
		pass(2 * time.Minute)
		if got := r.holder("k"); got != "" {
			t.Errorf("the key is held by %q", got)
		}
		ann.call("lost", "acquire", arguments{"lease": got.Lease})
	})
}

// The call's id that a client sends makes a repeated call the same call.
func TestRepeatedCall(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.overHTTP(newRevision, "ann")
		once := arguments{"writes": []any{arguments{"key": "n", "add": 1}}}
		for range 2 {
			ann.callWith("committed", "commit", once, sdk.Meta{"claudecode/toolUseId": "toolu_1"})
		}
		for range 2 {
			ann.callWith("committed", "commit", once, sdk.Meta{"threadId": "t", "callId": "c"})
		}
		ann.call("committed", "commit", once)
		if sum := ann.call("committed", "commit", once); string(sum.Result) != "4" {
			t.Errorf("the sum is %s, want 4", sum.Result)
		}
	})
}

// A turn that the agent does not take up passes on.
func TestTurnNotTakenUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		first := ann.call("granted", "acquire", keys("k"))
		queued := ben.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		ann.call("released", "release", arguments{"lease": first.Lease})
		pass(70 * time.Second)
		second := ann.call("granted", "acquire", keys("k"))
		if len(second.Notes) != 1 || second.Notes[0].Text != "not taken up" {
			t.Errorf("answer %s", second.text)
		}
		ben.call("released", "wait", arguments{"ticket": queued.Ticket})
		again := ben.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		if again.Ticket == queued.Ticket {
			t.Errorf("the old ticket is open: %s", again.text)
		}
	})
}

// Conversations of older revisions are apart although their users configured one name.
func TestOneNameTwoConversations(t *testing.T) {
	inBubble(t, func(r *rig) {
		one, two := r.overHTTP(oldRevision, "reviewer"), r.overHTTP(oldRevision, "reviewer")
		one.call("granted", "acquire", keys("k"))
		two.call("queued", "acquire", arguments{"keys": []string{"k"}, "wait_s": 0})
		if again := one.call("granted", "acquire", keys("k")); !strings.HasPrefix(again.Message, "You still hold k.") {
			t.Errorf("answer %s", again.text)
		}
	})
}

// The threads that a client names are strands of one conversation where it has a session, else agents
// of their own.
func TestThreads(t *testing.T) {
	for _, revision := range []string{oldRevision, newRevision} {
		inBubble(t, func(r *rig) {
			c := r.overHTTP(revision, "")
			in := arguments{"keys": []string{"k"}, "wait_s": 0}
			first := c.callWith("granted", "acquire", in, sdk.Meta{"threadId": "one", "callId": "1"})
			c.callWith("queued", "acquire", in, sdk.Meta{"threadId": "two", "callId": "1"})
			again := c.callWith("granted", "acquire", in, sdk.Meta{"threadId": "one", "callId": "2"})
			if again.Lease != first.Lease {
				t.Errorf("%s and %s", first.text, again.text)
			}
			_ = c.Close()
			pass(time.Second)
			if got := r.holder("k"); (got == "") != (revision == oldRevision) {
				t.Errorf("after the end of the conversation the key is %q", got)
			}
		})
	}
}
