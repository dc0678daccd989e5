package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// key returns the key that an agent leases before it touches an account.
func key(account string) interlock.Key { return interlock.Key("account:" + account) }

// worker is an agent under leases: it does one update, however often it takes.
type worker struct {
	dial   func(context.Context) (*client.Client, error)
	ledger ledger
	update update
	// answer returns when the model has answered. The lease's context ends when the
	// lease is lost; an agent may be too busy to notice.
	answer func(ctx context.Context, lease context.Context) error
	// tell hears of each step. It must not block.
	tell func(step)
}

// step is one line of an agent's life. Processes send it as JSON.
type step struct {
	Event  string          `json:"event"` // thinking, refused, lost, written; of the accounts' writer: decided
	Agent  string          `json:"agent"`
	Fence  interlock.Fence `json:"fence,string"`
	Higher interlock.Fence `json:"highest_fence,string"` // for refused
	WaitMS int64           `json:"wait_ms"`              // for thinking: in line
	Reason string          `json:"reason,omitempty"`     // for lost

	Attempt int `json:"attempt,omitempty"` // of the accounts' writer
}

// errAgain reports that the update was not made, and that it is safe to start over: nothing was
// written.
var errAgain = errors.New("start over")

func (w *worker) run(ctx context.Context) error {
	for {
		if err := w.attempt(ctx); !errors.Is(err, errAgain) {
			return err
		}
	}
}

// attempt reads, thinks and writes under one lease.
func (w *worker) attempt(ctx context.Context) error {
	c, err := w.dial(ctx)
	if err != nil {
		return err
	}
	// The session's remaining leases are released; if it has ended, it holds nothing.
	defer c.Close(ctx)

	asked := time.Now()
	lease, err := c.Acquire(ctx, client.Request{
		Keys:       []interlock.Key{key(w.update.Account)},
		OnConflict: interlock.Wait,
		Purpose:    w.update.What,
		Terms:      interlock.Terms{Grace: client.NoGrace},
	})
	if err != nil {
		return w.failed(err)
	}
	fence, waited := lease.Fence(), time.Since(asked)
	a, err := w.ledger.readFenced(w.update.Account, fence)
	if err != nil {
		return w.failed(err)
	}
	w.tell(step{Event: "thinking", Agent: w.update.Agent, Fence: fence, WaitMS: waited.Milliseconds()})
	if err := w.answer(ctx, lease.Context()); err != nil {
		return w.failed(err)
	}
	if err := w.ledger.writeFenced(a.with(w.update), fence); err != nil {
		return w.failed(err)
	}
	w.tell(step{Event: "written", Agent: w.update.Agent, Fence: fence})

	// The update is in the file. If the lease has ended meanwhile, there is nothing to release.
	var gone *interlock.Error
	err = lease.Release(ctx, client.Outcome{Outcome: "done", Note: w.update.String()})
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

// failed decides whether the agent starts over: after a refusal by the guard, and
// after a loss of its lease or session.
func (w *worker) failed(err error) error {
	var stale *staleError
	var refused *interlock.Error
	switch {
	case errors.As(err, &stale):
		w.tell(step{Event: "refused", Agent: w.update.Agent, Fence: stale.Fence, Higher: stale.Higher})
		return errAgain
	case errors.As(err, &refused) && lost(refused.Code):
		w.tell(step{Event: "lost", Agent: w.update.Agent, Reason: err.Error()})
		return errAgain
	}
	return err
}

func lost(code interlock.Code) bool {
	switch code {
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodeOfferLapsed,
		interlock.CodeSessionEnded, interlock.CodeUnknownSession, interlock.CodeUnknownTicket, interlock.CodeOutcomeUnknown:
		return true
	}
	return false
}

// order is the first line of an agent process's input. The following lines report that the
// model has answered.
type order struct {
	Server     string `json:"server"`
	Namespace  string `json:"namespace"`
	Credential string `json:"credential"`
	TTLMS      int64  `json:"ttl_ms"`
	Dir        string `json:"dir"`
	Update     update `json:"update"`
}

// dial opens the agent's session.
func (o *order) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Config{
		Addrs:      []string{o.Server},
		Namespace:  interlock.Namespace(o.Namespace),
		Credential: o.Credential,
		Agent:      o.Update.Agent,
		SessionTTL: time.Duration(o.TTLMS) * time.Millisecond,
	})
}

// Agent is the body of an agent process: the hidden command "interlock demo
// agent". It reads its order from in and writes its steps to out. It never asks
// whether its lease still lives before it writes: that is what the guard is for.
func Agent(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return errors.New("no order: this command is started by interlock demo race")
	}
	var o order
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var failed error
	steps := json.NewEncoder(out)
	w := &worker{
		dial:   o.dial,
		ledger: ledger{dir: o.Dir},
		update: o.Update,
		answer: func(context.Context, context.Context) error {
			if !lines.Scan() {
				return errors.New("the model was cut off")
			}
			return nil
		},
		tell: func(s step) { failed = errors.Join(failed, steps.Encode(s)) },
	}
	return errors.Join(w.run(ctx), failed)
}
