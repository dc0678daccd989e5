//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/writer/account"
)

const accountsFile = `{"shape": "account:{id:int}", %s "accounts": [
  {"keys": "account:*", "policy": {"currency": "EUR", "decimals": 2, "transfer_to": "account:"}}
]}`

// bank is a server with credentials and a writer for its accounts.
type bank struct {
	*rig
	secrets     map[string]string
	credentials string // the file
	file        string // of the policies
}

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{
		rig: &rig{t: t, dir: t.TempDir()}, secrets: map[string]string{}, file: filepath.Join(t.TempDir(), "accounts.json"),
	}
	b.credentials = filepath.Join(t.TempDir(), "credentials")
	for name, role := range map[string]string{
		"ops": "--role=operator", "teller": "--queue=accounts", "support": "--role=agent", "auditor": "--role=viewer",
	} {
		out, code := startProc(t, cleanEnvironment(), "credential", "create", name, role, "--file", b.credentials).end()
		if code != 0 {
			t.Fatal(out)
		}
		b.secrets[name], _, _ = strings.Cut(out, "\n")
	}
	b.server = launchtest.Start(t, launch.Config{DataDir: b.dir, Args: []string{"--credentials", b.credentials}})
	b.env = b.environment()
	b.writePolicies(`"writers": ["teller"], "senders": ["support", "teller"],`)
	b.as("ops").must("account", "setup", "--policy", b.file)
	// The messages of a killed writer are handed out again at once.
	b.as("ops").must("queue", "set", "accounts", "--grace", "1ms", "--backoff", "1ms")
	return b
}

func (b *bank) writePolicies(more string) {
	b.t.Helper()
	if err := os.WriteFile(b.file, fmt.Appendf(nil, accountsFile, more), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// as returns the rig with a credential.
func (b *bank) as(name string) *rig {
	r := *b.rig
	r.env = append(r.environment(), "INTERLOCK_CREDENTIAL="+b.secrets[name])
	return &r
}

// serve starts a writer with a ledger of its own, and waits until it works.
func (b *bank) serve(ledger string) *proc {
	b.t.Helper()
	p := b.as("teller").start(
		"account", "serve", "--policy", b.file, "--ledger", ledger, "--ttl", "1s", "--agent", filepath.Base(ledger),
	)
	p.expect("ready queue=accounts")
	return p
}

// client is a session of support.
func (b *bank) client() *client.Client {
	b.t.Helper()
	c, err := client.Dial(
		context.Background(),
		client.Config{Addrs: []string{b.server.GRPC}, Credential: b.secrets["support"], Agent: "support"},
	)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close(b.t.Context()) }) // which has ended: a server that was started since has, too
	return c
}

// book is a ledger as it was read.
type book struct {
	lines    []account.Line
	balances map[interlock.Key]account.Money
	sums     map[interlock.Key]account.Money // of the changes
}

// read checks a ledger, and that no message stands in it twice.
func (b *bank) read(ledger string) book {
	b.t.Helper()
	b.must("account", "verify", ledger)
	text, err := os.ReadFile(ledger)
	if err != nil {
		b.t.Fatal(err)
	}
	k := book{balances: map[interlock.Key]account.Money{}, sums: map[interlock.Key]account.Money{}}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		var l account.Line
		if err := json.Unmarshal(line, &l); err != nil {
			b.t.Fatal(err)
		}
		if seen[l.Message] {
			b.t.Errorf("%s: message %s stands there twice", ledger, l.Message)
		}
		seen[l.Message] = true
		k.lines = append(k.lines, l)
		k.balances[l.Account] = l.Balance
		k.sums[l.Account] += l.Change
	}
	return k
}

// traffic has several agents give 1 cent and pass some on, and sends a word for every
// reply. It is over when replies is closed.
func (b *bank) traffic(agents, each int) (replies chan struct{}) {
	replies = make(chan struct{}, agents*each)
	teller := account.NewClient(b.client())
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() {
			for n := range each {
				var err error
				key := interlock.Key(fmt.Sprintf("account:%d", 1+i%3))
				if n%5 == 4 {
					_, err = teller.Transfer(context.Background(), key, "account:9", 1, account.Request{})
				} else {
					_, err = teller.Credit(context.Background(), key, 1, account.Request{Memo: "goodwill"})
				}
				if err != nil {
					b.t.Error(err)
				}
				replies <- struct{}{}
			}
		})
	}
	go func() {
		all.Wait()
		close(replies)
	}()
	return replies
}

// settled waits until no transfer from one of the accounts is pending. Until the writer of its
// source has handled the answer of its target, both have the money. A command that is refused
// waits for the writer.
func (b *bank) settled(accounts ...interlock.Key) {
	b.t.Helper()
	teller := account.NewClient(b.client())
	for _, key := range accounts {
		for {
			state, err := teller.State(b.t.Context(), key)
			if err != nil {
				b.t.Fatal(err)
			}
			if !slices.ContainsFunc(state.Holds, func(h account.Held) bool { return h.To != "" }) {
				break
			}
			if _, err := teller.Void(b.t.Context(), key, "none", account.Request{}); err == nil {
				b.t.Fatal("a hold that does not exist was ended")
			}
		}
	}
}

// take waits for so many replies.
func take(replies <-chan struct{}, n int) {
	for range n {
		<-replies
	}
}

// Writers are killed in the middle, and so is the server. Every command counts once, and
// each of the ledgers has all of them, once.
func TestAccountServeKilled(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	ledgers := []string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")}
	one, two := b.serve(ledgers[0]), b.serve(ledgers[1])
	const agents, each = 5, 15
	replies := b.traffic(agents, each)
	take(replies, 15)
	one.signal(syscall.SIGKILL)
	one.end()
	take(replies, 15)
	two.signal(syscall.SIGKILL)
	two.end()
	one, two = b.serve(ledgers[0]), b.serve(ledgers[1])
	take(replies, 15)
	b.server.Kill()
	b.server = launchtest.Start(
		t,
		launch.Config{
			DataDir: b.dir, Args: []string{"--credentials", b.credentials, "--http", b.server.HTTP, "--grpc", b.server.GRPC},
		},
	)
	take(replies, 15)
	one.signal(syscall.SIGKILL)
	one.end()
	one = b.serve(ledgers[0])
	for range replies {
		continue
	}
	b.settled("account:1", "account:2", "account:3")
	for _, p := range []*proc{one, two} {
		p.signal(syscall.SIGTERM)
		p.ends(0)
	}
	// Transfers that are under way, and the last writer's decisions after the other has ended.
	for _, ledger := range ledgers {
		p := b.serve(ledger)
		b.as("support").must("message", "ask", "account:9", "credit", `{"amount": 1}`)
		p.signal(syscall.SIGTERM)
		p.ends(0)
	}
	b.as("auditor").must("account", "export", "--out", ledgers[0])
	b.as("auditor").must("account", "export", "--out", ledgers[1])
	all := filepath.Join(t.TempDir(), "all")
	b.as("auditor").must("account", "export", "--out", all)
	want := b.read(all)
	sum := account.Money(0)
	for key, balance := range want.balances {
		sum += balance
		if want.sums[key] != balance {
			t.Errorf("%s: the changes make %d, the balance is %d", key, want.sums[key], balance)
		}
	}
	if most := account.Money(agents*each*4/5 + 2); sum != most {
		t.Errorf("the accounts have %d, and must have %d", sum, most)
	}
	for _, ledger := range ledgers {
		if have := b.read(ledger); len(have.lines) != len(want.lines) {
			t.Errorf("%s has %d lines, of %d", ledger, len(have.lines), len(want.lines))
		}
	}
}

// An export that follows is killed in the middle, and its last line torn. A process that
// continues the file has everything once.
func TestAccountExportKilled(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	p := b.serve(filepath.Join(t.TempDir(), "ledger"))
	out := filepath.Join(t.TempDir(), "export")
	replies := b.traffic(3, 20)
	for i := range 4 {
		x := b.as("auditor").start("account", "export", "--follow", "--out", out)
		take(replies, 10)
		x.signal(syscall.SIGKILL)
		x.end()
		if text, err := os.ReadFile(out); err == nil && len(text) > 10 && i > 1 {
			if err := os.Truncate(out, int64(len(text)-7)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range replies {
		continue
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
	b.as("auditor").must("account", "export", "--out", out)
	all := b.as("auditor").must("account", "export")
	if have := b.read(out); len(have.lines) != strings.Count(all, "\n") || len(have.lines) < 60 {
		t.Errorf("the file has %d lines, of %d", len(have.lines), strings.Count(all, "\n"))
	}
	// Asked to end, one that follows ends in order.
	x := b.as("auditor").start("account", "export", "--follow")
	x.expect(`"line":1,`)
	x.signal(syscall.SIGTERM)
	x.ends(0)
}

// Entries that the server has forgotten leave no silent gap.
func TestAccountExportGap(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	// Each entry has the policy, so a long one fills the log of an account soon.
	var rules strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rules, `{"requester": "clerk-%d-%s", "max_amount": 100}, `, i, strings.Repeat("x", 200))
	}
	text := fmt.Sprintf(accountsFile, `"writers": ["teller"], "senders": ["support", "teller"],`)
	text = strings.Replace(text, `"decimals": 2`, `"decimals": 2, "rules": [`+rules.String()+`{"requester": "*"}]`, 1)
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ledger, out := filepath.Join(t.TempDir(), "ledger"), filepath.Join(t.TempDir(), "export")
	p := b.serve(ledger)
	b.as("support").must("message", "ask", "account:1", "credit", `{"amount": 1}`)
	b.as("auditor").must("account", "export", "--out", out)
	const more = 20
	teller := account.NewClient(b.client())
	for range more {
		if _, err := teller.Credit(context.Background(), "account:1", 1, account.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	said, code := b.as("auditor").do("account", "export", "--out", out)
	if code != cli.ExitFailure || !strings.Contains(said, "the ledger has a gap: account:1") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if k := b.read(out); len(k.lines) != 1 {
		t.Errorf("%d lines were written", len(k.lines))
	}
	b.as("auditor").must("account", "export", "--out", out, "--accept-gaps")
	if said := b.must(
		"account", "verify", out,
	); !strings.Contains(said, "line 2 says that something is missing: account:1") {
		t.Errorf("the ledger verifies with %s", said)
	}
	// The writer's own ledger has everything.
	p.signal(syscall.SIGTERM)
	p.ends(0)
	if k := b.read(ledger); len(k.lines) != 1+more || k.balances["account:1"] != 1+more {
		t.Errorf("the writer's ledger has %d lines, and a balance of %d", len(k.lines), k.balances["account:1"])
	}
}

// The writer starts only at a server that matches its file.
func TestAccountServeRefuses(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger")
	p := b.serve(ledger)
	for _, tt := range []struct {
		as, more string
		args     []string
		code     int
		want     string
	}{
		{
			"teller", `"writers": ["teller"], "senders": ["support", "teller"], "writer": "x",`, nil, cli.ExitUsage,
			`accounts.json:1:88: there is no field "writer": want one of queue, `,
		},
		{"teller", `"senders": ["support"],`, nil, cli.ExitUsage, `names no "writers"`},
		{
			"teller", `"writers": ["teller", "x"], "senders": ["support", "teller"],`, nil, cli.ExitFailure,
			"teller may pull from queue accounts, the file has teller, x; with an operator's credential: interlock account setup",
		},
		{
			"teller", `"writers": ["teller"], "senders": ["support", "teller"], "min_approvals": 2,`, nil, cli.ExitFailure,
			"queue accounts wants 0 approvals, the file has 2",
		},
		{
			"teller", `"writers": ["teller"], "queue": "others",`, nil, cli.ExitFailure,
			"there is no queue others; the single writer of pattern account is queue accounts",
		},
		{"support", `"writers": ["teller"], "senders": ["support", "teller"],`, nil, cli.ExitForbidden, "worker"},
		{
			"teller", `"writers": ["teller"], "senders": ["support", "teller"],`,
			[]string{"--ledger", ledger},
			cli.ExitUsage,
			"another process writes it",
		},
		{
			"teller", `"writers": ["teller"], "senders": ["support", "teller"],`,
			[]string{"--ledger", dir},
			cli.ExitUsage,
			"--ledger",
		},
		{
			"teller", `"writers": ["teller"], "senders": ["support", "teller"],`,
			[]string{"--after", ledger},
			cli.ExitUsage,
			"name it with --ledger",
		},
	} {
		b.writePolicies(tt.more)
		said, code := b.as(tt.as).do(append([]string{"account", "serve", "--policy", b.file}, tt.args...)...)
		if code != tt.code || !strings.Contains(said, tt.want) {
			t.Errorf(
				"%s %s %q: exit code %d, wanted %d and %s; it said:\n%s", tt.as, tt.more, tt.args, code, tt.code, tt.want, said,
			)
		}
	}
	// A file that is refused leaves the policies of one that runs.
	b.writePolicies(`"writers": [],`)
	p.signal(syscall.SIGHUP)
	p.expect("the policies stay as they were")
	b.as("support").must("message", "ask", "account:1", "credit", `{"amount": 100000}`)
	b.writePolicies(`"writers": ["teller"], "senders": ["support", "teller"],`)
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		b.file, bytes.Replace(text, []byte(`"decimals": 2`), []byte(`"decimals": 2, "max_amount": 10`), 1), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.expect("policies read again")
	if said := b.as("support").must(
		"message", "ask", "account:1", "credit", `{"amount": 100000}`,
	); !strings.Contains(said, "above_maximum") {
		t.Errorf("by the new policy: %s", said)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// A question is no failure of the writer, and the person reads which credential asks.
func TestAccountServeAsks(t *testing.T) {
	b := newBank(t)
	const asks = `{"shape": "account:{id:int}", "writers": ["teller"], "accounts": [
  {"keys": "account:*", "policy": {"currency": "EUR", "decimals": 2, "approve_above": 1000}}
]}`
	if err := os.WriteFile(b.file, []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	b.as("ops").must("account", "setup", "--policy", b.file)
	writer := b.serve(filepath.Join(t.TempDir(), "ledger"))
	events := b.as("auditor").start("log", "--from", "1", "--follow")
	b.as("support").must("message", "send", "account:1", "credit", `{"amount": 2000}`, "--agent", "cfo")
	writer.expect(`a message waits for a person's answer`)
	events.expect("  asking")
	if out := b.as("auditor").must("approval", "list"); !strings.Contains(out, ", at a task of cfo, as support\n") {
		t.Errorf("the credential that asks is missing:\n%s", out)
	}
	lease := b.as("support").must("lock", "account:7", "--agent", "cfo")
	_, lease, _ = strings.Cut(lease, "INTERLOCK_LEASE=")
	lease, _, _ = strings.Cut(lease, "\n")
	b.as("support").must("lease", "park", lease, "--reason", "refund 1200?")
	if out := b.as("auditor").must("approval", "list"); !strings.Contains(out, "asker     cfo, as support\n") {
		t.Errorf("the credential that parked the lease is missing:\n%s", out)
	}
}
