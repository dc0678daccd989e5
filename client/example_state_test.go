package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Change a document without a lease: Update reads and commits again when another
// agent was faster.
func ExampleClient_Update() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	type plan struct{ Steps []string }
	for _, step := range []string{"design", "build"} {
		_, err := c.Update(ctx, "doc:plan", func(old interlock.Document) (interlock.Write, error) {
			var p plan
			if old.Body != nil {
				if err := json.Unmarshal(old.Body, &p); err != nil {
					return interlock.Write{}, err
				}
			}
			p.Steps = append(p.Steps, step)
			body, err := json.Marshal(p)
			return client.Put("doc:plan", body), err
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	now, err := c.Document(ctx, "doc:plan")
	fmt.Println(string(now.Body), now.Version, err)
	// Output:
	// {"Steps":["design","build"]} 2 <nil>
}

// Spend from a budget that must not be overdrawn. Additions never conflict with each other.
func ExampleAddWithin() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	for _, cents := range []int64{10_000, -4_000, -7_000} {
		done, err := c.Commit(
			ctx, client.Commit{Writes: []interlock.Write{client.AddWithin("budget:ads", cents, 0, math.MaxInt64)}},
		)
		if errors.Is(err, &interlock.Error{Code: interlock.CodeOutOfBounds}) {
			fmt.Println(cents, "refused: more than is left")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(cents, "left:", string(done.Documents[0].Body))
	}
	// Output:
	// 10000 left: 10000
	// -4000 left: 6000
	// -7000 refused: more than is left
}

// Find the author of a change: each version of a document names its author and the reason.
func ExampleClient_History() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	billing, support := connect("billing"), connect("support")

	for _, change := range []struct {
		agent *client.Client
		reads []interlock.Read
		body  string
		note  string
	}{
		{billing, nil, `{"fee":3}`, "late payment"},
		{support, client.SomeVersion("account:12345"), `{"fee":0}`, "waived: illness"},
	} {
		_, err := change.agent.Commit(
			ctx,
			client.Commit{
				Reads: change.reads, Note: change.note,
				Writes: []interlock.Write{client.Put("account:12345", []byte(change.body))},
			},
		)
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	versions, _, err := billing.History(ctx, "account:12345")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range versions {
		fmt.Println(v.Version, v.Agent, string(v.Body), v.Note)
	}
	// Output:
	// 2 support {"fee":0} waived: illness
	// 1 billing {"fee":3} late payment
}

// Settle an action with an unknown outcome: the process died, or the answer never came. It is
// not repeated before a person or a program has found out at the target.
func ExampleClient_Reconcile() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	charge := client.Action{Tool: "stripe.charge", Target: "account:12345", Arguments: map[string]string{"amount": "3.00"}}
	act := func(context.Context, interlock.Effect) (any, error) { return nil, errors.New("connection reset") }

	_, err := c.Do(ctx, charge, act)
	fmt.Println("first:", err)
	_, err = c.Do(ctx, charge, act)
	unknown, ok := errors.AsType[*client.EffectError](err)
	if !ok {
		fmt.Println(err)
		return
	}
	fmt.Println("second:", unknown.Refusal.Code)

	// The target's own list shows that the charge was made.
	if _, err := c.Reconcile(ctx, unknown.Effect.Digest, true, json.RawMessage(`"ch_1"`)); err != nil {
		fmt.Println(err)
		return
	}
	result, err := c.Do(ctx, charge, act)
	fmt.Println("reconciled:", string(result), err)
	// Output:
	// first: connection reset
	// second: effect_unknown
	// reconciled: "ch_1" <nil>
}

// Keep a task that cannot be done as a dead letter, mend its cause, and replay it.
func ExampleClient_ReplayTask() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	working, stop := context.WithCancel(ctx)
	defer stop()

	if err := c.SetQueue(ctx, interlock.TaskQueue{Name: "mail", MaxAttempts: 2, Backoff: time.Millisecond}); err != nil {
		fmt.Println(err)
		return
	}
	up := make(chan struct{}) // closed when the mail server is up
	go func() {
		_ = c.Work(working, client.Worker{Queue: "mail", Handle: func(context.Context, *client.Job) (client.Done, error) {
			select {
			case <-up:
				return client.Done{Result: "sent"}, nil
			default:
				return client.Done{}, errors.New("the mail server is down")
			}
		}})
	}()

	task, err := c.Submit(ctx, client.TaskSpec{Queue: "mail", Claims: []interlock.Claim{{Key: "customer:77"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Await(ctx, task.ID)
	dead, ok := errors.AsType[*client.TaskError](err)
	if !ok {
		fmt.Println(err)
		return
	}
	fmt.Println(dead.Task.State, "after", len(dead.Task.Attempts), "attempts")

	close(up)
	if _, err := c.ReplayTask(ctx, task.ID, 0); err != nil {
		fmt.Println(err)
		return
	}
	task, err = c.Await(ctx, task.ID)
	fmt.Println(task.State, string(task.Result), err)
	// Output:
	// dead after 2 attempts
	// done "sent" <nil>
}

// Let a person decide before a task goes on. The task holds nothing while it waits.
func ExampleNeedsApproval() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	agent, person := connect("refunds"), connect("console")
	working, stop := context.WithCancel(ctx)
	defer stop()

	if err := agent.SetQueue(ctx, interlock.TaskQueue{Name: "refunds"}); err != nil {
		fmt.Println(err)
		return
	}
	asks := make(chan struct{}, 1)
	go func() {
		_ = agent.Work(working, client.Worker{
			Queue: "refunds",
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				if job.Task().Approval == nil {
					return client.Done{}, client.NeedsApproval(client.Question{Text: "refund 450.00?"})
				}
				return client.Done{Result: "refunded"}, nil
			},
			OnError: func(_ *client.Job, err error) {
				if _, ok := client.QuestionOf(err); ok {
					asks <- struct{}{}
				}
			},
		})
	}()

	task, err := agent.Submit(ctx, client.TaskSpec{Queue: "refunds", Claims: []interlock.Claim{{Key: "account:12345"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-asks
	task, err = person.AnswerTask(ctx, task.ID, interlock.Approved, "anna", "receipt checked")
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err = agent.Await(ctx, task.ID)
	fmt.Println(task.State, string(task.Result), err)
	// Output:
	// done "refunded" <nil>
}
