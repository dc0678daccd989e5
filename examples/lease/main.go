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
)

func main() { program.Main(run) }

var namespace = program.Namespace("lease")

const account = interlock.Key("account:12345")

func run(ctx context.Context, addr string, out io.Writer) error {
	billing, err := client.Dial(ctx, client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: "billing"})
	if err != nil {
		return err
	}
	defer leave(billing)
	support, err := client.Dial(ctx, client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: "support"})
	if err != nil {
		return err
	}
	defer leave(support)

	// Billing takes the account and thinks about a late fee.
	fee, err := billing.Acquire(ctx, client.Request{Keys: []interlock.Key{account}, Purpose: "apply late fee"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "billing holds", account)

	// Support does not want to wait, and learns the holder's name.
	_, err = support.Acquire(ctx, client.Request{Keys: []interlock.Key{account}, Purpose: "goodwill credit"})
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return fmt.Errorf("support was not refused: %w", err)
	}
	fmt.Fprintf(
		out, "support is refused (%s): %s holds it to %q\n", refusal.Code, refusal.Holders[0].Agent,
		refusal.Holders[0].Purpose,
	)

	// So it stands in line, for ten seconds at most.
	queued := make(chan interlock.Ticket, 1)
	granted := make(chan *client.Lease, 1)
	failed := make(chan error, 1)
	go func() {
		limit, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		lease, err := support.Acquire(limit, client.Request{
			Keys: []interlock.Key{account}, Purpose: "goodwill credit", OnConflict: interlock.Wait,
			OnQueued: func(ticket interlock.Ticket, _ []interlock.Holder) { queued <- ticket },
		})
		if err != nil {
			failed <- err
			return
		}
		granted <- lease
	}()
	select {
	case ticket := <-queued:
		fmt.Fprintf(out, "support stands in line, place %d of %d\n", ticket.Position, ticket.Length)
	case err := <-failed:
		return err
	}

	// Billing is done and leaves a note. Its context ends with the lease.
	if err := fee.Release(ctx, client.Outcome{Outcome: "done", Note: "charged a late fee of 35.00"}); err != nil {
		return err
	}
	fmt.Fprintln(out, "billing has released it")

	var credit *client.Lease
	select {
	case credit = <-granted:
	case err := <-failed:
		return err
	}
	fmt.Fprintf(out, "support holds it; changed while waiting: %v\n", credit.Changed())
	for _, note := range credit.Notes() {
		fmt.Fprintf(out, "note of %s: %q\n", note.Agent, note.Text)
	}

	// Wherever agents write, the fence is checked: billing's is over.
	for _, writer := range []struct {
		name  string
		fence interlock.Fence
	}{{"billing", fee.Fence()}, {"support", credit.Fence()}} {
		switch err := support.CheckFence(ctx, account, writer.fence); {
		case err == nil:
			fmt.Fprintf(out, "a write of %s may go ahead\n", writer.name)
		case errors.Is(err, &interlock.Error{Code: interlock.CodeFenced}):
			fmt.Fprintf(out, "a write of %s is refused: its fence is old\n", writer.name)
		default:
			return err
		}
	}
	return credit.Release(ctx, client.Outcome{Outcome: "done"})
}

// leave ends a session, also when the program was interrupted.
func leave(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx) // the session ends by its ttl otherwise
}
