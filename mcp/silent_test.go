package mcp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The leases of an agent end when it has made no call for its idle limit, and not before: a call that waits is no
// silence. Its next answer tells it.
func TestSilentAgent(t *testing.T) {
	for seed := range seedsOf(6, 20) {
		inBubble(t, func(r *rig) {
			roll := rand.New(rand.NewPCG(seed, 3))
			idle := time.Duration(20+roll.IntN(600)) * time.Second
			if seed%5 == 0 {
				idle = 0 // never
			}
			r.overStdio(newRevision, "other").call("granted", "acquire", keys("held"))
			ann := r.process(oldRevision, StdioConfig{Agent: "ann", Idle: idle})
			ann.call("granted", "acquire", keys("k"))
			for range 12 {
				silent := time.Duration(roll.Int64N(int64(max(idle, time.Minute)) * 2))
				if roll.IntN(2) == 0 { // it waits
					pass(idle * 9 / 10)
					ann.call("queued", "acquire", arguments{"keys": []string{"held"}, "wait_s": 49})
					if got := r.holder("k"); got != "ann" {
						t.Fatalf("seed %d: during a call the key came to %q, with a limit of %v", seed, got, idle)
					}
				}
				pass(silent)
				holds := r.holder("k") == "ann"
				switch over := idle > 0 && silent > idle+processTTL/3+time.Second; {
				case holds && over:
					t.Fatalf("seed %d: after %v of silence the key is held, with a limit of %v", seed, silent, idle)
				case !holds && (idle == 0 || silent < idle-time.Second):
					t.Fatalf("seed %d: after %v of silence the key is free, with a limit of %v", seed, silent, idle)
				}
				got := ann.call("granted", "acquire", keys("k"))
				told := strings.Contains(got.text, "was released, because you made no call")
				if told == holds {
					t.Fatalf("seed %d: the key was held: %t, and the answer is %s", seed, holds, got.text)
				}
			}
			if got := r.holder("held"); got != "other" && got != "waiting" {
				t.Errorf("seed %d: the key of another agent is held by %q", seed, got)
			}
		})
	}
}

// Providers number the calls of a model anew in each answer. A call repeats another one only if it has its id, its tool
// and its arguments, soon, with no other question in between.
func TestNumberedCalls(t *testing.T) {
	for seed := range seedsOf(8, 30) {
		inBubble(t, func(r *rig) {
			roll := rand.New(rand.NewPCG(seed, 5))
			ann := r.overHTTP(newRevision, "ann")
			sums := map[string]int{}
			last, at := "", time.Now()
			for range 60 {
				key, id := fmt.Sprint("n", roll.IntN(2)), fmt.Sprint("call_", roll.IntN(2))
				asked := key + " " + id
				if since := time.Since(at); asked != last || since > repeatedWithin {
					sums[key]++
					at = time.Now()
				}
				last = asked
				add := arguments{"writes": []any{arguments{"key": key, "add": 1}}}
				meta := sdk.Meta{"claudecode/toolUseId": id}
				got := ann.callWith("committed", "commit", add, meta)
				if want := fmt.Sprint(sums[key]); string(got.Result) != want {
					t.Fatalf("seed %d: %s of %s: %s, want the sum %s", seed, id, key, got.text, want)
				}
				pass(time.Duration(roll.IntN(100)) * time.Second)
			}
		})
	}
}
