package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
	"github.com/interlockdev/interlock/writer/account"
)

func main() { program.Main(run) }

var namespace = program.Namespace("account")

const (
	customer interlock.Key = "account:12345"
	merchant interlock.Key = "account:777"
)

// policy holds for both accounts. Agents may charge and credit small amounts; only the
// treasury moves more.
var policy = account.Policy{
	Currency: "EUR", Decimals: 2, TransferTo: "account:",
	Rules: []account.Rule{
		{Requester: "treasury", Settle: true},
		{Requester: "*", Kinds: []account.Kind{account.Credit, account.Debit}, MaxAmount: 50_00, DayOut: 80_00, Urgency: 10},
	},
}

func run(ctx context.Context, addr string, out io.Writer) error {
	b := &bank{addr: addr, out: out}
	defer b.close()
	treasury, err := b.hire(ctx, "treasury")
	if err != nil {
		return err
	}
	if err := treasury.SetQueue(ctx, interlock.TaskQueue{Name: "accounts"}); err != nil {
		return err
	}
	if err := treasury.SetPattern(
		ctx,
		interlock.Pattern{Name: "account", Shape: "account:{id:int}", Write: interlock.WriteSingle, WriterQueue: "accounts"},
	); err != nil {
		return err
	}
	if err := policy.Check(); err != nil {
		return err
	}

	writer, err := b.hire(ctx, "account-agent")
	if err != nil {
		return err
	}
	agent := &account.Agent{
		Client: writer, Queue: "accounts", Policy: func(interlock.Key) (account.Policy, error) { return policy, nil },
	}
	ctx, stop := context.WithCancel(ctx)
	working := make(chan error, 1)
	go func() { working <- agent.Run(ctx) }()

	err = b.play(ctx, treasury)
	stop()
	return errors.Join(err, <-working)
}

func (b *bank) play(ctx context.Context, treasury *client.Client) error {
	office := account.NewClient(treasury)
	b.tell("opening credit of 200.00")(office.Credit(ctx, customer, 200_00, account.Request{}))

	hired, err := b.hire(ctx, "billing-7")
	if err != nil {
		return err
	}
	billing := account.NewClient(hired)
	b.tell("late fee of 50.00")(billing.Debit(ctx, customer, 50_00, account.Request{Memo: "late fee"}))
	b.tell("late fee of 50.00, again")(billing.Debit(ctx, customer, 50_00, account.Request{Memo: "late fee"}))
	b.tell(
		"critically urgent",
	)(billing.Debit(ctx, customer, 150_00, account.Request{Memo: "critically urgent", Priority: 100}))

	// A hold reserves money for a later capture.
	hold, err := b.tell("hold of 60.00")(office.Hold(ctx, customer, 60_00, account.Request{For: time.Hour}))
	if err != nil {
		return err
	}
	b.tell("capture of 45.00")(office.Capture(ctx, customer, hold.ID, 45_00, account.Request{}))

	// A transfer is under way until its money has arrived.
	sent, err := b.tell("transfer of 100.00")(office.Transfer(ctx, customer, merchant, 100_00, account.Request{}))
	if err != nil {
		return err
	}
	pace := client.Backoff{Least: 5 * time.Millisecond, Most: time.Second}
	end, ok, err := office.Outcome(ctx, customer, sent.ID)
	for ; err == nil && !ok; end, ok, err = office.Outcome(ctx, customer, sent.ID) {
		if err := pace.Wait(ctx, 0); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "the transfer is %s\n", end.End)

	// The log yields the same when it is decided again.
	for _, key := range []interlock.Key{customer, merchant} {
		var log []interlock.LogEntry
		for entry, err := range treasury.Log(ctx, key, 0) {
			if err != nil {
				return err
			}
			log = append(log, entry)
		}
		state, err := account.Replay(log)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "%s has %d cents, by its log\n", key, state.Balance)
	}
	return nil
}

// bank is where the agents work. Each has a session of its own.
type bank struct {
	addr  string
	out   io.Writer
	staff []*client.Client
}

// tell returns how a command was decided. A refusal is no failure of the example.
func (b *bank) tell(what string) func(account.Reply, error) (account.Reply, error) {
	return func(r account.Reply, err error) (account.Reply, error) {
		switch refused, ok := errors.AsType[*account.RefusedError](err); {
		case ok:
			fmt.Fprintf(b.out, "%s: refused (%s): %s\n  -> %s\n", what, r.Code, refused.Reply.Message, r.Next)
		case err == nil:
			fmt.Fprintf(b.out, "%s: %s, %d cents available\n", what, r.Outcome, r.Available)
		default:
			fmt.Fprintf(b.out, "%s: %v\n", what, err)
		}
		return r, err
	}
}

func (b *bank) hire(ctx context.Context, agent string) (*client.Client, error) {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{b.addr}, Namespace: namespace, Agent: agent})
	if err == nil {
		b.staff = append(b.staff, c)
	}
	return c, err
}

// close ends all sessions, also when the program was interrupted.
func (b *bank) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, c := range b.staff {
		_ = c.Close(ctx) // a session ends by its ttl otherwise
	}
}
