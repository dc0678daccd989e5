package account_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
	"github.com/interlockdev/interlock/writer/account"
)

// bank is a server in this process with accounts that have a writer.
type bank struct {
	t        *testing.T
	streams  *server.Streams
	operator *client.Client

	mu     sync.Mutex
	broken error // of the policy of account:2
}

func newBank(t *testing.T) *bank {
	t.Helper()
	ctx := context.Background()
	j, err := (&memjournal.Store{}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Shard: s, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{t: t, streams: server.NewStreams(srv, server.StreamConfig{})}
	t.Cleanup(func() { _ = s.Close(ctx) })
	b.operator = b.hire("operator")
	if err := b.operator.SetQueue(
		ctx, interlock.TaskQueue{Name: "accounts", Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond},
	); err != nil {
		t.Fatal(err)
	}
	if err := b.operator.SetPattern(
		ctx,
		interlock.Pattern{Name: "account", Shape: "account:{id}", Write: interlock.WriteSingle, WriterQueue: "accounts"},
	); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bank) hire(name string) *client.Client {
	b.t.Helper()
	c, err := client.New(context.Background(), b.streams.Dial, client.Config{Agent: name})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// policy is that of all accounts but account:none, which there is not.
func (b *bank) policy(key interlock.Key) (account.Policy, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case key == "account:none":
		return account.Policy{}, nil
	case key == "account:2" && b.broken != nil:
		return account.Policy{}, b.broken
	}
	return account.Policy{
		Currency: "EUR", Decimals: 2, ApproveAbove: 500_00, TransferFor: account.MinTransferFor, TransferTo: "account:",
		Rules: []account.Rule{
			{Requester: "treasury", Settle: true},
			{Requester: "*", Kinds: []account.Kind{account.Credit, account.Debit}, MaxAmount: 100_00},
		},
	}, nil
}

func (b *bank) breakPolicy(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
}

// work has a writer work until the test ends; change changes it first.
func (b *bank) work(name string, change func(*account.Agent)) (stop func()) {
	b.t.Helper()
	agent := &account.Agent{Client: b.hire(name), Queue: "accounts", Policy: b.policy, Concurrency: 4}
	if change != nil {
		change(agent)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("%s: %v", name, err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bank) teller(name string) *account.Client { return account.NewClient(b.hire(name)) }

func (b *bank) state(key interlock.Key) account.State {
	b.t.Helper()
	s, err := account.NewClient(b.operator).State(context.Background(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bank) log(key interlock.Key) (list []interlock.LogEntry) {
	b.t.Helper()
	for entry, err := range b.operator.Log(context.Background(), key, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, entry)
	}
	return list
}

// replays fails the test unless the log of an account yields its state, as soon as both were
// read at a moment when nothing changed.
func (b *bank) replays(key interlock.Key) {
	b.t.Helper()
	for {
		doc, err := b.operator.Document(b.t.Context(), key)
		if err != nil {
			b.t.Fatal(err)
		}
		log := b.log(key)
		end, err := account.Replay(log)
		if err != nil {
			b.t.Fatalf("%s: %v", key, err)
		}
		if last := log[len(log)-1].Document; last.Version != doc.Version {
			continue // a message was decided in between
		}
		state, err := account.Parse(doc)
		if err != nil {
			b.t.Fatal(err)
		}
		got, _ := json.Marshal(end)
		want, _ := json.Marshal(state)
		if string(got) != string(want) {
			b.t.Errorf("%s: the log gives %s, the document is %s", key, got, want)
		}
		return
	}
}

// ended waits until a hold or a transfer has ended.
func (b *bank) ended(key interlock.Key, id string) account.FinishedEntry {
	b.t.Helper()
	pace := client.Backoff{Least: time.Millisecond, Most: 50 * time.Millisecond}
	for {
		f, ok, err := account.NewClient(b.operator).Outcome(b.t.Context(), key, id)
		if err != nil {
			b.t.Fatal(err)
		}
		if ok {
			return f
		}
		if err := pace.Wait(b.t.Context(), 0); err != nil {
			b.t.Fatal(err)
		}
	}
}

func refusedWith(t *testing.T, err error, want account.Code) {
	t.Helper()
	if refusal, ok := errors.AsType[*account.RefusedError](err); !ok || refusal.Reply.Code != want {
		t.Errorf("got %v, wanted %s", err, want)
	}
}

func TestAgent(t *testing.T) {
	b := newBank(t)
	b.work("writer-1", nil)
	b.work("writer-2", nil)
	ctx := t.Context()
	treasury := b.teller("treasury")
	if _, err := treasury.Credit(ctx, "account:1", 400_00, account.Request{Memo: "opening"}); err != nil {
		t.Fatal(err)
	}

	// Many at once; some send twice.
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			teller, r := b.teller(fmt.Sprint("agent-", i)), account.Request{}
			if i%4 == 0 {
				r.ID = fmt.Sprint("fee-", i)
				if _, err := teller.Debit(ctx, "account:1", 10_00, r); err != nil {
					t.Error(err)
				}
			}
			if _, err := teller.Debit(ctx, "account:1", 10_00, r); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s := b.state("account:1"); s.Balance != 200_00 {
		t.Errorf("the balance is %d", s.Balance)
	}

	// No other client writes.
	rogue := b.hire("rogue")
	_, err := rogue.Commit(ctx, client.Commit{Writes: []interlock.Write{client.Put("account:1", []byte(`{"balance":1}`))}})
	if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeWriterOnly {
		t.Errorf("a state was written by hand: %v", err)
	}
	_, err = account.NewClient(rogue).Debit(ctx, "account:1", 100_01, account.Request{})
	refusedWith(t, err, account.AboveMaximum)
	_, err = account.NewClient(rogue).Credit(ctx, "account:none", 1, account.Request{})
	refusedWith(t, err, account.UnknownAccount)

	// Holds.
	hold, err := treasury.Hold(ctx, "account:1", 50_00, account.Request{For: time.Hour})
	if err != nil || hold.Available != 150_00 {
		t.Fatalf("%+v, %v", hold, err)
	}
	if r, err := treasury.Capture(ctx, "account:1", hold.ID, 30_00, account.Request{}); err != nil ||
		r.Balance != 170_00 || r.Held != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = treasury.Void(ctx, "account:1", hold.ID, account.Request{})
	refusedWith(t, err, account.HoldSettled)

	// A transfer that arrives, and one to nowhere.
	sent, err := treasury.Transfer(ctx, "account:1", "account:3", 70_00, account.Request{})
	if err != nil || sent.Outcome != account.OutcomePending {
		t.Fatalf("%+v, %v", sent, err)
	}
	if f := b.ended("account:1", sent.ID); f.End != account.Posted || f.Amount != 70_00 {
		t.Errorf("%+v", f)
	}
	if sent, err = treasury.Transfer(ctx, "account:1", "account:none", 70_00, account.Request{}); err != nil {
		t.Fatal(err)
	}
	if f := b.ended("account:1", sent.ID); f.End != account.Voided || f.Code != account.UnknownAccount {
		t.Errorf("%+v", f)
	}
	if one, three := b.state("account:1"), b.state("account:3"); one.Balance != 100_00 || three.Balance != 70_00 {
		t.Errorf("the balances are %d and %d", one.Balance, three.Balance)
	}
	b.replays("account:1")
	b.replays("account:3")
	b.replays("account:none")
}

// The target does not work until the transfer's time is over: its credit is a dead
// letter, the source asks, and the money is free again.
func TestDeadCreditIsVoid(t *testing.T) {
	b := newBank(t)
	var tried atomic.Bool
	failed := make(chan struct{}, 1)
	b.work("writer", func(a *account.Agent) {
		a.OnError = func(*client.Job, error) {
			if !tried.Swap(true) {
				failed <- struct{}{}
			}
		}
	})
	ctx := t.Context()
	treasury := b.teller("treasury")
	if _, err := treasury.Credit(ctx, "account:1", 100_00, account.Request{}); err != nil {
		t.Fatal(err)
	}
	b.breakPolicy(errors.New("the policy cannot be read"))
	sent, err := treasury.Transfer(ctx, "account:1", "account:2", 70_00, account.Request{})
	if err != nil || sent.Available != 30_00 {
		t.Fatalf("%+v, %v", sent, err)
	}
	<-failed
	for entry := range b.entries("account:2", "transfer.credit") {
		if entry.State != interlock.TaskDead {
			t.Fatalf("the credit is %v", entry.State)
		}
		break
	}
	b.breakPolicy(nil)
	if f := b.ended("account:1", sent.ID); f.End != account.Voided || f.Code != account.TransferLate {
		t.Errorf("%+v", f)
	}
	if one := b.state("account:1"); one.Balance != 100_00 || one.Available() != 100_00 {
		t.Errorf("%+v", one)
	}

	// Replaying the dead letter makes no money.
	dead := b.log("account:2")[0]
	if _, err := b.operator.ReplayTask(ctx, dead.Message, 0); err != nil {
		t.Fatal(err)
	}
	if task, err := b.operator.Await(ctx, dead.Message); err != nil ||
		!strings.Contains(string(task.Result), string(account.TransferLate)) {
		t.Errorf("%s, %v", task.Result, err)
	}
	if two := b.state("account:2"); two.Balance != 0 {
		t.Errorf("%+v", two)
	}
	b.replays("account:1")
	b.replays("account:2")
}

// entries returns the entries of a kind in the log of an account, and waits for them.
func (b *bank) entries(key interlock.Key, kind string) func(func(interlock.LogEntry) bool) {
	return func(yield func(interlock.LogEntry) bool) {
		pace := client.Backoff{Least: time.Millisecond, Most: 50 * time.Millisecond}
		for {
			for _, e := range b.log(key) {
				if e.Kind == kind && !yield(e) {
					return
				}
			}
			if err := pace.Wait(b.t.Context(), 0); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func TestAdviser(t *testing.T) {
	b := newBank(t)
	var asked atomic.Int32
	stuck := make(chan struct{})
	defer close(stuck)
	b.work("writer", func(a *account.Agent) {
		a.Concurrency = 1
		a.AdviseFor = 100 * time.Millisecond
		a.Advise = func(ctx context.Context, s account.State, cmd account.Command) (account.Advice, error) {
			asked.Add(1)
			s.Balance = account.MaxMoney // it has a copy
			switch cmd.Order.Memo {
			case "fraud":
				return account.Advice{Refuse: true, Reason: "this looks like fraud"}, nil
			case "half":
				return account.Advice{Amount: cmd.Order.Amount / 2}, nil
			case "double":
				return account.Advice{Amount: cmd.Order.Amount * 2}, nil
			case "broken":
				return account.Advice{Refuse: true}, errors.New("the model is out")
			case "panic":
				panic("the model is mad")
			case "slow":
				<-stuck // whatever the state of the context
			}
			return account.Advice{}, nil
		}
	})
	ctx, teller := t.Context(), b.teller("agent")
	for _, tt := range []struct {
		memo    string
		amount  account.Money
		balance account.Money
		code    account.Code
	}{
		{"", 10_00, 10_00, ""},
		{"fraud", 10_00, 10_00, account.AdvisedAgainst},
		{"half", 10_00, 15_00, ""},
		{"double", 10_00, 25_00, ""},
		{"broken", 10_00, 35_00, ""},
		{"slow", 10_00, 45_00, ""},
		{"panic", 10_00, 55_00, ""},
		{"half", 100_01, 55_00, account.AboveMaximum},
	} {
		r, err := teller.Credit(ctx, "account:1", tt.amount, account.Request{Memo: tt.memo})
		if tt.code != "" {
			refusedWith(t, err, tt.code)
		} else if err != nil {
			t.Error(err)
		}
		if r.Balance != tt.balance {
			t.Errorf("%q: the balance is %d, wanted %d", tt.memo, r.Balance, tt.balance)
		}
	}
	if asked := asked.Load(); asked != 7 {
		t.Errorf("the adviser was asked %d times: it need not be about what policy refuses", asked)
	}
	b.replays("account:1")
}

// A writer that dies with a decided message in its hands has done nothing.
func TestCrash(t *testing.T) {
	b := newBank(t)
	crashes := 0
	b.work("writer", func(a *account.Agent) {
		a.Concurrency = 1
		a.Now = func() time.Time {
			if crashes++; crashes%2 == 1 {
				panic("crash")
			}
			return time.Now()
		}
	})
	teller := b.teller("agent")
	for i := range 5 {
		if r, err := teller.Credit(t.Context(), "account:1", 10_00, account.Request{}); err != nil ||
			r.Balance != account.Money(i+1)*10_00 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	again := 0
	for _, e := range b.log("account:1") {
		again += e.Attempt - 1
	}
	if again != 5 {
		t.Errorf("%d messages were handed out again", again)
	}
	b.replays("account:1")
}

// asking waits for a task that waits for a person.
func (b *bank) asking() interlock.Task {
	b.t.Helper()
	pace := client.Backoff{Least: time.Millisecond, Most: 50 * time.Millisecond}
	for {
		for task, err := range b.operator.Tasks(b.t.Context(), client.TaskFilter{State: interlock.TaskAsking}) {
			if err != nil {
				b.t.Fatal(err)
			}
			return task
		}
		if err := pace.Wait(b.t.Context(), 0); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestApproval(t *testing.T) {
	b := newBank(t)
	b.work("writer", nil)
	ctx := t.Context()
	treasury := b.teller("treasury")
	if _, err := treasury.Credit(ctx, "account:1", 500_00, account.Request{}); err != nil {
		t.Fatal(err)
	}
	answer := func(verdict interlock.Verdict) (account.Reply, error) {
		type outcome struct {
			reply account.Reply
			err   error
		}
		done := make(chan outcome, 1)
		go func() {
			r, err := treasury.Credit(ctx, "account:1", 600_00, account.Request{Memo: "bonus"})
			done <- outcome{r, err}
		}()
		task := b.asking()
		if task.Approval == nil ||
			!strings.Contains(task.Approval.Question, `credit of 600.00 EUR, asked for by treasury, who says "bonus"`) {
			t.Errorf("%+v", task.Approval)
		}
		// Meanwhile the account continues.
		if _, err := b.teller("agent").Debit(ctx, "account:1", 1_00, account.Request{}); err != nil {
			t.Error(err)
		}
		if _, err := b.operator.AnswerTask(ctx, task.ID, verdict, "ann", "so be it"); err != nil {
			t.Fatal(err)
		}
		o := <-done
		return o.reply, o.err
	}
	if r, err := answer(interlock.Approved); err != nil || r.ApprovedBy != "ann" || r.Balance != 1099_00 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := answer(interlock.Denied); err == nil {
		t.Error("what a person has denied was done")
	} else if dead, ok := errors.AsType[*client.TaskError](err); !ok || dead.Task.State != interlock.TaskDead {
		t.Error(err)
	}

	// A caller that asks for approval in the writer's stead gets past no check.
	sly := b.hire("treasury")
	sent, err := sly.Send(ctx, client.Message{
		Key: "account:1", Kind: "debit", Body: map[string]any{"amount": 600_00}, Approval: &client.Question{Text: "may I?"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"may I?", "More than 500.00 EUR needs a person's yes"} {
		task := b.asking()
		if task.ID != sent.ID || !strings.Contains(task.Approval.Question, want) {
			t.Fatalf("asked is %q, wanted %q", task.Approval.Question, want)
		}
		if _, err := b.operator.AnswerTask(ctx, task.ID, interlock.Approved, "ann", ""); err != nil {
			t.Fatal(err)
		}
	}
	if task, err := b.operator.Await(ctx, sent.ID); err != nil ||
		!strings.Contains(string(task.Result), `"approved_by":"ann"`) {
		t.Errorf("%s, %v", task.Result, err)
	}
	b.replays("account:1")
}

// The agent decides nothing before its ledger has what was decided before, and leaves the
// ledger complete when it ends.
func TestAgentKeepsLedger(t *testing.T) {
	b := newBank(t)
	var text bytes.Buffer
	ledger := account.NewLedger(&text)
	stop := b.work("writer", func(a *account.Agent) { a.Ledger = ledger })
	teller := b.teller("treasury")
	for n := range 10 {
		if _, err := teller.Credit(t.Context(), "account:1", 1, account.Request{}); err != nil {
			t.Fatal(err)
		}
		if lines := ledger.Lines(); lines != uint64(n) {
			t.Errorf("the ledger has %d lines, when %d messages were decided before the last one", lines, n)
		}
	}
	stop()
	if ledger.Lines() != 10 || bytes.Count(text.Bytes(), []byte("\n")) != 10 {
		t.Errorf("the ledger has %d lines", ledger.Lines())
	}
	if err := account.NewReader().Read(&text); err != nil {
		t.Error(err)
	}
}

// A writer with a full disk stops deciding, before what it decides can be lost.
func TestAgentStopsWithItsLedger(t *testing.T) {
	b := newBank(t)
	read, write := io.Pipe()
	broken := errors.New("no room")
	read.CloseWithError(broken)
	ledger := account.NewLedger(write)
	refused := make(chan error, 100)
	b.work("writer", func(a *account.Agent) {
		a.Ledger = ledger
		a.OnError = func(_ *client.Job, err error) { refused <- err }
	})
	if _, err := b.teller("treasury").Credit(t.Context(), "account:1", 1, account.Request{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.operator.Send(
		t.Context(), client.Message{Key: "account:1", Kind: "credit", Body: account.Order{Amount: 1}},
	); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	<-ledger.Failed()
	if got := b.state("account:1").Balance; got != 1 {
		t.Errorf("the balance is %d", got)
	}
}
