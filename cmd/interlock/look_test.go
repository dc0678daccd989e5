package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWaitsIsATree(t *testing.T) {
	who := func(name string) party { return party{Agent: name, Session: "s-" + name} }
	edges := []edge{
		{Waiter: who("support"), Blocker: who("billing"), Key: "account:1", Mode: "exclusive", Waited: 5000},
		{Waiter: who("audit"), Blocker: who("billing"), Key: "account:1", Mode: "shared", Waited: 3000},
		{Waiter: who("audit"), Blocker: who("support"), Key: "account:1", Mode: "shared", Ahead: true, Waited: 3000},
		{Waiter: who("late"), Blocker: who("support"), Key: "org:acme", Mode: "exclusive", Waited: 1000},
		{Waiter: who("reader"), Blocker: who("queued"), Key: "x", Mode: "shared", Ahead: true, Waited: 100},
		{Waiter: who("queued"), Blocker: who("holder\x1b[31m"), Key: "x", Mode: "exclusive", Waited: 200},
	}
	var out bytes.Buffer
	newForest(edges).show(&app{out: &out})
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

// A circle, which anonymous agents of one name can seem to make, is shown once.
func TestWaitsEndsInACircle(t *testing.T) {
	a, b := party{Agent: "a"}, party{Agent: "b"}
	var out bytes.Buffer
	newForest([]edge{
		{Waiter: a, Blocker: b, Key: "x", Mode: "shared"}, {Waiter: b, Blocker: a, Key: "y", Mode: "shared"},
	}).show(&app{out: &out})
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, paint: true}
	table := a.table("KEY", "STATE", "N")
	table.row("ä", cell{"live", green}, 1)
	table.row("account:12345", cell{"suspect", yellow}, 23)
	table.row("", "", "last")
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mKEY\x1b[0m            \x1b[1mSTATE\x1b[0m    \x1b[1mN\x1b[0m\n" +
		"ä              \x1b[32mlive\x1b[0m     1\n" +
		"account:12345  \x1b[33msuspect\x1b[0m  23\n" +
		"                        last\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                         "plain",
		"a\x1b[31mred\x1b[0m":           "a [31mred [0m",
		"two\nlines\ttab":               "two lines tab",
		"bidi\u202eevil\u2066":          "bidievil",
		"zero\u200bwidth":               "zerowidth",
		"bad\xffutf8":                   "bad\ufffdutf8",
		"bell\a, c1 \u009b31m, del\x7f": "bell , c1  31m, del ",
		"line\u2028separator":           "line separator",
		"ordinary ünïcödé 東京 🙂 is kept": "ordinary ünïcödé 東京 🙂 is kept",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := cleanLines("two\nlines\x1b"); got != "two\nlines " {
		t.Errorf("got %q", got)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 999 * time.Millisecond: "999ms", 1500 * time.Millisecond: "1.5s", 42 * time.Second: "42s",
		time.Minute: "1m00s", 61 * time.Minute: "1h01m", 49 * time.Hour: "2d01h", -time.Second: "-1.0s",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"account:1/x": "account:1/x", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a\nb": "'a\nb'",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestKeyPath(t *testing.T) {
	for in, want := range map[string]string{
		"account:12345": "/v1/keys/account:12345", "repo:web/src/a b.ts": "/v1/keys/repo:web/src/a%20b.ts",
		"a?b#c%": "/v1/keys/a%3Fb%23c%25", "../x": "/v1/keys/../x",
	} {
		if got := keyPath(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// Events that are followed survive a restart of the server: nothing is left out and
// nothing comes twice.
func TestEventsFollow(t *testing.T) {
	r := newRig(t)
	p := r.start("events", "--follow", "--from", "oldest", "-o", "json")
	p.expect(`"event":"opened"`)
	for i := range 6 {
		if i == 3 {
			r.server.Kill()
			r.restart()
			p.expect("connecting again")
			p.expect(`"event":"opened"`)
		}
		r.must("run", "k", "--", "true")
		p.expect(`"event":"session_opened"`)
		p.expect(`"event":"granted"`)
		p.expect(`"reason":"released"`)
		p.expect(`"event":"session_ended"`)
	}
	p.signal(2)
	out := p.ends(0)
	if n := strings.Count(out, `"event":"granted"`); n != 6 {
		t.Errorf("%d grants were shown, want 6:\n%s", n, out)
	}
}

// Without a server at the start it fails instead of waiting.
func TestEventsWithoutServer(t *testing.T) {
	p := startProc(t, append(cleanEnvironment(), "INTERLOCK_URL=http://127.0.0.1:1"), "events", "--follow")
	p.ends(exitUnreachable)
}
