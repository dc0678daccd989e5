package inspect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

func TestWaitsIsATree(t *testing.T) {
	who := func(name string) api.Party { return api.Party{Name: api.Name{Agent: name, Session: "s-" + name}} }
	edges := []api.WaitEdge{
		{Waiter: who("support"), Blocker: who("billing"), Key: "account:1", Mode: "exclusive", Waited: 5000},
		{Waiter: who("audit"), Blocker: who("billing"), Key: "account:1", Mode: "shared", Waited: 3000},
		{Waiter: who("audit"), Blocker: who("support"), Key: "account:1", Mode: "shared", Ahead: true, Waited: 3000},
		{Waiter: who("late"), Blocker: who("support"), Key: "org:acme", Mode: "exclusive", Waited: 1000},
		{Waiter: who("reader"), Blocker: who("queued"), Key: "x", Mode: "shared", Ahead: true, Waited: 100},
		{Waiter: who("queued"), Blocker: who("holder\x1b[31m"), Key: "x", Mode: "exclusive", Waited: 200},
	}
	var out bytes.Buffer
	showWaits(&cli.App{Out: &out}, edges)
	want := `billing (s-billing)
├─ support (s-support) waits for account:1 (exclusive) 5.0s
│  └─ late (s-late) waits for org:acme (exclusive) 1.0s
└─ audit (s-audit) waits for account:1 (shared) 3.0s
holder [31m (s-holder [31m)
└─ queued (s-queued) waits for x (exclusive) 200ms
   └─ reader (s-reader) waits behind it for x (shared) 100ms
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// A run inside another one has a session of its own, and the outer one declares to wait for it.
func TestWaitsThroughNestedRuns(t *testing.T) {
	flow := func(name string) api.Party {
		return api.Party{Name: api.Name{Agent: name, Session: "s-" + name, Flow: "main"}}
	}
	var out bytes.Buffer
	showWaits(&cli.App{Out: &out}, []api.WaitEdge{
		{Waiter: flow("inner"), Blocker: flow("a"), Key: "k:1", Mode: "exclusive", Waited: 3000},
		{Waiter: flow("outer"), Blocker: api.Party{Name: api.Name{Agent: "inner", Session: "s-inner"}}, Waited: 2000},
		{Waiter: flow("x"), Blocker: flow("outer"), Key: "k:2", Mode: "exclusive", Waited: 1000},
	})
	want := `a (s-a, main)
└─ inner (s-inner, main) waits for k:1 (exclusive) 3.0s
   └─ outer (s-outer, main) waits for it, as it declared 2.0s
      └─ x (s-x, main) waits for k:2 (exclusive) 1.0s
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// A circle, which anonymous agents of one name can seem to make, is shown once.
func TestWaitsEndsInACircle(t *testing.T) {
	a, b := api.Party{Name: api.Name{Agent: "a"}}, api.Party{Name: api.Name{Agent: "b"}}
	var out bytes.Buffer
	showWaits(&cli.App{Out: &out}, []api.WaitEdge{
		{Waiter: a, Blocker: b, Key: "x", Mode: "shared"}, {Waiter: b, Blocker: a, Key: "y", Mode: "shared"},
	})
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
