package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Acquire a key, write under the lease's fence, and leave a note for the next holder. The
// storage refuses a writer with a lower fence than one that it has seen.
func ExampleClient_Acquire() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	billing, support := connect("billing"), connect("support")

	var highest interlock.Fence // kept by the storage
	write := func(fence interlock.Fence, text string) {
		if fence < highest {
			fmt.Println("refused:", text)
			return
		}
		highest = fence
		fmt.Println("written:", text)
	}

	first, err := billing.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:12345"}, Purpose: "apply late fee"})
	if err != nil {
		fmt.Println(err)
		return
	}
	write(first.Fence(), "fee of 3.00")
	_ = first.Release(ctx, client.Outcome{Outcome: "done", Note: "fee of 3.00 applied"})

	second, err := support.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:12345"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("note:", second.Notes()[0].Text)
	write(second.Fence(), "fee waived")
	write(first.Fence(), "late write of billing")
	_ = second.Release(ctx, client.Outcome{})
	// Output:
	// written: fee of 3.00
	// note: fee of 3.00 applied
	// written: fee waived
	// refused: late write of billing
}

// Skip work that another agent already does.
func ExampleClient_Acquire_skip() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	first, second := connect("crawler-1"), connect("crawler-2")

	page := client.Request{Keys: []interlock.Key{"crawl:example.org"}, OnConflict: interlock.Skip}
	lease, err := first.Acquire(ctx, page)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx, client.Outcome{})

	_, err = second.Acquire(ctx, page)
	if skipped, ok := errors.AsType[*client.SkippedError](err); ok {
		fmt.Println("skipped:", skipped.Holders[0].Agent, "does it")
	}
	// Output:
	// skipped: crawler-1 does it
}

// Wait in line, but not for longer than a second.
func ExampleClient_Acquire_deadline() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	holder, waiter := connect("holder"), connect("waiter")

	lease, err := holder.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx, client.Outcome{})

	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = waiter.Acquire(ctx, client.Request{
		Keys: []interlock.Key{"repo:web"}, OnConflict: interlock.Wait,
		OnQueued: func(ticket interlock.Ticket, holders []interlock.Holder) {
			fmt.Println("number", ticket.Position, "in line behind", holders[0].Agent)
			cancel() // an example need not wait for the second to pass
		},
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// number 1 in line behind holder
	// true
}

// Limit calls to a model: two at a time for all agents.
func ExampleClient_Acquire_permits() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	if err := c.SetPattern(ctx, interlock.Pattern{Name: "model", Shape: "model:{name}", Capacity: 2}); err != nil {
		fmt.Println(err)
		return
	}

	call := client.Request{Claims: []interlock.Claim{{Key: "model:large", Mode: interlock.Permits, Count: 1}}}
	for range 2 {
		if _, err := c.Acquire(ctx, call); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, err := c.Acquire(ctx, call)
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		fmt.Println("the third:", refusal.Code)
	}
	// Output:
	// the third: at_capacity
}

// Take any one key of a pool.
func ExampleClient_Acquire_pool() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	if err := c.SetPattern(
		ctx, interlock.Pattern{Name: "gpu", Shape: "gpu:{n:int}", Members: []string{"gpu:{0..1}"}},
	); err != nil {
		fmt.Println(err)
		return
	}

	for range 2 {
		lease, err := c.Acquire(ctx, client.Request{Prefix: "gpu:"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Key())
	}
	// Output:
	// gpu:0
	// gpu:1
}

// Give a subagent a flow of its own, so that it and its parent exclude each other.
func ExampleWithFlow() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	parent := client.WithFlow(ctx, "parent")
	child := client.WithFlow(ctx, "child")
	plan := client.Request{Keys: []interlock.Key{"doc:plan"}}

	lease, err := c.Acquire(parent, plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := c.Acquire(parent, plan)
	fmt.Println("parent again:", err, again.ID() == lease.ID())
	_, err = c.Acquire(child, plan)
	fmt.Println("child:", errors.Is(err, &interlock.Error{Code: interlock.CodeHeld}))
	// Output:
	// parent again: <nil> true
	// child: true
}

// Stop work when the lease is lost: an operator revokes it, it expires, or its session ends. The
// session's heartbeats are sent by the client itself and keep the lease until then.
func ExampleLease_Context() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", lease.Context().Err() == nil && lease.Left() > 0)

	_ = c.Close(ctx) // ends the session, and its leases with it
	<-lease.Context().Done()
	refusal, _ := errors.AsType[*interlock.Error](context.Cause(lease.Context()))
	fmt.Println("lost:", refusal.Code)
	// Output:
	// held: true
	// lost: session_ended
}

// Read under a shared lease, and convert it for the write.
func ExampleLease_Convert() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"doc:plan"}, Mode: interlock.Shared})
	if err != nil {
		fmt.Println(err)
		return
	}
	read := lease.Fence()
	// ... read, think, decide to write ...
	err = lease.Convert(ctx, client.Conversion{Claims: []interlock.Claim{{Key: "doc:plan", Mode: interlock.Exclusive}}})
	fmt.Println(err, lease.Claims()[0].Mode, lease.Fence() > read)
	_ = lease.Release(ctx, client.Outcome{})
	// Output:
	// <nil> exclusive true
}

// Finish early when a more urgent request asks for the key.
func ExampleLease_Asked() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	background, urgent := connect("background"), connect("urgent")

	lease, err := background.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web"}, Purpose: "reformat"})
	if err != nil {
		fmt.Println(err)
		return
	}
	granted := make(chan error, 1)
	go func() {
		_, err := urgent.Acquire(
			ctx,
			client.Request{Keys: []interlock.Key{"repo:web"}, Purpose: "hotfix", OnConflict: interlock.Preempt, Priority: 10},
		)
		granted <- err
	}()

	<-lease.Asked()
	fmt.Println("asked to yield for:", lease.Yield().Purpose)
	_ = lease.Release(ctx, client.Outcome{Outcome: "partial", Note: "half of the files are reformatted"})
	fmt.Println("urgent:", <-granted)
	// Output:
	// asked to yield for: hotfix
	// urgent: <nil>
}

// Put a lease aside while a person decides, without heartbeats, and go on with the answer.
func ExampleLease_Park() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	agent, person := connect("refunds"), connect("console")

	lease, err := agent.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:12345"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, fence := lease.ID(), lease.Fence()
	if err := lease.Park(ctx, client.ParkRequest{Reason: "refund 450.00?", For: time.Hour}); err != nil {
		fmt.Println(err)
		return
	}

	// Hours later, a person answers, and any process that knows the lease's id goes on.
	if err := person.AnswerLease(ctx, fence, interlock.Approved, "anna", "receipt checked"); err != nil {
		fmt.Println(err)
		return
	}
	lease, err = agent.Resume(ctx, id, client.ResumeRequest{OnConflict: interlock.Wait})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Decision().Verdict, lease.Decision().Reason)
	_ = lease.Release(ctx, client.Outcome{Outcome: "refunded"})
	// Output:
	// approved receipt checked
}

// Ask whether a fence is still good before a write to a storage that cannot check it itself.
func ExampleClient_CheckFence() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:12345"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", c.CheckFence(ctx, "account:12345", lease.Fence()))
	_ = lease.Release(ctx, client.Outcome{})
	err = c.CheckFence(ctx, "account:12345", lease.Fence())
	fmt.Println("released:", errors.Is(err, &interlock.Error{Code: interlock.CodeFenced}))
	// Output:
	// held: <nil>
	// released: true
}

// Admit at most two runs of an organisation at once.
func ExampleClient_StartRun() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	if err := c.SetPattern(
		ctx, interlock.Pattern{Name: "runs", Shape: string(interlock.RunKeys("{org}", "nightly")[0]), Capacity: 2},
	); err != nil {
		fmt.Println(err)
		return
	}

	for i := range 3 {
		_, err := c.StartRun(ctx, client.RunRequest{Org: "acme", Workflow: "nightly", MaxWait: -1})
		if refusal, ok := errors.AsType[*interlock.Error](err); ok {
			fmt.Println("run", i, refusal.Code)
		} else {
			fmt.Println("run", i, "admitted")
		}
	}
	// Output:
	// run 0 admitted
	// run 1 admitted
	// run 2 too_many_runs
}

// Share the parts of a job out among processes; the parts of one that dies move to the others.
func ExampleClient_Join() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	begun := make(chan int)
	member, err := c.Join(ctx, client.Membership{
		Key: "job:index", Parts: 2,
		Work: func(ctx context.Context, part client.Part) {
			begun <- part.Index
			<-ctx.Done() // work on the part until it is to go to another member
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("parts of the only member:", <-begun+<-begun+1)
	fmt.Println(member.Leave(ctx))
	// Output:
	// parts of the only member: 2
	// <nil>
}

// Report a wait that the server cannot see, so that a deadlock through it is found.
func ExampleClient_WaitFor() {
	ctx := context.Background()
	connect, end := serve(ctx)
	defer end()
	writer, reviewer := connect("writer"), connect("reviewer")

	lease, err := writer.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	wait, err := writer.WaitFor(
		lease.Context(), client.WaitTarget{Session: reviewer.SessionName(), Purpose: "review of the change"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer wait.End()

	// The reviewer, in turn, wants what the writer holds: neither could ever go on.
	review := client.WithFlow(ctx, client.SharedFlow)
	_, err = reviewer.Acquire(review, client.Request{Keys: []interlock.Key{"repo:web"}, OnConflict: interlock.Wait})
	fmt.Println(errors.Is(err, &interlock.Error{Code: interlock.CodeDeadlock}))
	_ = lease.Release(ctx, client.Outcome{})
	// Output:
	// true
}
