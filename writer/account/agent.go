package account

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Agent is the writer: the worker that alone changes accounts. Any number of processes
// may run one for the same queue; each message is handled by one of them.
type Agent struct {
	Client *client.Client
	// Queue is the one that the pattern of the accounts' keys names as writer.
	Queue string
	// Policy returns the policy of an account; the zero Policy means that there is no such
	// account. An error, or a policy that Check refuses, leaves the message for later.
	Policy func(account interlock.Key) (Policy, error)

	// Advise, if set, is asked about each command that policy allows. An error, a panic,
	// and silence for longer than AdviseFor, leave it to the policy alone.
	Advise    Adviser
	AdviseFor time.Duration // 0: DefaultAdviseFor; at most half of the lease's ttl is wise

	// Ledger, if set, has everything that was decided on an account before the next message
	// to it is decided. When it fails, nothing is decided any more.
	Ledger *Ledger

	Concurrency int           // how many accounts are worked on at a time; 0: 1
	TTL         time.Duration // of the lease on an account; 0: the queue's
	Drain       time.Duration // for running work when Run is to end; 0: client.DefaultDrain
	// OnError is called for each message that could not be decided, as Worker.OnError is.
	OnError func(*client.Job, error)

	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// DefaultAdviseFor is how long an adviser may take.
const DefaultAdviseFor = 10 * time.Second

// lastRecords is how long an agent that ends tries to bring its ledger up to date. Missing
// entries then come when it is opened again.
const lastRecords = 5 * time.Second

// Run works until ctx ends, and then finishes what is under way.
func (a *Agent) Run(ctx context.Context) error {
	err := a.Client.Work(ctx, client.Worker{
		Queue: a.Queue, Concurrency: a.Concurrency, TTL: a.TTL, Drain: a.Drain, Handle: a.Handle, OnError: a.OnError,
	})
	if a.Ledger == nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRecords)
	defer cancel()
	return errors.Join(err, a.Ledger.catchUp(last, a.Client))
}

// Handle decides one message. Its result is written in one step: the state, the reply, and the
// messages to other accounts.
func (a *Agent) Handle(ctx context.Context, job *client.Job) (client.Done, error) {
	task := job.Task()
	if len(task.Claims) != 1 {
		return client.Done{}, client.Dead(errors.New("not a message: want a claim of exactly one account"))
	}
	doc := job.Document(task.Claims[0].Key)
	state, err := Parse(doc)
	if err != nil {
		return client.Done{}, err
	}
	policy, err := a.policy(doc.Key)
	if err != nil {
		return client.Done{}, err
	}
	if a.Ledger != nil {
		if err := a.Ledger.ahead(ctx, a.Client, doc.Key); err != nil {
			return client.Done{}, err
		}
	}
	now := time.Now
	if a.Now != nil {
		now = a.Now
	}
	cmd := read(doc.Key, task.ID.String(), Kind(task.Kind), task.Payload)
	cmd.By, cmd.From, cmd.Priority, cmd.Approved = Requester(task), Origin(task), task.Priority, approved(task.Approval)

	at := now()
	d := Decide(policy, state, cmd, at)
	if a.Advise != nil && d.Reply.Outcome != OutcomeRefused && cmd.Kind.counts() {
		cmd.Advice = a.advice(ctx, state, cmd)
		if job.Attempt() > 1 && cmd.Advice != nil {
			cmd.Advice.Defer = 0 // once is enough
		}
		d = Decide(policy, state, cmd, at)
	}
	switch {
	case d.Defer > 0:
		return client.Done{}, client.RetryAfter(d.Defer, errors.New("deferred by the account's adviser: "+cmd.Advice.Reason))
	case d.Question != "":
		return client.Done{}, client.NeedsApproval(client.Question{
			Text: d.Question, Limit: policy.ApproveWithin, OnLimit: interlock.Denied, Reads: client.Seen(doc),
		})
	}
	if a.Ledger != nil {
		a.Ledger.expect(task.ID, doc.Key)
	}
	return d.done(doc, string(cmd.Kind)), nil
}

// done is a decision as the acknowledgement writes it.
func (d *Decision) done(doc interlock.Document, note string) client.Done {
	d.Reply.On = &doc.Version
	done := client.Done{Result: d.Reply, Reads: client.Seen(doc), Note: note}
	if d.Changed {
		done.Writes = []interlock.Write{client.Put(doc.Key, d.State.encode())}
	}
	for _, m := range d.Messages {
		// Nothing but an answer ends a transfer, so these are tried for as long as can be.
		done.Messages = append(done.Messages, client.Message{
			Key: m.To, Kind: string(m.Kind), Body: m.Body, Delay: m.Delay, Deadline: m.Deadline,
			MaxAttempts: interlock.MaxAttempts,
		})
	}
	return done
}

func (a *Agent) policy(account interlock.Key) (Policy, error) {
	p, err := a.Policy(account)
	if err == nil && p.Currency != "" {
		err = p.Check()
	}
	return p, err
}

// advice asks the adviser, on a copy of the state. No answer is no advice. One that does
// not heed its context is left behind.
func (a *Agent) advice(ctx context.Context, state State, cmd Command) *Advice {
	ctx, cancel := context.WithTimeout(ctx, orDefault(a.AdviseFor, DefaultAdviseFor))
	defer cancel()
	answer := make(chan *Advice, 1)
	go func() {
		var advice *Advice
		defer func() {
			if recover() != nil {
				advice = nil // it is no more than an adviser
			}
			answer <- advice
		}()
		if said, err := a.Advise(ctx, state.clone(), cmd); err == nil {
			advice = &said
		}
	}()
	select {
	case advice := <-answer:
		return advice
	case <-ctx.Done():
		return nil
	}
}
