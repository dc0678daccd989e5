package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
)

func main() { program.Main(run) }

var namespace = program.Namespace("verify")

const (
	account = interlock.Key("account:12345")
	balance = interlock.Key("account:12345/balance") // in cents
)

// terms is the document that both agents work on.
type terms struct {
	Plan    string `json:"plan"`
	LateFee bool   `json:"late_fee"`
	Waived  string `json:"waived,omitempty"`
}

func run(ctx context.Context, addr string, out io.Writer) error {
	billing, err := hire(ctx, addr, "billing")
	if err != nil {
		return err
	}
	defer leave(billing)
	support, err := hire(ctx, addr, "support")
	if err != nil {
		return err
	}
	defer leave(support)

	// An account with its terms, and the rule for it: a change of its terms must name the
	// version that was read.
	if err := billing.SetPattern(
		ctx, interlock.Pattern{Name: "accounts", Shape: "account:{id}", Write: interlock.WriteVersion},
	); err != nil {
		return err
	}
	if err := billing.SetPattern(ctx, interlock.Pattern{Name: "balances", Shape: "account:{id}/balance"}); err != nil {
		return err
	}
	none, err := billing.Document(ctx, account)
	if err != nil {
		return err
	}
	if err := write(ctx, billing, none, terms{Plan: "basic"}, "opened"); err != nil {
		return err
	}

	// Billing reads it and thinks for a while about a late fee.
	read, err := billing.Document(ctx, account)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "billing reads version %d: %s\n", read.Version, read.Body)

	// Support is faster: the customer was ill.
	_, err = support.Update(ctx, account, func(old interlock.Document) (interlock.Write, error) {
		return changed(old, func(t *terms) { t.Waived = "illness" })
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "support waives the fee")

	// Billing's decision is based on a stale version, and is refused with the changes.
	err = write(ctx, billing, read, terms{Plan: "basic", LateFee: true}, "payment is 10 days late")
	stale, ok := errors.AsType[*client.StaleError](err)
	if !ok {
		return fmt.Errorf("billing was not refused: %w", err)
	}
	change := stale.Changes[0]
	fmt.Fprintf(
		out, "billing is refused (%s): %s changed %s: %s\n", stale.Refusal.Code, change.Now.Agent, change.Now.Key,
		change.Diff.Text,
	)

	// Its model would now get stale.Message; this one looks for itself.
	_, err = billing.Update(ctx, account, func(old interlock.Document) (interlock.Write, error) {
		return changed(old, func(t *terms) { t.LateFee = t.Waived == "" })
	})
	if err != nil {
		return err
	}
	now, err := billing.Document(ctx, account)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "billing decides again: %s\n", now.Body)

	// A payment and a credit at the same time: additions are never in each other's way,
	// and never leave the bounds.
	for _, agent := range []struct {
		*client.Client
		cents int64
	}{{billing, -4200}, {support, 1500}, {billing, -99_900}} {
		done, err := agent.Commit(
			ctx, client.Commit{Writes: []interlock.Write{client.AddWithin(balance, agent.cents, -50_000, math.MaxInt64)}},
		)
		switch {
		case errors.Is(err, &interlock.Error{Code: interlock.CodeOutOfBounds}):
			fmt.Fprintf(out, "%d cents would be too much\n", agent.cents)
		case err != nil:
			return err
		default:
			fmt.Fprintf(out, "%d cents, the balance is %s\n", agent.cents, done.Documents[0].Body)
		}
	}

	// Both plan to remind the customer. It happens once.
	reminder := client.Action{
		Tool: "mail.send", Target: "customer:77", Arguments: map[string]string{"about": "balance of March"},
	}
	for _, agent := range []*client.Client{billing, support} {
		result, err := agent.Do(ctx, reminder, func(context.Context, interlock.Effect) (any, error) {
			fmt.Fprintln(out, "a mail is sent")
			return map[string]string{"mail": "m-1"}, nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "reminded: %s\n", result)
	}
	return nil
}

// write commits the terms of the account if it is as it was read.
func write(ctx context.Context, agent *client.Client, read interlock.Document, t terms, note string) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = agent.Commit(ctx, client.Commit{
		Reads: client.Seen(read), Writes: []interlock.Write{client.Put(account, body)}, Note: note,
	})
	return err
}

// changed makes a write from the present terms.
func changed(old interlock.Document, change func(*terms)) (interlock.Write, error) {
	var t terms
	if err := json.Unmarshal(old.Body, &t); err != nil {
		return interlock.Write{}, err
	}
	change(&t)
	body, err := json.Marshal(t)
	return client.Put(old.Key, body), err
}

func hire(ctx context.Context, addr, agent string) (*client.Client, error) {
	return client.Dial(ctx, client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: agent})
}

// leave ends a session, also when the program was interrupted.
func leave(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx) // the session ends by its ttl otherwise
}
