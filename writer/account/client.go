package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Client asks accounts on behalf of agents. Each call waits for the reply; a refusal is a
// *RefusedError; its text names the next step. A refused operation has not happened. When an
// approval is needed the call waits for the person, too.
type Client struct {
	c *client.Client
}

// NewClient makes a Client that asks in the name of c's agent and credential.
func NewClient(c *client.Client) *Client { return &Client{c} }

// Request is the optional part of a command. Its zero value is nothing.
type Request struct {
	Currency string // if named, it must be the account's
	Memo     string // for people, at most MaxMemoBytes
	Priority int    // how urgent it is, as far as policy allows
	// ID makes it one command however often it is sent, as client.Message.ID does.
	ID string
	// For is how long a hold stands; 0: as long as policy allows.
	For time.Duration
}

// Credit adds an amount to an account.
func (c *Client) Credit(ctx context.Context, account interlock.Key, amount Money, r Request) (Reply, error) {
	return c.ask(ctx, account, Credit, Order{Amount: amount}, r)
}

// Debit takes an amount from an account.
func (c *Client) Debit(ctx context.Context, account interlock.Key, amount Money, r Request) (Reply, error) {
	return c.ask(ctx, account, Debit, Order{Amount: amount}, r)
}

// Hold keeps an amount for a later Capture. The reply's ID names the hold.
func (c *Client) Hold(ctx context.Context, account interlock.Key, amount Money, r Request) (Reply, error) {
	return c.ask(ctx, account, Hold, Order{Amount: amount, ForMS: r.For.Milliseconds()}, r)
}

// Capture takes an amount of the held money, or all of it if amount is 0, and frees the rest.
func (c *Client) Capture(
	ctx context.Context, account interlock.Key, hold string, amount Money, r Request,
) (Reply, error) {
	return c.ask(ctx, account, Capture, Order{Hold: hold, Amount: amount}, r)
}

// Void frees what was held.
func (c *Client) Void(ctx context.Context, account interlock.Key, hold string, r Request) (Reply, error) {
	return c.ask(ctx, account, Void, Order{Hold: hold}, r)
}

// Transfer moves an amount to another account. The reply reports that the money is kept and on
// its way (OutcomePending); Outcome returns by the reply's ID what became of it.
func (c *Client) Transfer(ctx context.Context, from, to interlock.Key, amount Money, r Request) (Reply, error) {
	return c.ask(ctx, from, Transfer, Order{Amount: amount, To: to}, r)
}

// State reads how an account stands.
func (c *Client) State(ctx context.Context, account interlock.Key) (State, error) {
	doc, err := c.c.Document(ctx, account)
	if err != nil {
		return State{}, err
	}
	return Parse(doc)
}

// Outcome returns how a hold or a transfer from an account ended. ok is false while it stands,
// and again when it is forgotten: Remembered after its end, or earlier on an account with much
// traffic.
func (c *Client) Outcome(ctx context.Context, account interlock.Key, id string) (f FinishedEntry, ok bool, err error) {
	s, err := c.State(ctx, account)
	if err != nil {
		return f, false, err
	}
	f, ok = s.Find(id)
	return f, ok, nil
}

func (c *Client) ask(ctx context.Context, account interlock.Key, kind Kind, order Order, r Request) (Reply, error) {
	order.Currency, order.Memo = r.Currency, r.Memo
	var reply Reply
	text, err := c.c.Ask(ctx, client.Message{
		Key: account, Kind: string(kind), Body: order, Purpose: r.Memo, Priority: r.Priority, ID: r.ID,
	})
	if err != nil {
		return reply, err
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return reply, fmt.Errorf("the reply of %s: %w", account, err)
	}
	if reply.Outcome == OutcomeRefused {
		return reply, &RefusedError{reply}
	}
	return reply, nil
}
